//! The state of a kernel that a packet sets in registers, without a descriptor in memory.

/// The code of a kernel and the initial state of its waves, as the registers of a compute pipe hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterState {
    /// Address of the first instruction (`COMPUTE_PGM_LO` and `COMPUTE_PGM_HI`).
    pub entry: u64,
    /// `COMPUTE_PGM_RSRC1`, `COMPUTE_PGM_RSRC2` and `COMPUTE_PGM_RSRC3`.
    pub rsrc: [u32; 3],
    /// `COMPUTE_USER_DATA_0` to `COMPUTE_USER_DATA_15`: the contents of the first SGPRs.
    pub user_data: [u32; 16],
    /// Waves have 32 work-items.
    pub is_wave32: bool,
}

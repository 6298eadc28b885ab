//! Instructions that the model refuses by name, with what each does that the model lacks. Clang
//! emits none of them.

use super::Operation;

const FORKS: Operation = Operation::Refused("forks the lanes of a wave, which Clang never does");
const HANDLER: Operation = Operation::Refused("belongs to trap handlers");
const HALT: Operation = Operation::Refused("halts the wave for a debugger");
const GRAPHICS: Operation = Operation::Refused("belongs to graphics shaders");
const SKIP: Operation =
    Operation::Refused("skips vector instructions by a mode that Clang never sets");
const SCALAR_SCRATCH: Operation =
    Operation::Refused("accesses scratch for a whole wave, which Clang never does");
const SCRATCH_TO_LDS: Operation =
    Operation::Refused("copies scratch to LDS, which Clang never does");
const IMAGE: Operation =
    Operation::Refused("reads or writes an image's packed bits, which Clang never does");
const SEMAPHORE: Operation =
    Operation::Refused("waits for a semaphore of the whole GPU, which Clang never does");

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load_pck", IMAGE),
    ("image_load_pck_sgn", IMAGE),
    ("image_load_mip_pck", IMAGE),
    ("image_load_mip_pck_sgn", IMAGE),
    ("image_store_pck", IMAGE),
    ("image_store_mip_pck", IMAGE),
    ("s_cbranch_i_fork", FORKS),
    ("s_cbranch_join", FORKS),
    ("s_rfe_b64", HANDLER),
    ("s_endpgm_saved", HANDLER),
    ("s_sethalt", HALT),
    ("s_setkill", HALT),
    ("s_sendmsghalt", HALT),
    ("s_endpgm_ordered_ps_done", GRAPHICS),
    ("v_screen_partition_4se_b32", GRAPHICS),
    ("s_setvskip", SKIP),
    ("s_scratch_load_dword", SCALAR_SCRATCH),
    ("s_scratch_load_dwordx2", SCALAR_SCRATCH),
    ("s_scratch_load_dwordx4", SCALAR_SCRATCH),
    ("s_scratch_store_dword", SCALAR_SCRATCH),
    ("s_scratch_store_dwordx2", SCALAR_SCRATCH),
    ("s_scratch_store_dwordx4", SCALAR_SCRATCH),
    ("ds_gws_sema_br", SEMAPHORE),
    ("scratch_load_lds_ubyte", SCRATCH_TO_LDS),
    ("scratch_load_lds_sbyte", SCRATCH_TO_LDS),
    ("scratch_load_lds_ushort", SCRATCH_TO_LDS),
    ("scratch_load_lds_sshort", SCRATCH_TO_LDS),
    ("scratch_load_lds_dword", SCRATCH_TO_LDS),
];

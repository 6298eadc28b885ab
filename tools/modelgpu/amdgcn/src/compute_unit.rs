//! The compute unit that runs a workgroup, as the registers HW_ID and XCC_ID show it.
//!
//! Workgroups go to the units in turn: first over the XCCs, then over the shader engines, then over the
//! units of an engine. All waves of a workgroup are in one unit, spread over its SIMDs. Which unit
//! hardware takes is not documented; the turns here make tests exact.

use crate::target::Target;

/// SIMDs of a compute unit.
const SIMDS: u32 = 4;

/// The number of compute units of a GPU, by place.
struct Geometry {
    xccs: u32,
    engines: u32,
    units: u32,
}

impl Geometry {
    /// gfx90a: as `tools/modelgpu/kfd` tells ROCr (104 units in 8 engines). gfx942: all of an MI300X,
    /// although ROCr is told of a smaller GPU.
    fn of(target: Target) -> Self {
        let (xccs, engines, units) = match target {
            Target::Gfx90a => (1, 8, 13),
            Target::Gfx942 => (8, 4, 10),
        };
        Self {
            xccs,
            engines,
            units,
        }
    }
}

/// The place of a wave: the values of the hardware registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// HW_ID: WAVE_ID in bits 3:0, SIMD_ID 5:4, PIPE_ID 7:6, CU_ID 11:8, SH_ID 12, SE_ID 15:13.
    /// The other fields (TG_ID, VM_ID, QUEUE_ID, STATE_ID, ME_ID) are 0.
    pub(crate) hw_id: u32,
    /// XCC_ID: XCC_ID in bits 3:0. `None` if the target does not have the register.
    pub(crate) xcc_id: Option<u32>,
}

impl Place {
    /// The place of wave `wave` of workgroup `group`. Both count from 0, in their workgroup and in
    /// their dispatch.
    pub(crate) fn of(target: Target, group: u64, wave: usize) -> Self {
        let geometry = Geometry::of(target);
        let turn = |before: u32, count: u32| (group / u64::from(before) % u64::from(count)) as u32;
        let xcc = turn(1, geometry.xccs);
        let engine = turn(geometry.xccs, geometry.engines);
        let unit = turn(geometry.xccs * geometry.engines, geometry.units);
        let (simd, slot) = (wave as u32 % SIMDS, wave as u32 / SIMDS);
        Self {
            hw_id: slot | simd << 4 | unit << 8 | engine << 13,
            xcc_id: (target == Target::Gfx942).then_some(xcc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workgroups_take_turns() {
        let of = |group, wave| Place::of(Target::Gfx90a, group, wave);
        assert_eq!((of(0, 0).hw_id, of(0, 0).xcc_id), (0, None));
        assert_eq!(of(1, 0).hw_id, 1 << 13);
        assert_eq!(of(8, 0).hw_id, 1 << 8);
        assert_eq!(of(8 * 13, 0), of(0, 0));
        assert_eq!(of(0, 5).hw_id, 1 | 1 << 4);
        let of = |group| Place::of(Target::Gfx942, group, 0);
        assert_eq!((of(9).hw_id, of(9).xcc_id), (1 << 13, Some(1)));
        assert_eq!(of(32).hw_id, 1 << 8);
        assert_eq!(of(320), of(0));
    }
}

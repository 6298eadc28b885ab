//! The compute units that workgroups and waves run on, as the registers HW_ID and XCC_ID show them.
//!
//! Layout of HW_ID (AMD's instruction set guides for CDNA): WAVE_ID in bits 0 to 3, SIMD_ID in 4 and 5,
//! CU_ID in 8 to 11, SE_ID in 13 to 15. XCC_ID has the XCC in bits 0 to 3.

use modelgpu_amdgcn::{Argument, Launch, Program, Target};
use modelgpu_testing::{AssemblyKernel, assemble, is_rdna};

/// A wave's HW_ID and XCC_ID. XCC_ID is 0 if the target has no such register.
type Registers = [u32; 2];

/// The registers of all waves of a launch, by workgroup.
fn registers(target: Target, groups: usize, waves: usize) -> Vec<Vec<Registers>> {
    let xcc_id = match target {
        Target::Gfx942 | Target::Gfx950 => "s_getreg_b32 s13, hwreg(HW_REG_XCC_ID)",
        _ => "s_mov_b32 s13, 0",
    };
    let hw_id = match target {
        _ if is_rdna(target) => "HW_REG_HW_ID1",
        _ => "HW_REG_HW_ID",
    };
    // The workgroup's number.
    let group = match target {
        Target::Gfx1201 | Target::Gfx1250 => "ttmp9",
        _ => "s6",
    };
    // Lane 0 of a wave stores.
    let body = format!(
        "s_load_dwordx2 s[8:9], s[4:5], 0x0
         s_getreg_b32 s12, hwreg({hw_id})
         {xcc_id}
         v_lshrrev_b32 v1, 6, v0
         v_readfirstlane_b32 s14, v1
         s_mul_i32 s15, {group}, {waves}
         s_add_u32 s14, s14, s15
         s_lshl_b32 s14, s14, 3
         v_mov_b32 v1, s14
         v_mov_b32 v2, s12
         v_mov_b32 v3, s13
         s_mov_b64 exec, 1
         s_waitcnt lgkmcnt(0)
         global_store_dwordx2 v1, v[2:3], s[8:9]"
    );
    let kernel = AssemblyKernel {
        name: "places".into(),
        body,
    };
    let object = assemble(target, &[kernel], 1, "");
    let mut program = Program::load(&object).expect("a linked object");
    let bytes = 8 * groups * waves;
    let output = program.arena_mut().allocate(&vec![0xff; bytes]);
    let block = 64 * waves as u32;
    let launch = Launch {
        kernel: "places".into(),
        grid: [block * groups as u32, 1, 1],
        block: [block, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(output)],
    };
    program.launch(&launch).expect("a kernel that ends");
    let written = program
        .arena()
        .read(output, bytes as u64)
        .expect("the output");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let places: Vec<Registers> = written
        .chunks_exact(8)
        .map(|wave| [word(&wave[..4]), word(&wave[4..])])
        .collect();
    places.chunks_exact(waves).map(<[_]>::to_vec).collect()
}

/// The registers of the first wave of each unit, in the order in which workgroups take the units.
fn units(xccs: u32, engines: u32, units_per_xcc: u32) -> Vec<Registers> {
    let mut order = Vec::new();
    for unit in 0..16 {
        for engine in 0..engines {
            if unit * engines + engine < units_per_xcc {
                order.extend((0..xccs).map(|xcc| [unit << 8 | engine << 13, xcc]));
            }
        }
    }
    order
}

#[test]
fn workgroups_take_xccs_then_engines_then_units() {
    for (target, order) in [
        // An MI50 has 60 units in 4 engines, and an MI100 has 120 in 8.
        (Target::Gfx906, units(1, 4, 60)),
        (Target::Gfx908, units(1, 8, 120)),
        // An MI210 has 104 units in 8 engines, an MI300X 38 units in 4 engines of each XCC.
        (Target::Gfx90a, units(1, 8, 104)),
        (Target::Gfx942, units(8, 4, 38)),
        // An MI350X has 32 units in 4 engines of each XCC.
        (Target::Gfx950, units(8, 4, 32)),
    ] {
        // Two rounds, and a part of a third.
        let groups = 2 * order.len() + 11;
        let found = registers(target, groups, 1);
        for (number, waves) in found.iter().enumerate() {
            let wanted = order[number % order.len()];
            assert_eq!(waves[0], wanted, "{target}, workgroup {number}");
        }
    }
    assert_eq!(units(8, 4, 38).len(), 304);
}

/// Layout of HW_ID1 (AMD's RDNA 3 and 4 instruction set guides): WAVE_ID in bits 0 to 4, SIMD_ID in 8 and 9,
/// WGP_ID in 10 to 13, SA_ID in 16, SE_ID in 18 to 20.
#[test]
fn rdna_has_arrays_and_workgroup_processors() {
    // An RX 7900 XTX has 96 units in 12 arrays, and an RX 9070 XT 64 in 8; two arrays belong to an engine.
    // Two units make a processor with four SIMDs.
    for (target, units, arrays) in [
        (Target::Gfx1030, 80, 8),
        (Target::Gfx1100, 96, 12),
        (Target::Gfx1201, 64, 8),
    ] {
        check_rdna(target, units, arrays);
    }
}

fn check_rdna(target: Target, units: u32, arrays: u32) {
    let found = registers(target, units as usize + 4, 4);
    for (number, waves) in found.iter().enumerate() {
        let place = number as u32 % units;
        let (array, unit) = (place % arrays, place / arrays);
        for (wave, [hw_id1, _]) in waves.iter().enumerate() {
            let (simd, slot) = (wave as u32 % 2 + unit % 2 * 2, wave as u32 / 2);
            let places = [
                (array / 2, 18),
                (array % 2, 16),
                (unit / 2, 10),
                (simd, 8),
                (slot, 0),
            ];
            let wanted: u32 = places.iter().map(|(number, bit)| number << bit).sum();
            assert_eq!(*hw_id1, wanted, "{target}, workgroup {number}, wave {wave}");
        }
    }
}

#[test]
fn waves_of_a_workgroup_share_a_unit_and_spread_over_its_simds() {
    for (target, second) in [
        // Workgroup 1 is in the second engine, or in the second XCC.
        (Target::Gfx90a, [1 << 13, 0]),
        (Target::Gfx942, [0, 1]),
        (Target::Gfx950, [0, 1]),
    ] {
        let found = registers(target, 2, 16);
        for (group, [hw_id, xcc_id]) in [[0, 0], second].into_iter().enumerate() {
            let wanted: Vec<Registers> = (0..16)
                .map(|wave| [hw_id | (wave / 4) | (wave % 4) << 4, xcc_id])
                .collect();
            assert_eq!(found[group], wanted, "{target}, workgroup {group}");
        }
    }
}

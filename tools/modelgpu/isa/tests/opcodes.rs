//! Opcode numbers by mnemonic, compared with those that the instruction set guides and LLVM have.

use std::path::Path;
use std::process::Command;

use modelgpu_isa::{Target, decode, opcode, opcodes};

#[test]
fn tables_are_what_their_script_generates() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables/generate.py");
    let checked = Command::new("python3").arg(script).arg("--check").output();
    let checked = checked.expect("python3 runs");
    let message = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{message}");
}

#[test]
fn numbers_are_those_of_the_instruction_set_guides() {
    // The numbers of CDNA 3, RDNA 3 and RDNA 4.
    let expected = [
        ("SOP2", "s_add_u32", [Some(0), Some(0), None]),
        ("SOP2", "s_add_co_u32", [None, None, Some(0)]),
        ("SOPP", "s_branch", [Some(2), Some(32), Some(32)]),
        ("SOPP", "s_endpgm", [Some(1), Some(48), Some(48)]),
        ("SOP1", "s_getpc_b64", [Some(28), Some(71), Some(71)]),
        ("VOP3", "v_readlane_b32", [Some(649), Some(864), Some(864)]),
        ("VOP3", "v_writelane_b32", [Some(650), Some(865), Some(865)]),
        ("GLOBAL", "global_atomic_add_x2", [Some(98), None, None]),
        (
            "GLOBAL",
            "global_atomic_add_u64",
            [None, Some(67), Some(67)],
        ),
        ("VOP2", "v_readlane_b32", [None; 3]),
        ("NONE", "s_add_u32", [None; 3]),
    ];
    for (encoding, mnemonic, numbers) in expected {
        let targets = [Target::Gfx942, Target::Gfx1100, Target::Gfx1201];
        for (target, number) in targets.into_iter().zip(numbers) {
            assert_eq!(
                opcode(target, encoding, mnemonic),
                number,
                "{target} {encoding} {mnemonic}"
            );
        }
    }
}

#[test]
fn a_number_has_the_mnemonic_that_it_was_looked_up_by() {
    for target in Target::ALL {
        for (encoding, number, mnemonic) in opcodes(target) {
            let found = opcode(target, encoding, mnemonic).expect("the table has it");
            let back =
                opcodes(target).find(|(other, place, _)| (*other, *place) == (encoding, found));
            assert_eq!(back, Some((encoding, found, mnemonic)), "{target} {number}");
        }
    }
}

/// `v_mov_b32` of operand 254: a constant of 64 bits on gfx1250, and `src_lds_direct` or no operand elsewhere (llvm-mc).
#[test]
fn only_gfx1250_has_constants_of_64_bits() {
    for target in Target::ALL {
        let decoded = decode([0x7e00_02fe, 1, 2, 3], target).expect("v_mov_b32");
        let size = match target {
            Target::Gfx1250 => 12,
            _ => 4,
        };
        assert_eq!(decoded.size, size, "{target}");
    }
}

/// The words are those of llvm-mc for instructions with `gds`.
#[test]
fn accesses_to_global_data_are_none_to_lds() {
    let older = [Target::Gfx906, Target::Gfx908].as_slice();
    let newer = [Target::Gfx1030, Target::Gfx1100].as_slice();
    for (targets, word, mnemonic) in [
        (older, 0xd800_0000, Some("ds_add_u32")),
        (older, 0xd801_0000, None),
        (older, 0xd86d_0000, None),
        (older, 0xd97d_0000, None),
        (older, 0xd93b_0000, Some("ds_gws_barrier")),
        (older, 0xd97f_0000, Some("ds_ordered_count")),
        (newer, 0xd800_0000, Some("ds_add_u32")),
        (newer, 0xd802_0000, None),
        (newer, 0xd8da_0000, None),
        (newer, 0xd8fa_0000, None),
        (newer, 0xd876_0000, Some("ds_gws_barrier")),
        (newer, 0xd8fe_0000, Some("ds_ordered_count")),
    ] {
        for &target in targets {
            let decoded = decode([word, 0x0200_0001, 0, 0], target);
            let found = decoded.ok().map(|instruction| instruction.mnemonic);
            assert_eq!(found, mnemonic, "{target}: {word:#x}");
        }
    }
}

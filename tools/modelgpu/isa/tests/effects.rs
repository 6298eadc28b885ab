//! The way on from instructions, and their effects on SCC and EXEC, as AMD's instruction set guides have them.

use modelgpu_isa::{Condition, Flow, Instruction, Target, decode};

fn decoded(word: u32, target: Target) -> Instruction {
    decode([word, 0, 0, 0], target).expect("an instruction")
}

#[test]
fn branches_have_their_distances_and_conditions() {
    let branch = |to, condition| Flow::Branch { to, condition };
    // Words of CDNA 3.
    let expected = [
        (0xbf80_0000, Flow::Next),
        (0xbf82_fffe, branch(-2, None)),
        (0xbf84_0010, branch(16, Some(Condition::Scc0))),
        (0xbf85_0010, branch(16, Some(Condition::Scc1))),
        (0xbf86_0010, branch(16, Some(Condition::Vccz))),
        (0xbf87_0010, branch(16, Some(Condition::Vccnz))),
        (0xbf88_0010, branch(16, Some(Condition::Execz))),
        (0xbf89_0010, branch(16, Some(Condition::Execnz))),
        (0xbf81_0000, Flow::End),
        (0xbf92_0002, Flow::Trap),
        (0xbe80_1d04, Flow::Indirect),
        (0xbe9e_1e04, Flow::IndirectCall),
        (0xba9e_0010, Flow::Call { to: 16 }),
    ];
    for (word, flow) in expected {
        assert_eq!(decoded(word, Target::Gfx942).flow(), flow, "{word:#x}");
    }
}

#[test]
fn effects_on_scc_and_exec_are_known() {
    // Words of CDNA 3: reads SCC, writes SCC, writes EXEC.
    let expected = [
        ("s_add_u32", 0x8002_0202, [false, true, false]),
        ("s_addc_u32", 0x8202_0202, [true, true, false]),
        ("s_mul_i32", 0x9202_0202, [false, false, false]),
        ("s_cselect_b32", 0x8502_0202, [true, false, false]),
        ("s_and_saveexec_b64", 0xbe84_2002, [false, true, true]),
        ("s_mov_b64", 0xbefe_0102, [false, false, true]),
        ("s_mov_b32", 0xbe84_00fd, [true, false, false]),
        ("v_cmpx_lt_f32", 0x7ca2_0502, [false, false, true]),
        ("v_cmp_lt_f32", 0x7c82_0502, [false, false, false]),
    ];
    for (mnemonic, word, effects) in expected {
        let instruction = decoded(word, Target::Gfx942);
        assert_eq!(instruction.mnemonic, mnemonic);
        let found = [
            instruction.reads_scc(),
            instruction.writes_scc(),
            instruction.writes_exec(),
        ];
        assert_eq!(found, effects, "{mnemonic}");
    }
}

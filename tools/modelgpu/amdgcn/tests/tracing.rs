//! A trace has the executions of each instruction: their waves, and the lanes that were active. The places are labels of
//! the assembly, whose addresses the linker gives.

use modelgpu_amdgcn::{Argument, Executed, Launch, LaunchError, Program, Target};
use modelgpu_testing::{AssemblyKernel, assemble};

const THREADS: [usize; 3] = [1, 2, 5];
/// Work-items in a workgroup: a wave of 64 lanes, and one of 36.
const BLOCK: u32 = 100;

/// A straight line, then 16 lanes of each wave, then 20,000 turns of all.
const BODY: &str = "
    .globl first
    first:
    v_and_b32 v1, 63, v0
    s_mov_b32 s20, 0x12345
    v_cmp_gt_u32 vcc, 16, v1
    s_and_saveexec_b64 s[10:11], vcc
    .globl branch
    branch:
    v_mov_b32 v2, 1
    s_or_b64 exec, exec, s[10:11]
    s_movk_i32 s12, 20000
    .globl turn
    turn:
    again:
    s_sub_i32 s12, s12, 1
    s_cmp_lg_u32 s12, 0
    s_cbranch_scc1 again
    s_branch behind
    .globl skipped
    skipped:
    s_nop 0
    behind:
    s_mov_b64 exec, 0
    .globl nobody
    nobody:
    v_mov_b32 v2, 2";

fn program(target: Target, body: &str) -> Program {
    let kernel = AssemblyKernel {
        name: "entry".into(),
        body: body.into(),
    };
    let object = assemble(target, &[kernel], 1, "");
    Program::load(&object).expect("an object that was just linked")
}

fn launch(program: &mut Program, groups: u32) -> Result<u64, LaunchError> {
    let output = program.arena_mut().allocate(&[0; 16]);
    let done = program.launch(&Launch {
        kernel: "entry".into(),
        grid: [groups * BLOCK, 1, 1],
        block: [BLOCK, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(output)],
    })?;
    Ok(done.instructions)
}

/// The executions of the instruction after a label.
fn at(program: &Program, label: &str) -> Executed {
    let mut found = Executed::default();
    let trace = program.trace().expect("a trace");
    trace.read(program.object().symbols[label].address, 1, |_, executed| {
        found = executed
    });
    found
}

#[test]
fn counts_are_exact_on_any_number_of_threads() {
    const GROUPS: u32 = 40;
    for &target in Target::WAVE64 {
        for threads in THREADS {
            let mut program = program(target, BODY);
            program.set_threads(threads);
            launch(&mut program, GROUPS).expect("an end");
            program.start_trace();
            let mut instructions = 0;
            for launches in 1..=2 {
                instructions += launch(&mut program, GROUPS).expect("an end");
                let groups = launches * u64::from(GROUPS);
                let expected = |waves, lanes| Executed {
                    waves: groups * waves,
                    lanes: groups * lanes,
                };
                let how = format!("{target}, {threads} threads");
                assert_eq!(at(&program, "first"), expected(2, 100), "{how}");
                assert_eq!(at(&program, "branch"), expected(2, 32), "{how}");
                assert_eq!(
                    at(&program, "turn"),
                    expected(2 * 20_000, 100 * 20_000),
                    "{how}"
                );
                assert_eq!(at(&program, "skipped"), Executed::default(), "{how}");
                assert_eq!(at(&program, "nobody"), expected(2, 0), "{how}");
            }
            // The trace has each instruction that the statistics have.
            let mut waves = 0;
            let code = &program.object().code[0];
            let trace = program.trace().expect("a trace");
            let words = (code.end - code.start) / 4;
            trace.read(code.start, words, |_, executed| waves += executed.waves);
            assert_eq!(waves, instructions, "{target}, {threads} threads");
        }
    }
}

#[test]
fn counts_up_to_a_fault_are_kept() {
    let body = "
        .globl first
        first:
        v_mov_b32 v1, 1
        s_trap 2
        .globl behind
        behind:
        s_nop 0";
    for &target in Target::WAVE64 {
        let mut program = program(target, body);
        program.start_trace();
        launch(&mut program, 1).expect_err("a trap");
        let lanes = at(&program, "first").lanes;
        assert!(lanes == 64 || lanes == 100, "{lanes}");
        assert_eq!(at(&program, "behind"), Executed::default());
    }
}

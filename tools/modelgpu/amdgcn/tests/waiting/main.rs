//! Workgroups that wait for each other come to their ends, on one thread and on several.

use std::path::Path;

use modelgpu_amdgcn::{Argument, Generation, Launch, LaunchError, Program, Statistics, Target};
use modelgpu_testing::{compile_hip, compiled_targets};

const BLOCK: u32 = 128;
const THREADS: [usize; 3] = [1, 2, 5];

fn word(value: u32) -> Argument {
    Argument::Bytes(value.to_le_bytes().into())
}

fn compile(target: Target) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("kernels.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/waiting/kernels.hip");
    compile_hip(&source, target.name(), &["-O2"], &object)
}

/// A program on each target and each number of threads.
fn programs() -> impl Iterator<Item = Program> {
    compiled_targets().flat_map(|target| {
        let object = compile(target);
        THREADS.into_iter().map(move |threads| {
            let mut program = Program::load(&object).expect("an object that was just linked");
            program.set_threads(threads);
            program
        })
    })
}

fn launch(
    program: &mut Program,
    kernel: &str,
    groups: u32,
    arguments: Vec<Argument>,
) -> Result<Statistics, LaunchError> {
    program.launch(&Launch {
        kernel: kernel.into(),
        grid: [groups * BLOCK, 1, 1],
        block: [BLOCK, 1, 1],
        dynamic_lds: 0,
        arguments,
    })
}

fn words(program: &Program, address: u64, count: u32) -> Vec<u32> {
    let bytes = program.arena().read(address, 4 * u64::from(count));
    let bytes = bytes.expect("a mapped buffer");
    let word = |data: &[u8]| u32::from_le_bytes(data.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(word).collect()
}

#[test]
fn a_barrier_of_the_grid_ends() {
    const ROUNDS: u32 = 2;
    for mut program in programs() {
        // As many as fill a modelled MI210 with two waves of 64 each, or an RX 6900 XT, RX 7900 XTX or RX 9070 XT with four
        // waves of 32: HIP lets a program ask for that.
        let (groups, waves) = match program.object().target {
            // An MI50 has fewer units.
            Target::Gfx906 => (60 * 16, 2),
            Target::Gfx1030 => (80 * 8, 4),
            Target::Gfx1100 => (96 * 8, 4),
            Target::Gfx1201 | Target::Gfx1250 => (64 * 8, 4),
            _ => (104 * 16, 2),
        };
        let arrived = program.arena_mut().allocate(&[0; 4]);
        let values = program.arena_mut().allocate(&vec![0; 4 * groups as usize]);
        let out = program
            .arena_mut()
            .allocate(&vec![0; (4 * groups * BLOCK) as usize]);
        let arguments = vec![
            Argument::Pointer(arrived),
            Argument::Pointer(values),
            Argument::Pointer(out),
            word(groups),
            word(ROUNDS),
        ];
        let done = launch(&mut program, "grid_barrier", groups, arguments).expect("an end");
        assert_eq!(done.workgroups, u64::from(groups));
        assert_eq!(done.waves, u64::from(waves * groups));
        // The sum over the rounds of the next workgroup's number times 1, 2, and so on.
        let wanted = |item: u32| (item / BLOCK + 1) % groups * (ROUNDS * (ROUNDS + 1) / 2);
        let wanted: Vec<u32> = (0..groups * BLOCK).map(wanted).collect();
        assert!(words(&program, out, groups * BLOCK) == wanted);
    }
}

/// A wave that has signalled continues before the others have.
#[test]
fn a_barrier_that_signals_and_waits_apart_ends() {
    const GROUPS: u32 = 9;
    let has_signals = |program: &Program| program.object().target.generation() == Generation::Gfx12;
    for mut program in programs().filter(has_signals) {
        let flags = program.arena_mut().allocate(&[0; 4 * GROUPS as usize]);
        let out = program
            .arena_mut()
            .allocate(&vec![0; (4 * GROUPS * BLOCK) as usize]);
        let arguments = [flags, out].map(Argument::Pointer).to_vec();
        launch(&mut program, "signals", GROUPS, arguments).expect("an end");
        // The last of four waves of 32 has looked at nothing; the others have.
        let wanted = |item: u32| 7 + u32::from(item % BLOCK >= 96);
        let wanted: Vec<u32> = (0..GROUPS * BLOCK).map(wanted).collect();
        assert_eq!(words(&program, out, GROUPS * BLOCK), wanted);
    }
}

#[test]
fn a_lock_excludes_other_workgroups() {
    const GROUPS: u32 = 300;
    for mut program in programs() {
        let lock = program.arena_mut().allocate(&[0; 4]);
        let sum = program.arena_mut().allocate(&[0; 4]);
        let arguments = vec![Argument::Pointer(lock), Argument::Pointer(sum)];
        launch(&mut program, "spin_lock", GROUPS, arguments).expect("an end");
        assert_eq!(words(&program, sum, 1), [GROUPS * (GROUPS - 1) / 2]);
        assert_eq!(words(&program, lock, 1), [0]);
    }
}

#[test]
fn a_workgroup_may_wait_for_a_later_one() {
    // Each link of the chain takes a whole slice of instructions before it gives way.
    const GROUPS: u32 = 3;
    for mut program in programs() {
        let done = program.arena_mut().allocate(&[0; 4 * GROUPS as usize]);
        let arguments = vec![Argument::Pointer(done), word(GROUPS)];
        launch(&mut program, "chain", GROUPS, arguments).expect("an end");
        assert_eq!(words(&program, done, GROUPS), [1; GROUPS as usize]);
    }
}

/// On one thread, a workgroup that never waits ends before the next one starts.
#[test]
fn a_workgroup_that_only_writes_does_not_give_way() {
    const GROUPS: u32 = 5;
    for mut program in programs().step_by(THREADS.len()) {
        let [sum, place, next] = [(); 3].map(|()| program.arena_mut().allocate(&[0; 4]));
        let numbers = program.arena_mut().allocate(&[0; 8 * GROUPS as usize]);
        let arguments = [sum, place, next, numbers].map(Argument::Pointer).to_vec();
        launch(&mut program, "busy", GROUPS, arguments).expect("an end");
        let wanted = 64 * GROUPS * (BLOCK * (BLOCK - 1) / 2);
        assert_eq!(words(&program, sum, 1), [wanted]);
        let wanted: Vec<u32> = (0..2 * GROUPS).collect();
        let target = program.object().target;
        assert_eq!(words(&program, numbers, 2 * GROUPS), wanted, "{target:?}");
    }
}

/// A kernel initialises a barrier, and the next one on the queue waits there, as the runtime does it.
#[test]
fn a_barrier_of_global_wave_sync_ends() {
    const GROUPS: u32 = 50;
    const ROUNDS: u32 = 3;
    // The driver has these resources on CDNA and RDNA 2 only.
    let has_resources = |program: &Program| {
        let generation = program.object().target.generation();
        matches!(generation, Generation::Gfx9 | Generation::Gfx10)
    };
    for mut program in programs().filter(has_resources) {
        let begin = Launch {
            kernel: "begin_barriers".into(),
            grid: [1; 3],
            block: [1; 3],
            dynamic_lds: 0,
            arguments: vec![word(GROUPS)],
        };
        program.launch(&begin).expect("an end");
        let values = program.arena_mut().allocate(&[0; 4 * GROUPS as usize]);
        let out = program
            .arena_mut()
            .allocate(&vec![0; (4 * GROUPS * BLOCK) as usize]);
        let pointers = [values, out].map(Argument::Pointer);
        let arguments = [&pointers[..], &[word(GROUPS), word(ROUNDS)]].concat();
        launch(&mut program, "grid_barriers", GROUPS, arguments).expect("an end");
        let wanted = |item: u32| (item / BLOCK + 1) % GROUPS * (ROUNDS * (ROUNDS + 1) / 2);
        let wanted: Vec<u32> = (0..GROUPS * BLOCK).map(wanted).collect();
        assert_eq!(words(&program, out, GROUPS * BLOCK), wanted);
    }
}

/// The clock of these programs advances by one tick at each look, whoever looks.
#[test]
fn workgroups_wait_for_the_clock_at_once() {
    const GROUPS: u32 = 40;
    const TICKS: u32 = 20_000;
    for mut program in programs() {
        let out = program.arena_mut().allocate(&[0; 8 * GROUPS as usize]);
        let arguments = vec![Argument::Pointer(out), word(TICKS), word(0)];
        launch(&mut program, "delay", GROUPS, arguments).expect("an end");
        let times = words(&program, out, 2 * GROUPS);
        let begins = times.iter().step_by(2);
        let ends = times.iter().skip(1).step_by(2);
        let waited = begins.clone().zip(ends).map(|(begin, end)| end - begin);
        assert!(waited.min() >= Some(TICKS));
        // All begin before the first one ends, unless the system stops a thread for that long.
        let early = begins.filter(|begin| **begin < TICKS).count();
        assert!(early > GROUPS as usize - THREADS[2], "{times:?}");
        assert!(program.stuck().is_empty());
    }
}

/// Two waves with some instructions for each tick.
#[test]
fn a_dispatch_that_sleeps_until_a_time_is_not_stuck() {
    const TICKS: u32 = 3_000_000;
    let mut program = programs().next().expect("a program");
    let out = program.arena_mut().allocate(&[0; 8]);
    let arguments = vec![Argument::Pointer(out), word(TICKS), word(1)];
    let done = launch(&mut program, "delay", 1, arguments).expect("an end");
    assert!(done.instructions > modelgpu_amdgcn::STUCK);
    assert!(program.stuck().is_empty());
}

#[test]
fn a_dispatch_without_progress_is_told_once() {
    const GROUPS: u32 = 2;
    let mut program = programs().next().expect("a program");
    let flag = program.arena_mut().allocate(&[0; 4]);
    for (looks, stuck) in [(1_000, 0), (300_000, 1)] {
        let arguments = vec![Argument::Pointer(flag), word(looks)];
        launch(&mut program, "give_up", GROUPS, arguments).expect("an end");
        assert_eq!(program.stuck().len(), stuck, "{looks} looks");
    }
    let told = &program.stuck()[0];
    assert_eq!((told.workgroups, told.at_barrier, told.waves), (2, 1, 2));
    let message = told.to_string();
    for part in [
        "kernel give_up, workgroup (",
        "wave 0, pc 0x",
        "no progress: the 2 workgroups that have begun wait",
        "in this one, 1 of 2 waves have reached theirs",
    ] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

//! A kernel's mistake gives a message with the place. Then the real runtime reacts to the GPU
//! fault, with an error or with its abort. The program never hangs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::code_object_of;
use crate::support::data::Data;
use crate::support::gpu::{Stack, data};
use crate::support::program::{Program, TARGET, counts};

const TARGETS: [&str; 2] = ["gfx90a", "gfx942"];

/// Messages have the line of a kernel that was compiled like this.
const LINES: [&str; 1] = ["-gline-tables-only"];

/// Bytes of a page of GPU memory; ROCr names the page of the fault.
const PAGE: u64 = 4096;

/// A run that failed, as it must.
struct Failed {
    ended: Ended,
    object: PathBuf,
}

/// Runs a kernel of testdata/faults on two buffers.
fn fails(name: &str, target: &str, launch: &str) -> Failed {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = repository("testdata/faults")
        .join(name)
        .with_extension("hip");
    let stack = Stack::for_target(target);
    let object = code_object_of(&source, target, "-O1", stack.code_object_version());
    let buffer = directory.path().join("input.bin");
    std::fs::write(&buffer, [0; 1024]).expect("a test can write into its directory");
    let spec = directory.path().join("spec");
    let buffer = buffer.display();
    let lines = format!("buf {buffer}\nbuf {buffer}\nlaunch {launch}\n");
    std::fs::write(&spec, lines).expect("a test can write into its directory");
    let ended = stack.run(target, &object, &spec, directory.path());
    assert!(!ended.status.success(), "{ended}");
    assert!(
        !directory.path().join("buf0.bin").exists(),
        "the program went on after the fault: {ended}"
    );
    Failed { ended, object }
}

impl Failed {
    /// The hexadecimal number that follows `before` in the modelled GPU's message.
    fn number_after(&self, before: &str) -> u64 {
        let (_, after) = self
            .ended
            .stderr
            .split_once(before)
            .unwrap_or_else(|| panic!("no {before:?} in {}", self.ended));
        let digits: String = after.chars().take_while(char::is_ascii_hexdigit).collect();
        u64::from_str_radix(&digits, 16)
            .unwrap_or_else(|_| panic!("no number after {before:?} in {}", self.ended))
    }

    /// Expects that llvm-objdump prints this instruction at the place in the message.
    fn is_at(&self, mnemonic: &str) {
        let offset = self.number_after("(offset 0x");
        let listing = disassembly(&self.object);
        let place = format!("// {offset:012X}:");
        let line = listing
            .lines()
            .find(|line| line.contains(&place))
            .unwrap_or_else(|| panic!("nothing at {offset:#x} of\n{listing}"));
        assert!(line.trim().starts_with(mnemonic), "{line}: {}", self.ended);
    }
}

fn disassembly(object: &Path) -> String {
    let mut objdump = limited("llvm-objdump-22");
    run(objdump.arg("-d").arg(object)).success().stdout
}

/// Returns whether a real ROCr runs code for this target here and reports faults itself.
fn has_runtime(target: &str) -> bool {
    !matches!(Stack::for_target(target), Stack::Interpreter)
}

#[test]
fn an_out_of_bounds_read_is_reported_with_its_place() {
    for target in TARGETS {
        // 2^40 elements of 4 bytes beyond the buffer.
        let launch = "_Z19reads_out_of_boundsPKjPjy 2 1 1 64 1 1 p0 p1 h0000000000010000";
        let failed = fails("out_of_bounds", target, launch);
        failed.is_at("global_load_dword");
        let page = failed.number_after("address 0x") / PAGE * PAGE;
        let ended = failed.ended.says(&[
            "kernel _Z19reads_out_of_boundsPKjPjy",
            "workgroup (",
            "wave 0",
            "pc 0x",
            "out-of-bounds read of 4 bytes",
        ]);
        let page = format!("on address {page:#x}");
        // The message of ROCr about the fault; on HIP 7, HIP's message.
        let words = match Stack::for_target(target) {
            Stack::Interpreter => &[][..],
            stack if stack.is_hip_7() => &["an illegal memory access was encountered"],
            _ => &["Memory access fault by GPU", &page],
        };
        ended.says(words);
    }
}

#[test]
fn an_unmodelled_instruction_is_named() {
    for target in TARGETS {
        let launch = "_Z5haltsPf 1 1 1 64 1 1 p0";
        let failed = fails("unmodelled", target, launch);
        failed.is_at("s_sethalt");
        let ended = failed.ended.says(&[
            "kernel _Z5haltsPf",
            "instruction s_sethalt",
            "is not modelled",
            "pc 0x",
            "of code object",
        ]);
        if has_runtime(target) {
            ended.says(&["HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"]);
        }
    }
}

/// HIP up to release 6 ends the program at the fault. Its counts before the fault are there, and the report
/// says why they end. The place is in an inlined function and in the kernel.
#[test]
fn a_fault_keeps_what_was_counted_before() {
    for stack in Stack::for_programs() {
        let program = Program::build(stack, &["stopped/stopped.hip"], &[], &LINES);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let ended = run(&mut program.under_rocov(TARGET, &data));
        assert!(!ended.status.success(), "{ended}");
        // HIP 7 continues, but never completes the stopped kernel: nobody waits for it. But its later counts are
        // lost, and `--strict` needs a line about that.
        assert!(!ended.stderr.contains("still runs"), "{ended}");
        if stack.is_hip_7() {
            assert!(
                ended
                    .stderr
                    .ends_with("rocov: counts are lost: see the lines above\n"),
                "{ended}"
            );
        }
        let [write, call] = ["*to = 1;", "write(sum + far"].map(|text| line_of("stopped", text));
        let ended = ended.says(&[
            "kernel broken, workgroup (0, 0, 0)",
            "out-of-bounds write",
            &write,
            " (inlined at ",
            &call,
        ]);
        let Data {
            profiles,
            registries,
            ..
        } = Data::read(&data);
        assert_eq!(profiles.len(), 1, "{ended}");
        assert_eq!(counts(&profiles[0], "counted"), (256, vec![64]), "{ended}");
        let [stop] = registries[0].processes[0].stops.as_slice() else {
            panic!("{registries:?} after {ended}");
        };
        assert!(ended.stderr.contains(stop), "{stop} is not in {ended}");
        let report = run(limited(built("rocov")).arg("report").arg(&data)).success();
        report.says(&["the GPU stopped a kernel", stop, "its counts end there"]);
    }
}

/// The line of a program's source with this text, as messages write it.
fn line_of(program: &str, text: &str) -> String {
    let source = repository("testdata/programs").join(format!("{program}/{program}.hip"));
    let lines = std::fs::read_to_string(source).expect("testdata can be read");
    let index = lines.lines().position(|line| line.contains(text));
    let number = 1 + index.unwrap_or_else(|| panic!("{text:?} is not in the source"));
    format!("{program}.hip:{number}:")
}

/// The message names the place of a wave that keeps others at a barrier. The kernel never ends, so the user
/// kills the program: the counts are there, and the report says what happened. It says nothing about a kernel that
/// has ended after all.
#[test]
fn a_deadlock_is_named_and_the_counts_are_kept() {
    let program = Program::build(Stack::usual(), &["stopped/stopped.hip"], &[], &LINES);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let mut command = program.under_rocov(TARGET, &data);
    command.arg("deadlock").stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be run");
    let stderr = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let mut message = || lines.find(|line| line.contains("no progress"));
    let waits = message().expect("a message about the kernel that waits for a while");
    assert!(waits.contains("kernel waits, "), "{waits}");
    let message = message().expect("a message about the deadlock");
    run(limited("kill").args(["-INT", &child.id().to_string()])).success();
    let rest: Vec<String> = lines.collect();
    let status = child.wait().expect("the program ends");
    assert!(!status.success(), "{rest:?}");
    let place = line_of("stopped", "while (!met)");
    for part in [
        "kernel deadlocked, workgroup (0, 0, 0), wave 1",
        &place,
        "1 of 2 waves have reached theirs",
        "a deadlock",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let profiles = Data::read(&data).profiles;
    assert_eq!(counts(&profiles[0], "counted"), (256, vec![64]), "{rest:?}");
    let report = run(limited(built("rocov")).arg("report").arg(&data)).success();
    assert!(report.stdout.contains("stopped.hip"), "{report}");
    let (_, message) = message.split_once("modelgpu: ").expect("a message");
    let report = report.says(&[
        message,
        "it was killed by SIGINT after its last drain: later counts are lost",
    ]);
    assert!(!report.stderr.contains("kernel waits, "), "{report}");
}

/// Nothing was drained: the report tells why.
#[test]
fn a_program_that_is_killed_is_in_the_report() {
    let program = Program::build(
        Stack::usual(),
        &["shared_memory/shared_memory.hip"],
        &[],
        &LINES,
    );
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let gpus = format!("{TARGET},race");
    let ended = run(program.under_rocov(&gpus, &data).args(["race", "abort"]));
    assert!(!ended.status.success(), "{ended}");
    let report = run(limited(built("rocov")).arg("report").arg(&data)).with_status(1);
    report.says(&[
        "): GPU 0 (gfx90a): kernel races, ",
        "it was killed by SIGABRT before its counters were drained: they are lost",
        "no device profiles",
    ]);
}

/// The program continues after a hazard, and its counts are all there.
#[test]
fn hazards_are_named_if_the_user_asks_for_them() {
    let place = line_of("early_use", "asm volatile");
    let hazard = [
        "kernel increments, workgroup (0, 0, 0), wave 0",
        "hazard vmcnt: v_add_u32 reads v",
        "before the result has come of global_load_dword",
        "wait before it until vmcnt is 0",
        place.as_str(),
    ];
    let program = Program::build(Stack::usual(), &["early_use/early_use.hip"], &[], &LINES);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let gpus = format!("{TARGET},hazards");
    let ended = run(&mut program.under_rocov(&gpus, &data)).success();
    let ended = ended.says(&hazard);
    assert_eq!(ended.stderr.matches(": hazard ").count(), 1, "{ended}");
    let profiles = Data::read(&data).profiles;
    assert_eq!(counts(&profiles[0], "increments"), (64, vec![]));
    let report = run(limited(built("rocov")).arg("report").arg(&data)).success();
    report.says(&hazard);

    let data = directory.path().join("unasked");
    let unasked = run(&mut program.under_rocov(TARGET, &data)).success();
    assert!(!unasked.stderr.contains("hazard"), "{unasked}");
}

/// The program continues after such a mistake, and its counts are all there.
#[test]
fn mistakes_with_shared_memory_are_named_if_the_user_asks_for_them() {
    let place = |text| line_of("shared_memory", text);
    let write = place("tile[threadIdx.x] = threadIdx.x");
    let read = place("tile[count - 1 - threadIdx.x]");
    let unwritten = place("tile[threadIdx.x + 1]");
    let race = [
        "kernel races, workgroup (0, 0, 0), wave 1",
        "lane 0",
        "a data race with wave 0",
        &write,
        &read,
    ];
    let byte = [
        "kernel reads_unwritten, workgroup (0, 0, 0), wave 0",
        "lane 63",
        &unwritten,
        "no work-item has written",
    ];
    let program = Program::build(
        Stack::usual(),
        &["shared_memory/shared_memory.hip"],
        &[],
        &LINES,
    );
    for (what, kernel, calls, words) in [
        ("race", "races", 128, &race[..]),
        ("unwritten", "reads_unwritten", 64, &byte),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let gpus = format!("{TARGET},race");
        let ended = run(program.under_rocov(&gpus, &data).arg(what)).success();
        ended.says(words);
        let profiles = Data::read(&data).profiles;
        assert_eq!(counts(&profiles[0], kernel), (calls, vec![]));
        let report = run(limited(built("rocov")).arg("report").arg(&data)).success();
        assert!(report.stdout.contains("shared_memory.hip"), "{report}");
        report.says(words);

        let data = directory.path().join("unasked");
        let unasked = run(program.under_rocov(TARGET, &data).arg(what)).success();
        assert!(!unasked.stderr.contains("kernel "), "{unasked}");
    }
}

//! Copies, kernels, queues and signals give right results on each path of the runtime.

use std::path::Path;
use std::process::Command;

use crate::harness::{Run, c_program, code_object, hip_program};

/// Settings that change the runtime's path: copies by SDMA engines or by shaders, waits in the
/// driver or by polling, device memory that the host can or cannot reach.
const WAYS: [(&str, &str); 5] = [
    ("HSA_ENABLE_SDMA", "1"),
    ("HSA_ENABLE_SDMA", "0"),
    ("HSA_ENABLE_INTERRUPT", "0"),
    ("ROCOV_MODELGPU_BAR", "small"),
    ("ROCOV_MODELGPU_XGMI", "1"),
];

#[test]
fn hsa_copies_on_two_gpus() {
    let program = c_program("hsa_copies");
    for (name, value) in WAYS {
        let run = Run::new(&program).env("ROCOV_MODELGPU", "gfx90ax2");
        run.env(name, value).output().assert_finished();
    }
}

#[test]
fn hsa_queues_on_two_gpus() {
    let (program, code) = (c_program("hsa_queues"), code_object("gfx90a"));
    for (name, value) in WAYS {
        let run = Run::new(&program).env("ROCOV_MODELGPU", "gfx90ax2");
        let run = run.env(name, value).arg(&code).arg(&code);
        run.output().assert_finished();
    }
}

/// The runtime's numbers of units and the registers of waves agree.
#[test]
fn hsa_units() {
    let ended = Run::new(&c_program("hsa_units"))
        .arg(code_object("gfx90a"))
        .output();
    ended.assert_finished();
    let line = "gpu 0: 1 XCCs, 104 units";
    assert!(ended.stdout.contains(line), "{}", ended.text());
}

#[test]
fn hip_copies() {
    let program = hip_program("copies");
    for (name, value) in WAYS {
        let run = Run::new(&program).env(name, value);
        run.output().assert_finished();
    }
}

#[test]
fn hip_features_on_two_gpus() {
    let program = hip_program("features");
    for (name, value) in WAYS {
        let run = Run::new(&program).env("ROCOV_MODELGPU", "gfx90ax2");
        let ended = run.env(name, value).output();
        ended.assert_finished();
        assert!(ended.stdout.contains("devices: 2"), "{}", ended.text());
    }
}

#[test]
fn hip_textures() {
    let program = hip_program("textures");
    for (name, value) in WAYS {
        let run = Run::new(&program).env(name, value);
        run.output().assert_finished();
    }
}

/// Does not apply to ROCr 6.4.3, which rejects a second start before it calls the driver.
#[test]
fn hsa_can_be_started_again() {
    let ended = Run::new(&c_program("hsa_copies")).arg("3").output();
    ended.assert_finished();
    assert_eq!(ended.stdout.matches("gpus: 1").count(), 3);
}

#[test]
fn eight_gpus_work() {
    let run = Run::new(&c_program("hsa_copies")).env("ROCOV_MODELGPU", "gfx90ax8");
    let ended = run.output();
    ended.assert_finished();
    assert!(ended.stdout.contains("gpus: 8"), "{}", ended.text());
}

#[test]
fn forks() {
    Run::new(&c_program("fork")).output().assert_finished();
}

#[test]
fn threads_fork_and_open_at_once() {
    Run::new(&c_program("threads")).output().assert_finished();
}

/// The model writes a line for each kernel when the program ends, and the evidence for their opcodes. `chain` has no branch, so each wave
/// executes the instructions that the disassembler lists.
#[test]
fn instructions_are_counted_by_kernel() {
    let code = code_object("gfx90a");
    let [file, evidence] =
        ["instructions", "evidence"].map(|name| crate::harness::scratch().join(name));
    // The model appends to the files.
    for file in [&file, &evidence] {
        let _ = std::fs::remove_file(file);
    }
    let run = Run::new(&c_program("hsa_queues")).arg(&code);
    let run = run.env("ROCOV_MODELGPU_INSTRUCTIONS", &file);
    let run = run.env("ROCOV_MODELGPU_FIDELITY", &evidence);
    run.output().assert_finished();
    let text = std::fs::read_to_string(&file).expect("the file was written");
    let line = |kernel: &str| {
        let start = format!("gfx90a {kernel}: ");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no {kernel}: {text}"));
        assert_eq!(lines.next(), None, "{text}");
        line
    };
    let listed = instructions_of("chain", &code);
    // hsa_queues.c launches it 5000 times to see the order, and once to end another kernel.
    assert_eq!(
        line("chain"),
        format!(
            "{} instructions in 5001 waves of 5001 dispatches",
            5001 * listed
        )
    );
    // 1000 work-items in workgroups of 64.
    let waves = " instructions in 16 waves of 1 dispatches";
    assert!(line("add_step").ends_with(waves), "{text}");
    let text = std::fs::read_to_string(&evidence).expect("the file was written");
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    assert!(
        first.starts_with("gfx90a: ") && first.ends_with(" opcodes executed"),
        "{text}"
    );
    let mut agreeing = lines.filter(|line| line.starts_with("gfx90a: agrees with LLVM: "));
    assert!(agreeing.any(|line| line.contains(" s_endpgm")), "{text}");
}

/// The number of a function's instructions up to its end, as llvm-objdump lists them.
fn instructions_of(function: &str, code: &Path) -> usize {
    let output = Command::new("llvm-objdump-22")
        .args(["-d", "--no-show-raw-insn", "--no-leading-addr"])
        .arg(format!("--disassemble-symbols={function}"))
        .arg(code)
        .output()
        .expect("llvm-objdump-22 can be run");
    let listing = String::from_utf8(output.stdout).expect("llvm-objdump prints UTF-8");
    let instructions = listing.lines().filter_map(|line| line.strip_prefix('\t'));
    let before_end = instructions.take_while(|line| !line.trim().starts_with("s_endpgm"));
    before_end.count() + 1
}

/// The log lists queues and dispatches at level 1, and every call at level 2.
#[test]
fn the_log_tells_what_happened() {
    let log = crate::harness::scratch().join("log");
    for (level, calls) in [("1", false), ("2", true)] {
        // The model appends to a log.
        let _ = std::fs::remove_file(&log);
        let mut target = log.clone().into_os_string();
        target.push(format!(":{level}"));
        let run = Run::new(&hip_program("features")).env("ROCOV_MODELGPU_LOG", target);
        run.output().assert_finished();
        let text = std::fs::read_to_string(&log).expect("the log was written");
        assert!(text.contains("queue 1 on gpu 0: Aql"), "{text}");
        assert!(text.contains(" dispatch 0: kernel object "), "{text}");
        assert!(text.contains(" instructions in "), "{text}");
        assert_eq!(text.contains("kfd ioctl 0x1\n"), calls, "{text}");
    }
}

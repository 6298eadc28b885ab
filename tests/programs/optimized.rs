//! Profiles of GPU code serve optimization. A program compiled with the flags of `rocov merge
//! --pgo` executes fewer instructions on the modelled GPU, and clang accepts the whole profile
//! without a warning.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::support::artifacts::{built, cache_directory, names, repository};
use crate::support::command::{limited, run};
use crate::support::compile::clang;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::profile::{Function, functions, profdata};
use crate::support::program::{Program, TARGET, rocov_flags};

const SOURCE: &str = "pgo/calibrate.hip";
const KERNEL: &str = "_Z9calibratePK4StepiPf";

/// The program's work: READINGS work-items take STEPS steps, one of them with a root.
const READINGS: u64 = 1024;
const STEPS: u64 = 200;
const BLOCK: u64 = 256;
const WAVE: u64 = 64;

/// Every warning of clang about a profile that does not fit is an error.
const STRICT: [&str; 5] = [
    "-O2",
    "-Werror=profile-instr-out-of-date",
    "-Werror=profile-instr-unprofiled",
    "-Werror=profile-instr-missing",
    "-Werror=backend-plugin",
];

/// Counts of the source, together with those of its own host run.
#[test]
fn by_front_end_instrumentation() {
    let optimized = Optimized::new("front-end", |stack| {
        Program::build(stack, &[SOURCE], &["--host"], &["-O2"])
    });
    assert_eq!(
        names(&optimized.profiles),
        ["gfx90a.profdata", "host.profdata"]
    );
    let functions = functions(&optimized.profile);
    let counted = |name: &str| {
        let Function { calls, blocks, .. } = &functions[name];
        (*calls, blocks.clone())
    };
    assert_eq!(counted(KERNEL), (READINGS, vec![READINGS * STEPS]));
    let apply = counted("_Z5applyRK4Stepf");
    assert_eq!(apply, (READINGS * STEPS, vec![READINGS]));
    let host = optimized.profile.with_file_name("host.profdata");
    let flags = format!(
        "-Xarch_{TARGET} -fprofile-instr-use={} -Xarch_host -fprofile-instr-use={}\n",
        optimized.profile.display(),
        host.display()
    );
    assert_eq!(optimized.flags, flags);
    optimized.takes_the_hot_way_first();
    optimized.executes_less();
    // clang weighs the branch by its counts, each plus one.
    let weights = format!("i32 {}, i32 {}", READINGS + 1, READINGS * (STEPS - 1) + 1);
    let ir = optimized.unoptimized_ir();
    assert!(ir.contains(&weights), "no branch weights {weights}:\n{ir}");
}

/// Counts of LLVM's IR.
#[test]
fn by_ir_instrumentation() {
    let flags = [
        "-O2",
        "-Xarch_device",
        "-fprofile-generate",
        "-Xarch_device",
        "-fprofile-update=atomic",
        "-mllvm",
        "-disable-vp",
    ];
    let optimized = Optimized::new("ir", |stack| {
        Program::with_flags(stack, &[SOURCE], &header(), &flags, &[])
    });
    assert_eq!(names(&optimized.profiles), ["gfx90a.profdata"]);
    let shown = run(limited(profdata()).arg("show").arg(&optimized.profile));
    assert!(
        shown.stdout.contains("Instrumentation level: IR"),
        "{shown}"
    );
    // Each work-item takes the root once.
    let Function { blocks, .. } = &functions(&optimized.profile)[KERNEL];
    assert!(
        blocks.contains(&READINGS) && blocks.contains(&(READINGS * STEPS)),
        "{blocks:?}"
    );
    let flags = format!(
        "-Xarch_{TARGET} -fprofile-use={}\n",
        optimized.profile.display()
    );
    assert_eq!(optimized.flags, flags);
    optimized.takes_the_hot_way_first();
    optimized.executes_less();
}

/// The output of `rocov flags` without the kind of instrumentation.
fn header() -> Vec<OsString> {
    let flags = rocov_flags(Stack::usual(), &[]);
    let start = flags.iter().position(|flag| flag == "-include");
    flags[start.expect("the device header is included")..].to_vec()
}

/// A program without a profile, and with the profile of its instrumented build.
struct Optimized {
    /// The profiles' directory, by arch.
    profiles: PathBuf,
    /// The device's profile.
    profile: PathBuf,
    /// The output of `rocov merge --pgo`.
    flags: String,
    before: Program,
    after: Program,
}

impl Optimized {
    /// Uses the profiles of the program that `instrumented` builds. Their place depends only on
    /// `name`, because the cache keeps the result of a compilation with them.
    fn new(name: &str, instrumented: impl Fn(Stack) -> Program) -> Self {
        let stack = Stack::usual();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        run(&mut instrumented(stack).under_rocov(TARGET, &data))
            .success()
            .silently();
        let profiles = cache_directory().join(format!("pgo-{name}"));
        let mut merge = limited(built("rocov"));
        merge.arg("merge").arg(&data).arg("--pgo").arg(&profiles);
        let flags = run(merge.arg("--quiet")).success().silently().stdout;
        let used: Vec<OsString> = flags.split_whitespace().map(Into::into).collect();
        let files: Vec<_> = names(&profiles)
            .iter()
            .map(|name| profiles.join(name))
            .collect();
        Self {
            profile: profiles.join(format!("{TARGET}.profdata")),
            before: Program::with_flags(stack, &[SOURCE], &[], &STRICT, &[]),
            after: Program::with_flags(stack, &[SOURCE], &used, &STRICT, &files),
            profiles,
            flags,
        }
    }

    /// Without a profile, each step computes the root and discards it. With a profile, the root
    /// comes after the loop of the scaling steps.
    fn takes_the_hot_way_first(&self) {
        let root_in_loop = |program: &Program| {
            let code = disassembled(&program.file);
            let at = |part: &str| code.iter().position(|line| line.contains(part));
            let root = at("v_sqrt_f32").expect("a root is taken");
            // The loop's branch is the first of the branches back.
            let back = code.iter().position(|line| {
                let target = line.rsplit(' ').next().unwrap_or_default();
                line.starts_with("s_cbranch")
                    && target.parse().is_ok_and(|offset: u32| offset > 0x7fff)
            });
            root < back.expect("the kernel has a loop")
        };
        assert!(root_in_loop(&self.before), "the build without a profile");
        assert!(!root_in_loop(&self.after), "the build with the profile");
    }

    /// The unused roots are about half of the instructions.
    fn executes_less(&self) {
        let before = executed(&self.before);
        let after = executed(&self.after);
        assert!(
            3 * after < 2 * before,
            "{before} instructions, then {after}"
        );
    }

    /// The kernel's IR from the front end, with the profile.
    fn unoptimized_ir(&self) -> String {
        let mut clang = limited(clang());
        clang.args(Stack::usual().flags()).args(STRICT);
        clang.args(self.flags.split_whitespace());
        clang.arg(format!("--offload-arch={TARGET}"));
        clang.args(["--cuda-device-only", "-S", "-emit-llvm", "-o", "-"]);
        clang.args(["-Xclang", "-disable-llvm-passes"]);
        clang.arg(repository("testdata/programs").join(SOURCE));
        run(&mut clang).success().stdout
    }
}

/// The instructions of a program's kernel, without their addresses.
fn disassembled(program: &Path) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut extract = limited(built("rocov"));
    extract.arg("extract").arg(program).arg("-o");
    let elf = run(extract.arg(directory.path())).success().stdout;
    let mut objdump = limited(Compiler::usual().tool("llvm-objdump"));
    objdump.args(["-d", "--no-show-raw-insn", "--no-leading-addr"]);
    let shown = run(objdump.arg(elf.trim())).success().stdout;
    let code = shown.lines().map(|line| {
        let instruction = line.split("//").next().unwrap_or_default();
        instruction.trim().to_owned()
    });
    code.collect()
}

/// The number of instructions that the modelled GPU executes for the program's kernel, one count
/// per wave. Its log has `dispatch 0 done: KERNEL: N instructions in W waves of G workgroups`.
fn executed(program: &Program) -> u64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let mut command = program.alone();
    run(command.env("ROCOV_MODELGPU_LOG", format!("{}:1", log.display())))
        .success()
        .silently();
    let log = std::fs::read_to_string(&log).expect("a log");
    let start = format!(" done: {KERNEL}: ");
    let lines: Vec<_> = log
        .lines()
        .filter_map(|line| line.split_once(&start))
        .collect();
    assert_eq!(lines.len(), 1, "dispatches of {KERNEL} in {log}");
    let (number, rest) = lines[0].1.split_once(' ').expect("a number");
    let (waves, workgroups) = (READINGS / WAVE, READINGS / BLOCK);
    let expected = format!("instructions in {waves} waves of {workgroups} workgroups");
    assert_eq!(rest, expected);
    number.parse().expect("a number")
}

//! LLVM's released drain for HIP in the process: either that drain takes all counts or rocov does,
//! and the other one writes nothing. Under `rocov run` rocov drains, under `rocov run --drain=llvm`
//! LLVM's drain does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::programs::{KERNEL, on_model, source};
use crate::support::artifacts::{built, cache_directory, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::gpu::data;
use crate::support::profile::raw_profiles;
use crate::support::program::link_flags;
use crate::support::released::{BAR, GPU, Released, device_profiles, is_of_llvm};

/// Calls, and calls below the limit, of one launch.
const CALLS: u64 = 128;
const TALLIED: u64 = 100;

/// LLVM's drain hides its functions. A build of it by other means may export them.
const EXPORTED: [&str; 2] = [
    "__llvm_profile_hip_collect_device_data",
    "__llvm_profile_offload_unregister_dynamic_module",
];

fn tally(released: &Released, kernel: &str) -> PathBuf {
    let name = format!("-DTALLY_KERNEL={kernel}");
    released.compiled(&source("tally.hip"), &[], &[&name], &format!("{kernel}.o"))
}

/// The objects of a program that runs the kernel twice.
fn tally_program(released: &Released, options: &[&str]) -> [PathBuf; 2] {
    ["main.cpp", "tally.hip"]
        .map(|name| released.compiled(&source(name), options, &[], &format!("{name}.o")))
}

/// A program that runs the kernels of shared libraries.
fn loader(released: &Released) -> PathBuf {
    let object = released.compiled(&source("loader.cpp"), &[], &[], "loader.o");
    released.linked(&[object], &["-Wl,--as-needed"], "loader")
}

/// Expects the counts of device code from one drain, each kernel's of this number of launches.
#[track_caller]
fn assert_drained(released: &Released, data: &Path, is_llvms: bool, launches: u64, ended: &Ended) {
    let profiles = device_profiles(data);
    assert!(!profiles.is_empty(), "{ended}");
    for profile in &profiles {
        assert_eq!(is_of_llvm(profile), is_llvms, "{profiles:?}: {ended}");
    }
    for (name, kernel) in released.counted(data, ended) {
        let expected = (CALLS * launches, vec![TALLIED * launches]);
        assert_eq!((kernel.calls, kernel.blocks), expected, "{name}: {ended}");
    }
}

/// Runs a program under `rocov run` and expects its counts once, from the chosen drain.
fn one_drains(released: &Released, program: &[OsString], launches: u64) {
    for (bar, options, is_llvms) in [
        ("small", &[][..], false),
        ("large", &[], false),
        ("large", &["--drain=rocov"], false),
        ("large", &["--drain=llvm"], true),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let mut command = released.under_rocov(GPU, bar, options, &data);
        let ended = run(command.args(program)).success();
        assert_drained(released, &data, is_llvms, launches, &ended);
        let profiles = raw_profiles(&data);
        assert_eq!(profiles.len(), 2, "host, device: {profiles:?}: {ended}");
        let words = ended.stderr.contains("rocov:") || ended.stderr.contains("LLVM Profile");
        assert!(!words, "{bar}, {options:?}: {ended}");
    }
}

/// Runs a program without `rocov run`, with each value of `ROCOV_DRAIN` and without it. Each kernel
/// is launched twice.
fn either_has_all(released: &Released, preloaded: &[PathBuf], program: &[PathBuf]) {
    for drainer in [None, Some("llvm"), Some("rocov")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        let mut command = on_model(&data, preloaded);
        command.args([format!("ROCOV_MODELGPU={GPU}"), format!("{BAR}=large")]);
        let pattern = data.join("%p.profraw");
        command.arg(format!("LLVM_PROFILE_FILE={}", pattern.display()));
        if let Some(drainer) = drainer {
            command.arg(format!("ROCOV_DRAIN={drainer}"));
        }
        let ended = run(command.args(released.stack.starter()).args(program)).success();
        assert_drained(released, &data, drainer != Some("rocov"), 2, &ended);
        // A user who set the variable gets no warning.
        let warnings = usize::from(drainer.is_none());
        let warning = "set ROCOV_DRAIN=rocov to have rocov write them";
        assert_eq!(ended.stderr.matches(warning).count(), warnings, "{ended}");
        let taken = ended.stderr.contains("taking over from LLVM's own drain");
        assert_eq!(taken, drainer == Some("rocov"), "{ended}");
    }
}

/// The program without its symbols.
fn stripped(program: &Path) -> PathBuf {
    let stripped = program.with_extension("stripped");
    run(limited("strip").arg(program).arg("-o").arg(&stripped)).success();
    stripped
}

/// LLVM's drain with exported functions.
fn exported(released: &Released) -> PathBuf {
    let kept = cache_directory().join("libclang_rt.profile_rocm-exported.a");
    let unfinished = tempfile::NamedTempFile::new_in(cache_directory()).expect("a temporary file");
    let mut objcopy = limited(released.clang.tool("llvm-objcopy"));
    objcopy.args(EXPORTED.map(|symbol| format!("--set-symbol-visibility={symbol}=default")));
    run(objcopy.arg(released.drain()).arg(unfinished.path())).success();
    unfinished
        .persist(&kept)
        .expect("a file can be renamed beside itself");
    kept
}

#[test]
fn linked_into_a_program() {
    let Some(released) = Released::find() else {
        return;
    };
    for (options, name) in [
        (&[][..], "tally-released"),
        (&["--host"], "tally-host-released"),
    ] {
        let program = released.linked_with_drain(&tally_program(&released, options), &[], name);
        for program in [stripped(&program), program] {
            one_drains(&released, &[program.into()], 2);
        }
    }
}

/// LLVM's drain takes a module's counts when the program unloads it.
#[test]
fn linked_into_a_program_that_unloads_modules() {
    let Some(released) = Released::find() else {
        return;
    };
    let modules = repository("testdata/programs/found/modules.cpp");
    let object = released.compiled(&modules, &["--host"], &[], "modules.o");
    let program = released.linked_with_drain(&[object], &[], "modules-released");
    let module = released.code_object(&source("tally.hip"), &[], "tally-released.module");
    let launch = format!("launch:{KERNEL}:{TALLIED}");
    let steps = ["data", &launch, "sync", "unload"].map(OsString::from);
    let words = [&[program.into(), module.into()][..], &steps].concat();
    one_drains(&released, &words, 1);
}

/// LLVM's drain would write only the plain counters, so rocov drains such code in any case. No count is in the files of
/// both.
#[test]
fn code_with_copies_of_its_counters_is_rocovs() {
    let Some(released) = Released::find() else {
        return;
    };
    let modules = repository("testdata/programs/found/modules.cpp");
    let object = released.compiled(&modules, &["--host"], &[], "modules.o");
    let program = released.linked_with_drain(&[object], &[], "modules-released");
    let kernels = repository("testdata/kernels");
    let kernels = kernels.to_str().expect("a UTF-8 path");
    let bare = ["-nogpuinc", "-nogpulib", "-I", kernels];
    let copies = repository("testdata/copies/tally.hip");
    let copies = released.code_object(&copies, &bare, "copies.module");
    let plain = released.code_object(&source("tally.hip"), &[], "tally-released.module");
    // One launch in the plain counters, and one in copies.
    let launches = ["_Z5tallyPjj", "_Z15tally_in_copiesPjj"]
        .map(|kernel| format!("launch:{kernel}:{TALLIED}"));
    let other = format!("launch:{KERNEL}:{TALLIED}");
    for unload in [&["unload"][..], &[]] {
        for (drainer, is_llvms) in [("rocov", false), ("llvm", true)] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let data = data(directory.path());
            let drainer = format!("--drain={drainer}");
            let mut command = released.under_rocov(GPU, "large", &[&drainer], &data);
            command.arg(&program).arg(&copies).arg("data");
            command.args(&launches).arg("sync").args(unload);
            command.arg(format!("data:{}", plain.display()));
            command.args([&other, "sync"]).args(unload);
            let ended = run(&mut command).success();
            let profiles = device_profiles(&data);
            let of_llvm = profiles
                .iter()
                .filter(|profile| is_of_llvm(profile))
                .count();
            assert_eq!(
                (profiles.len(), of_llvm),
                (2, usize::from(is_llvms)),
                "{profiles:?}: {ended}"
            );
            let counted = released.counted(&data, &ended);
            let copied = &counted["_Z5tallyPjj"];
            assert_eq!(
                (copied.calls, copied.blocks.as_slice()),
                (2 * CALLS, &[2 * TALLIED][..]),
                "{ended}"
            );
            let plain = &counted[KERNEL];
            assert_eq!(
                (plain.calls, plain.blocks.as_slice()),
                (CALLS, &[TALLIED][..]),
                "{ended}"
            );
        }
    }
}

#[test]
fn linked_into_a_program_without_rocov_run() {
    let Some(released) = Released::find() else {
        return;
    };
    let objects = tally_program(&released, &[]);
    let program = released.linked_with_drain(&objects, &[], "tally-released");
    either_has_all(&released, &[built("librocov.so")], &[program]);
}

#[test]
fn linked_into_a_program_with_librocov() {
    let Some(released) = Released::find() else {
        return;
    };
    let flags: Vec<_> = link_flags()
        .into_iter()
        .map(|flag| flag.into_string().expect("UTF-8"))
        .collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    // In the other order the linker takes rocov's entry points and leaves LLVM's drain out.
    let objects = [&tally_program(&released, &[])[..], &[released.drain()]].concat();
    let program = released.linked_with_drain(&objects, &flags, "tally-both");
    either_has_all(&released, &[], &[program]);
}

#[test]
fn in_a_shared_library() {
    let Some(released) = Released::find() else {
        return;
    };
    let kernel = [tally(&released, KERNEL)];
    for drain in [released.drain(), exported(&released)] {
        let library = released.link_with(&drain, &kernel, &["-shared"], "libtally.so");
        let program = ["keep", "local"].map(PathBuf::from);
        let program = [&[loader(&released)], &program[..], &[library]].concat();
        either_has_all(&released, &[built("librocov.so")], &program);
    }
}

/// A library that is opened after the kernels ran has its exit handler called before ours.
#[test]
fn in_a_library_that_is_opened_later() {
    let Some(released) = Released::find() else {
        return;
    };
    let [first, second] = ["first", "second"].map(|kernel| [tally(&released, kernel)]);
    let first = released.linked(&first, &["-shared"], "libfirst.so");
    let second = released.linked_with_drain(&second, &["-shared"], "libsecond.so");
    let program = ["keep", "local"].map(PathBuf::from);
    let program = [&[loader(&released)], &program[..], &[first, second]].concat();
    either_has_all(&released, &[built("librocov.so")], &program);
}

//! Modules that are loaded and unloaded in each way.

use object::read::NameOrOrdinal;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use tempfile::TempDir;

use crate::setup::{BIN_OF, HISTOGRAM, Setup, counts, expect, profiles, step, steps};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};

fn data() -> TempDir {
    TempDir::new().expect("a directory can be made")
}

#[test]
fn a_module_is_drained_at_exit() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps([
        "plant:__profc__Z6bin_off:999,0,769",
        "plant:__profc__Z9histogramPKfiPj:1024,1000,999",
        "exit:3",
    ]));
    let ended = setup.run(data.path(), &all).with_status(3).silently();
    assert_eq!(ended.stdout, "done\n");
    let found = counts(&profiles(data.path()), data.path());
    expect(
        &found,
        &[(BIN_OF, &[999, 0, 769]), (HISTOGRAM, &[1024, 1000, 999])],
    );
}

#[test]
fn a_module_that_is_unloaded_and_loaded_again_adds_up() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = Vec::new();
    for planted in ["1,2,3", "10,20,30", "100,200,300"] {
        all.push(step("load", &setup.cubin));
        all.push(format!("plant:__profc__Z6bin_off:{planted}"));
        all.extend(steps(["unload"]));
    }
    setup.run(data.path(), &all).success().silently();
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[111, 222, 333])]);
}

#[test]
fn a_library_is_drained_whoever_loads_its_module() {
    let Some(setup) = Setup::get() else { return };
    // The CUDA runtime asks for the module. A launch loads it without a call that tells of its handle.
    for how in ["get", "launch"] {
        for end in ["unload", "release", "exit:0"] {
            let data = data();
            let mut all = vec![step("library", &setup.cubin)];
            all.extend(steps([how, "plant:__profc__Z6bin_off:7,8,9", end]));
            setup.run(data.path(), &all).success().silently();
            let found = counts(&profiles(data.path()), data.path());
            expect(&found, &[(BIN_OF, &[7, 8, 9])]);
        }
    }
}

#[test]
fn each_gpu_has_its_own_counts() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps(["plant:__profc__Z6bin_off:1,0,0", "device:1"]));
    all.push(step("load", &setup.cubin));
    all.extend(steps(["plant:__profc__Z6bin_off:0,5,0"]));
    setup.run(data.path(), &all).success().silently();
    let found = profiles(data.path());
    assert_eq!(found.len(), 2, "{found:?}");
    expect(&counts(&found[..1], data.path()), &[(BIN_OF, &[1, 0, 0])]);
    expect(&counts(&found[1..], data.path()), &[(BIN_OF, &[0, 5, 0])]);
    expect(&counts(&found, data.path()), &[(BIN_OF, &[1, 5, 0])]);
}

/// The driver loads an injection with RTLD_NOW, and a machine with CUDA need not have ROCm.
#[test]
fn a_program_needs_librocov_as_its_injection_only() {
    let Some(setup) = Setup::get() else { return };
    let librocov = built("librocov.so");
    let content = std::fs::read(&librocov).expect("it was built");
    let elf = ElfFile64::<LittleEndian>::parse(&*content).expect("an ELF");
    for import in elf.imports().expect("a table of symbols") {
        // glibc's versions come with its libraries. A symbol without one may be missing anywhere.
        let import = import.expect("a symbol");
        let library = String::from_utf8_lossy(import.library());
        let NameOrOrdinal::Name(name) = import.name() else {
            panic!("a symbol without a name");
        };
        let name = String::from_utf8_lossy(name);
        let is_weak = name.starts_with("_ITM_") || name == "__gmon_start__";
        let is_of_glibc = ["libc.so.6", "ld-linux-x86-64.so.2"].contains(&&*library);
        assert!(is_weak || is_of_glibc, "{name} of {library}");
    }
    let data = data();
    let mut command = limited(setup.library("steps"));
    command.arg(step("load", &setup.cubin));
    command.args(["plant:__profc__Z6bin_off:1,2,3", "exit:6"]);
    command.env("LD_LIBRARY_PATH", setup.library(""));
    command.env("ROCOV_CUPTI", setup.library("libcupti.so.12"));
    command.env("CUDA_INJECTION64_PATH", &librocov);
    command.env("LLVM_PROFILE_FILE", data.path().join("profraw/%p.profraw"));
    run(&mut command).with_status(6).silently();
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[1, 2, 3])]);
}

/// The costs of librocov in loads of CUDA modules: system calls, without those for memory, and instructions.
struct Costs {
    calls: f64,
    instructions: f64,
}

/// The costs of each of `count` loads: of one cubin, or of one for each load.
fn costs(setup: &Setup, count: usize, is_new: bool) -> Costs {
    let data = data();
    let at = |name: &str| data.path().join(name);
    let cubin = std::fs::read(&setup.cubin).expect("it was made");
    let steps = (0..count).map(|number| {
        let file = at(&format!("{}.cubin", if is_new { number } else { 0 }));
        // In the padding behind the last instruction: only the hash sees the number.
        let mut own = cubin.clone();
        code_of(&mut own).copy_from_slice(&(if is_new { number } else { 0 }).to_le_bytes());
        std::fs::write(&file, own).expect("a temporary file can be written");
        step("load", &file)
    });
    let steps: Vec<_> = steps.chain(["exit:0".to_owned()]).collect();
    let traced = |program: &str, options: &[&str]| {
        let mut command = limited(program);
        command
            .args(options)
            .arg(setup.library("steps"))
            .args(&steps);
        command.env("LD_LIBRARY_PATH", setup.library(""));
        command.env("ROCOV_CUPTI", setup.library("libcupti.so.12"));
        command.env("CUDA_INJECTION64_PATH", built("librocov.so"));
        command.env("LLVM_PROFILE_FILE", at("profraw/%p.profraw"));
        run(&mut command).success()
    };
    let log = at("calls");
    traced("strace", &["-qq", "-o", &log.to_string_lossy()]);
    let text = std::fs::read_to_string(&log).expect("strace's log");
    let loads: Vec<_> = text.split(".cubin\", O_RDONLY").collect();
    // The program reads each file with the calls up to its `close`. The first load starts rocov, and the last is
    // followed by the exit.
    let is_own = |line: &&str| {
        let memory = ["brk(", "mmap(", "munmap(", "mremap("];
        line.contains(") = ") && !memory.iter().any(|call| line.starts_with(call))
    };
    let calls = loads[2..loads.len() - 1].iter().map(|load| {
        let (_, behind) = load.split_once("close(").expect("the file is closed");
        behind.lines().skip(1).filter(is_own).count()
    });
    let calls = calls.sum::<usize>() as f64 / (loads.len() - 3) as f64;
    let options = [
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        // The function that CUPTI calls.
        "--toggle-collect=*injection*called*",
    ];
    let ended = traced("valgrind", &options);
    let (_, collected) = ended
        .stderr
        .split_once("Collected : ")
        .expect("callgrind's sum");
    let collected: f64 = collected
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .parse()
        .expect("a number");
    Costs {
        calls,
        instructions: collected / count as f64,
    }
}

/// The last bytes of the code of a cubin, behind the last instruction that runs.
fn code_of(cubin: &mut [u8]) -> &mut [u8] {
    let elf = ElfFile64::<LittleEndian>::parse(&*cubin).expect("a cubin");
    let code = elf
        .sections()
        .find(|section| section.name().is_ok_and(|name| name.starts_with(".text.")));
    let (offset, size) = code.and_then(|code| code.file_range()).expect("code");
    let end = (offset + size) as usize;
    &mut cubin[end - size_of::<usize>()..end]
}

#[test]
fn a_load_costs_as_much_among_many_as_among_few() {
    /// The numbers of loads, and the largest factor of the costs of each.
    const FEW: usize = 50;
    const MANY: usize = 1_000;
    const GROWTH: f64 = 1.2;
    /// The system calls for a load, some more than there are.
    const MOST_CALLS: f64 = 20.0;

    let Some(setup) = Setup::get() else { return };
    for is_new in [false, true] {
        let [few, many] = [FEW, MANY].map(|count| costs(setup, count, is_new));
        let figures = format!(
            "new cubins: {is_new}; among {FEW}: {:.1} calls, {:.0} instructions; among {MANY}: {:.1} calls, {:.0} \
             instructions",
            few.calls, few.instructions, many.calls, many.instructions
        );
        println!("{figures}");
        assert!(
            many.calls <= GROWTH * few.calls && few.calls <= MOST_CALLS,
            "{figures}"
        );
        assert!(many.instructions <= GROWTH * few.instructions, "{figures}");
    }
}

#[test]
fn llvms_drain_for_hip_does_not_get_cuda_code() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps(["plant:__profc__Z6bin_off:1,2,3"]));
    let mut command = setup.command(data.path(), &all);
    run(command.env("ROCOV_DRAIN", "llvm")).success().silently();
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[1, 2, 3])]);
}

#[test]
fn a_module_that_does_not_count_leaves_no_file() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let directory = data.path().join("data");
    let mut all = vec![step("load", &setup.plain())];
    all.extend(steps(["exit:5"]));
    let ended = setup.run(&directory, &all).with_status(5);
    assert_eq!(ended.stdout, "done\n");
    ended.says(&["nothing was drained: no process loaded instrumented GPU code"]);
    assert!(!directory.exists(), "a directory was made");
}

//! Programs of several translation units: a code object for each, or one of all with `-fgpu-rdc`.

use crate::programs::{Ran, source};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::{CLANG, Compilation, INSTRUMENTATION, device_header};
use crate::support::gpu::Stack;
use crate::support::profile::{functions, merge};
use std::path::{Path, PathBuf};

/// Units of the program without `-fgpu-rdc`.
const UNITS: usize = 12;
/// Work-items of each unit's launch.
const WORK_ITEMS: u64 = 64;

/// Compiles a unit, or links units, for HIP 5.2.
fn compilation(flags: &[&str]) -> Compilation {
    Compilation::by(CLANG)
        .arguments(["--config"])
        .source(repository("testdata/sample/debian12.cfg"))
        .arguments(["-O1"])
        .arguments(flags.iter().copied())
}

fn unit(number: usize, flags: &[&str]) -> PathBuf {
    let instrumentation = INSTRUMENTATION.map(|flag| ["-Xarch_device", flag]);
    let compiled = compilation(flags)
        .arguments(instrumentation.concat())
        .arguments(["-include"])
        .source(device_header())
        .arguments([format!("-DUNIT={number}"), "-c".into()])
        .source(source("unit.hip"))
        .output(&format!("unit{number}"));
    placed(&compiled.with_extension("o"), &compiled)
}

/// Puts a copy of an object where clang knows it by its extension, whole at any time.
fn placed(path: &Path, object: &Path) -> PathBuf {
    let directory = path.parent().expect("a file is in a directory");
    let copy = tempfile::NamedTempFile::new_in(directory).expect("a temporary file");
    std::fs::copy(object, copy.path()).expect("an object can be copied");
    copy.persist(path).expect("a file can be renamed");
    path.to_owned()
}

fn linked(units: &[PathBuf], flags: &[&str]) -> PathBuf {
    let mut program = compilation(flags).arguments(["--hip-link"]);
    for unit in units {
        program = program.source(unit);
    }
    program.source(source("units.cpp")).output("units")
}

/// Runs the program; each unit's kernel must have been counted once. Gives the number of profiles.
fn all_are_counted(program: PathBuf, units: usize) -> usize {
    let ran = Ran::new(Stack::Debian12, "gfx90a", &[], [program]);
    let profiles = ran.profiles();
    let merged = ran.directory.path().join("merged.profdata");
    merge(&profiles, &merged);
    let functions = functions(&merged);
    for unit in 0..units {
        let kernel = &functions[&format!("unit_{unit}")];
        let taken = vec![unit as u64 + 1];
        assert_eq!(
            (kernel.calls, &kernel.blocks),
            (WORK_ITEMS, &taken),
            "{unit}"
        );
    }
    ran.ended.silently();
    profiles.len()
}

#[test]
fn each_unit_is_a_code_object() {
    let units: Vec<PathBuf> = (0..UNITS).map(|number| unit(number, &[])).collect();
    let program = linked(&units, &[]);
    assert_eq!(all_are_counted(program, UNITS), UNITS);
}

#[test]
fn one_unit_with_rdc() {
    let program = linked(&[unit(0, &["-fgpu-rdc"])], &["-fgpu-rdc"]);
    assert_eq!(all_are_counted(program, 1), 1);
}

#[test]
fn units_with_rdc_are_one_code_object() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut units = Vec::new();
    for number in 0..3 {
        let compiled = unit(number, &["-fgpu-rdc", "-DSHARED"]);
        let own = placed(&directory.path().join("unit.o"), &compiled);
        // As the README has it.
        let rename = format!("s/__llvm_prf_nm/__llvm_prf_{number:02}/g");
        run(limited("sed").args(["-i", &rename]).arg(&own)).success();
        // Beside the other, so that the program is linked once and kept.
        units.push(placed(&compiled.with_extension("renamed.o"), &own));
    }
    let program = linked(&units, &["-fgpu-rdc"]);
    assert_eq!(all_are_counted(program, 3), 1);
}

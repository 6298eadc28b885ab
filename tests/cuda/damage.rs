//! Tools and files that are missing, damaged or in the way. The program runs on.

use std::fs;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use tempfile::TempDir;

use crate::setup::{BIN_OF, Setup, counts, expect, profiles, step, steps};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};

#[test]
fn one_line_says_why_cupti_cannot_be_used() {
    let Some(setup) = Setup::get() else { return };
    let older = setup.library("older.so").display().to_string();
    let cases = [
        ("ROCOV_CUPTI", "/nowhere/libcupti.so", "is not installed"),
        ("ROCOV_CUPTI", &older, "CUPTI has no cuptiGetDeviceId"),
        ("STAND_IN_CUPTI", "taken", "another tool uses CUPTI"),
        (
            "STAND_IN_CUPTI",
            "broken",
            "cuptiSubscribe failed (CUPTI_ERROR_UNKNOWN)",
        ),
    ];
    for (variable, value, line) in cases {
        let data = TempDir::new().expect("a directory can be made");
        let mut all = vec![step("load", &setup.cubin)];
        all.extend(steps(["plant:__profc__Z6bin_off:1,2,3", "exit:4"]));
        let mut command = setup.command(data.path(), &all);
        let ended = run(command.env(variable, value)).with_status(4);
        assert_eq!(ended.stdout, "done\n");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{ended}");
        assert!(lines[0].contains(line), "{ended}");
        assert!(
            lines[0].contains("code on NVIDIA GPUs is not counted; "),
            "{ended}"
        );
    }
}

#[test]
fn another_injection_stays_and_one_line_says_so() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    let mut command = setup.command(data.path(), &steps(["exit:0"]));
    let ended = run(command.env("CUDA_INJECTION64_PATH", "/nowhere/tool.so")).success();
    let said = ended.stderr.lines();
    let lines: Vec<_> = said
        .filter(|line| line.contains("/nowhere/tool.so"))
        .collect();
    let expected = "CUDA_INJECTION64_PATH names /nowhere/tool.so, and not librocov: code on NVIDIA GPUs is not counted; ";
    assert!(lines.len() == 1 && lines[0].contains(expected), "{ended}");
}

#[test]
fn a_program_without_cuda_says_nothing_of_another_injection() {
    let data = TempDir::new().expect("a directory can be made");
    let mut command = limited(built("rocov"));
    command.args(["run", "-o"]).arg(data.path()).arg("true");
    let ended = run(command.env("CUDA_INJECTION64_PATH", "/nowhere/tool.so")).success();
    assert!(!ended.stderr.contains("/nowhere/tool.so"), "{ended}");
}

/// The place in the file of the symbol or relocation number `index` of the section `name`, whose entries have 24 bytes.
fn entry(elf: &ElfFile64<LittleEndian>, name: &str, index: usize) -> usize {
    let section = elf.section_by_name(name).expect("the section");
    let (start, _) = section.file_range().expect("contents");
    start as usize + index * 24
}

/// Copies of a cubin that the driver takes, with damage in its profile data, each with what rocov says of it.
fn damaged(good: &[u8]) -> [(Vec<u8>, &'static str); 2] {
    let elf = ElfFile64::<LittleEndian>::parse(good).expect("a cubin");
    let mut symbols = elf.symbols();
    let record = symbols.find(|symbol| symbol.name() == Ok("__profd__Z6bin_off"));
    let record = entry(&elf, ".symtab", record.expect("a record").index().0);
    let relocation = entry(&elf, ".rela.nv.global.init", 0);
    let with = |at: usize, word: u64| {
        let mut cubin = good.to_vec();
        cubin[at..at + 8].copy_from_slice(&word.to_le_bytes());
        cubin
    };
    let kind = relocation + 8;
    let symbol = u64::from_le_bytes(*good[kind..].first_chunk().expect("a word")) >> 32 << 32;
    [
        // `st_size`
        (with(record + 16, 63), "records have 63 bytes each"),
        // `r_info`
        (with(kind, symbol | 77), "has a relocation of type 77"),
    ]
}

#[test]
fn a_tool_that_takes_the_place_later_costs_one_line() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    for (program, lines) in [("steps", 2), ("true", 1)] {
        let mut command = limited(built("rocov"));
        command.args(["run", "-o"]).arg(data.path());
        command.args(["--", "env", "CUDA_INJECTION64_PATH=/nowhere/tool.so"]);
        match program {
            "steps" => setup.program(&mut command, "steps"),
            other => command.arg(other),
        };
        let ended = run(&mut command).success();
        let said: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(said.len(), lines, "{ended}");
        let expected =
            "names /nowhere/tool.so, and not librocov: code on NVIDIA GPUs is not counted; ";
        assert_eq!(said[0].contains(expected), lines == 2, "{ended}");
    }
}

#[test]
fn damaged_cubins_cost_only_themselves() {
    let Some(setup) = Setup::get() else { return };
    let good = fs::read(&setup.cubin).expect("it was made");
    let data = TempDir::new().expect("a directory can be made");
    let (mut all, mut reasons) = (Vec::new(), Vec::new());
    for (cubin, reason) in damaged(&good) {
        let path = data.path().join(format!("{}.cubin", reasons.len()));
        fs::write(&path, cubin).expect("it can be written");
        all.push(step("load", &path));
        all.extend(steps(["plant:__profc__Z6bin_off:9,9,9"]));
        reasons.push(reason);
    }
    all.push(step("load", &setup.cubin));
    all.extend(steps(["plant:__profc__Z6bin_off:1,2,3", "exit:4"]));
    let ended = setup.run(data.path(), &all).with_status(4);
    assert_eq!(ended.stdout, "done\n");
    let lines = ended.stderr.lines();
    let said: Vec<&str> = lines
        .filter(|line| line.contains("a CUDA module cannot be read: "))
        .collect();
    assert_eq!(said.len(), reasons.len(), "{ended}");
    for (line, reason) in said.iter().zip(reasons) {
        assert!(line.contains(reason), "{line}");
    }
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[1, 2, 3])]);
}

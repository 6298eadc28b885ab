//! The decoder against llvm-objdump: every instruction of every kernel source in testdata, at
//! three optimisation levels, for both targets.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{repository, text, tool};
use modelgpu_amdgcn::{Program, Target};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// The kernel sources with their targets and flags. The sample needs HIP's headers and device
/// libraries, which Debian 12 has for gfx90a only.
fn sources() -> Vec<(PathBuf, &'static [Target], Vec<String>)> {
    let plain = || ["-nogpuinc", "-nogpulib"].map(str::to_owned).to_vec();
    let config = repository("testdata/sample/debian12.cfg");
    let list = |folder: &str| -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(repository(folder))
            .unwrap_or_else(|error| panic!("{folder}: {error}"))
            .map(|entry| entry.expect("a readable folder").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "hip"))
            .collect();
        paths.sort();
        assert!(!paths.is_empty(), "no kernel source in {folder}");
        paths
    };
    let mut sources = Vec::new();
    for path in list("testdata/kernels") {
        sources.push((path, &Target::ALL[..], plain()));
    }
    for path in list("testdata/sample") {
        let flags = vec![format!("--config={}", text(&config))];
        sources.push((path, &[Target::Gfx90a][..], flags));
    }
    sources
}

fn compile(source: &Path, target: Target, level: &str, flags: &[String], object: &Path) {
    let target = format!("--offload-arch={target}");
    let header = repository("runtime/device/rocov_device.h");
    let mut arguments = vec![
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-std=c++17",
        level,
        &target,
        "-mcode-object-version=4",
        "-fprofile-instr-generate",
        "-fcoverage-mapping",
        "-fprofile-update=atomic",
        "-include",
        text(&header),
        text(source),
        "-o",
        text(object),
    ];
    arguments.extend(flags.iter().map(String::as_str));
    tool("clang++-22", &arguments);
}

/// Offset and mnemonic of each instruction, from llvm-objdump.
fn reference(object: &Path) -> BTreeMap<u64, String> {
    let listing = tool("llvm-objdump-22", &["-d", text(object)]);
    let mut instructions = BTreeMap::new();
    for line in listing.lines().filter(|line| line.starts_with('\t')) {
        // "\tv_add_u32_e32 v0, v1, v2    // 000000001904: 68000501"
        let Some((instruction, comment)) = line.split_once("//") else {
            continue;
        };
        let Some((offset, _)) = comment.trim().split_once(':') else {
            continue;
        };
        let offset = u64::from_str_radix(offset, 16).expect("an offset");
        let mnemonic = instruction.split_whitespace().next().expect("a mnemonic");
        let suffixes = ["_e32", "_e64", "_sdwa", "_dpp"];
        let bare = suffixes
            .iter()
            .find_map(|suffix| mnemonic.strip_suffix(suffix));
        instructions.insert(offset, bare.unwrap_or(mnemonic).to_owned());
    }
    instructions
}

#[test]
fn every_instruction_is_what_objdump_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("kernel.co");
    let mut compared = 0;
    for (source, targets, flags) in sources() {
        for target in targets.iter().copied() {
            for level in LEVELS {
                compile(&source, target, level, &flags, &object);
                let program = Program::load(&std::fs::read(&object).expect("clang's output"))
                    .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
                let base = program.object().base;
                let decoded: BTreeMap<u64, _> = program
                    .disassemble()
                    .into_iter()
                    .map(|(pc, instruction)| (pc - base, instruction))
                    .collect();
                let expected = reference(&object);
                assert!(!expected.is_empty(), "{}: no code", source.display());
                compared += expected.len();
                for (offset, mnemonic) in expected {
                    assert_eq!(
                        decoded.get(&offset),
                        Some(&Ok(mnemonic.as_str())),
                        "{} {level} {target} at {offset:#x}",
                        source.display()
                    );
                }
            }
        }
    }
    println!("{compared} instructions agree");
}

#[test]
fn tables_are_what_their_script_generates() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables/generate.py");
    tool("python3", &[text(&script), "--check"]);
}

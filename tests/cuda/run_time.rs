//! Cubins that the program compiles itself, by NVRTC and nvJitLink: rocov has their PTX. A stand-in assembles them by ptxas.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::instrument::{Uncounted, data, lines, numbered};
use crate::setup::{counts, profiles, step};
use crate::support::command::run;

/// A run of steps with the stand-ins for the compilers.
fn command(uncounted: &Uncounted, data: &Path, steps: &[String]) -> Command {
    let mut command = uncounted.command(data, steps);
    command.env("STAND_IN_NVRTC", uncounted.setup.library("compilers.so"));
    command.env("STAND_IN_OPTIONS", data.join("options"));
    command
}

/// The options that the compilers got, a line for each.
fn options(data: &Path) -> Vec<String> {
    let noted = fs::read_to_string(data.join("options")).unwrap_or_default();
    noted.lines().map(str::to_owned).collect()
}

#[test]
fn cubins_of_nvrtc_and_nvjitlink_count() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let (plant, expected) = numbered(&uncounted.text);
    let file = uncounted.file("program", &uncounted.text);
    for (how, compiled) in [
        ("nvrtc", ["-arch=sm_90 -lineinfo"].as_slice()),
        ("nvjitlink:2", &["-arch=sm_90"]),
        (
            "nvjitlink:3",
            &["-arch=sm_90 -lto", "-arch=sm_90 -lto -ptx"],
        ),
    ] {
        let place = data();
        let steps = [step(how, &file), plant.clone()];
        let ended = run(&mut command(&uncounted, place.path(), &steps)).success();
        assert!(lines(&ended, "uncounted").is_empty(), "{how}: {ended}");
        assert_eq!(options(place.path()), compiled, "{how}");
        let found = counts(&profiles(place.path()), place.path());
        for (name, blocks) in &expected {
            assert_eq!(&found[name], blocks, "{how}: {name}");
        }
    }
}

/// A framework keeps cubins on disk, and the next process compiles nothing.
#[test]
fn a_cubin_that_an_earlier_process_has_compiled_counts() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let (plant, expected) = numbered(&uncounted.text);
    let file = uncounted.file("program", &uncounted.text);
    // ptxas makes the same of the same text.
    let load = || [step("data", &uncounted.setup.plain()), plant.clone()];
    let place = data();
    let ended = run(&mut command(&uncounted, place.path(), &load()[..1]));
    let said = lines(
        &ended,
        "a CUDA module of memory runs uncounted: it is a cubin without PTX",
    );
    assert_eq!(said.len(), 1, "{ended}");

    let all = [step("nvrtc", &file)];
    run(&mut command(&uncounted, place.path(), &all)).success();
    let other = data();
    let ended = run(&mut command(&uncounted, other.path(), &load())).success();
    assert!(lines(&ended, "uncounted").is_empty(), "{ended}");
    let found = counts(&profiles(other.path()), other.path());
    for (name, blocks) in &expected {
        assert_eq!(&found[name], blocks, "{name}");
    }
}

/// Frameworks for Python keep cubins, and load them from memory. Their kernels have names of their own.
#[test]
fn uncounted_cubins_of_frameworks_are_named() {
    let Some(uncounted) = Uncounted::get() else {
        return;
    };
    let cubin = |kernel: &str| {
        let text = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry {kernel}()\n{{\nret;\n}}\n"
        );
        let ptx = uncounted.file(kernel, text);
        let cubin = ptx.with_extension("cubin");
        let mut ptxas = Command::new(uncounted.tool("ptxas"));
        run(ptxas.args(["-arch=sm_90", "-o"]).arg(&cubin).arg(&ptx)).success();
        step("data", &cubin)
    };
    let steps = [
        "cupy_add__float32_float32_float32",
        "cupy_copy__float32_float32",
        "triton_poi_fused_add_0",
        "own",
    ]
    .map(cubin);
    let place = data();
    let ended = run(&mut command(&uncounted, place.path(), &steps)).success();
    let start = "it is a cubin without PTX";
    for line in [
        format!("rocov: 2 CUDA modules of CuPy run uncounted: {start}: unset CUPY_CACHE_DIR, "),
        format!(
            "rocov: a CUDA module of torch.compile runs uncounted: {start}: unset TORCHINDUCTOR_CACHE_DIR, "
        ),
        format!("rocov: a CUDA module of memory runs uncounted: {start}: load PTX"),
    ] {
        assert_eq!(lines(&ended, &line).len(), 1, "{line}: {ended}");
    }
    assert_eq!(lines(&ended, " uncounted: ").len(), 3, "{ended}");
}

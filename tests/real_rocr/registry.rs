//! The registry and the device ELFs of a run, next to its profiles.

use std::collections::BTreeMap;
use std::path::Path;

use rocov::format::codeobject::Kernel;
use rocov::format::registry::model::{CodeObjectRecord, Document, LoadRecord, ProcessRecord};

use crate::hsa_alone::{self, identity_of};
use crate::programs::{COUNT, Ran, launches, modules, object};
use crate::support::artifacts::built;
use crate::support::command::{limited, rocov_run, run};
use crate::support::compile::sample;
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::profile::raw_profiles;
use crate::support::program::rocov_flags;

/// The only registry in a data directory.
#[track_caller]
fn the_registry(data: &Path) -> Document {
    let [registry] = <[Document; 1]>::try_from(Data::read(data).registries)
        .unwrap_or_else(|all| panic!("one registry was expected: {all:?}"));
    registry
}

/// The loads of the code object in a file.
fn loads_of<'a>(process: &'a ProcessRecord, object: &Path) -> Vec<&'a LoadRecord> {
    let identity = identity_of(object);
    let is_ours = |load: &&LoadRecord| load.code_object.as_deref() == Some(&identity);
    process.loads.iter().filter(is_ours).collect()
}

#[test]
fn kernel_objects_are_those_that_hsa_says() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        let ran = hsa_alone::ran(stack, "gfx90ax2", &object, &["memory", "again"]);
        let lines = ran.ended.stdout.lines();
        let said: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("kernel "))
            .collect();
        let document = the_registry(&ran.data());
        let process = &document.processes[0];
        let loads = loads_of(process, &object);
        let kernel = |load: &&LoadRecord| {
            let kernel = load.kernels.iter().find(|kernel| kernel.name == COUNT);
            format!("{:#x}", kernel.expect("the kernel").object)
        };
        assert_eq!(
            loads.iter().map(kernel).collect::<Vec<_>>(),
            said,
            "{stack:?}"
        );
        assert_eq!(said.len(), 16, "{}", ran.ended);
        let mut distinct = said.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(
            distinct.len() < said.len(),
            "no address came again: {said:?}"
        );

        let nodes: Vec<_> = process
            .agents
            .iter()
            .map(|agent| (agent.index, agent.node))
            .collect();
        assert_eq!(nodes, [(0, Some(1)), (1, Some(2))]);
        let mut last = (0, 0);
        for (number, load) in loads.iter().enumerate() {
            assert_eq!(load.agent, number % 2);
            let profile = load.profile.as_ref().expect("a profile");
            assert!(ran.data().join(profile).exists(), "{profile}");
            let end = load.unload.expect("it was destroyed");
            // One load after the other.
            assert!(last.0 < load.generation && load.generation < end.generation);
            assert!(last.1 <= load.time && load.time <= end.time);
            last = (end.generation, end.time);
        }
    }
}

#[test]
fn modules_are_there_from_their_load_to_their_unload() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        let ran = Ran::steps(
            stack,
            "gfx90a",
            &object,
            "load launch sync unload data launch",
        );
        let document = the_registry(&ran.data());
        let process = &document.processes[0];
        let program = modules(stack).to_string_lossy().into_owned();
        assert!(process.command.contains(&program), "{:?}", process.command);
        let loads = loads_of(process, &object);
        let [first, second] = loads.as_slice() else {
            panic!("two loads: {loads:?}")
        };
        assert!(
            first
                .unload
                .is_some_and(|end| end.generation < second.generation)
        );
        // HIP unloads modules only at the end of the process. From HIP 6 on it shuts down there,
        // while rocov writes the registry.
        assert!(second.unload.is_none(), "on {stack:?}");
        assert!(second.uri.starts_with("memory://"), "{}", second.uri);
        assert_eq!(first.profile, second.profile);
        // HIP's own code objects are in the registry too, but without a kept ELF.
        let others = document
            .code_objects
            .iter()
            .filter(|code_object| !code_object.instrumented);
        assert!(others.clone().count() > 0);
        assert!(others.clone().all(|code_object| code_object.file.is_none()));
        let elfs = Data::read(&ran.data()).elfs;
        assert_eq!(elfs.len(), 1);
        let [kept, given] = [&elfs[0], &object].map(|path| std::fs::read(path).expect("an ELF"));
        assert!(kept == given, "the kept ELF is the file");
        ran.ended.silently();
    }
}

#[test]
fn what_is_written_is_chosen() {
    let stack = Stack::Debian12;
    let object = object("count.hip", stack);
    for (environment, registries, elfs, said) in [
        (&[("ROCOV_REGISTRY", "none")][..], 0, 1, ""),
        (&[("ROCOV_OBJECTS", "none")], 1, 0, ""),
        (&[("ROCOV_OBJECTS", "all")], 1, 2, ""),
        (
            &[("ROCOV_OBJECTS_MAX", "1K")],
            1,
            0,
            "would exceed 1024 bytes; raise ROCOV_OBJECTS_MAX (reported once)\n",
        ),
        (
            &[("ROCOV_REGISTRY", "some")],
            1,
            1,
            "rocov: ROCOV_REGISTRY: \"some\" is not valid, so rocov uses auto; use auto, always or none\n",
        ),
        (
            &[("ROCOV_OBJECTS", "any"), ("ROCOV_OBJECTS_MAX", "")],
            1,
            1,
            "rocov: ROCOV_OBJECTS: \"any\" is not valid, so rocov uses instrumented; use all, \
             instrumented or none\n",
        ),
        (
            &[("ROCOV_OBJECTS_MAX", "lots")],
            1,
            1,
            "rocov: ROCOV_OBJECTS_MAX: \"lots\" is not valid, so rocov uses 4G; use a number of bytes \
             such as 1000, 64K, 500M or 4G\n",
        ),
    ] {
        let steps = "load launch sync unload load launch sync";
        let ran = Ran::steps_with(stack, "gfx90a", environment, &object, steps);
        assert_eq!(launches(&ran.profile()), 2, "{environment:?}");
        let data = Data::read(&ran.data());
        let written = (data.registries.len(), data.elfs.len());
        assert_eq!(
            written,
            (registries, elfs),
            "{environment:?}: {}",
            ran.ended
        );
        let lines = ran.ended.stderr.lines().count();
        assert_eq!(lines, said.lines().count(), "{}", ran.ended);
        assert!(ran.ended.stderr.ends_with(said), "{}", ran.ended);
    }
}

/// The program loads no instrumented code, so rocov writes the registry only if the user enables
/// it.
#[test]
fn without_instrumentation_a_registry_is_written_where_asked_for() {
    let sample = sample(&[]);
    for (value, expected) in [("auto", 0), ("always", 1), ("none", 0)] {
        let environment = [("ROCOV_REGISTRY", value)];
        let ran = Ran::new(Stack::Debian12, "gfx90a", &environment, [&sample]);
        let data = Data::read(&ran.data());
        let written = (data.registries.len(), data.elfs.len());
        assert_eq!(written, (expected, 0), "{value}");
        assert_eq!(ran.data().exists(), expected == 1, "{value}");
        let code_objects = data
            .registries
            .iter()
            .flat_map(|registry| &registry.code_objects);
        let kernels = code_objects.flat_map(|code_object| &code_object.kernels);
        let ours = kernels.filter(|kernel| kernel.name.contains("scale_kernel"));
        assert_eq!(ours.count(), expected, "{value}");
        assert_eq!(ran.ended.stderr.lines().count(), 1, "{}", ran.ended);
        ran.ended.says(&["rocov: nothing was drained: "]);
    }
}

#[test]
fn processes_share_a_pool() {
    let stack = Stack::Debian12;
    let object = object("count.hip", stack);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let pattern = data.join("%m.profraw");
    for _ in 0..2 {
        let mut command = limited(built("rocov"));
        command.args(["run", "--gpu", "model:gfx90a", "--"]);
        command.arg(modules(stack)).arg(&object);
        command
            .args(["load", "launch", "sync"])
            .env("LLVM_PROFILE_FILE", &pattern);
        run(&mut command).success().silently();
    }
    assert_eq!(raw_profiles(&data).len(), 1);
    let document = the_registry(&data);
    let [first, second] = document.processes.as_slice() else {
        panic!("two processes: {:?}", document.processes)
    };
    assert_ne!(first.pid, second.pid);
    assert!(first.start < second.start);
    for process in [first, second] {
        assert_eq!(loads_of(process, &object).len(), 1);
    }
    let ours = document
        .code_objects
        .iter()
        .filter(|code_object| code_object.instrumented);
    assert_eq!(ours.count(), 1);
}

/// The sample's device ELFs, as clang-offload-bundler extracts them from its fat binary.
fn unbundled(program: &Path, directory: &Path) -> Vec<Vec<u8>> {
    const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
    let section = directory.join("fatbin");
    let mut objcopy = limited("llvm-objcopy-22");
    let dump = format!("--dump-section=.hip_fatbin={}", section.display());
    run(objcopy.arg(dump).arg(program).arg(directory.join("copy"))).success();
    let section = std::fs::read(section).expect("the section");
    // Each translation unit has a bundle; the bundler sees only the first.
    let starts: Vec<usize> = (0..section.len())
        .filter(|at| section[*at..].starts_with(MAGIC))
        .collect();
    let bundle = |start: &usize| {
        let input = directory.join("bundle");
        std::fs::write(&input, &section[*start..]).expect("a file");
        let output = directory.join("elf");
        let mut bundler = limited("clang-offload-bundler-22");
        bundler.args([
            "--unbundle",
            "--type=o",
            "--targets=hipv4-amdgcn-amd-amdhsa--gfx90a",
        ]);
        bundler.arg(format!("--input={}", input.display()));
        bundler.arg(format!("--output={}", output.display()));
        run(&mut bundler).success();
        std::fs::read(output).expect("a device ELF")
    };
    starts.iter().map(bundle).collect()
}

/// The kernels of a device ELF in llvm-readelf's output, with their addresses from llvm-objdump.
fn kernels_of(elf: &Path) -> Vec<Kernel> {
    let notes = run(limited("llvm-readelf-22").arg("--notes").arg(elf))
        .success()
        .stdout;
    let symbols = run(limited("llvm-objdump-22").arg("--syms").arg(elf))
        .success()
        .stdout;
    let symbols: BTreeMap<&str, u64> = symbols
        .lines()
        .filter_map(|line| {
            let (address, rest) = line.split_once(' ')?;
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((rest.rsplit(' ').next()?, address))
        })
        .collect();
    let mut kernels: Vec<Kernel> = Vec::new();
    // A list of maps: each map starts with a dash, and the lists of arguments have a deeper indent.
    for line in notes.lines() {
        let Some((key, value)) = line.trim_start_matches([' ', '-']).split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches('\'');
        if line.starts_with("  - ") {
            kernels.push(Kernel::default());
        }
        let is_of_kernel = line.len() - line.trim_start_matches([' ', '-']).len() == 4;
        let Some(kernel) = kernels.last_mut().filter(|_| is_of_kernel) else {
            continue;
        };
        let number = || {
            value
                .parse()
                .unwrap_or_else(|_| panic!("no number: {line}"))
        };
        match key {
            ".name" => kernel.name = value.into(),
            ".kernarg_segment_size" => kernel.kernarg_size = number(),
            ".kernarg_segment_align" => kernel.kernarg_align = number(),
            ".group_segment_fixed_size" => kernel.group_size = number(),
            ".private_segment_fixed_size" => kernel.private_size = number(),
            ".sgpr_count" => kernel.sgprs = number(),
            ".vgpr_count" => kernel.vgprs = number(),
            ".agpr_count" => kernel.agprs = number(),
            ".sgpr_spill_count" => kernel.sgpr_spills = number(),
            ".vgpr_spill_count" => kernel.vgpr_spills = number(),
            ".wavefront_size" => kernel.wavefront_size = number(),
            ".max_flat_workgroup_size" => kernel.max_workgroup_size = number(),
            _ => {}
        }
    }
    for kernel in &mut kernels {
        kernel.descriptor = symbols[&*format!("{}.kd", kernel.name)];
        kernel.entry = symbols[&*kernel.name];
    }
    kernels.sort_by(|one, other| one.name.cmp(&other.name));
    kernels
}

#[test]
fn the_samples_kernels_and_elfs_are_those_that_llvm_shows() {
    let sample = sample(&rocov_flags(Stack::usual(), &[]));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    run(rocov_run(Some("model"), &data).arg(&sample))
        .success()
        .silently();
    let document = the_registry(&data);
    let ours: Vec<&CodeObjectRecord> = document
        .code_objects
        .iter()
        .filter(|code_object| code_object.instrumented)
        .collect();
    let mut expected = unbundled(&sample, directory.path());
    assert_eq!((ours.len(), expected.len()), (2, 2));
    for code_object in ours {
        let file = data.join(code_object.file.as_ref().expect("a kept ELF"));
        let bytes = std::fs::read(&file).expect("a kept ELF");
        expected.retain(|elf| *elf != bytes);

        let listed = kernels_of(&file);
        assert!(!listed.is_empty(), "{}", file.display());
        let registered: Vec<Kernel> = code_object
            .kernels
            .iter()
            .map(|kernel| Kernel {
                // The notes do not have this field.
                instrumented: false,
                source: None,
                ..kernel.clone()
            })
            .collect();
        assert_eq!(registered, listed);
        for kernel in &code_object.kernels {
            assert!(kernel.instrumented, "{}", kernel.name);
        }
    }
    assert!(expected.is_empty(), "each ELF of the bundles was kept");
    let process = &document.processes[0];
    let loads = process.loads.iter().filter(|load| load.profile.is_some());
    for load in loads {
        assert!(load.uri.starts_with("file://"), "{}", load.uri);
        assert!(load.unload.is_some(), "static code is unloaded at exit");
    }
}

//! Kernels: names, addresses, sizes, registers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rocov::format::bundle;
use rocov::format::codeobject::Kernel;

use crate::llvm::{self, Fields};
use crate::support::compile::{device_header, sample_by};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::{all_kinds, all_sources, kernels};

/// The fields of the metadata, by their names there.
fn fields(kernel: &Kernel) -> Vec<(&'static str, String)> {
    let descriptor = format!("{}.kd", kernel.name);
    let numbers = [
        (".kernarg_segment_size", kernel.kernarg_size),
        (".kernarg_segment_align", kernel.kernarg_align),
        (".group_segment_fixed_size", kernel.group_size),
        (".private_segment_fixed_size", kernel.private_size),
        (".sgpr_count", kernel.sgprs),
        (".vgpr_count", kernel.vgprs),
        (".agpr_count", kernel.agprs),
        (".sgpr_spill_count", kernel.sgpr_spills),
        (".vgpr_spill_count", kernel.vgpr_spills),
        (".wavefront_size", kernel.wavefront_size),
        (".max_flat_workgroup_size", kernel.max_workgroup_size),
    ];
    let numbers = numbers.map(|(key, number)| (key, number.to_string()));
    let names = [(".name", kernel.name.clone()), (".symbol", descriptor)];
    names.into_iter().chain(numbers).collect()
}

fn say_what_the_notes_say(path: &Path) {
    let kernels = kernels(path);
    assert!(kernels.is_sorted_by(|one, other| one.name < other.name));
    let mut notes = llvm::notes(path);
    notes.sort_by(|one, other| one[".name"].cmp(&other[".name"]));
    assert_eq!(kernels.len(), notes.len(), "{}", path.display());
    for (kernel, note) in kernels.iter().zip(&notes) {
        assert_eq!(kernel.display_name, None);
        for (key, value) in fields(kernel) {
            assert_eq!(
                note[key],
                value,
                "{key} of {}, {}",
                kernel.name,
                path.display()
            );
        }
    }
}

/// Compares addresses with the symbol table, and the hardware's values with the descriptor.
fn are_where_the_symbols_are(path: &Path) {
    let (symbols, descriptors) = (llvm::symbols(path), llvm::descriptors(path));
    for kernel in kernels(path) {
        let name = &kernel.name;
        let at = path.display();
        assert_eq!(symbols[name], kernel.entry, "entry of {name}, {at}");
        let descriptor = format!("{name}.kd");
        assert_eq!(
            symbols[&descriptor], kernel.descriptor,
            "{descriptor}, {at}"
        );
        let directives: &Fields = &descriptors[name];
        let directive = |key: &str| -> u32 { directives[key].parse().expect("a number") };
        assert_eq!(
            directive("group_segment_fixed_size"),
            kernel.group_size,
            "{name}"
        );
        assert_eq!(directive("kernarg_size"), kernel.kernarg_size, "{name}");
        assert_eq!(
            directive("private_segment_fixed_size"),
            kernel.private_size,
            "{name}"
        );
        // The hardware allots registers in blocks of eight.
        let vgprs = kernel.vgprs.max(1).next_multiple_of(8);
        assert_eq!(
            directive("next_free_vgpr"),
            vgprs,
            "registers of {name}, {at}"
        );
        // The accumulation registers follow the others, at a multiple of four.
        if kernel.agprs > 0 {
            let total = directive("accum_offset") + kernel.agprs;
            assert_eq!(
                total, kernel.vgprs,
                "accumulation registers of {name}, {at}"
            );
        }
        let sgprs = kernel.sgprs.max(1).next_multiple_of(8);
        assert_eq!(
            directive("next_free_sgpr"),
            sgprs,
            "scalar registers of {name}, {at}"
        );
    }
}

/// The code objects in the sample program with these flags, as files.
fn sample_objects(compiler: &'static Compiler, flags: &[OsString], into: &Path) -> Vec<PathBuf> {
    let program = sample_by(compiler, Stack::Debian12, flags, &[]);
    let program = std::fs::read(program).expect("the sample");
    let objects: Vec<_> = bundle::images(&program)
        .enumerate()
        .map(|(at, image)| {
            let path = into.join(format!("{at}.co"));
            std::fs::write(&path, &*image.expect("a device ELF").bytes).expect("a file");
            path
        })
        .collect();
    assert_eq!(objects.len(), 2, "one for each unit");
    objects
}

#[test]
fn kernels_are_those_of_the_notes() {
    for path in all_kinds().iter().chain(&all_sources()) {
        say_what_the_notes_say(path);
    }
}

#[test]
fn kernels_are_where_their_symbols_and_descriptors_are() {
    for path in all_kinds().iter().chain(&all_sources()) {
        are_where_the_symbols_are(path);
    }
}

#[test]
fn the_samples_kernels_are_as_well() {
    let plain: [OsString; 1] = ["--offload-arch=gfx90a".into()];
    let instrumented = ["-fprofile-instr-generate", "-fcoverage-mapping", "-include"];
    let mut flags = plain.to_vec();
    flags.extend(instrumented.map(OsString::from));
    flags.push(device_header().into());
    for (release, flags) in [(15, &plain[..]), (19, &plain), (22, &plain), (22, &flags)] {
        let compiler = Compiler::find(release).expect("a compiler that tools/setup installs");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let objects = sample_objects(compiler, flags, directory.path());
        let mut names = Vec::new();
        for path in &objects {
            say_what_the_notes_say(path);
            are_where_the_symbols_are(path);
            names.extend(kernels(path).into_iter().map(|kernel| kernel.name));
        }
        names.sort();
        let kernels = ["clean", "histogram", "block_sums", "scale", "steps"];
        for kernel in kernels {
            let is_it = |name: &String| name.contains(&format!("{kernel}_kernel"));
            assert!(names.iter().any(is_it), "no {kernel}_kernel in {names:?}");
        }
    }
}

//! rocov drains the code objects that HIP has loaded.

use super::{Ran, Toolchain, the_one};
use crate::support::artifacts::repository;
use crate::support::compile::device_only;
use crate::support::program::{TARGET, device_profiles, link_flags};

#[test]
fn module_load_file() {
    for toolchain in Toolchain::all() {
        let source = repository("testdata/programs/upstream/module.hip");
        let module = device_only(
            toolchain.compiler().clang,
            &[TARGET],
            toolchain.stack.code_object_version(),
        )
        .arguments(["-O1"])
        .counting()
        .source(source)
        .output("module");
        let module = module.to_str().expect("a path in UTF-8");
        // LLVM's drain, as released, loses the counts of a module of a file that is unloaded, and prints
        // this without rocov too (`released::modules::from_a_file_unloaded`).
        let warning = "LLVM Profile Warning: no __llvm_profile_sections_* symbols found in module";
        let warnings: &[&str] = match toolchain.newest {
            Some(_) => &[warning],
            None => &[],
        };
        let program = toolchain.program(&["loader"], &[]);
        let ran = Ran::warned(toolchain, &program, &[module], warnings);
        assert_eq!(
            toolchain.counts(&ran.device(), "module_kernel"),
            (1, vec![])
        );
    }
}

#[test]
fn no_kernel() {
    for toolchain in Toolchain::all() {
        let program = toolchain.program(&["no_kernel"], &[]);
        let (ran, ended) = Ran::verbose(toolchain, &program, TARGET, &[]);
        ran.host();
        let profiles = device_profiles(&ran.data);
        assert!(profiles.is_empty(), "{profiles:?} after {ended}");
        let is_walk = |line: &str| {
            line.starts_with("rocov: HSA walk complete: ")
                && line.ends_with(" found=0 drained=0 iter-failures=0")
        };
        assert!(ended.stderr.lines().any(is_walk), "{ended}");
    }
}

/// Released as 23.1.4, LLVM's drain loads all code objects of instrumented host code, so the program
/// does not have it.
#[test]
fn resident_images() {
    for toolchain in Toolchain::all() {
        let librocov = toolchain.newest.map_or_else(Vec::new, |_| link_flags());
        let librocov = librocov.iter().map(|flag| flag.to_str().expect("UTF-8"));
        let more: Vec<&str> = ["-fno-gpu-rdc"].into_iter().chain(librocov).collect();
        let program = toolchain.program_without_drain(&["hot", "cold"], &more);
        let ran = Ran::one(toolchain, &program, &[]);
        let profile = the_one(device_profiles(&ran.data));
        assert_eq!(toolchain.counts(&profile, "hot_kernel"), (1, vec![]));
        let functions = toolchain.functions(&profile);
        assert!(!functions.contains_key("cold_kernel"), "{functions:?}");
    }
}

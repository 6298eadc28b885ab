//! rocov drains the code objects that HIP has loaded.

use super::{Ran, program, the_one};
use crate::support::artifacts::repository;
use crate::support::compile::code_object_of;
use crate::support::gpu::Stack;
use crate::support::profile::functions;
use crate::support::program::{TARGET, counts, device_profiles};

#[test]
fn module_load_file() {
    for stack in Stack::all() {
        let source = repository("testdata/programs/upstream/module.hip");
        let module = code_object_of(&source, TARGET, "-O1", stack.code_object_version());
        let module = module.to_str().expect("a path in UTF-8");
        let ran = Ran::one(&program(stack, &["loader"], &[]), &[module]);
        assert_eq!(counts(&ran.device(), "module_kernel"), (1, vec![]));
    }
}

#[test]
fn no_kernel() {
    for stack in Stack::all() {
        let program = program(stack, &["no_kernel"], &[]);
        let (ran, ended) = Ran::verbose(&program, TARGET, &[]);
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

#[test]
fn resident_images() {
    for stack in Stack::all() {
        let ran = Ran::one(&program(stack, &["hot", "cold"], &["-fno-gpu-rdc"]), &[]);
        let profile = the_one(device_profiles(&ran.data));
        assert_eq!(counts(&profile, "hot_kernel"), (1, vec![]));
        let functions = functions(&profile);
        assert!(!functions.contains_key("cold_kernel"), "{functions:?}");
    }
}

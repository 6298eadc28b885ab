//! Programs that use only HSA, without HIP. Code objects come from every kind of reader. Readers
//! and their buffers may be gone before the program freezes the executable.

use std::path::{Path, PathBuf};

use rocov::format::codeobject::Identity;

use crate::programs::{Ran, launches, object, on_hsa, part, source};
use crate::support::compile::{clang, device_only};
use crate::support::gpu::Stack;

fn program(stack: Stack) -> PathBuf {
    on_hsa("hsa_only")
        .arguments(stack.linking())
        .arguments(["-lhsa-runtime64"])
        .output("hsa_only")
}

pub(crate) fn ran(stack: Stack, gpus: &str, object: &Path, arguments: &[&str]) -> Ran {
    let mut command = vec![program(stack).into_os_string(), object.into()];
    command.extend(arguments.iter().map(Into::into));
    Ran::new(stack, gpus, &[], command)
}

/// A code object with nearly the layout of the loaded one.
fn another(stack: Stack) -> PathBuf {
    device_only(clang(), &["gfx90a"], stack.code_object_version())
        .arguments(["-O1", "-DSALT=7"])
        .counting()
        .source(source("count.hip"))
        .output("count.another")
}

pub(crate) fn identity_of(object: &Path) -> String {
    let bytes = std::fs::read(object).expect("a compiled code object");
    let identity = Identity::from_image(&bytes).expect("a code object");
    identity.as_str().to_owned()
}

/// Returns whether the identity in the profile's name is the code object's.
fn is_named_after(profile: &Path, object: &Path) -> bool {
    part(profile, 1) == identity_of(object)
}

#[test]
fn executables_are_drained_when_destroyed_and_when_left() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        for arguments in [&["memory"][..], &["memory", "keep"], &["file"]] {
            let ran = ran(stack, "gfx90a", &object, arguments);
            let profile = ran.profile();
            assert_eq!(launches(&profile), 1, "{arguments:?} on {stack:?}");
            assert!(
                is_named_after(&profile, &object),
                "{arguments:?} {profile:?}"
            );
        }
    }
}

#[test]
fn each_gpu_is_drained() {
    let object = object("count.hip", Stack::Debian12);
    let ran = ran(Stack::Debian12, "gfx90ax2", &object, &["memory"]);
    let profiles = ran.profiles();
    assert_eq!(profiles.len(), 2, "{profiles:?}");
    for profile in profiles {
        assert_eq!(launches(&profile), 1, "{}", profile.display());
    }
}

#[test]
fn a_buffer_that_is_gone_takes_no_counts_with_it() {
    for stack in Stack::all() {
        // The program loads the larger one; the other one fits in its buffer.
        let mut objects = [object("count.hip", stack), another(stack)];
        objects.sort_by_key(|path| {
            std::cmp::Reverse(path.metadata().map(|metadata| metadata.len()).ok())
        });
        let [object, other] = objects;
        let other = other.to_str().expect("a path of ours");
        let names = [&["unmapped"][..], &["reused", other]].map(|how| {
            let ran = ran(stack, "gfx90a", &object, how);
            let profile = ran.profile();
            assert_eq!(launches(&profile), 1, "{how:?} on {stack:?}");
            part(&profile, 1)
        });
        // No ELF is left, so the name comes from the sections, not from the buffer's later
        // contents.
        assert_eq!(names[0], names[1], "on {stack:?}");
        assert_ne!(names[0], identity_of(&object));
    }
}

#[test]
fn a_load_at_the_address_of_an_earlier_one_is_another() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        let ran = ran(stack, "gfx90a", &object, &["memory", "again"]);
        let is_address = |line: &&str| line.starts_with("0x");
        let mut addresses: Vec<&str> = ran.ended.stdout.lines().filter(is_address).collect();
        let loads = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert!(
            addresses.len() < loads,
            "none was used again: {}",
            ran.ended
        );
        assert_eq!(launches(&ran.profile()), loads as u64, "{stack:?}");
    }
}

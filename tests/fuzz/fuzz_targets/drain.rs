//! Drains a loaded code object in which any part may be damaged. Every written profile must be
//! valid.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rocov::device::elf_file::AtRest;
use rocov::device::{Agent, Device};
use rocov::drain::Session;
use rocov::format::profraw::{RawProfile, SavedSections, Sum};
use rocov::store::{Expansion, ProfileName};

fuzz_target!(|elf: &[u8]| {
    let agent = Agent {
        handle: 1,
        index: 0,
        name: "gfx90a".into(),
        isa: None,
        uuid: None,
        node: None,
    };
    let Ok(device) = AtRest::new(agent, "memory://1#offset=0&size=1".into(), elf.to_vec()) else {
        return;
    };
    let executables = device.executables().expect("it has one");
    let directory = tempfile::tempdir_in("/dev/shm").expect("memory for files");
    let name = ProfileName::parse("profraw/p", &Expansion::default(), directory.path());
    let name = name.expect("a good pattern").in_data(directory.path());
    let mut session = Session::default();
    for executable in executables {
        let _ = session.loaded(&device, executable);
    }
    let outcome = session.drain(&device, &name);
    for file in &outcome.files {
        check(file);
    }
    // The second drain finds the files of the first.
    assert!(session.drain(&device, &name).files.len() <= outcome.files.len());
});

fn check(path: &Path) {
    let file = fs::read(path).expect("a reported file exists");
    if SavedSections::has_magic(&file) {
        SavedSections::decode(&file).expect("saved sections can be read");
        return;
    }
    RawProfile::parse(&file).expect("a raw profile");
    let mut sum = Sum::new(file.clone()).expect("a profile can be added to");
    sum.add(&file).expect("a profile can be added to itself");
}

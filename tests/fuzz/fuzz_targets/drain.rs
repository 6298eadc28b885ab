//! A code object that a program has loaded, of which any part may be damaged, through a whole drain:
//! whatever profile is written must be one.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rocov::at_rest::AtRest;
use rocov::device::{Agent, Device};
use rocov::drain::Session;
use rocov::output::{Expansion, ProfileName};
use rocov::profraw::{RawProfile, SavedSections, Sum};

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
    // The second finds the files of the first.
    assert!(session.drain(&device, &name).files.len() <= outcome.files.len());
});

fn check(path: &Path) {
    let file = fs::read(path).expect("what is said to be written is there");
    if SavedSections::has_magic(&file) {
        SavedSections::decode(&file).expect("saved sections can be read");
        return;
    }
    RawProfile::parse(&file).expect("a raw profile");
    let mut sum = Sum::of(file.clone()).expect("a profile can be added to");
    sum.add(&file).expect("a profile can be added to itself");
}

//! Kernel registries on disk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::registry::{Grouped, Merged};
use rocov::format::registry::model::Document;

fuzz_target!(|text: &[u8]| {
    let mut merged = Merged::default();
    if merged.add(text).is_ok() {
        let once = merged.to_json();
        merged.add(&once).expect("its own text");
        assert_eq!(merged.to_json(), once, "what is added twice is there once");
    }
    let mut grouped = Grouped::default();
    if grouped.add(text).is_ok() {
        // The groups of a text may share runs, and then some of them are left out.
        let once = grouped.to_json();
        let mut again = Grouped::default();
        again.add(&once).expect("its own text");
        again.add(&once).expect("its own text");
        let twice = again.to_json();
        again.add(&twice).expect("its own text");
        assert_eq!(again.to_json(), twice, "runs that are there do not count again");
    }
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let json = document.to_json();
    let again = Document::parse(&json).expect("its own text");
    assert_eq!(again.to_json(), json, "equal documents have equal texts");
});

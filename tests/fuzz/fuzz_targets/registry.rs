//! Kernel registries on disk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::registry::Merged;
use rocov::format::registry::model::Document;

fuzz_target!(|text: &[u8]| {
    let mut merged = Merged::default();
    if merged.add(text).is_ok() {
        let once = merged.to_json();
        merged.add(&once).expect("its own text");
        assert_eq!(merged.to_json(), once, "what is added twice is there once");
    }
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let json = document.to_json();
    let again = Document::parse(&json).expect("its own text");
    assert_eq!(again.to_json(), json, "equal documents have equal texts");
});

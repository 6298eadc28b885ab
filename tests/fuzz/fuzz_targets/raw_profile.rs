//! Raw profiles on disk with any contents: reads, additions, and saved sections.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::profraw::{Header, RawProfile, SavedSections, Sum};

fuzz_target!(|file: &[u8]| {
    if let Ok(saved) = SavedSections::decode(file) {
        let again = SavedSections::decode(&saved.encode()).expect("its own encoding");
        // A name that is not UTF-8 becomes longer, because a replacement takes the place of its
        // bytes.
        let is_plain = saved.sections.iter().all(|it| it.name.is_ascii());
        assert!(again == saved || !is_plain, "{again:?}, not {saved:?}");
    }
    let _ = Header::parse(file);
    let Ok(profile) = RawProfile::parse(file) else {
        return;
    };
    for part in [
        &profile.sections.data,
        &profile.sections.counters,
        &profile.sections.names,
    ] {
        assert!(file.get(part.clone()).is_some(), "parts lie in the file");
    }
    let Ok(mut sum) = Sum::of(file) else { return };
    let before = sum.bytes().to_vec();
    let _ = sum.functions();
    if sum.add(file).is_err() {
        assert_eq!(sum.bytes(), before, "what fails changes nothing");
    }
    RawProfile::parse(sum.bytes()).expect("a sum is a raw profile");
});

//! Raw profiles on disk with any contents: reads, additions, values of host code, and saved sections.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::profraw::{Header, HostProfile, RawProfile, SavedSections, Sum, ValueProfile};

fuzz_target!(|file: &[u8]| {
    if let Ok(saved) = SavedSections::decode(file) {
        let again = SavedSections::decode(&saved.encode()).expect("its own encoding");
        // A name that is not UTF-8 becomes longer, because a replacement character is inserted for its bytes.
        let is_plain = saved.sections.iter().all(|section| section.name.is_ascii());
        assert!(again == saved || !is_plain, "{again:?}, not {saved:?}");
    }
    // Indexed profiles have values in the form of raw ones.
    if let Ok((mut values, size)) = ValueProfile::read(file, 3) {
        assert!(size <= file.len(), "values lie in the file");
        let written = |values: &ValueProfile| {
            let mut bytes = Vec::new();
            values.write(&mut bytes);
            bytes
        };
        let bytes = written(&values);
        let (again, size) = ValueProfile::read(&bytes, 3).expect("its own encoding");
        assert_eq!((written(&again), size), (bytes.clone(), bytes.len()));
        values.add(&again);
        assert_eq!(
            written(&values).len(),
            bytes.len(),
            "no site becomes larger"
        );
    }
    let _ = HostProfile::all(file);
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
    let Ok(mut sum) = Sum::new(file) else { return };
    let before = sum.bytes().to_vec();
    let _ = sum.functions();
    if sum.add(file).is_err() {
        assert_eq!(sum.bytes(), before, "what fails changes nothing");
    }
    RawProfile::parse(sum.bytes()).expect("a sum is a raw profile");
});

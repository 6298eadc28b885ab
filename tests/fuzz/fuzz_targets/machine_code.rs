//! A device ELF whose machine code gets counters, and damaged ones: the result is a device ELF that describes itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::codeobject::CodeObject;
use rocov::instrument::amdgcn::{AmdgcnOptions, CounterMap, Sharing, instrument};
use rocov::support::counting::Counting;

fuzz_target!(|file: &[u8]| {
    if let Ok(Some(map)) = CounterMap::find(file) {
        // The sums of a damaged map may name words that are not there.
        let (_, words) = map.counters();
        let values = vec![1; words.min(1 << 16) as usize];
        let _ = map.executed(&values).count(0, &mut [0; 4096]);
    }
    for (counting, sharing) in [
        (Counting::Exact, Sharing::Separate),
        (Counting::Exact, Sharing::Borrowed),
        (Counting::Reached, Sharing::Separate),
    ] {
        let options = AmdgcnOptions {
            counting,
            sharing,
            ..AmdgcnOptions::default()
        };
        let Ok(made) = instrument(file, &options) else {
            continue;
        };
        let parsed = CodeObject::parse(&*made.code).expect("it is a device ELF");
        let before = CodeObject::parse(file).expect("as the original is");
        let names = |functions: Vec<rocov::format::codeobject::FunctionCode<'_>>| -> Vec<String> {
            functions.iter().map(|function| function.name.to_owned()).collect()
        };
        if let (Ok(now), Ok(then)) = (parsed.functions(), before.functions()) {
            assert_eq!(names(now), names(then), "it has the same symbols");
        }
        let map = CounterMap::find(&made.code).expect("a whole map");
        let map = map.expect("it describes itself");
        assert!(map.original() == file, "it contains the original");
        let (_, words) = map.counters();
        let _ = map.executed(&vec![1; words as usize]);
    }
});

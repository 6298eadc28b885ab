//! A pool with damage from other writers: an addition succeeds, or leaves the pool unchanged.
#![no_main]

use std::fs;
use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use rocov::format::profraw::{Parts, RawProfile, Sum, Version};
use rocov::format::sections::PerSection;
use rocov::store::add_to_pool;

/// The replaced bytes of the pool with their positions, and the pool's end.
type Damage = (Vec<(u16, u8)>, u16);

fuzz_target!(|damage: Damage| {
    let (bytes, end) = damage;
    let directory = tempfile::tempdir_in("/dev/shm").expect("memory for files");
    let path = directory.path().join("pool");
    let ours = Parts {
        version: Version::from_word(10).expect("a known version"),
        build_id: None,
        sections: PerSection {
            data: &[7; 64],
            counters: &1_u64.to_le_bytes().repeat(3),
            bitmap: &[1],
            uniform: &[],
            names: b"names",
        },
        names_address: 0,
    };
    add_to_pool(&path, &ours).expect("a new pool");
    add_to_pool(&path, &ours).expect("a pool of the same code");
    let good = fs::read(&path).expect("a pool");
    let mut file = good.clone();
    file.resize(file.len().min(end.into()).max(usize::from(end) % 1024), 0);
    for (at, byte) in bytes {
        if let Some(place) = file.get_mut(usize::from(at)) {
            *place = byte;
        }
    }
    fs::write(&path, &file).expect("a damaged pool");
    let added = add_to_pool(&path, &ours);
    let after = fs::read(&path).expect("a pool");
    match added {
        Ok(()) => {
            let PerSection { data, names, .. } = RawProfile::parse(&good).expect("a pool").sections;
            // An addition of counts does not read records and names; readers report damage there.
            let is_same = |part: Range<usize>| file.get(part.clone()) == good.get(part);
            if is_same(data) && is_same(names) {
                Sum::new(after).expect("what is added to is whole");
            }
        }
        Err(_) => assert_eq!(after, file, "what is refused is left alone"),
    }
});

//! A CUDA fat binary: its list of entries after the header, and the images that it unpacks to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::bundle::{Packing, container_at, containers};

fuzz_target!(|entries: &[u8]| {
    let mut file = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    file.extend((entries.len() as u64).to_le_bytes());
    file.extend_from_slice(entries);
    let limited = containers(&file).unpacking_at_most(1 << 20);
    for container in limited.flatten() {
        assert!(container.size > 0, "the next one is after it");
        if let Packing::FatBinary { unpacked } = container.packing {
            assert!(unpacked <= 1 << 20, "no more is unpacked than was allowed");
        }
        for image in &container.images {
            let _ = (image.content(), image.identity());
        }
        assert!(container_at(&file, container.offset).is_ok());
    }
});

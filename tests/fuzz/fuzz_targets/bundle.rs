//! A file that may hold device code: bundles, compressed or not, offload binaries, host ELFs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::bundle::{containers, images};

fuzz_target!(|file: &[u8]| {
    for container in containers(file).flatten() {
        assert!(container.size > 0, "the next one is after it");
        for image in &container.images {
            let _ = (image.content(), image.identity());
            if let Some(range) = image.bytes.range_in_file() {
                assert_eq!(
                    &file[range],
                    &image.bytes[..],
                    "an image lies at its own range"
                );
            }
        }
    }
    for image in images(file) {
        if let Ok(image) = image {
            assert!(!image.identity.as_str().is_empty());
        }
    }
});

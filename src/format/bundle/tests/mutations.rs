//! Containers with bytes changed and cut at random, from a seed. Nothing panics, and no reader takes more
//! memory than the contents need.

use std::fmt::Write;

use crate::format::bundle::tests::synth::*;
use crate::format::bundle::*;

/// The number of cases for each container.
const CASES: usize = 2000;

/// xorshift64*, by G. Marsaglia.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    /// Changes up to eight bytes of `file`, mostly in headers, and may cut it.
    fn damage(&mut self, file: &[u8]) -> Vec<u8> {
        const INTERESTING: [u8; 6] = [0, 1, 0x7f, 0x80, 0xff, b'C'];
        let mut file = file.to_vec();
        for _ in 0..=self.below(8) {
            let end = if self.below(4) > 0 { 160 } else { file.len() };
            let at = self.below(end.min(file.len()));
            file[at] = match self.below(3) {
                0 => INTERESTING[self.below(INTERESTING.len())],
                1 => file[at] ^ 1 << self.below(8),
                _ => self.below(256) as u8,
            };
        }
        if self.below(4) == 0 {
            let len = self.below(file.len()) + 1;
            file.truncate(len);
        }
        file
    }
}

/// Reads everything in `file`, and returns the number of bytes in its images.
fn read_all(file: &[u8]) -> usize {
    let mut text = String::new();
    for container in containers(file) {
        write!(text, "{container:?}").unwrap();
    }
    images(file)
        .map(|image| match image {
            Ok(image) => image.bytes.len(),
            Err(error) => {
                write!(text, "{error}").unwrap();
                0
            }
        })
        .sum()
}

#[test]
fn no_change_makes_the_readers_panic_or_hand_out_more_than_there_is() {
    let (one, other) = (code_object("one"), code_object("another one"));
    let plain = bundle(&[(HOST, b""), (GFX90A, &one), (GFX942, &other)]);
    let targets: [(&str, &[u8]); 2] = [("gfx90a", &one), ("gfx942", &other)];
    let mut files = vec![
        plain.clone(),
        offload_binary(1, &targets[..1]),
        offload_binary(2, &targets),
        compressed_offload_binary(&targets, zlib),
        compressed_offload_binary(&targets, zstd),
        host(&[
            (".hip_fatbin", &plain),
            (".llvm.offloading", &offload_binary(2, &targets)),
        ]),
    ];
    let entries = [(("a#0", "gfx90a"), &*one), (("b#0", "gfx942"), &*other)];
    files.extend([false, true].map(|is_packed| kpack(is_packed, &entries)));
    let packed = FatEntry {
        flags: 0x2011,
        image: &lz4(&one),
        unpacked: one.len() as u64,
        ..FatEntry::plain(2, 90, &[])
    };
    let fat = fat_binary(&[packed, FatEntry::plain(2, 90, &cubin("one"))]);
    files.extend([host(&[(".nv_fatbin", &fat)]), fat]);
    for version in 1..=3 {
        files.extend([0, 1].map(|method| compressed(&plain, version, method)));
    }
    let mut random = Random(0x5eed);
    for file in files {
        assert!(read_all(&file) > 0);
        for _ in 0..CASES {
            let damaged = random.damage(&file);
            let most = damaged.len() + plain.len();
            assert!(read_all(&damaged) <= most, "{damaged:02x?}");
        }
    }
}

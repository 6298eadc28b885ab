//! Turns a spec of testdata/kernels (see the README there) into the bare form for the runners, with
//! its buffers as files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Expands `template` into `directory` and returns the path of the spec there.
///
/// # Panics
///
/// Panics if the template is malformed, and names the line.
pub fn expand(template: &Path, directory: &Path) -> PathBuf {
    let text = std::fs::read_to_string(template)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", template.display()));
    let mut bare = String::new();
    let mut buffers = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [word, ..] if word.starts_with('#') => {}
            ["buffer", kind, count, contents @ ..] => {
                let file = directory.join(format!("input{buffers}.bin"));
                let count = count
                    .parse()
                    .unwrap_or_else(|_| panic!("bad count: {line}"));
                std::fs::write(&file, buffer(kind, count, contents, buffers))
                    .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
                let _ = writeln!(bare, "buf {}", file.display());
                buffers += 1;
            }
            ["noise", ..] => {
                let _ = writeln!(bare, "{line}");
                buffers += 1;
            }
            ["launch", rest @ ..] if rest.len() >= 7 => {
                let (geometry, arguments) = rest.split_at(7);
                let arguments: Vec<String> = arguments.iter().map(|word| argument(word)).collect();
                let _ = writeln!(
                    bare,
                    "launch {} {}",
                    geometry.join(" "),
                    arguments.join(" ")
                );
            }
            _ => panic!("{}: cannot read: {line}", template.display()),
        }
    }
    let path = directory.join("spec");
    std::fs::write(&path, bare).expect("a test can write into its directory");
    path
}

/// The bytes of a buffer: listed values first, then random ones or zeros.
fn buffer(kind: &str, count: usize, contents: &[&str], seed: u64) -> Vec<u8> {
    let random = contents.iter().position(|word| *word == "random");
    let (listed, random) = contents.split_at(random.unwrap_or(contents.len()));
    let listed = match listed {
        [] => listed,
        ["values", listed @ ..] => listed,
        _ => panic!("expected `values`: {contents:?}"),
    };
    let mut elements: Vec<u8> = listed.iter().flat_map(|text| value(kind, text)).collect();
    let mut generator = Random(seed);
    for _ in listed.len()..count {
        match random {
            [] => elements.extend(value(kind, "0")),
            [_, low, high] => elements.extend(random_value(kind, low, high, &mut generator)),
            _ => panic!("expected `random LOW HIGH`: {contents:?}"),
        }
    }
    elements
}

/// An argument in the bare form.
fn argument(text: &str) -> String {
    if text.starts_with('p') {
        return text.to_owned();
    }
    let mut hex = String::from("h");
    for part in text.split(',') {
        let (kind, number) = part
            .split_once(':')
            .unwrap_or_else(|| panic!("expected TYPE:VALUE: {text}"));
        for byte in value(kind, number) {
            let _ = write!(hex, "{byte:02x}");
        }
    }
    hex
}

/// The little-endian bytes of one value.
fn value(kind: &str, text: &str) -> Vec<u8> {
    fn bytes<T: std::str::FromStr, const N: usize>(text: &str, to: fn(T) -> [u8; N]) -> Vec<u8> {
        let parsed = text.parse().unwrap_or_else(|_| panic!("bad value {text}"));
        to(parsed).to_vec()
    }
    match kind {
        "i8" => bytes(text, i8::to_le_bytes),
        "u8" => bytes(text, u8::to_le_bytes),
        "i16" => bytes(text, i16::to_le_bytes),
        "u16" => bytes(text, u16::to_le_bytes),
        "i32" => bytes(text, i32::to_le_bytes),
        "u32" => bytes(text, u32::to_le_bytes),
        "i64" => bytes(text, i64::to_le_bytes),
        "u64" => bytes(text, u64::to_le_bytes),
        "f32" => bytes(text, f32::to_le_bytes),
        "f64" => bytes(text, f64::to_le_bytes),
        _ => panic!("unknown type {kind}"),
    }
}

/// One value between the bounds, both included.
fn random_value(kind: &str, low: &str, high: &str, generator: &mut Random) -> Vec<u8> {
    if kind.starts_with('f') {
        let bound = |text: &str| -> f64 { text.parse().expect("a bound is a number") };
        let (low, high) = (bound(low), bound(high));
        // A double holds 53 bits.
        let fraction = (generator.next() >> 11) as f64 / (1u64 << 53) as f64;
        return value(kind, &(low + (high - low) * fraction).to_string());
    }
    let bound = |text: &str| -> i128 { text.parse().expect("a bound is an integer") };
    let (low, high) = (bound(low), bound(high));
    let drawn = low + i128::from(generator.next()) % (high - low + 1);
    value(kind, &drawn.to_string())
}

/// The SplitMix64 generator: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

//! Code objects that others have built: each kernel is rewritten, or refused with a reason.
//!
//! `ROCOV_TEST_CORPUS` names a directory with a folder for each package.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rocov::format::bundle;
use rocov::format::codeobject::CodeObject;
use rocov::instrument::amdgcn::{AmdgcnOptions, CounterMap, Refusal, instrument};
use rocov_tests::unpacked::not_run;

/// Objects that take longer are named.
const SLOW: Duration = Duration::from_secs(3);

/// The fate of the kernels of a package.
#[derive(Debug, Default)]
struct Account {
    objects: usize,
    kernels: usize,
    /// Those for processors that are not supported.
    others: usize,
    rewritten: usize,
    bytes: usize,
    new_bytes: usize,
    time: Duration,
    slowest: (Duration, usize),
    reasons: BTreeMap<String, usize>,
}

/// The kind of a reason.
fn kind(refusal: &Refusal) -> String {
    let text = format!("{refusal:?}");
    let end = text.find([' ', '(', '{']).unwrap_or(text.len());
    text[..end].to_owned()
}

impl Account {
    fn add(&mut self, image: &[u8]) {
        let Ok(kernels) = CodeObject::parse(image).and_then(|object| object.kernels()) else {
            return;
        };
        let count = kernels.len();
        if count == 0 {
            return;
        }
        let start = Instant::now();
        let made = instrument(image, &AmdgcnOptions::default());
        let time = start.elapsed();
        self.time += time;
        if time > SLOW {
            println!(
                "  {} kernels, {} bytes: {time:?}",
                kernels.len(),
                image.len()
            );
        }
        self.slowest = self.slowest.max((time, image.len()));
        self.objects += 1;
        self.kernels += count;
        self.bytes += image.len();
        match made {
            Ok(made) => {
                self.new_bytes += made.code.len() - image.len();
                let map = CounterMap::find(&made.code).expect("a whole map");
                let map = map.expect("a map");
                assert_eq!(map.original(), image);
                let names: HashSet<String> =
                    kernels.into_iter().map(|kernel| kernel.name).collect();
                let mut refused = 0;
                for (name, refusal) in &made.refused {
                    if names.contains(name) {
                        refused += 1;
                        *self.reasons.entry(kind(refusal)).or_default() += 1;
                    }
                }
                self.rewritten += count - refused;
            }
            // No release of the model runs it.
            Err(Refusal::Target { .. }) => {
                self.kernels -= count;
                self.others += count;
            }
            Err(refusal) => {
                *self
                    .reasons
                    .entry(format!("object: {}", kind(&refusal)))
                    .or_default() += count;
            }
        }
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn prebuilt_kernels_are_rewritten_or_refused_with_a_reason() {
    let Some(corpus) = std::env::var_os("ROCOV_TEST_CORPUS") else {
        not_run(
            "prebuilt code is not rewritten: name a directory with packages in ROCOV_TEST_CORPUS",
        );
        return;
    };
    let (mut kernels, mut rewritten) = (0, 0);
    let mut known = HashSet::new();
    let packages = std::fs::read_dir(corpus).expect("the corpus");
    for package in packages.flatten() {
        let mut account = Account::default();
        let mut all = Vec::new();
        files(&package.path(), &mut all);
        all.sort();
        for file in all {
            let bytes = std::fs::read(&file).expect("a file of the corpus");
            for image in bundle::images(&bytes).flatten() {
                if known.insert(md5::compute(&*image.bytes).0) {
                    account.add(&image.bytes);
                }
            }
        }
        println!("{}: {account:?}", package.file_name().display());
        kernels += account.kernels;
        rewritten += account.rewritten;
    }
    println!("{rewritten} of {kernels} kernels");
    assert!(rewritten * 100 >= kernels * 95, "{rewritten} of {kernels}");
}

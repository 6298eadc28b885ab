//! Code objects that others have built: each kernel is rewritten, or refused with a reason.
//!
//! `ROCOV_TEST_CORPUS` names a directory with a folder for each package, as tools/dev/corpus makes it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use modelgpu_amdgcn::Program;
use rocov::format::bundle;
use rocov::format::codeobject::{CodeObject, Kernel};
use rocov::instrument::amdgcn::{AmdgcnOptions, CounterMap, Refusal, instrument};
use rocov_tests::unpacked::not_run;

use crate::occupancy::waves;
use crate::run::processor_time;

/// The bytes of a kernel descriptor.
const DESCRIPTOR: usize = 64;

/// The fate of the kernels of a package.
#[derive(Debug, Default)]
struct Account {
    objects: usize,
    kernels: usize,
    /// Those for processors that are not supported.
    others: usize,
    rewritten: usize,
    /// The kernels among these of which fewer waves fit into a SIMD, and the waves before and after of all.
    crowded: usize,
    waves: [u64; 2],
    bytes: usize,
    new_bytes: usize,
    /// Seconds of processor time.
    time: f64,
    /// That of the slowest object, and its size.
    slowest: (f64, usize),
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
        let parsed = CodeObject::parse(image);
        let Some(object) = parsed.ok().filter(|object| !object.is_cubin()) else {
            return;
        };
        let Ok(kernels) = object.kernels() else {
            return;
        };
        let count = kernels.len();
        if count == 0 {
            return;
        }
        let start = processor_time();
        let made = instrument(image, &AmdgcnOptions::default());
        let time = processor_time() - start;
        match made {
            Ok(made) => {
                self.time += time;
                if time > self.slowest.0 {
                    self.slowest = (time, image.len());
                }
                self.bytes += image.len();
                self.new_bytes += made.code.len();
                let map = CounterMap::find(&made.code).expect("a whole map");
                assert_eq!(map.expect("a map").original(), image);
                let mut refused = HashSet::new();
                for (name, refusal) in &made.refused {
                    if kernels.iter().any(|kernel| kernel.name == *name) {
                        refused.insert(name.as_str());
                        *self.reasons.entry(kind(refusal)).or_default() += 1;
                    }
                }
                self.rewritten += count - refused.len();
                self.compare(&object, &made.code, &kernels, &refused);
            }
            // The model runs no code for it, and a GPU of another generation neither.
            Err(Refusal::Target { .. }) => {
                self.others += count;
                return;
            }
            Err(refusal) => {
                let reason = format!("object: {}", kind(&refusal));
                *self.reasons.entry(reason).or_default() += count;
            }
        }
        self.objects += 1;
        self.kernels += count;
    }

    /// Loads the new code object, and compares its kernels with those of the old one.
    fn compare<'data>(
        &mut self,
        old: &CodeObject<'data, &'data [u8]>,
        new: &'data [u8],
        kernels: &[Kernel],
        refused: &HashSet<&str>,
    ) {
        Program::load(new).expect("a code object that the model loads");
        let new = CodeObject::parse(new).expect("a code object");
        let new_kernels = new.kernels().expect("its kernels");
        let target = old.target().expect("its processor");
        let processor = target.split(':').next().expect("a processor");
        let [before, after] = [old, &new].map(|object| object.memory().expect("its memory"));
        assert_eq!(new_kernels.len(), kernels.len());
        for (kernel, new_kernel) in kernels.iter().zip(&new_kernels) {
            assert_eq!(kernel.name, new_kernel.name);
            assert_eq!(kernel.descriptor, new_kernel.descriptor, "{}", kernel.name);
            if refused.contains(kernel.name.as_str()) {
                continue;
            }
            assert_ne!(kernel.entry, new_kernel.entry, "{}", kernel.name);
            let at = kernel.descriptor as usize;
            let [one, other] =
                [&before, &after].map(|memory| waves(processor, &memory[at..at + DESCRIPTOR]));
            self.crowded += usize::from(other < one);
            self.waves[0] += u64::from(one);
            self.waves[1] += u64::from(other);
        }
    }

    /// A row of Markdown.
    fn row(&self, package: &str) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let reasons = self.reasons.iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        format!(
            "| {package} | {} | {} | {:.2} % | {:.2} % ({:.3}) | {:.2} | {:.1} | {:.1} of {:.1} | {} |",
            self.objects,
            self.kernels,
            percent(self.rewritten, self.kernels),
            percent(self.crowded, self.rewritten),
            self.waves[1] as f64 / self.waves[0].max(1) as f64,
            self.new_bytes as f64 / self.bytes.max(1) as f64,
            self.time,
            self.slowest.0,
            self.slowest.1 as f64 / 1e6,
            if reasons.is_empty() {
                "none".to_owned()
            } else {
                reasons.join(", ")
            },
        )
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
        not_run("prebuilt code is not rewritten: run tools/dev/corpus");
        return;
    };
    let mut known = HashSet::new();
    let (mut kernels, mut rewritten, mut crowded) = (0, 0, 0);
    let packages = std::fs::read_dir(corpus).expect("the corpus").flatten();
    let mut packages: Vec<PathBuf> = packages.map(|entry| entry.path()).collect();
    packages.sort();
    for package in packages.iter().filter(|path| path.is_dir()) {
        let mut account = Account::default();
        let mut all = Vec::new();
        files(package, &mut all);
        all.sort();
        for file in all {
            let bytes = std::fs::read(&file).expect("a file of the corpus");
            for image in bundle::images(&bytes).flatten() {
                if known.insert(md5::compute(&*image.bytes).0) {
                    account.add(&image.bytes);
                }
            }
        }
        let name = package.file_name().expect("a folder").to_string_lossy();
        println!("{}", account.row(&name));
        kernels += account.kernels;
        rewritten += account.rewritten;
        crowded += account.crowded;
    }
    println!(
        "{rewritten} of {kernels} kernels are rewritten, of {crowded} fewer waves fit into a SIMD"
    );
    assert!(rewritten * 100 >= kernels * 95, "{rewritten} of {kernels}");
    assert!(crowded * 100 <= rewritten * 5, "{crowded} of {rewritten}");
}

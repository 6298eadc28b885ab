//! Makes a cubin that counts of the code that a program loads.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use rocov::device::cuda::exchange::Answer;
use rocov::format::codeobject::CodeObject;
use rocov::format::codeobject::cuda::is_instrumented;
use rocov::format::ptx;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::Cache;
use crate::choice::{self, Capability, Chosen};
use crate::driver::{Driver, Options, Refusal};
use crate::memory::Code;

/// The registers of a multiprocessor that the threads of a block share (CUDA C++ Programming Guide, "Compute
/// Capabilities": 64 K on all architectures from 3.0 on).
const REGISTERS: u32 = 1 << 16;
/// The threads of a warp, and the most of a block.
const WARP: u32 = 32;
const BLOCK: u32 = 1024;
/// Registers are allocated in so many for each thread.
const GRANULE: u32 = 8;

/// Cubins of clang count by variables with this prefix.
const COUNTED: &str = "__profd_";

/// The reason why code runs uncounted, and the next step.
#[derive(Debug, Error)]
pub(crate) enum Loss {
    #[error("the CUDA driver lacks a function that rocov needs: update the driver to one of CUDA 12 or later")]
    NoDriver,
    #[error("the CUDA driver names no GPU: look at nvidia-smi")]
    NoGpu,
    #[error("the GPUs have several architectures ({0}), and the code is for all: choose GPUs of one with CUDA_VISIBLE_DEVICES")]
    SeveralArchitectures(String),
    #[error("{} has no PTX: compile with -gencode arch=compute_{1}{2},code=compute_{1}{2}, too", .0, .1.0, .1.1)]
    NoPtx(&'static str, Capability),
    #[error("its PTX is for {}, and the GPU is sm_{}{}: compile with -gencode arch=compute_{1}{2},code=compute_{1}{2}, too", found.join(", "), gpu.0, gpu.1)]
    NoneFits { gpu: Capability, found: Vec<String> },
    #[error("{0}: compile it again")]
    Damaged(String),
    #[error("it starts with bytes {0:02x?}, which are of no known form: report it")]
    Unknown([u8; 4]),
    #[error("cannot read {}: {1}: make it readable", .0.display())]
    Unreadable(PathBuf, std::io::Error),
    #[error("rocov cannot make its PTX count: {0}: report it")]
    NotChanged(String),
    #[error("the driver does not compile its PTX ({0}): compile with a toolkit that is not newer than the driver, or report it")]
    NotCompiled(String),
    #[error("kernel {0} would need more registers with counters than its largest block has: give it __launch_bounds__")]
    Registers(String),
    #[error("internal error: report it")]
    Internal,
}

/// A cubin that counts, and its PTX without counters. It stays to the end of the process: the driver may read the cubin
/// whenever it loads a module.
struct Made {
    cubin: Vec<u8>,
    source: String,
    is_cached: bool,
}

/// The answer to a request for `code`.
pub(crate) fn answer(
    code: Code<'_>,
    options: &[(c_int, *mut c_void)],
    is_for_all: bool,
) -> Answer {
    match made_of(code, options, is_for_all) {
        Ok(Outcome::AsItIs) => Answer::NOTHING,
        Ok(Outcome::Counts(made)) => answer_with(made, false),
        Ok(Outcome::Exchanged(made)) => answer_with(made, true),
        Err(loss) => lost(&loss),
    }
}

/// The answer after a panic.
pub(crate) fn internal_error() -> Answer {
    lost(&Loss::Internal)
}

fn answer_with(made: &'static Made, is_exchanged: bool) -> Answer {
    Answer {
        cubin: made.cubin.as_ptr().cast(),
        cubin_len: made.cubin.len(),
        ptx: made.source.as_ptr().cast(),
        ptx_len: made.source.len(),
        is_exchanged,
        is_cached: made.is_cached,
        ..Answer::NOTHING
    }
}

fn lost(loss: &Loss) -> Answer {
    static TEXTS: Mutex<BTreeSet<&'static std::ffi::CStr>> = Mutex::new(BTreeSet::new());
    let text = loss.to_string().replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Each stays, once.
    let known = texts.get(text.as_c_str()).copied();
    let text = known.unwrap_or_else(|| {
        let text: &'static _ = Box::leak(text.into_boxed_c_str());
        texts.insert(text);
        text
    });
    Answer {
        loss: text.as_ptr(),
        ..Answer::NOTHING
    }
}

enum Outcome {
    /// It has no kernels, or counts by itself.
    AsItIs,
    /// It counts: its PTX was changed before.
    Counts(&'static Made),
    /// It is to be loaded instead.
    Exchanged(&'static Made),
}

fn made_of(
    code: Code<'_>,
    options: &[(c_int, *mut c_void)],
    is_for_all: bool,
) -> Result<Outcome, Loss> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let driver = DRIVER.get_or_init(Driver::find).as_ref();
    let driver = driver.ok_or(Loss::NoDriver)?;
    if let Code::Elf(elf) = &code {
        return of_cubin(elf, driver, is_for_all);
    }
    let gpu = gpu_of(driver, is_for_all)?;
    let chosen: Vec<Chosen> = match code {
        Code::FatBinary(fat_binary) => vec![choice::best(&fat_binary, gpu)?],
        Code::Linked(units) => {
            let units = units.into_iter().map(|unit| choice::best(unit, gpu));
            units.collect::<Result<_, _>>()?
        }
        Code::Text(text) => vec![Chosen {
            text: choice::as_text(&text)?,
            options: String::new(),
        }],
        Code::Unknown(magic) => return Err(Loss::Unknown(magic)),
        Code::Unreadable(path, error) => return Err(Loss::Unreadable(path, error)),
        Code::Elf(_) => return Ok(Outcome::AsItIs),
    };
    if chosen.iter().any(|it| it.text.contains(COUNTED)) {
        return Ok(Outcome::AsItIs);
    }
    let of_nvcc = chosen.first().map_or("", |it| it.options.as_str());
    let options = Options::of(options, of_nvcc);
    let texts: Vec<String> = chosen.into_iter().map(|it| it.text).collect();
    exchanged(driver, gpu, &texts, options).map(Outcome::Exchanged)
}

/// The GPU that code is for.
fn gpu_of(driver: &Driver, is_for_all: bool) -> Result<Capability, Loss> {
    let all = driver.capabilities(is_for_all);
    match all.as_slice() {
        [] => Err(Loss::NoGpu),
        [one] => Ok(*one),
        all => {
            let names = all.iter().map(|(major, minor)| format!("sm_{major}{minor}"));
            Err(Loss::SeveralArchitectures(names.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// A cubin counts if clang has made it so, or the stand-in for ptxas.
fn of_cubin(cubin: &[u8], driver: &Driver, is_for_all: bool) -> Result<Outcome, Loss> {
    let damaged = |error: rocov::format::codeobject::CodeObjectError| Loss::Damaged(error.to_string());
    if is_instrumented(cubin).map_err(damaged)? {
        let source = Cache::of_user().and_then(|cache| cache.source(cubin));
        return Ok(source.map_or(Outcome::AsItIs, |source| {
            let key = xxhash_rust::xxh3::xxh3_128(cubin);
            Outcome::Counts(kept(key, || Made {
                cubin: cubin.to_vec(),
                source,
                is_cached: false,
            }))
        }));
    }
    let kernels = CodeObject::parse(cubin).and_then(|it| it.kernels());
    if kernels.is_ok_and(|kernels| kernels.is_empty()) {
        return Ok(Outcome::AsItIs);
    }
    Err(Loss::NoPtx("a cubin", gpu_of(driver, is_for_all)?))
}

/// The results of this process, by their keys.
fn results() -> std::sync::MutexGuard<'static, HashMap<u128, &'static Made>> {
    static RESULTS: OnceLock<Mutex<HashMap<u128, &'static Made>>> = OnceLock::new();
    let results = RESULTS.get_or_init(Mutex::default);
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result with this key, or else the new one. It stays.
fn kept(key: u128, make: impl FnOnce() -> Made) -> &'static Made {
    *results()
        .entry(key)
        .or_insert_with(|| Box::leak(Box::new(make())))
}

/// The cubin of PTX that counts: of this process, or of the cache, or a new one.
fn exchanged(
    driver: &Driver,
    gpu: Capability,
    texts: &[String],
    options: Options,
) -> Result<&'static Made, Loss> {
    let key = key(driver.version(), gpu, texts, options);
    if let Some(made) = results().get(&key) {
        return Ok(made);
    }
    let cache = Cache::of_user();
    let cached = cache.as_ref().and_then(|cache| cache.get(key));
    let is_cached = cached.is_some();
    let cubin = match cached {
        Some(cubin) => cubin,
        None => {
            let cubin = compiled(driver, texts, options)?;
            if let Some(cache) = &cache {
                cache.put(key, &cubin);
            }
            cubin
        }
    };
    Ok(kept(key, || Made {
        cubin,
        source: texts.concat(),
        is_cached,
    }))
}

/// The name of a result: a hash of all that it depends on.
fn key(driver: c_int, (major, minor): Capability, texts: &[String], options: Options) -> u128 {
    let mut hash = Xxh3::new();
    let numbers = format!(
        "{} {} {driver} {major} {minor} {options:?}",
        env!("CARGO_PKG_VERSION"),
        ptx::VERSION
    );
    for part in std::iter::once(numbers.as_str()).chain(texts.iter().map(String::as_str)) {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest128()
}

/// Compiles PTX with counters.
fn compiled(driver: &Driver, texts: &[String], options: Options) -> Result<Vec<u8>, Loss> {
    let changed = texts.iter().map(|text| ptx::instrument(text));
    let mut changed: Vec<String> = changed
        .collect::<Result<_, _>>()
        .map_err(|error| Loss::NotChanged(error.to_string()))?;
    let compile = |texts: &[String]| driver.compile(texts, options).map_err(not_compiled);
    let cubin = compile(&changed)?;
    let crowded = crowded(&cubin)?;
    if crowded.is_empty() {
        return Ok(cubin);
    }
    // A block that the program launches must still fit.
    let plain: HashMap<String, u32> = registers(&compile(texts)?)?.into_iter().collect();
    let mut is_changed = false;
    for (kernel, own) in crowded {
        let before = plain.get(&kernel).copied().unwrap_or(own);
        if warps(own) >= warps(before) {
            continue;
        }
        let most = before.next_multiple_of(GRANULE);
        let mut limited = changed.iter_mut().map(|text| limit(text, &kernel, most));
        if !limited.any(|it| it) {
            return Err(Loss::Registers(kernel));
        }
        is_changed = true;
    }
    if is_changed { compile(&changed) } else { Ok(cubin) }
}

fn not_compiled(refusal: Refusal) -> Loss {
    Loss::NotCompiled(match refusal {
        Refusal::Call(call, status) => format!("{call}: CUDA error {status}"),
        Refusal::Message(message) => message,
    })
}

/// The kernels with too many registers for the largest block, and these numbers. The compiler heeds the bounds of those
/// that have some.
fn crowded(cubin: &[u8]) -> Result<Vec<(String, u32)>, Loss> {
    let mut all = registers(cubin)?;
    all.retain(|(_, registers)| warps(*registers) < BLOCK / WARP);
    Ok(all)
}

/// The registers of the kernels of a cubin that may have blocks of any size.
fn registers(cubin: &[u8]) -> Result<Vec<(String, u32)>, Loss> {
    let kernels = CodeObject::parse(cubin).and_then(|it| it.kernels());
    let kernels = kernels.map_err(|error| Loss::NotCompiled(error.to_string()))?;
    let unbound = kernels.into_iter().filter(|it| it.max_workgroup_size == BLOCK);
    Ok(unbound.map(|it| (it.name, it.vgprs)).collect())
}

/// The warps of the largest block of threads with so many registers.
fn warps(registers: u32) -> u32 {
    let of_warp = registers.next_multiple_of(GRANULE).max(GRANULE) * WARP;
    (REGISTERS / of_warp).min(BLOCK / WARP)
}

/// Gives a kernel the directive `.maxnreg`. Returns whether it has it now.
fn limit(text: &mut String, kernel: &str, registers: u32) -> bool {
    let Some(after) = end_of_parameters(text, kernel) else {
        return false;
    };
    let directives = &text[after..];
    let directives = &directives[..directives.find('{').unwrap_or(directives.len())];
    if directives.contains(".maxnreg") {
        return false;
    }
    text.insert_str(after, &format!("\n.maxnreg {registers}"));
    true
}

/// The place behind the parameters of a kernel.
fn end_of_parameters(text: &str, kernel: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text[from..].find(".entry") {
        let start = from + found + ".entry".len();
        from = start;
        let rest = text[start..].trim_start();
        let Some(behind) = rest.strip_prefix(kernel) else {
            continue;
        };
        let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '$' | '%');
        if behind.starts_with(is_name) {
            continue;
        }
        let at = text.len() - behind.len();
        let open = behind.trim_start();
        return match open.starts_with('(') {
            true => behind.find(')').map(|close| at + close + 1),
            false => Some(at),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_everything() {
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let usual = Options::default();
        let limited = Options {
            max_registers: Some(32),
            level: None,
        };
        let keys = [
            key(13000, (9, 0), &texts(&["ab"]), usual),
            key(13010, (9, 0), &texts(&["ab"]), usual),
            key(13000, (8, 9), &texts(&["ab"]), usual),
            key(13000, (9, 0), &texts(&["ac"]), usual),
            key(13000, (9, 0), &texts(&["a", "b"]), usual),
            key(13000, (9, 0), &texts(&["ab"]), limited),
        ];
        let different: BTreeSet<_> = keys.into_iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(keys[0], key(13000, (9, 0), &texts(&["ab"]), usual));
    }

    #[test]
    fn a_block_has_the_warps_that_registers_leave() {
        // The occupancy calculator of NVIDIA, for blocks of up to 1024 threads.
        for (registers, expected) in [(0, 32), (32, 32), (64, 32), (65, 28), (72, 28), (128, 16), (255, 8)] {
            assert_eq!(warps(registers), expected, "{registers}");
        }
    }

    #[test]
    fn a_kernel_gets_a_limit_of_registers() {
        let ptx = ".entry ab(.param .u32 p)\n{ ret; }\n.entry a(\n.param .u32 p,\n.param .u32 q)\n{ ret; }\n.entry c\n{ ret; }\n";
        let mut text = ptx.to_owned();
        assert!(limit(&mut text, "a", 64));
        assert!(text.contains(".param .u32 q)\n.maxnreg 64\n{"), "{text}");
        assert!(limit(&mut text, "c", 72));
        assert!(text.contains(".entry c\n.maxnreg 72\n{"), "{text}");
        assert!(!limit(&mut text, "c", 80), "it has one");
        assert!(!limit(&mut text, "d", 64), "there is none");
        assert_eq!(text.replace("\n.maxnreg 64", "").replace("\n.maxnreg 72", ""), ptx);
    }
}

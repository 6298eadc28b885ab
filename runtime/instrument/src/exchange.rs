//! Makes a cubin that counts of the code that a program loads.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use rocov::device::cuda::exchange::{ExchangeAnswer, INSTRUMENTATION};
use rocov::format::codeobject::CodeObject;
use rocov::format::codeobject::cuda::is_instrumented;
use rocov::format::ptx::{self, Module, PtxError};
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::Cache;
use crate::choice::{self, Capability, Chosen};
use crate::driver::{Driver, Options, Refusal};
use crate::memory::Code;

/// Cubins of clang count by variables with this prefix.
const COUNTED: &str = "__profd_";

/// The reason why code runs uncounted, and the next step.
#[derive(Debug, Error)]
pub(crate) enum Loss {
    #[error(
        "the CUDA driver lacks a function that rocov needs: update the driver to one of CUDA 12 or later"
    )]
    NoDriver,
    #[error("the CUDA driver names no GPU: look at nvidia-smi")]
    NoGpu,
    #[error(
        "the GPUs have several architectures ({0}), and the code is for all: choose GPUs of one with CUDA_VISIBLE_DEVICES"
    )]
    SeveralArchitectures(String),
    #[error("it has no PTX: {}", with_ptx(*gpu))]
    NoPtx { gpu: Capability },
    #[error("its PTX is for {}, and the GPU is sm_{}{}: {}", found.join(", "), gpu.0, gpu.1, with_ptx(*gpu))]
    NoneFits { gpu: Capability, found: Vec<String> },
    #[error("{0}: compile it again")]
    Damaged(String),
    #[error("it starts with bytes {0:02x?}, which are of no known form: report it")]
    Unknown([u8; 4]),
    #[error("cannot read {}: {source}: make it readable", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("rocov cannot make its PTX count: {0}: report it")]
    NotChanged(String),
    #[error(
        "the driver does not compile its PTX ({0}): compile with a toolkit that is not newer than the driver, or report it"
    )]
    NotCompiled(String),
    #[error("internal error: report it")]
    Internal,
}

/// The next step for code that has no PTX for a GPU.
fn with_ptx((major, minor): Capability) -> String {
    format!(
        "compile it with nvcc -gencode arch=compute_{major}{minor},code=compute_{major}{minor}, too"
    )
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
) -> ExchangeAnswer {
    match made_of(code, options, is_for_all) {
        Ok(Outcome::AsItIs) => ExchangeAnswer::NOTHING,
        Ok(Outcome::Counts(made)) => answer_with(made, false),
        Ok(Outcome::Exchanged(made)) => answer_with(made, true),
        Err(loss) => lost(&loss),
    }
}

/// The answer after a panic.
pub(crate) fn internal_error() -> ExchangeAnswer {
    lost(&Loss::Internal)
}

fn answer_with(made: &'static Made, is_exchanged: bool) -> ExchangeAnswer {
    ExchangeAnswer {
        cubin: made.cubin.as_ptr().cast(),
        cubin_len: made.cubin.len(),
        ptx: made.source.as_ptr().cast(),
        ptx_len: made.source.len(),
        is_exchanged,
        is_cached: made.is_cached,
        ..ExchangeAnswer::NOTHING
    }
}

fn lost(loss: &Loss) -> ExchangeAnswer {
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
    ExchangeAnswer {
        loss: text.as_ptr(),
        ..ExchangeAnswer::NOTHING
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
        Code::Unreadable(path, source) => return Err(Loss::Unreadable { path, source }),
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
            let names = all
                .iter()
                .map(|(major, minor)| format!("sm_{major}{minor}"));
            Err(Loss::SeveralArchitectures(
                names.collect::<Vec<_>>().join(", "),
            ))
        }
    }
}

/// A cubin counts if clang has made it so, or the stand-in for ptxas.
fn of_cubin(cubin: &[u8], driver: &Driver, is_for_all: bool) -> Result<Outcome, Loss> {
    let damaged =
        |error: rocov::format::codeobject::CodeObjectError| Loss::Damaged(error.to_string());
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
    let gpu = gpu_of(driver, is_for_all)?;
    Err(Loss::NoPtx { gpu })
}

/// The results of this process, by their keys.
fn results() -> std::sync::MutexGuard<'static, HashMap<u128, &'static Made>> {
    static RESULTS: OnceLock<Mutex<HashMap<u128, &'static Made>>> = OnceLock::new();
    let results = RESULTS.get_or_init(Mutex::default);
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result with this key, or else the new one. It stays.
fn kept(key: u128, make: impl FnOnce() -> Made) -> &'static Made {
    results()
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
        INSTRUMENTATION
    );
    for part in std::iter::once(numbers.as_str()).chain(texts.iter().map(String::as_str)) {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest128()
}

/// Compiles PTX with counters. Without them first, because counters may not make a kernel take so many registers that a
/// block which the program launches does not fit any more.
fn compiled(driver: &Driver, texts: &[String], options: Options) -> Result<Vec<u8>, Loss> {
    let not_changed = |error: PtxError| Loss::NotChanged(error.to_string());
    let modules = texts.iter().map(|text| Module::parse(text));
    let modules: Vec<Module<'_>> = modules.collect::<Result<_, _>>().map_err(not_changed)?;
    let compile = |texts: &[String]| driver.compile(texts, options).map_err(not_compiled);
    let plain = compile(texts)?;
    let choices = ptx::Options::for_kernels_of(&plain);
    let choices = choices.map_err(|error| Loss::NotCompiled(error.to_string()))?;
    let changed = modules
        .iter()
        .map(|module| ptx::instrument(module, &choices));
    let changed: Vec<String> = changed.collect::<Result<_, _>>().map_err(not_changed)?;
    compile(&changed)
}

fn not_compiled(refusal: Refusal) -> Loss {
    Loss::NotCompiled(match refusal {
        Refusal::Call(call, status) => format!("{call}: CUDA error {status}"),
        Refusal::Message(message) => message,
    })
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

    /// If this fails, rocov puts something else into PTX: raise [`INSTRUMENTATION`], and record the new hash.
    #[test]
    fn a_change_of_what_is_put_in_has_a_new_number() {
        let text = include_str!("../tests/loop.ptx");
        let module = Module::parse(text).unwrap();
        let changed = ptx::instrument(&module, &ptx::Options::default()).unwrap();
        let hash = xxhash_rust::xxh3::xxh3_64(changed.as_bytes());
        assert_eq!(
            (INSTRUMENTATION, format!("{hash:016x}")),
            (1, "1c48379e16e4a885".into())
        );
    }
}

//! Instruments the code that a program loads, or gives to the driver's linker.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use rocov::device::cuda::exchange::{CountedCubin, ExchangeAnswer, INSTRUMENTATION, joined};
use rocov::format::bundle::ptx_architecture;
use rocov::format::codeobject::cuda::is_instrumented;
use rocov::format::codeobject::{CodeObject, CodeObjectError};
use rocov::format::ptx::{self, Module};
use rocov::instrument::ptx::{PtxOptions, PtxRefusal, instrument};
use rocov::settings::Counting;
use rocov::support::diagnostic::Remedy;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::Cache;
use crate::choice::{self, Chosen};
use crate::compilers;
use crate::driver::{Capability, Driver, Options};
use crate::fat_binary;
use crate::framework::Framework;
use crate::loss::Loss;
use crate::memory::Code;
use crate::texts;

/// The use that the driver makes of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It loads the code into the current context.
    ForContext,
    /// It loads the code into the contexts of all GPUs, when they need it.
    ForAll,
    /// It links the code with other code.
    ToBeLinked,
}

/// Instrumented code, and its PTX without counters. It stays to the end of the process: the driver may read the code
/// whenever it loads a module.
struct Made {
    /// A cubin, or PTX with a zero at its end.
    code: Vec<u8>,
    source: String,
    is_cached: bool,
}

/// The answer to a request for `code`.
pub(crate) fn answer(
    code: Code<'_>,
    options: &[(c_int, *mut c_void)],
    purpose: Purpose,
    counting: Counting,
) -> ExchangeAnswer {
    match made_of(code, options, purpose, counting) {
        Ok(Outcome::AsItIs) => ExchangeAnswer::NOTHING,
        Ok(Outcome::Counts(made)) => told(None, &[counted(made)], made.is_cached),
        Ok(Outcome::ToBeLinked(made)) => {
            let cubin = CountedCubin {
                cubin: std::ptr::null(),
                cubin_len: 0,
                ..counted(made)
            };
            told(Some(&made.code), &[cubin], made.is_cached)
        }
        Ok(Outcome::Exchanged(code, all)) => {
            let cubins: Vec<_> = all.iter().map(|made| counted(made)).collect();
            told(Some(code), &cubins, all.iter().all(|made| made.is_cached))
        }
        Err(loss) => lost(&loss),
    }
}

/// The answer after a panic.
pub(crate) fn internal_error() -> ExchangeAnswer {
    lost(&Loss::Internal)
}

fn counted(made: &'static Made) -> CountedCubin {
    CountedCubin {
        cubin: made.code.as_ptr().cast(),
        cubin_len: made.code.len(),
        ptx: made.source.as_ptr().cast(),
        ptx_len: made.source.len(),
    }
}

fn told(code: Option<&'static [u8]>, cubins: &[CountedCubin], is_cached: bool) -> ExchangeAnswer {
    thread_local! {
        static CUBINS: RefCell<Vec<CountedCubin>> = const { RefCell::new(Vec::new()) };
    }
    let list = CUBINS.with_borrow_mut(|list| {
        cubins.clone_into(list);
        list.as_ptr()
    });
    ExchangeAnswer {
        code: code.map_or(std::ptr::null(), |code| code.as_ptr().cast()),
        code_len: code.map_or(0, <[u8]>::len),
        cubins: list,
        cubins_len: cubins.len(),
        is_cached,
        ..ExchangeAnswer::NOTHING
    }
}

fn lost(loss: &Loss) -> ExchangeAnswer {
    ExchangeAnswer {
        loss: texts::kept(&loss.diagnostic().to_string()).as_ptr(),
        maker: loss
            .maker()
            .map_or(std::ptr::null(), |maker| texts::kept(maker).as_ptr()),
        ..ExchangeAnswer::NOTHING
    }
}

enum Outcome {
    /// It has no kernels, or counts by itself.
    AsItIs,
    /// It counts: its PTX was changed before.
    Counts(&'static Made),
    /// This code is to be loaded instead, which has the cubins of all architectures.
    Exchanged(&'static [u8], Vec<&'static Made>),
    /// Its PTX is to be linked instead.
    ToBeLinked(&'static Made),
}

fn made_of(
    code: Code<'_>,
    options: &[(c_int, *mut c_void)],
    purpose: Purpose,
    counting: Counting,
) -> Result<Outcome, Loss> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let driver = DRIVER.get_or_init(Driver::find).as_ref();
    let driver = driver.ok_or(Loss::NoDriver)?;
    let code = match code {
        Code::Elf(_) if purpose == Purpose::ToBeLinked => return Ok(Outcome::AsItIs),
        Code::Elf(cubin) => match examined_cubin(&cubin)? {
            Cubin::AsItIs => return Ok(Outcome::AsItIs),
            Cubin::Counts(made) => return Ok(Outcome::Counts(made)),
            Cubin::From(text) => Code::Text(text.into_bytes().into()),
        },
        other => other,
    };
    let gpus = driver.capabilities(purpose == Purpose::ForAll);
    // Code that is linked is for one GPU.
    let is_common = gpus.len() > 1 && purpose != Purpose::ToBeLinked;
    let mut all = Vec::new();
    for gpu in &gpus {
        let chosen = chosen(&code, *gpu)?;
        if chosen
            .iter()
            .any(|chosen| ptx::is_instrumented(&chosen.text))
        {
            return Ok(Outcome::AsItIs);
        }
        let mut target = None;
        if is_common {
            check_common(&chosen, &gpus)?;
            target = u32::try_from(10 * gpu.0 + gpu.1).ok();
        }
        let of_nvcc = chosen.first().map_or("", |first| first.options.as_str());
        let options = Options {
            target,
            ..Options::new(options, of_nvcc)
        };
        let texts: Vec<String> = chosen.into_iter().map(|chosen| chosen.text).collect();
        if purpose == Purpose::ToBeLinked {
            let made = to_be_linked(driver, *gpu, &texts, options, counting)?;
            return Ok(Outcome::ToBeLinked(made));
        }
        all.push((*gpu, exchanged(driver, *gpu, &texts, options, counting)?));
    }
    let code = match all.as_slice() {
        [] => return Err(Loss::NoGpu),
        [(_, made)] => &made.code,
        several => packed(several),
    };
    let all = all.into_iter().map(|(_, made)| made).collect();
    Ok(Outcome::Exchanged(code, all))
}

/// The PTX of code for a GPU: that of each unit.
fn chosen(code: &Code<'_>, gpu: Capability) -> Result<Vec<Chosen>, Loss> {
    match code {
        Code::FatBinary(fat_binary) => Ok(vec![choice::best(fat_binary, gpu)?]),
        Code::Linked(units) => {
            let units = units.iter().map(|unit| choice::best(unit, gpu));
            units.collect()
        }
        Code::Text(text) => {
            let text = choice::as_text(text)?;
            let options = compilers::options_in(&text).to_owned();
            Ok(vec![Chosen { text, options }])
        }
        Code::Unknown(magic) => Err(Loss::Unknown(*magic)),
        Code::Unreadable(path, kind) => Err(Loss::Unreadable {
            path: path.clone(),
            source: (*kind).into(),
        }),
        Code::Elf(_) => Ok(Vec::new()),
    }
}

/// Checks that PTX is for an architecture whose code a fat binary names by its number only. That of `sm_90a` needs a flag,
/// and the driver loads it on a GPU of that architecture only.
fn check_common(chosen: &[Chosen], gpus: &[Capability]) -> Result<(), Loss> {
    let architectures = chosen
        .iter()
        .filter_map(|chosen| ptx_architecture(chosen.text.as_bytes()));
    let own = architectures
        .into_iter()
        .find(|architecture| architecture.ends_with(|last: char| last.is_ascii_alphabetic()));
    let Some(own) = own else { return Ok(()) };
    let gpus = gpus
        .iter()
        .map(|(major, minor)| format!("sm_{major}{minor}"));
    Err(Loss::SeveralArchitectures {
        gpus: gpus.collect::<Vec<_>>().join(", "),
        own,
    })
}

/// A fat binary of the cubins, which stays. Equal ones are one.
fn packed(all: &[(Capability, &'static Made)]) -> &'static [u8] {
    static PACKED: Mutex<BTreeSet<&'static [u8]>> = Mutex::new(BTreeSet::new());
    let cubins = all.iter().map(|(gpu, made)| (*gpu, made.code.as_slice()));
    let packed = fat_binary::pack(&cubins.collect::<Vec<_>>());
    let mut known = PACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(packed.as_slice()) {
        return known;
    }
    let packed: &'static [u8] = Box::leak(packed.into_boxed_slice());
    known.insert(packed);
    packed
}

/// A cubin that the program loads.
enum Cubin {
    /// It has no kernels, or counts by itself.
    AsItIs,
    /// It counts, and its PTX is known.
    Counts(&'static Made),
    /// A compiler of this process or of an earlier one has made it from this PTX.
    From(String),
}

/// A cubin counts if clang has made it so, or the stand-in for ptxas. The PTX of others is known if NVRTC or nvJitLink has
/// made them.
fn examined_cubin(cubin: &[u8]) -> Result<Cubin, Loss> {
    let damaged = |error: CodeObjectError| Loss::Damaged(error.to_string());
    let source = || Cache::for_user().and_then(|cache| cache.source(cubin));
    if is_instrumented(cubin).map_err(damaged)? {
        let Some(source) = source() else {
            return Ok(Cubin::AsItIs);
        };
        let key = xxhash_rust::xxh3::xxh3_128(cubin);
        return Ok(Cubin::Counts(kept(key, || Made {
            code: cubin.to_vec(),
            source,
            is_cached: false,
        })));
    }
    let kernels = CodeObject::parse(cubin).and_then(|cubin| cubin.kernels());
    if kernels.as_ref().is_ok_and(Vec::is_empty) {
        return Ok(Cubin::AsItIs);
    }
    source().map(Cubin::From).ok_or_else(|| {
        let kernels = kernels.unwrap_or_default();
        let names = kernels.iter().map(|kernel| &*kernel.name);
        Framework::from_kernels(names).map_or(Loss::Cubin, Loss::CubinOf)
    })
}

/// The results of this process, by their keys: code, or the reason why there is none.
type Results = HashMap<u128, Result<&'static Made, String>>;

fn results() -> std::sync::MutexGuard<'static, Results> {
    static RESULTS: OnceLock<Mutex<Results>> = OnceLock::new();
    let results = RESULTS.get_or_init(Mutex::default);
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code with this key, or else the new one. It stays.
fn kept(key: u128, make: impl FnOnce() -> Made) -> &'static Made {
    let mut results = results();
    if let Some(Ok(made)) = results.get(&key) {
        return made;
    }
    let made: &'static Made = Box::leak(Box::new(make()));
    results.insert(key, Ok(made));
    made
}

/// The cubin of instrumented PTX.
fn exchanged(
    driver: &Driver,
    gpu: Capability,
    texts: &[String],
    options: Options,
    counting: Counting,
) -> Result<&'static Made, Loss> {
    let key = key("cubin", counting, driver.version(), gpu, texts, options);
    made(key, texts, || compiled(driver, texts, options, counting))
}

/// The instrumented PTX of PTX which is to be linked with other code.
fn to_be_linked(
    driver: &Driver,
    gpu: Capability,
    texts: &[String],
    options: Options,
    counting: Counting,
) -> Result<&'static Made, Loss> {
    let key = key("ptx", counting, driver.version(), gpu, texts, options);
    made(key, texts, || {
        // If it needs functions of other inputs, the registers of its kernels are not known, and it gets a limit for the
        // largest blocks.
        let plain = driver.compile(texts, options).ok();
        let choices = plain.and_then(|plain| PtxOptions::for_kernels_of(&plain).ok());
        let choices = PtxOptions {
            counting,
            ..choices.unwrap_or_default()
        };
        let changed = changed(&parsed(texts)?, &choices)?;
        let mut text = joined(changed.iter().map(String::as_str)).into_bytes();
        text.push(0);
        Ok(text)
    })
}

/// A result: of this process, or of the cache, or a new one. A failure that will come again is a result, too.
fn made(
    key: u128,
    texts: &[String],
    make: impl FnOnce() -> Result<Vec<u8>, Loss>,
) -> Result<&'static Made, Loss> {
    if let Some(result) = results().get(&key) {
        return result.clone().map_err(Loss::Known);
    }
    let cache = Cache::for_user();
    let cached = cache.as_ref().and_then(|cache| cache.get(key));
    let is_cached = cached.is_some();
    let mut result = match cached {
        Some(result) => result.map_err(Loss::Known),
        None => make(),
    };
    let is_lasting = match &result {
        Ok(_) => true,
        Err(loss) => is_cached || loss.is_lasting(),
    };
    let reason = result
        .as_ref()
        .err()
        .map(|loss| loss.diagnostic().to_string());
    if let Some(cache) = cache.filter(|_| is_lasting && !is_cached) {
        match &mut result {
            Ok(code) => cache.put(key, code),
            Err(_) => cache.put_refusal(key, reason.as_deref().unwrap_or_default()),
        }
    }
    let code = result.inspect_err(|_| {
        if let Some(reason) = reason.filter(|_| is_lasting) {
            results().insert(key, Err(reason));
        }
    })?;
    Ok(kept(key, || Made {
        code,
        source: joined(texts.iter().map(String::as_str)),
        is_cached,
    }))
}

/// The name of a result: a hash of all that it depends on.
fn key(
    form: &str,
    counting: Counting,
    driver: c_int,
    (major, minor): Capability,
    texts: &[String],
    options: Options,
) -> u128 {
    let mut hash = Xxh3::new();
    let numbers = format!(
        "{form} {} {} {} {driver} {major} {minor} {options:?}",
        counting.word(),
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
/// block which the program launches does not fit any more. A kernel that calls may have too few for its functions then: it
/// gets as many as it can have, or its functions count in memory.
fn compiled(
    driver: &Driver,
    texts: &[String],
    options: Options,
    counting: Counting,
) -> Result<Vec<u8>, Loss> {
    let compile = |texts: &[String]| driver.compile(texts, options).map_err(Loss::NotCompiled);
    let modules = parsed(texts)?;
    let plain = compile(texts)?;
    let mut choices = PtxOptions {
        counting,
        limits_callers: true,
        ..PtxOptions::for_kernels_of(&plain).map_err(Loss::NotRead)?
    };
    let mut tried = changed(&modules, &choices)?;
    let mut found = compile(&tried);
    for functions_in_memory in [false, true] {
        if found.is_ok() {
            break;
        }
        choices.limits_callers = false;
        choices.functions_in_memory = functions_in_memory;
        let other = changed(&modules, &choices)?;
        if other != tried {
            found = compile(&other);
            tried = other;
        }
    }
    found
}

fn parsed(texts: &[String]) -> Result<Vec<Module<'_>>, Loss> {
    let modules = texts.iter().map(|text| Module::parse(text));
    Ok(modules
        .collect::<Result<_, _>>()
        .map_err(PtxRefusal::from)?)
}

/// PTX with counters.
fn changed(modules: &[Module<'_>], choices: &PtxOptions) -> Result<Vec<String>, Loss> {
    let changed = modules.iter().map(|module| instrument(module, choices));
    Ok(changed.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_everything() {
        let texts = |all: &[&str]| {
            all.iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let usual = Options::default();
        let limited = Options {
            max_registers: Some(32),
            ..Options::default()
        };
        let (exact, reached) = (Counting::Exact, Counting::Reached);
        let keys = [
            key("cubin", exact, 13000, (9, 0), &texts(&["ab"]), usual),
            key("cubin", reached, 13000, (9, 0), &texts(&["ab"]), usual),
            key("ptx", exact, 13000, (9, 0), &texts(&["ab"]), usual),
            key("cubin", exact, 13010, (9, 0), &texts(&["ab"]), usual),
            key("cubin", exact, 13000, (8, 9), &texts(&["ab"]), usual),
            key("cubin", exact, 13000, (9, 0), &texts(&["ac"]), usual),
            key("cubin", exact, 13000, (9, 0), &texts(&["a", "b"]), usual),
            key("cubin", exact, 13000, (9, 0), &texts(&["ab"]), limited),
        ];
        let different: BTreeSet<_> = keys.into_iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(
            keys[0],
            key("cubin", exact, 13000, (9, 0), &texts(&["ab"]), usual)
        );
    }

    /// If this fails, rocov puts something else into PTX: raise [`INSTRUMENTATION`], and record the new hash.
    #[test]
    fn a_change_of_what_is_put_in_has_a_new_number() {
        let text = include_str!("../tests/loop.ptx");
        let module = Module::parse(text).unwrap();
        let hash = |counting| {
            let options = PtxOptions {
                counting,
                ..PtxOptions::default()
            };
            let changed = instrument(&module, &options).unwrap();
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64(changed.as_bytes()))
        };
        assert_eq!(
            (
                INSTRUMENTATION,
                hash(Counting::Exact),
                hash(Counting::Reached)
            ),
            (13, "134bb0efc8da5490".into(), "81793b7773dd08a1".into())
        );
    }
}

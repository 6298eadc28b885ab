//! Instruments the code objects of AMD GPUs.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rocov::device::hsa::exchange::CodeAnswer;
use rocov::discover::is_of_runtime;
use rocov::format::blocks::trace::is_helper;
use rocov::format::codeobject::CodeObject;
use rocov::instrument::amdgcn::{
    AmdgcnOptions, Helpers, Instrumented, MAP_VERSION, Refusal, instrument_with,
};
use rocov::settings::Counting;
use rocov::support::diagnostic::Remedy;
use xxhash_rust::xxh3::Xxh3;

use crate::cache::Cache;
use crate::{texts, threads};

/// The number of what rocov puts into code objects, which is part of the names of cached results, as is the version of the
/// map. A change of it needs a new number.
const INSTRUMENTATION: u32 = 5;

/// An instrumented code object.
#[derive(Debug)]
struct Made {
    code: Vec<u8>,
    /// The reason why a part of it has no counters.
    loss: Option<String>,
}

/// The result for a code object: the instrumented one as long as somebody has it, or why there is none. Without a reason, it
/// needs none.
#[derive(Clone, Debug)]
enum Known {
    Made(Weak<Made>),
    AsItIs(Option<String>),
}

/// The answer to a request for a code object.
pub(crate) fn answer(code: &[u8], counting: Counting) -> CodeAnswer {
    if !is_candidate(code) {
        return CodeAnswer::NOTHING;
    }
    let key = key(code, counting);
    match results().get(&key) {
        Some(Known::AsItIs(loss)) => return as_it_is(loss.as_deref()),
        Some(Known::Made(made)) => {
            if let Some(made) = made.upgrade() {
                return told(made, true);
            }
        }
        None => {}
    }
    static CACHE: OnceLock<Option<Cache>> = OnceLock::new();
    let cache = CACHE.get_or_init(Cache::for_user).as_ref();
    if let Some(made) = cache.and_then(|cache| from_cache(cache, key)) {
        return kept(key, made, true);
    }
    let options = AmdgcnOptions {
        counting,
        ..AmdgcnOptions::default()
    };
    let helpers = Helpers::for_processors(threads::beside);
    match instrument_with(code, &options, helpers) {
        Ok(instrumented) => {
            let mut made = Made {
                loss: partial_loss(&instrumented),
                code: instrumented.code,
            };
            if let Some(cache) = cache {
                as_entry(&mut made, |entry| cache.put(key, entry));
            }
            kept(key, made, false)
        }
        Err(refusal) => {
            let loss = (!has_no_kernel(code)).then(|| refusal.diagnostic().to_string());
            let known = Known::AsItIs(loss.clone());
            results().insert(key, known);
            as_it_is(loss.as_deref())
        }
    }
}

/// The answer after a panic.
pub(crate) fn internal_error() -> CodeAnswer {
    as_it_is(Some("internal error: report it"))
}

/// Takes a code object back.
///
/// # Safety
/// The owner is that of an answer, and nobody reads the code object any more.
#[expect(unsafe_code, reason = "takes back what librocov had")]
pub(crate) unsafe fn release(owner: *const c_void) {
    if !owner.is_null() {
        // SAFETY: `told` has made it, and the caller gives it back once.
        drop(unsafe { Arc::from_raw(owner.cast::<Made>()) });
    }
}

/// Returns whether a code object needs counters: clang has put none into it, and it is not the HIP runtime's own. A damaged
/// one does, so that its damage is reported.
fn is_candidate(code: &[u8]) -> bool {
    let Ok(elf) = CodeObject::parse(code) else {
        return true;
    };
    if elf.is_cubin() || elf.profile_sections().are_instrumented() {
        return false;
    }
    !elf.kernels().is_ok_and(|kernels| is_of_runtime(&kernels))
}

/// Returns whether a code object has nothing to run.
fn has_no_kernel(code: &[u8]) -> bool {
    let kernels = CodeObject::parse(code).and_then(|elf| elf.kernels());
    kernels.is_ok_and(|kernels| kernels.is_empty())
}

fn told(made: Arc<Made>, is_cached: bool) -> CodeAnswer {
    let loss = made.loss.as_deref();
    CodeAnswer {
        code: made.code.as_ptr().cast(),
        code_len: made.code.len(),
        loss: loss.map_or(std::ptr::null(), |loss| texts::kept(loss).as_ptr()),
        is_cached,
        owner: Arc::into_raw(made).cast(),
    }
}

fn as_it_is(loss: Option<&str>) -> CodeAnswer {
    CodeAnswer {
        loss: loss.map_or(std::ptr::null(), |loss| texts::kept(loss).as_ptr()),
        ..CodeAnswer::NOTHING
    }
}

/// The results of this process, by their keys.
fn results() -> MutexGuard<'static, HashMap<u128, Known>> {
    static RESULTS: OnceLock<Mutex<HashMap<u128, Known>>> = OnceLock::new();
    let results = RESULTS.get_or_init(Mutex::default);
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a code object for other readers of the same one, as long as somebody has it.
fn kept(key: u128, made: Made, is_cached: bool) -> CodeAnswer {
    let made = Arc::new(made);
    results().insert(key, Known::Made(Arc::downgrade(&made)));
    told(made, is_cached)
}

/// The name of a result: a hash of all that it depends on.
fn key(code: &[u8], counting: Counting) -> u128 {
    let mut hash = Xxh3::new();
    let version = env!("CARGO_PKG_VERSION");
    let counting = counting.word();
    let kind = format!("amdgpu {counting} {version} {INSTRUMENTATION} {MAP_VERSION} ");
    hash.update(kind.as_bytes());
    hash.update(code);
    hash.digest128()
}

/// Gives `keep` the bytes of a cached result: the code, the reason why a part has no counters, and the size of the reason. They
/// come behind the code for that time, as a copy of it may take more than a gigabyte.
fn as_entry(made: &mut Made, keep: impl FnOnce(&mut Vec<u8>)) {
    let len = made.code.len();
    let loss = made.loss.as_deref().unwrap_or_default().as_bytes();
    made.code.extend_from_slice(loss);
    made.code.extend((loss.len() as u64).to_le_bytes());
    keep(&mut made.code);
    made.code.truncate(len);
}

fn from_cache(cache: &Cache, key: u128) -> Option<Made> {
    made_of(cache.get(key)?.ok()?)
}

/// The result of [`as_entry`].
fn made_of(mut entry: Vec<u8>) -> Option<Made> {
    let (rest, size) = entry.split_last_chunk::<8>()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok()?;
    let at = rest.len().checked_sub(size)?;
    let loss = std::str::from_utf8(&rest[at..]).ok()?;
    let loss = (!loss.is_empty()).then(|| loss.to_owned());
    entry.truncate(at);
    Some(Made { code: entry, loss })
}

/// The line about the functions without counters: their number, and the most frequent kind of reason with an example.
fn partial_loss(instrumented: &Instrumented) -> Option<String> {
    let of_program = |(name, _): &&(String, Refusal)| !is_helper(name);
    let refused: Vec<_> = instrumented.refused.iter().filter(of_program).collect();
    let mut kinds = HashMap::new();
    for (_, refusal) in &refused {
        *kinds
            .entry(std::mem::discriminant(refusal))
            .or_insert(0_usize) += 1;
    }
    // The first one of the most frequent kind: the order of functions is that of the code.
    let most = kinds.values().copied().max()?;
    let (name, refusal) = refused
        .iter()
        .find(|(_, refusal)| kinds[&std::mem::discriminant(refusal)] == most)?;
    let number = refused.len();
    Some(match number {
        1 => format!(
            "its function {name} has no counters, because {refusal}; `rocov run --trace --gpu model` counts it"
        ),
        _ => format!(
            "{number} of its functions have no counters, such as {name}, because {refusal}; `rocov run --trace --gpu \
             model` counts them"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_code_and_the_loss() {
        for loss in [None, Some("2 of its functions have no counters".to_owned())] {
            let mut made = Made {
                code: b"code".to_vec(),
                loss,
            };
            let mut entry = Vec::new();
            as_entry(&mut made, |bytes| entry.clone_from(bytes));
            assert_eq!(made.code, b"code");
            let read = made_of(entry).unwrap();
            assert_eq!((&read.code, &read.loss), (&made.code, &made.loss));
        }
        assert!(made_of(vec![1; 7]).is_none());
        assert!(made_of(vec![0xff; 9]).is_none());
    }

    #[test]
    fn a_loss_has_the_most_frequent_reason() {
        let short = |name: &str| (name.to_owned(), Refusal::Short { size: 4 });
        let mut instrumented = Instrumented {
            code: Vec::new(),
            refused: Vec::new(),
        };
        assert_eq!(partial_loss(&instrumented), None);
        let unknown = Refusal::Undecoded { address: 0x1000 };
        instrumented.refused = vec![("a".to_owned(), unknown), short("b"), short("c")];
        let loss = partial_loss(&instrumented).unwrap();
        assert!(
            loss.starts_with("3 of its functions have no counters, such as b, because at 4 bytes")
        );
    }

    #[test]
    fn a_key_depends_on_code_and_counters() {
        let (exact, reached) = (Counting::Exact, Counting::Reached);
        assert_ne!(key(b"a", exact), key(b"b", exact));
        assert_ne!(key(b"a", exact), key(b"a", reached));
    }
}

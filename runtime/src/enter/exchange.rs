//! The exchange of code that the program loads, or links by the driver, for instrumented code. A library of its own makes
//! that: `librocov_instrument.so`.
//!
//! CUPTI reports a call before the driver begins with it, and passes its arguments. The driver then continues with what they
//! are when the callback returns (driver 580).
#![expect(
    unsafe_code,
    reason = "opens a library, and changes the arguments of calls"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::elf;
use rocov::device::cuda::exchange::{
    ExchangeAnswer, ExchangeRequest, FUNCTION, InstrumentFn, LIBRARY, joined,
};
use rocov::discover::filter::Filter;
use rocov::format::codeobject::cuda::{ELF_HEADER, file_size, is_instrumented};
use rocov::settings::{Counting, Uncounted};
use rocov::store::read_input;
use rocov::support::diagnostic::diagnostic;

use super::copy::send;
use super::cupti::{CallData, calls};
use super::losses::lose;
use crate::elect;
use crate::elect::event::{Event, NewSource};
use crate::guest::{boundary, elf_objects, log, settings};

/// A file with code that a call loads in place of its own. The call needs it until it returns.
pub(super) struct Replacement {
    _file: File,
    _path: CString,
}

/// The limit in bytes for a file of code that a call links.
pub(super) const MAX_FILE: u64 = 1 << 30;

/// The place of the code in the arguments of all calls that load some.
const CODE: usize = 1;
/// The place of the number of options, of their names and of their values in the arguments of `cuModuleLoadDataEx`.
const MODULE_OPTIONS: [usize; 3] = [2, 3, 4];
/// Those in the arguments of `cuLibraryLoadData` and `cuLibraryLoadFromFile`.
const LIBRARY_OPTIONS: [usize; 3] = [4, 2, 3];

/// The places of the kind of an input, the input itself, its size, and its options among the arguments of
/// `cuLinkAddData_v2` and `cuLinkAddFile_v2`.
const INPUT_KIND: usize = 1;
const INPUT: usize = 2;
const INPUT_SIZE: usize = 3;
const INPUT_OPTIONS: [usize; 3] = [5, 6, 7];
const INPUT_FILE_OPTIONS: [usize; 3] = [3, 4, 5];
/// The place of the name of an input that is in memory.
const INPUT_NAME: usize = 4;
/// `CU_JIT_INPUT_CUBIN`, `CU_JIT_INPUT_PTX` and `CU_JIT_INPUT_FATBINARY`.
const CUBIN: u32 = 0;
const PTX: u32 = 1;
const FAT_BINARY: u32 = 2;
/// NVIDIA's library for kernels that launch kernels: programs link it, and it has no code of theirs.
const DEVICE_RUNTIME: &str = "cudadevrt";
/// The name of code that is in no file that is known.
pub(super) const MEMORY: &str = "memory";
/// The reason why a part of a link has no counters.
const LINKED: &str =
    "the program links it in a form other than PTX: link PTX, or a fat binary with PTX, instead";

thread_local! {
    /// True while this thread asks the library, which calls the driver itself.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Exchanges the code of the call `id`, which the driver is about to begin, if the user wants it.
///
/// # Safety
/// CUPTI has handed over `data` for the call `id`.
pub(super) unsafe fn exchange(id: u32, data: &CallData) -> Option<Replacement> {
    let instrument = library()?;
    let is_library = matches!(id, calls::LIBRARY_LOAD | calls::LIBRARY_LOAD_FILE);
    let loads = calls::MODULE_LOAD.contains(&id) || is_library;
    let words = data.parameters.cast::<u64>().cast_mut();
    if !loads || words.is_null() {
        return None;
    }
    // SAFETY: `index` is the place of the code or of one of the options, which each of these calls has among its
    // arguments, of a word each (cuda.h).
    let word = |index: usize| unsafe { *words.add(index) };
    if word(CODE) == 0 {
        return None;
    }
    let options = match id {
        calls::MODULE_LOAD_EX => Some(MODULE_OPTIONS),
        _ => is_library.then_some(LIBRARY_OPTIONS),
    };
    let request = ExchangeRequest {
        is_for_all: is_library,
        ..request(
            word(CODE),
            matches!(id, calls::MODULE_LOAD_FILE | calls::LIBRARY_LOAD_FILE),
            options.map_or([0; 3], |places| places.map(word)),
        )
    };
    let put = |new: &NewCode| {
        // SAFETY: the arguments are CUPTI's, for this call.
        unsafe { *words.add(CODE) = new.argument };
    };
    // SAFETY: the request is of a call that loads code.
    unsafe { replace(instrument, &request, put) }
}

/// Exchanges an input of the driver's linker: the call `id` adds it.
///
/// # Safety
/// CUPTI has handed over `data` for the call `id`, `cuLinkAddData_v2` or `cuLinkAddFile_v2`.
pub(super) unsafe fn exchange_input(id: u32, data: &CallData) -> Option<Replacement> {
    let instrument = library()?;
    let words = data.parameters.cast::<u64>().cast_mut();
    // SAFETY: `index` is the place of the link or of a part of its input, which both calls have among their
    // arguments, of a word each (cuda.h).
    let word = |index: usize| unsafe { *words.add(index) };
    if IS_ASKING.get() || word(INPUT) == 0 {
        return None;
    }
    let is_path = id == calls::LINK_FILE;
    // The kind has 4 bytes. Behind them is padding.
    let kind = word(INPUT_KIND) as u32;
    if ![PTX, FAT_BINARY].contains(&kind) {
        let name = match is_path {
            true => INPUT,
            false => INPUT_NAME,
        };
        // SAFETY: the driver takes a text there, or null.
        let name = unsafe { text(word(name)) };
        let size = (!is_path).then(|| word(INPUT_SIZE) as usize);
        // SAFETY: the driver takes a path there if there is no `size`, else `size` bytes.
        boundary::guest("the exchange of CUDA code", || unsafe {
            note_uncounted(word(0), kind, word(INPUT), size, name);
        });
        return None;
    }
    let places = match is_path {
        true => INPUT_FILE_OPTIONS,
        false => INPUT_OPTIONS,
    };
    let request = ExchangeRequest {
        is_to_be_linked: true,
        ..request(word(INPUT), is_path, places.map(word))
    };
    let put = |new: &NewCode| {
        let mut links = links();
        let link = links.entry(word(0)).or_default();
        link.sources.extend_from_slice(&new.sources);
        drop(links);
        // SAFETY: the arguments are CUPTI's, for this call.
        unsafe {
            *words.add(INPUT_KIND) = u64::from(PTX);
            *words.add(INPUT) = new.argument;
            if !is_path {
                *words.add(INPUT_SIZE) = new.size as u64;
            }
        }
    };
    // SAFETY: the request is of a call that reads the code.
    unsafe { replace(instrument, &request, put) }
}

/// A request for code that the driver would load into the current context. The options are their number, their names and
/// their values.
fn request(code: u64, is_path: bool, [count, names, values]: [u64; 3]) -> ExchangeRequest {
    ExchangeRequest {
        code: code as *const c_void,
        is_path,
        is_for_all: false,
        is_to_be_linked: false,
        is_for_reached: settings::instrument() == Some(Counting::Reached),
        // It has 4 bytes. Behind them is padding.
        options: count as u32,
        names: names as *const c_int,
        values: values as *const *mut c_void,
    }
}

/// Asks the library for code, and has `put` write it to the arguments of the call.
///
/// # Safety
/// The request is of a call that reads the code.
unsafe fn replace(
    instrument: InstrumentFn,
    request: &ExchangeRequest,
    put: impl FnOnce(&NewCode),
) -> Option<Replacement> {
    let mut replacement = None;
    boundary::guest("the exchange of CUDA code", || {
        // SAFETY: as the caller promises.
        let Some(new) = (unsafe { ask(instrument, request) }) else {
            return;
        };
        put(&new);
        replacement = new.file;
    });
    replacement
}

/// A link that the program has not ended.
#[derive(Default)]
struct Link {
    /// The PTX without counters of its inputs.
    sources: Vec<String>,
    /// The names of inputs without counters that have no PTX.
    uncounted: Vec<String>,
}

/// All links, by their handles (`CUlinkState`).
fn links() -> std::sync::MutexGuard<'static, BTreeMap<u64, Link>> {
    static LINKS: Mutex<BTreeMap<u64, Link>> = Mutex::new(BTreeMap::new());
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes an input that is neither PTX nor a fat binary, if it has no counters. An input in memory has a size.
///
/// # Safety
/// Without a `size`, a path ending with a zero is at `input`, else `size` readable bytes.
unsafe fn note_uncounted(link: u64, kind: u32, input: u64, size: Option<usize>, name: String) {
    // SAFETY: as the caller promises.
    let counts = kind == CUBIN && unsafe { is_counting(input, size) };
    if !counts && !name.contains(DEVICE_RUNTIME) {
        links().entry(link).or_default().uncounted.push(name);
    }
}

/// Returns whether a cubin has counters: those of clang, or those of a cubin that a run with counters has linked.
///
/// # Safety
/// Without a `size`, a path ending with a zero is at `input`, else `size` readable bytes.
unsafe fn is_counting(input: u64, size: Option<usize>) -> bool {
    let Some(size) = size else {
        // SAFETY: as the caller promises.
        let path = unsafe { text(input) };
        // A pipe can be read once only, and that is the driver's part.
        let cubin = read_input(Path::new(&path), MAX_FILE);
        return cubin.is_ok_and(|cubin| is_instrumented(&cubin).unwrap_or(false));
    };
    if size < ELF_HEADER {
        return false;
    }
    let start = input as *const u8;
    // SAFETY: there are `size` bytes, at least those of a header (checked above).
    let header = unsafe { &*start.cast::<[u8; ELF_HEADER]>() };
    if !header.starts_with(&elf::ELFMAG) {
        return false;
    }
    // The driver refuses a damaged cubin, whose header may state more than is there.
    let size = size.min(file_size(header));
    // SAFETY: at most the caller's `size` bytes.
    let cubin = unsafe { std::slice::from_raw_parts(start, size) };
    is_instrumented(cubin).unwrap_or(false)
}

/// The text at an address, or none for null.
///
/// # Safety
/// A text with a zero at its end is there, or the address is null.
unsafe fn text(address: u64) -> String {
    let start = address as *const std::ffi::c_char;
    if start.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_string_lossy().into_owned()
}

/// Tells the drainer of the PTX in a cubin that the driver has linked, and notes its parts without counters:
/// `cuLinkComplete` has returned. If no part counts, the cubin is named when it is loaded.
///
/// # Safety
/// The driver has written the address of the cubin and its size to these places, if they are not null.
pub(super) unsafe fn linked(link: u64, cubin: u64, size: u64) {
    let (cubin, size) = (cubin as *const *const u8, size as *const usize);
    if cubin.is_null() || size.is_null() {
        return;
    }
    boundary::guest("the exchange of CUDA code", || {
        let Some(Link { sources, uncounted }) = links().remove(&link) else {
            return;
        };
        if sources.is_empty() {
            return;
        }
        for name in uncounted {
            let name = if name.is_empty() { MEMORY.into() } else { name };
            lose(Uncounted::Module, name, LINKED.to_owned());
        }
        let source = joined(sources.iter().map(String::as_str));
        send(Event::CudaSource(&NewSource {
            // SAFETY: as the caller promises.
            cubin: unsafe { *cubin },
            // SAFETY: as the caller promises.
            cubin_len: unsafe { *size },
            ptx: source.as_ptr(),
            ptx_len: source.len(),
        }));
    });
}

/// Forgets a link, which the program ends.
pub(super) fn forget_link(link: u64) {
    links().remove(&link);
}

/// Code for a call, in place of its own.
struct NewCode {
    /// The address of the code, or of a path.
    argument: u64,
    size: usize,
    file: Option<Replacement>,
    /// The PTX without counters of what is not linked yet.
    sources: Vec<String>,
}

/// Asks the library for code. `None` if the code is to stay as it is.
///
/// # Safety
/// The request is of a call that reads the code.
unsafe fn ask(instrument: InstrumentFn, request: &ExchangeRequest) -> Option<NewCode> {
    let origin = origin(request);
    static FILTER: OnceLock<Filter> = OnceLock::new();
    let filter = FILTER.get_or_init(settings::filter);
    if !filter.admits(origin.as_deref()) {
        return None;
    }
    let mut answer = ExchangeAnswer::NOTHING;
    IS_ASKING.set(true);
    // SAFETY: as the caller promises.
    unsafe { instrument(request, &raw mut answer) };
    IS_ASKING.set(false);
    // SAFETY: the library has filled the answer.
    unsafe { take(&answer, request.is_path, origin.as_deref()) }
}

/// Accepts an answer: passes the PTX to the drainer, and notes a loss.
///
/// # Safety
/// `librocov_instrument.so` has given the answer.
unsafe fn take(answer: &ExchangeAnswer, is_path: bool, origin: Option<&Path>) -> Option<NewCode> {
    let name = || origin.map_or(MEMORY.into(), |path| path.display().to_string());
    if !answer.loss.is_null() {
        // SAFETY: a loss is a text with a zero at its end, which stays.
        let loss = unsafe { CStr::from_ptr(answer.loss) };
        let name = match origin {
            None if !answer.maker.is_null() => {
                // SAFETY: a maker is a text with a zero at its end, which stays.
                let maker = unsafe { CStr::from_ptr(answer.maker) };
                maker.to_string_lossy().into_owned()
            }
            _ => name(),
        };
        lose(Uncounted::Module, name, loss.to_string_lossy().into_owned());
        return None;
    }
    if answer.cubins.is_null() {
        return None;
    }
    // SAFETY: a non-null `cubins` has `cubins_len` elements, which stay.
    let cubins = unsafe { std::slice::from_raw_parts(answer.cubins, answer.cubins_len) };
    let mut sources = Vec::new();
    for cubin in cubins {
        if cubin.cubin.is_null() {
            // SAFETY: the text at `ptx` has `ptx_len` bytes, which stay.
            let text = unsafe { std::slice::from_raw_parts(cubin.ptx.cast::<u8>(), cubin.ptx_len) };
            sources.push(String::from_utf8_lossy(text).into_owned());
            continue;
        }
        send(Event::CudaSource(&NewSource {
            cubin: cubin.cubin.cast(),
            cubin_len: cubin.cubin_len,
            ptx: cubin.ptx.cast(),
            ptx_len: cubin.ptx_len,
        }));
    }
    if answer.code.is_null() {
        return None;
    }
    log::verbose(format_args!(
        "CUDA code of {}: instrumented{}",
        name(),
        if answer.is_cached {
            ", from the cache"
        } else {
            ""
        }
    ));
    let (argument, size) = (answer.code as u64, answer.code_len);
    if !is_path {
        return Some(NewCode {
            argument,
            size,
            file: None,
            sources,
        });
    }
    // SAFETY: the code of an answer has `code_len` bytes, which stay.
    let code = unsafe { std::slice::from_raw_parts(answer.code.cast::<u8>(), size) };
    // A file of PTX ends without a zero.
    let end = code.len() - usize::from(!sources.is_empty());
    match in_a_file(&code[..end]) {
        Ok((path, file)) => Some(NewCode {
            argument: path.as_ptr() as u64,
            size,
            file: Some(Replacement {
                _file: file,
                _path: path,
            }),
            sources,
        }),
        Err(error) => {
            let loss =
                format!("cannot create a file in memory: {error}: give the program more memory");
            lose(Uncounted::Module, name(), loss);
            None
        }
    }
}

/// A file in memory with these bytes, and its path.
fn in_a_file(bytes: &[u8]) -> std::io::Result<(CString, File)> {
    // SAFETY: the name is NUL terminated.
    let number = unsafe { libc::memfd_create(c"rocov".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((CString::new(path)?, file))
}

/// The file that the code of a request comes from.
fn origin(request: &ExchangeRequest) -> Option<PathBuf> {
    if request.is_path {
        use std::os::unix::ffi::OsStrExt;

        // SAFETY: the driver takes a path there.
        let path = unsafe { CStr::from_ptr(request.code.cast()) };
        let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        return std::path::absolute(path).ok();
    }
    elf_objects::containing(request.code).map(|object| object.mapped_file())
}

/// The function of the library that instruments CUDA code. `None` if the user does not want it, or it is not there.
fn library() -> Option<InstrumentFn> {
    static FOUND: OnceLock<Option<InstrumentFn>> = OnceLock::new();
    // SAFETY: the function has this type, by its name.
    *FOUND.get_or_init(|| unsafe { symbol(FUNCTION) })
}

/// A function of `librocov_instrument.so`. `None` if the user does not want the library, or it is not there.
///
/// # Safety
/// `T` is the type of a pointer to the function of this name.
pub(super) unsafe fn symbol<T: Copy>(name: &str) -> Option<T> {
    settings::instrument()?;
    let own = elect::own_object()?;
    let path = own.mapped_file().with_file_name(LIBRARY);
    // SAFETY: its initialisers are those of Rust.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let found = library.and_then(|library| {
        // SAFETY: as the caller promises.
        let function = unsafe { library.get::<T>(name) };
        let function = function.map(|function| *function);
        // It stays, because its function is called to the end.
        std::mem::forget(library);
        function
    });
    found
        .inspect_err(|error| {
            log::warn_once(diagnostic!(
                "cannot instrument GPU code: {error}";
                "install {} from this release next to librocov.so", LIBRARY
            ));
        })
        .ok()
}

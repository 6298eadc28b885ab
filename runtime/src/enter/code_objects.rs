//! The exchange of AMD code objects for instrumented ones, when the program makes readers of them. A library of its own
//! makes those: `librocov_instrument.so`.
//!
//! ROCr reads a code object until all executables with it are destroyed: debuggers and drains find its ELF there. So an
//! instrumented one stays until its reader is destroyed, and all that was loaded from it.
#![expect(
    unsafe_code,
    reason = "reads the code of the program, and calls functions of HSA and of a library"
)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::{self, File};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rocov::device::hsa::abi::{SUCCESS, Status};
use rocov::device::hsa::exchange::{
    CodeAnswer, CodeInstrumentFn, CodeRequest, FUNCTION, RELEASE, ReleaseFn,
};
use rocov::discover::filter::{Filter, file_of};
use rocov::format::codeobject::FileUri;
use rocov::settings::{Counting, Uncounted};

use super::copy::send;
use super::exchange::{MAX_FILE, MEMORY, symbol};
use super::losses::lose;
use super::nesting::{inside, is_inside};
use crate::elect::event::{Event, NewExchange};
use crate::guest::{boundary, elf_objects, log, settings, stack};

pub(super) type FromMemoryFn = unsafe extern "C" fn(*const c_void, usize, *mut u64) -> Status;
pub(super) type FromFileFn = unsafe extern "C" fn(c_int, *mut u64) -> Status;
pub(super) type ReaderDestroyFn = unsafe extern "C" fn(u64) -> Status;
/// Takes executable, agent, reader, options and the place for the handle of what was loaded.
pub(super) type LoadFn = unsafe extern "C" fn(u64, u64, u64, *const c_char, *mut u64) -> Status;

/// Makes a reader of the code object at `code`, or of an instrumented one in its place.
///
/// # Safety
/// As for `hsa_code_object_reader_create_from_memory`, whose next definition is `next`. `hook` is that at which the call has
/// arrived.
#[inline(always)]
pub(super) unsafe fn from_memory(
    hook: *const c_void,
    next: FromMemoryFn,
    code: *const c_void,
    size: usize,
    reader: *mut u64,
) -> Status {
    // SAFETY: the caller's arguments, passed on.
    let plain = || unsafe { next(code, size, reader) };
    if is_inside() || settings::instrument().is_none() || code.is_null() || reader.is_null() {
        return plain();
    }
    let exchanged = stack::in_hook(hook, || {
        let origin = || uri_of_memory(code, size);
        // SAFETY: ROCr reads these bytes.
        unsafe { exchange((code.cast(), size), origin) }
    });
    match exchanged {
        // SAFETY: the place for the reader is the caller's.
        Some(exchanged) => unsafe { hand_over(exchanged, next, reader) },
        None => inside(plain),
    }
}

/// Makes a reader of the code object in a file, or of an instrumented one in its place.
///
/// # Safety
/// As for `hsa_code_object_reader_create_from_file`, whose next definition is `next`. `next_from_memory` is that of
/// `hsa_code_object_reader_create_from_memory`. `hook` is that at which the call has arrived.
#[inline(always)]
pub(super) unsafe fn from_file(
    hook: *const c_void,
    next: FromFileFn,
    next_from_memory: FromMemoryFn,
    file: c_int,
    reader: *mut u64,
) -> Status {
    // SAFETY: the caller's arguments, passed on.
    let plain = || unsafe { next(file, reader) };
    if is_inside() || settings::instrument().is_none() || reader.is_null() {
        return plain();
    }
    let exchanged = stack::in_hook(hook, || {
        let code = contents(file)?;
        let uri = || {
            let uri = FileUri {
                path: fs::read_link(format!("/proc/self/fd/{file}")).ok()?,
                offset: 0,
                size: None,
            };
            Some(uri.to_string())
        };
        // SAFETY: the bytes are our own.
        unsafe { exchange((code.as_ptr(), code.len()), uri) }
    });
    match exchanged {
        // SAFETY: the place for the reader is the caller's.
        Some(exchanged) => unsafe { hand_over(exchanged, next_from_memory, reader) },
        None => inside(plain),
    }
}

/// Destroys a reader.
pub(super) fn reader_destroy(reader: u64, call: impl FnOnce() -> Status) -> Status {
    if is_inside() {
        return call();
    }
    let status = inside(call);
    if status == SUCCESS && settings::instrument().is_some() {
        let forgotten = exchanged().readers.remove(&reader);
        drop(forgotten);
    }
    status
}

/// Loads the code object of a reader into an executable.
pub(super) fn load(executable: u64, reader: u64, call: impl FnOnce() -> Status) -> Status {
    if is_inside() {
        return call();
    }
    let status = inside(call);
    if status == SUCCESS && settings::instrument().is_some() {
        let mut exchanged = exchanged();
        if let Some(code) = exchanged.readers.get(&reader).cloned() {
            exchanged.loaded.entry(executable).or_default().push(code);
        }
    }
    status
}

/// Notes that an executable is destroyed.
pub(super) fn destroyed(executable: u64) {
    if settings::instrument().is_some() {
        let forgotten = exchanged().loaded.remove(&executable);
        drop(forgotten);
    }
}

/// A code object that ROCr has got in place of the program's.
#[derive(Debug)]
struct Code {
    start: u64,
    len: usize,
    owner: u64,
    release: ReleaseFn,
}

impl Drop for Code {
    fn drop(&mut self) {
        send(Event::ExchangeEnded(self.start));
        // SAFETY: the library has given the owner with the code. No reader and no executable has the code any more.
        unsafe { (self.release)(self.owner as *const c_void) };
    }
}

/// The code objects that ROCr has got in place of the program's, as long as it may read them.
#[derive(Debug, Default)]
struct AllExchanged {
    readers: HashMap<u64, Arc<Code>>,
    loaded: HashMap<u64, Vec<Arc<Code>>>,
}

/// Returns all of them. Nothing may be dropped while they are locked, because that sends an event.
fn exchanged() -> MutexGuard<'static, AllExchanged> {
    static ALL: OnceLock<Mutex<AllExchanged>> = OnceLock::new();
    let all = ALL.get_or_init(Mutex::default);
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a reader of an instrumented code object.
///
/// # Safety
/// `next` is `hsa_code_object_reader_create_from_memory`, which writes to `reader`.
unsafe fn hand_over(code: Code, next: FromMemoryFn, reader: *mut u64) -> Status {
    // SAFETY: the code object stays until it is dropped.
    let status = inside(|| unsafe { next(code.start as *const c_void, code.len, reader) });
    if status == SUCCESS {
        // SAFETY: the call has written the handle.
        let handle = unsafe { *reader };
        let before = exchanged().readers.insert(handle, Arc::new(code));
        drop(before);
    }
    status
}

/// Asks the library for a code object in place of the program's. `None` if that stays as it is.
///
/// # Safety
/// The code can be read.
unsafe fn exchange(
    (code, size): (*const u8, usize),
    uri: impl FnOnce() -> Option<String>,
) -> Option<Code> {
    let mut exchanged = None;
    boundary::guest("the exchange of AMD code", || {
        let Some(library) = library() else { return };
        let uri = uri().unwrap_or_else(|| {
            let pid = std::process::id();
            format!("memory://{pid}#offset={:#x}&size={size}", code.addr())
        });
        static FILTER: OnceLock<Filter> = OnceLock::new();
        let filter = FILTER.get_or_init(settings::filter);
        let origin = || file_of(&uri).or_else(|| stack::loader().file);
        if !filter.is_open() && !filter.admits(origin().as_deref()) {
            return;
        }
        let request = CodeRequest {
            code: code.cast(),
            code_len: size,
            is_for_reached: settings::instrument() == Some(Counting::Reached),
        };
        let mut answer = CodeAnswer::NOTHING;
        // SAFETY: the request is of code that can be read.
        unsafe { (library.instrument)(&raw const request, &raw mut answer) };
        if !answer.loss.is_null() {
            // SAFETY: a loss is a text with a zero at its end, which stays.
            let loss = unsafe { CStr::from_ptr(answer.loss) };
            let name = origin().map_or(MEMORY.into(), |path: PathBuf| path.display().to_string());
            let what = match answer.code.is_null() {
                true => Uncounted::CodeObject,
                false => Uncounted::Functions,
            };
            lose(what, name, loss.to_string_lossy().into_owned());
        }
        if answer.code.is_null() {
            return;
        }
        log::verbose(format_args!(
            "code object {uri}: instrumented{}",
            match answer.is_cached {
                true => ", from the cache",
                false => "",
            }
        ));
        let start = answer.code as u64;
        let uri = CString::new(uri).unwrap_or_default();
        send(Event::Exchanged(&NewExchange {
            start,
            uri: uri.as_ptr(),
        }));
        exchanged = Some(Code {
            start,
            len: answer.code_len,
            owner: answer.owner as u64,
            release: library.release,
        });
    });
    exchanged
}

/// The URI of code in memory, as ROCr would have it: a part of the executable or of a shared object. `None` if it is not in
/// one.
fn uri_of_memory(code: *const c_void, size: usize) -> Option<String> {
    let (path, offset) = elf_objects::part_at(code.addr())?;
    let uri = FileUri {
        path,
        offset,
        size: Some(size as u64),
    };
    Some(uri.to_string())
}

/// The contents of a file. The file is the program's, and its position stays. `None` if it cannot be read, or is larger than
/// any code object: ROCr finds that out as well.
fn contents(file: c_int) -> Option<Vec<u8>> {
    // SAFETY: the program has the descriptor open during this call, and it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
    let size = file.metadata().ok()?.len();
    if size > MAX_FILE {
        return None;
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}

/// The functions of the library.
#[derive(Clone, Copy)]
struct Functions {
    instrument: CodeInstrumentFn,
    release: ReleaseFn,
}

/// Returns them. `None` if the library is not there.
fn library() -> Option<Functions> {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the functions have these types, by their names.
        unsafe {
            Some(Functions {
                instrument: symbol(FUNCTION)?,
                release: symbol(RELEASE)?,
            })
        }
    })
}

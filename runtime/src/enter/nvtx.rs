//! NVTX, NVIDIA's annotations in programs. Ranges become labels, and marks become dumps.
//!
//! NVTX is a set of headers. Each object that is compiled with them loads the library that `NVTX_INJECTION64_PATH` names
//! at its first call, and has `InitializeInjectionNvtx2` set the functions to call (nvtxTypes.h and nvToolsExt.h of
//! NVTX 3). `rocov run --nvtx` names librocov there.
//!
//! A program that asks for levels gets the answer that it has without a tool.
#![expect(
    unsafe_code,
    reason = "exports a function, and reads the arguments of NVTX"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::copy::send;
use crate::elect::event::{Event, NewRange};
use crate::guest::{boundary, environment};

/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE`, and the functions of that module by their numbers (`NVTX_CBID_CORE_*`).
const CORE: c_int = 1;
/// `NVTX_CB_MODULE_CORE2`, with domains (`NVTX_CBID_CORE2_*`).
const CORE2: c_int = 5;
/// `NVTX_NO_PUSH_POP_TRACKING`: nobody counts levels.
const NO_LEVEL: c_int = -2;
/// `NVTX_MESSAGE_TYPE_ASCII`, `NVTX_MESSAGE_TYPE_UNICODE` and `NVTX_MESSAGE_TYPE_REGISTERED`.
const MESSAGE_ASCII: i32 = 1;
const MESSAGE_UNICODE: i32 = 2;
const MESSAGE_REGISTERED: i32 = 3;

/// `NvtxGetExportTableFunc_t`.
type GetTableFn = unsafe extern "C" fn(u32) -> *const Callbacks;
/// A place for the address of a function.
type Place = *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(c_int, *mut *const Place, *mut c_uint) -> c_int>,
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// The names of domains and the registered messages. A handle is a place in it, plus 1.
static TEXTS: Mutex<Vec<CString>> = Mutex::new(Vec::new());

fn texts() -> MutexGuard<'static, Vec<CString>> {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets NVTX's functions for the object that calls this. Returns 1 if NVTX should call them.
///
/// # Safety
/// Only NVTX calls this function, with its own.
#[unsafe(no_mangle)]
unsafe extern "C" fn InitializeInjectionNvtx2(get_table: Option<GetTableFn>) -> c_int {
    let Some(get_table) = get_table.filter(|_| !environment::is_privileged()) else {
        return 0;
    };
    // SAFETY: NVTX returns null or its table.
    let table = unsafe { get_table(CALLBACKS).as_ref() };
    let Some(functions) = table
        .filter(|table| table.size >= size_of::<Callbacks>())
        .and_then(|table| table.functions)
    else {
        return 0;
    };
    let of_core: [(usize, *const c_void); 11] = [
        (1, mark_ex as *const c_void),
        (2, mark_a as *const c_void),
        (3, mark_w as *const c_void),
        (4, start_ex as *const c_void),
        (5, start_a as *const c_void),
        (6, start_w as *const c_void),
        (7, end as *const c_void),
        (8, push_ex as *const c_void),
        (9, push_a as *const c_void),
        (10, push_w as *const c_void),
        (11, pop as *const c_void),
    ];
    let of_domains: [(usize, *const c_void); 9] = [
        (1, mark_in as *const c_void),
        (2, start_in as *const c_void),
        (3, end_in as *const c_void),
        (4, push_in as *const c_void),
        (5, pop_in as *const c_void),
        (10, text_a as *const c_void),
        (11, text_w as *const c_void),
        (12, text_of_domain_a as *const c_void),
        (13, text_of_domain_w as *const c_void),
    ];
    for (module, ours) in [(CORE, &of_core[..]), (CORE2, &of_domains[..])] {
        let (mut places, mut count) = (std::ptr::null(), 0);
        // SAFETY: the call writes the address of an array and the number of its elements.
        if unsafe { functions(module, &raw mut places, &raw mut count) } == 0 || places.is_null() {
            continue;
        }
        // SAFETY: as above.
        let places = unsafe { std::slice::from_raw_parts(places, count as usize) };
        for (number, function) in ours {
            if let Some(place) = places.get(*number).filter(|place| !place.is_null()) {
                // SAFETY: NVTX has a function of this number there, of the type of ours.
                unsafe { **place = *function };
            }
        }
    }
    1
}

/// Takes a mark.
fn mark(message: Option<CString>) {
    let label = message.as_ref();
    send(Event::Dump(
        label.map_or(std::ptr::null(), |label| label.as_ptr()),
    ));
}

/// Makes a range, for `work`. Returns its number if it belongs to no thread.
fn with_range(domain: u64, message: Option<CString>, work: impl FnOnce(&NewRange)) -> u64 {
    let range = NewRange {
        domain,
        label: message
            .as_ref()
            .map_or(std::ptr::null(), |message| message.as_ptr()),
        number: AtomicU64::new(0),
    };
    work(&range);
    range.number.load(Ordering::Relaxed)
}

fn start(domain: u64, message: Option<CString>) -> u64 {
    with_range(domain, message, |range| {
        send(Event::RangeStart(range));
    })
}

fn push(domain: u64, message: Option<CString>) -> c_int {
    with_range(domain, message, |range| {
        send(Event::RangePush(range));
    });
    NO_LEVEL
}

/// The text at `message`, in bytes.
///
/// # Safety
/// `message` is null or NUL terminated.
unsafe fn bytes(message: *const c_char) -> Option<CString> {
    // SAFETY: as the caller promises.
    (!message.is_null()).then(|| unsafe { CStr::from_ptr(message) }.to_owned())
}

/// The text at `message`, in wide characters.
///
/// # Safety
/// `message` is null or ends with 0.
unsafe fn wide(message: *const libc::wchar_t) -> Option<CString> {
    if message.is_null() {
        return None;
    }
    let mut text = String::new();
    for index in 0.. {
        // SAFETY: no character before this one was 0.
        let character = unsafe { *message.add(index) };
        if character == 0 {
            break;
        }
        let character = u32::try_from(character).ok().and_then(char::from_u32);
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    CString::new(text).ok()
}

/// The message of a mark or a range of `domain`, below the domain's name.
///
/// # Safety
/// `attributes` is null or points to NVTX's attributes of the size that they state.
unsafe fn message(domain: u64, attributes: *const Attributes) -> Option<CString> {
    // SAFETY: as the caller promises. The size stands in all versions.
    let size = unsafe { attributes.as_ref()?.size };
    if usize::from(size) < size_of::<Attributes>() {
        return None;
    }
    // SAFETY: as above.
    let (kind, message) = unsafe { ((*attributes).message_type, (*attributes).message) };
    let message = match kind {
        // SAFETY: the kind determines the type.
        MESSAGE_ASCII => unsafe { bytes(message.cast()) },
        // SAFETY: as above.
        MESSAGE_UNICODE => unsafe { wide(message.cast()) },
        MESSAGE_REGISTERED => text(message as u64),
        _ => None,
    }?;
    let Some(domain) = text(domain).filter(|name| !name.is_empty()) else {
        return Some(message);
    };
    CString::new([domain.to_bytes(), b"/", message.to_bytes()].concat()).ok()
}

/// The text with this handle. `None` for a handle that rocov has not given.
fn text(handle: u64) -> Option<CString> {
    let place = usize::try_from(handle).ok()?.checked_sub(1)?;
    texts().get(place).cloned()
}

/// Keeps a text forever. Returns its handle; 0 for none.
fn keep(text: Option<CString>) -> u64 {
    let Some(text) = text else { return 0 };
    let mut texts = texts();
    texts.push(text);
    texts.len() as u64
}

/// Runs the work of a function as a guest of the program.
fn served<T: Default>(work: impl FnOnce() -> T) -> T {
    let mut result = T::default();
    boundary::guest("an NVTX range", || result = work());
    result
}

unsafe extern "C" fn mark_ex(attributes: *const Attributes) {
    // SAFETY: NVTX passes the program's argument on.
    served(|| mark(unsafe { message(0, attributes) }));
}

unsafe extern "C" fn mark_a(message: *const c_char) {
    // SAFETY: as above.
    served(|| mark(unsafe { bytes(message) }));
}

unsafe extern "C" fn mark_w(message: *const libc::wchar_t) {
    // SAFETY: as above.
    served(|| mark(unsafe { wide(message) }));
}

unsafe extern "C" fn start_ex(attributes: *const Attributes) -> u64 {
    // SAFETY: as above.
    served(|| start(0, unsafe { message(0, attributes) }))
}

unsafe extern "C" fn start_a(message: *const c_char) -> u64 {
    // SAFETY: as above.
    served(|| start(0, unsafe { bytes(message) }))
}

unsafe extern "C" fn start_w(message: *const libc::wchar_t) -> u64 {
    // SAFETY: as above.
    served(|| start(0, unsafe { wide(message) }))
}

extern "C" fn end(range: u64) {
    send(Event::RangeEnd(range));
}

unsafe extern "C" fn push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: as above.
    served(|| push(0, unsafe { message(0, attributes) }))
}

unsafe extern "C" fn push_a(message: *const c_char) -> c_int {
    // SAFETY: as above.
    served(|| push(0, unsafe { bytes(message) }))
}

unsafe extern "C" fn push_w(message: *const libc::wchar_t) -> c_int {
    // SAFETY: as above.
    served(|| push(0, unsafe { wide(message) }))
}

extern "C" fn pop() -> c_int {
    pop_in(0)
}

unsafe extern "C" fn mark_in(domain: u64, attributes: *const Attributes) {
    // SAFETY: as above.
    served(|| mark(unsafe { message(domain, attributes) }));
}

unsafe extern "C" fn start_in(domain: u64, attributes: *const Attributes) -> u64 {
    // SAFETY: as above.
    served(|| start(domain, unsafe { message(domain, attributes) }))
}

extern "C" fn end_in(_domain: u64, range: u64) {
    end(range);
}

unsafe extern "C" fn push_in(domain: u64, attributes: *const Attributes) -> c_int {
    // SAFETY: as above.
    served(|| push(domain, unsafe { message(domain, attributes) }))
}

extern "C" fn pop_in(domain: u64) -> c_int {
    send(Event::RangePop(domain));
    NO_LEVEL
}

unsafe extern "C" fn text_a(_domain: u64, message: *const c_char) -> u64 {
    // SAFETY: as above.
    served(|| keep(unsafe { bytes(message) }))
}

unsafe extern "C" fn text_w(_domain: u64, message: *const libc::wchar_t) -> u64 {
    // SAFETY: as above.
    served(|| keep(unsafe { wide(message) }))
}

unsafe extern "C" fn text_of_domain_a(name: *const c_char) -> u64 {
    // SAFETY: as above.
    served(|| keep(unsafe { bytes(name) }))
}

unsafe extern "C" fn text_of_domain_w(name: *const libc::wchar_t) -> u64 {
    // SAFETY: as above.
    served(|| keep(unsafe { wide(name) }))
}

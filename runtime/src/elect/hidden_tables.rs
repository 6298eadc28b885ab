//! Section bounds tables, hidden from walks over the symbols of executables.
//!
//! LLVM's own drain finds the tables by such a walk. If rocov drains in its stead, the tables are blank
//! ([`rocov::drain::Session::blank_tables`]). LLVM's drain would still read them by HIP, which takes
//! their addresses for host addresses, and crashes if the host cannot reach device memory. A walk that
//! finds no table reads none. LLVM's drain calls ROCr by its own handle, past all interposed functions:
//! only ROCr's tool table can change its calls. HIP and rocov look symbols up by name, and still find
//! the tables.
#![expect(unsafe_code, reason = "replaces a function of ROCr")]

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use rocov::device::hsa::abi::{SUCCESS, Status};
use rocov::format::bounds_table::TABLE_SYMBOL;
use rocov::settings::Drainer;

use crate::guest::settings;

/// Takes executable, agent, symbol, and the caller's data.
type VisitFn = unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> Status;
/// `hsa_executable_iterate_agent_symbols`.
pub(crate) type IterateFn = unsafe extern "C" fn(u64, u64, Option<VisitFn>, *mut c_void) -> Status;
/// `hsa_executable_symbol_get_info`.
pub(crate) type GetInfoFn = unsafe extern "C" fn(u64, u32, *mut c_void) -> Status;

/// `HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH` and `HSA_EXECUTABLE_SYMBOL_INFO_NAME`.
const NAME_LENGTH: u32 = 1;
const NAME: u32 = 2;
/// The longest name to compare, in bytes. A table's name ends with the name of its unit.
const MAX_NAME: usize = 512;

/// ROCr's functions.
struct Original {
    iterate: IterateFn,
    get_info: GetInfoFn,
}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// Replaces ROCr's function if rocov drains in LLVM's stead.
pub(crate) fn hide_tables(iterate: &mut IterateFn, get_info: GetInfoFn) {
    let is_ours = std::ptr::fn_addr_eq(*iterate, visit_others as IterateFn);
    if is_ours || settings::drainer() != Some(Drainer::Rocov) {
        return;
    }
    // ROCr has the same functions when it is started again.
    ORIGINAL.get_or_init(|| Original {
        iterate: *iterate,
        get_info,
    });
    *iterate = visit_others;
}

fn original() -> &'static Original {
    ORIGINAL.get().expect("set before the table was changed")
}

/// The callback of a walk, and its data.
struct Visitor {
    visit: VisitFn,
    data: *mut c_void,
}

unsafe extern "C" fn visit_others(
    executable: u64,
    agent: u64,
    visit: Option<VisitFn>,
    data: *mut c_void,
) -> Status {
    let iterate = original().iterate;
    let Some(visit) = visit else {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { iterate(executable, agent, visit, data) };
    };
    let mut visitor = Visitor { visit, data };
    // SAFETY: the visitor outlives the call.
    unsafe {
        iterate(
            executable,
            agent,
            Some(unless_table),
            (&raw mut visitor).cast(),
        )
    }
}

unsafe extern "C" fn unless_table(
    executable: u64,
    agent: u64,
    symbol: u64,
    visitor: *mut c_void,
) -> Status {
    if is_table(symbol) {
        return SUCCESS;
    }
    // SAFETY: this is the variable of `visit_others`.
    let Visitor { visit, data } = unsafe { &*visitor.cast::<Visitor>() };
    // SAFETY: the caller's own function and data.
    unsafe { visit(executable, agent, symbol, *data) }
}

/// Returns whether a symbol is a table, of a whole code object or of a unit.
fn is_table(symbol: u64) -> bool {
    let get_info = original().get_info;
    let mut length = 0_u32;
    // SAFETY: the length is a word of 32 bits.
    let status = unsafe { get_info(symbol, NAME_LENGTH, (&raw mut length).cast()) };
    let length = length as usize;
    if status != SUCCESS || !(TABLE_SYMBOL.len()..=MAX_NAME).contains(&length) {
        return false;
    }
    // ROCr writes as many bytes as it has announced. One more is for a NUL.
    let mut name = [0_u8; MAX_NAME + 1];
    // SAFETY: there is room for the name.
    let status = unsafe { get_info(symbol, NAME, name.as_mut_ptr().cast::<c_char>().cast()) };
    let rest = name[..length].strip_prefix(TABLE_SYMBOL.as_bytes());
    status == SUCCESS && rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'_')
}

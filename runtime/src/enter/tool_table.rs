//! ROCr's tool table: the other way in, for a process whose calls do not pass [`super::interpose`]. The
//! program is linked with ROCr ahead of librocov, `HSA_TOOLS_LIB` names librocov, or LLVM's offload runtime
//! looks HSA's functions up by itself.
//!
//! ROCr calls [`OnLoad`] of the libraries in `HSA_TOOLS_LIB`, and from 5.3 on of every loaded library that
//! defines [`HSA_AMD_TOOL_PRIORITY`]. A process that was started with librocov in it has both ways, and
//! takes one, unless it has an offload runtime: HIP's calls may then pass both ([`hsa_hooks`]).
//!
//! The layout is that of `hsa_api_trace.h`. The fields below are unchanged from 5.2.3 to 7.2.4.
#![expect(unsafe_code, reason = "changes and calls functions of ROCr")]

use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Once, OnceLock};

use rocov::device::hsa::abi::Status;
use rocov::settings::variables::HSA_TOOLS_LIB;

use super::code_objects::{self, FromFileFn, FromMemoryFn, LoadFn, ReaderDestroyFn};
use super::copy::{COPY, send};
use super::exit;
use super::hsa_hooks::{
    self, DestroyFn, FreezeFn, QueueCreateFn, QueueDestroyFn, QueueErrorFn, ShutDownFn,
};
use crate::elect;
use crate::elect::event::Event;
use crate::elect::hidden_tables::{GetInfoFn, IterateFn, hide_tables};
use crate::elect::interposer::{Interposer, has_offload_runtime};
use crate::guest::{boundary, environment, log, process, settings};
use crate::serve::kernel_wait;

/// Tells ROCr (from 5.3 on) that this library is a tool, and to load it after others.
#[unsafe(no_mangle)]
static HSA_AMD_TOOL_PRIORITY: u32 = 100;

/// `HsaApiTable`.
#[repr(C)]
struct ApiTable {
    version: Version,
    core: *mut CoreTable,
}

/// `ApiTableVersion`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    /// In a sub-table, its size in bytes.
    minor: u32,
    step: u32,
    _reserved: u32,
}

/// `CoreApiTable`, with bytes in place of the functions that librocov leaves alone.
#[repr(C)]
struct CoreTable {
    version: Version,
    _init: *const c_void,
    shut_down: ShutDownFn,
    _to_queue_create: [u8; 40],
    queue_create: QueueCreateFn,
    _soft_queue_create: *const c_void,
    queue_destroy: QueueDestroyFn,
    _to_destroy: [u8; 592],
    destroy: DestroyFn,
    _to_freeze: [u8; 8],
    freeze: FreezeFn,
    _to_symbol_get_info: [u8; 48],
    symbol_get_info: GetInfoFn,
    _to_reader_from_file: [u8; 168],
    reader_from_file: FromFileFn,
    reader_from_memory: FromMemoryFn,
    reader_destroy: ReaderDestroyFn,
    _to_load: [u8; 16],
    load: LoadFn,
    _to_iterate_agent_symbols: [u8; 16],
    iterate_agent_symbols: IterateFn,
}

const _: () = assert!(std::mem::offset_of!(ApiTable, core) == 16);
const _: () = assert!(std::mem::offset_of!(CoreTable, shut_down) == 24);
const _: () = assert!(std::mem::offset_of!(CoreTable, queue_create) == 72);
const _: () = assert!(std::mem::offset_of!(CoreTable, queue_destroy) == 88);
const _: () = assert!(std::mem::offset_of!(CoreTable, destroy) == 688);
const _: () = assert!(std::mem::offset_of!(CoreTable, freeze) == 704);
const _: () = assert!(std::mem::offset_of!(CoreTable, symbol_get_info) == 760);
const _: () = assert!(std::mem::offset_of!(CoreTable, reader_from_file) == 936);
const _: () = assert!(std::mem::offset_of!(CoreTable, load) == 976);
const _: () = assert!(std::mem::offset_of!(CoreTable, iterate_agent_symbols) == 1000);

/// The known major versions of the root table, which has the core table at 16.
const ROOT_MAJORS: std::ops::RangeInclusive<u32> = 1..=3;
/// The known major versions of the core table, with the fields above: 1 (5.x, 6.0), 2 (6.x).
const CORE_MAJORS: std::ops::RangeInclusive<u32> = 1..=2;

/// The functions that were in the table before.
struct Original {
    freeze: FreezeFn,
    destroy: DestroyFn,
    shut_down: ShutDownFn,
    queue_create: QueueCreateFn,
    queue_destroy: QueueDestroyFn,
    reader_from_file: FromFileFn,
    reader_from_memory: FromMemoryFn,
    reader_destroy: ReaderDestroyFn,
    load: LoadFn,
}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// Hooks the tool table if the program's calls do not pass elsewhere. ROCr calls this under its own lock,
/// at the start of HSA: no `hsa_init` and no HIP here. If it returned false, ROCr would close the library.
///
/// # Safety
/// ROCr's tool interface defines the arguments.
#[unsafe(no_mangle)]
unsafe extern "C" fn OnLoad(
    table: *mut c_void,
    _runtime_version: u64,
    _failed_tools: u64,
    _failed_names: *const *const c_char,
) -> bool {
    boundary::guest("OnLoad", || {
        // Even without the table, the exit drain finds the code that is loaded then.
        exit::register_at_start();
        kernel_wait::note_all_seen();
        let is_unseen = process::started();
        // SAFETY: ROCr passes its table, which stays in place.
        let Some(core) = (unsafe { known(table.cast()) }) else {
            return;
        };
        hide_tables(&mut core.iterate_agent_symbols, core.symbol_get_info);
        let is_interposed = Interposer::now() == Interposer::Rocov;
        if is_interposed && !is_unseen && !has_offload_runtime() {
            log::verbose(format_args!(
                "HSA's tool table needs no hooks: its functions are interposed"
            ));
        } else if COPY.claim_table() {
            patch(core);
        }
    });
    true
}

/// Drains. ROCr calls this before the loader and the agents die: it is the last chance. The table stays
/// as it is, because ROCr makes a new one when it is started again.
///
/// # Safety
/// ROCr's tool interface has no arguments for it.
#[unsafe(no_mangle)]
unsafe extern "C" fn OnUnload() {
    if ORIGINAL.get().is_some() {
        send(Event::ShuttingDown);
    }
}

/// Makes sure that ROCr loads us as a tool if the process is linked with ROCr ahead of us, or has an offload
/// runtime: then our hooks see nothing, and ROCr 5.2 has no other way than its variable.
pub(super) fn announce(interposer: Interposer) {
    let is_needed = interposer == Interposer::Other || has_offload_runtime();
    if !is_needed || environment::is_privileged() {
        return;
    }
    // ROCr can load this code as a tool unless it is in the executable.
    let object = elect::own_object().filter(|object| !object.is_executable());
    let Some(path) = object.map(|object| object.path().into_os_string()) else {
        return;
    };
    let mut tools = std::env::var_os(HSA_TOOLS_LIB.name).unwrap_or_default();
    // ROCr splits at spaces.
    let mut words = tools.as_bytes().split(|byte| *byte == b' ');
    if words.any(|word| word == path.as_bytes()) {
        return;
    }
    if !tools.is_empty() {
        tools.push(" ");
    }
    tools.push(path);
    // SAFETY: the constructor runs before the program and its threads. If ROCr or the program loads this
    // library later, neither reads the environment meanwhile.
    unsafe { std::env::set_var(HSA_TOOLS_LIB.name, tools) };
}

/// Returns the core table of a root table, if the versions of both are known.
///
/// # Safety
/// `table` is null or ROCr's table.
unsafe fn known<'a>(table: *mut ApiTable) -> Option<&'a mut CoreTable> {
    if table.is_null() {
        return None;
    }
    // SAFETY: a root table of any version starts with the version.
    let root = unsafe { (*table).version };
    if !ROOT_MAJORS.contains(&root.major) {
        unknown("root", root);
        return None;
    }
    // SAFETY: a root table of these versions has the core table's address at 16.
    let core = unsafe { (*table).core };
    if core.is_null() {
        return None;
    }
    // SAFETY: a sub-table of any version starts with the version.
    let version = unsafe { (*core).version };
    let size = std::mem::size_of::<CoreTable>() as u32;
    if !CORE_MAJORS.contains(&version.major) || version.minor < size {
        unknown("core", version);
        return None;
    }
    // SAFETY: a core table of these versions and this size has the fields of `CoreTable`.
    Some(unsafe { &mut *core })
}

/// Puts our functions into the table.
fn patch(core: &mut CoreTable) {
    if std::ptr::fn_addr_eq(core.freeze, freeze as FreezeFn) {
        return;
    }
    // ROCr has the same functions when it is started again: it is not unloaded in between.
    let original = Original {
        freeze: core.freeze,
        destroy: core.destroy,
        shut_down: core.shut_down,
        queue_create: core.queue_create,
        queue_destroy: core.queue_destroy,
        reader_from_file: core.reader_from_file,
        reader_from_memory: core.reader_from_memory,
        reader_destroy: core.reader_destroy,
        load: core.load,
    };
    if ORIGINAL.set(original).is_err() {
        log::verbose(format_args!(
            "HSA was started again; its tool table is hooked again"
        ));
    }
    core.freeze = freeze;
    core.destroy = destroy;
    core.shut_down = shut_down;
    core.queue_create = queue_create;
    core.queue_destroy = queue_destroy;
    if settings::instrument().is_some() {
        core.reader_from_file = reader_from_file;
        core.reader_from_memory = reader_from_memory;
        core.reader_destroy = reader_destroy;
        core.load = load;
    }
    log::verbose(format_args!(
        "hooked into HSA's tool table, version {}",
        core.version.major
    ));
}

/// Prints, once, that a table has an unknown version.
fn unknown(table: &str, version: Version) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::verbose(format_args!(
            "HSA's {table} tool table has version {}.{}.{}, which rocov does not support: rocov does not hook it",
            version.major, version.minor, version.step
        ));
    });
}

fn original() -> &'static Original {
    ORIGINAL.get().expect("set before the table was changed")
}

unsafe extern "C" fn freeze(executable: u64, options: *const c_char) -> Status {
    // SAFETY: the caller's arguments, passed on.
    hsa_hooks::freeze(freeze as *const c_void, executable, || unsafe {
        (original().freeze)(executable, options)
    })
}

unsafe extern "C" fn destroy(executable: u64) -> Status {
    // SAFETY: the caller's argument, passed on.
    hsa_hooks::destroy(executable, || unsafe { (original().destroy)(executable) })
}

unsafe extern "C" fn shut_down() -> Status {
    // SAFETY: there are no arguments.
    hsa_hooks::shut_down(|| unsafe { (original().shut_down)() })
}

unsafe extern "C" fn queue_create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorFn>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut u64,
) -> Status {
    // SAFETY: the caller's arguments, passed on.
    let call = || unsafe {
        (original().queue_create)(
            agent,
            size,
            kind,
            callback,
            data,
            private_segment_size,
            group_segment_size,
            queue,
        )
    };
    // SAFETY: HSA's function writes the queue's address there.
    unsafe { hsa_hooks::queue_create(agent, queue, call) }
}

unsafe extern "C" fn queue_destroy(queue: u64) -> Status {
    // SAFETY: the caller's argument, passed on.
    hsa_hooks::queue_destroy(queue, || unsafe { (original().queue_destroy)(queue) })
}

unsafe extern "C" fn reader_from_memory(
    code: *const c_void,
    size: usize,
    reader: *mut u64,
) -> Status {
    let hook = reader_from_memory as *const c_void;
    let from_memory = original().reader_from_memory;
    // SAFETY: the caller's arguments, passed on.
    unsafe { code_objects::from_memory(hook, from_memory, code, size, reader) }
}

unsafe extern "C" fn reader_from_file(file: c_int, reader: *mut u64) -> Status {
    let hook = reader_from_file as *const c_void;
    let (from_file, from_memory) = (original().reader_from_file, original().reader_from_memory);
    // SAFETY: the caller's arguments, passed on.
    unsafe { code_objects::from_file(hook, from_file, from_memory, file, reader) }
}

unsafe extern "C" fn reader_destroy(reader: u64) -> Status {
    // SAFETY: the caller's argument, passed on.
    code_objects::reader_destroy(reader, || unsafe { (original().reader_destroy)(reader) })
}

unsafe extern "C" fn load(
    executable: u64,
    agent: u64,
    reader: u64,
    options: *const c_char,
    loaded: *mut u64,
) -> Status {
    // SAFETY: the caller's arguments, passed on.
    code_objects::load(executable, reader, || unsafe {
        (original().load)(executable, agent, reader, options, loaded)
    })
}

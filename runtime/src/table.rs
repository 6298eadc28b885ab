//! ROCr's tool table: the other way in, for a process whose calls do not pass [`crate::hooks`],
//! as where the program is linked with ROCr ahead of librocov, or `HSA_TOOLS_LIB` names it.
//!
//! ROCr calls [`OnLoad`] of the libraries in `HSA_TOOLS_LIB`, and from 5.3 on of every loaded one
//! that defines [`HSA_AMD_TOOL_PRIORITY`]; a process that was started with librocov in it gets
//! both, and takes one.
//!
//! The layout is that of `hsa_api_trace.h`: unchanged in the fields below from 5.2.3 to 7.2.4.

use std::ffi::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Once, OnceLock};

use rocov::hsa::abi::Status;

use crate::calls::{
    self, DestroyFn, FreezeFn, QueueCreateFn, QueueDestroyFn, QueueErrorFn, ShutDownFn,
};
use crate::election::{self, Event};
use crate::hidden::{GetInfoFn, IterateFn, hide_tables};
use crate::hooks::{self, First};
use crate::{boundary, exit, log, process, queues};

/// Tells ROCr (from 5.3) that this library is a tool, and when to load it: others first.
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
    /// Of a sub-table: its size in bytes.
    minor: u32,
    step: u32,
    _reserved: u32,
}

/// `CoreApiTable`, with the functions that are not ours as bytes.
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
    _to_iterate_agent_symbols: [u8; 232],
    iterate_agent_symbols: IterateFn,
}

const _: () = assert!(std::mem::offset_of!(ApiTable, core) == 16);
const _: () = assert!(std::mem::offset_of!(CoreTable, shut_down) == 24);
const _: () = assert!(std::mem::offset_of!(CoreTable, queue_create) == 72);
const _: () = assert!(std::mem::offset_of!(CoreTable, queue_destroy) == 88);
const _: () = assert!(std::mem::offset_of!(CoreTable, destroy) == 688);
const _: () = assert!(std::mem::offset_of!(CoreTable, freeze) == 704);
const _: () = assert!(std::mem::offset_of!(CoreTable, symbol_get_info) == 760);
const _: () = assert!(std::mem::offset_of!(CoreTable, iterate_agent_symbols) == 1000);

/// The root table's major versions that are known to have its core table at 16.
const ROOT_MAJORS: std::ops::RangeInclusive<u32> = 1..=3;
/// The core table's major versions with the fields above: 1 (5.x, 6.0), 2 (6.x).
const CORE_MAJORS: std::ops::RangeInclusive<u32> = 1..=2;

/// What was in the table before.
struct Original {
    freeze: FreezeFn,
    destroy: DestroyFn,
    shut_down: ShutDownFn,
    queue_create: QueueCreateFn,
    queue_destroy: QueueDestroyFn,
}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// Called by ROCr under a lock of its own, at the start of HSA: no `hsa_init` and no HIP here.
/// Returning false would get the library closed.
///
/// # Safety
/// As ROCr's tool interface has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn OnLoad(
    table: *mut c_void,
    _runtime_version: u64,
    _failed_tools: u64,
    _failed_names: *const *const c_char,
) -> bool {
    boundary::guest("OnLoad", || {
        // Whatever comes of the table: from here on what is still loaded at exit is found there.
        exit::register_at_start();
        queues::are_all_seen();
        process::started();
        // SAFETY: ROCr passes its table, which stays in place.
        let Some(core) = (unsafe { known(table.cast()) }) else {
            return;
        };
        hide_tables(&mut core.iterate_agent_symbols, core.symbol_get_info);
        if hooks::first() == First::Hooks {
            log::verbose(format_args!(
                "HSA's tool table needs no hooks: its functions are interposed"
            ));
        } else if election::hooks_table() {
            patch(core);
        }
    });
    true
}

/// Called by ROCr before the loader and the agents die: the last chance to drain. The table is
/// not restored, as ROCr makes a new one when it is started again.
///
/// # Safety
/// As ROCr's tool interface has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn OnUnload() {
    if ORIGINAL.get().is_some() {
        election::send(Event::ShuttingDown);
    }
}

/// Makes sure that ROCr will load us as a tool where it must: if the process is linked with it
/// ahead of us, our hooks see nothing, and ROCr 5.2 knows no other way than its variable.
pub(crate) fn announce(first: First) {
    const VARIABLE: &str = "HSA_TOOLS_LIB";
    if first != First::Others || process::is_privileged() {
        return;
    }
    // ROCr can load this code as a tool unless it is in the executable.
    let object = election::own_object().filter(|object| !object.is_executable());
    let Some(path) = object.map(|object| object.path().into_os_string()) else {
        return;
    };
    let mut tools = std::env::var_os(VARIABLE).unwrap_or_default();
    // ROCr splits at spaces.
    let mut words = tools.as_bytes().split(|byte| *byte == b' ');
    if words.any(|word| word == path.as_bytes()) {
        return;
    }
    if !tools.is_empty() {
        tools.push(" ");
    }
    tools.push(path);
    // SAFETY: the constructor runs before the program, and so before its threads; where ROCr or
    // the program load this library later, they read no environment meanwhile.
    unsafe { std::env::set_var(VARIABLE, tools) };
}

/// The core table of a root table, if the versions of both are known.
///
/// # Safety
/// `table` is null or ROCr's table.
unsafe fn known<'a>(table: *mut ApiTable) -> Option<&'a mut CoreTable> {
    if table.is_null() {
        return None;
    }
    // SAFETY: the root table starts with its version, whatever it is.
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
    // SAFETY: every sub-table starts with its version.
    let version = unsafe { (*core).version };
    let size = std::mem::size_of::<CoreTable>() as u32;
    if !CORE_MAJORS.contains(&version.major) || version.minor < size {
        unknown("core", version);
        return None;
    }
    // SAFETY: a core table of these versions and this size has the fields of `CoreTable`.
    Some(unsafe { &mut *core })
}

fn patch(core: &mut CoreTable) {
    if std::ptr::fn_addr_eq(core.freeze, freeze as FreezeFn) {
        return;
    }
    // Started again, ROCr has the same functions: it is not unloaded in between.
    let original = Original {
        freeze: core.freeze,
        destroy: core.destroy,
        shut_down: core.shut_down,
        queue_create: core.queue_create,
        queue_destroy: core.queue_destroy,
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
    log::verbose(format_args!(
        "hooked into HSA's tool table, version {}",
        core.version.major
    ));
}

fn unknown(table: &str, version: Version) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::verbose(format_args!(
            "HSA's {table} tool table has version {}.{}.{}, which is not known; left alone",
            version.major, version.minor, version.step
        ));
    });
}

/// Where the program's calls of `hsa_executable_freeze` arrive by way of the table.
pub(crate) fn freeze_entry() -> *const c_void {
    freeze as *const c_void
}

fn original() -> &'static Original {
    ORIGINAL.get().expect("set before the table was changed")
}

unsafe extern "C" fn freeze(executable: u64, options: *const c_char) -> Status {
    // SAFETY: the caller's arguments, passed on.
    calls::freeze(executable, || unsafe {
        (original().freeze)(executable, options)
    })
}

unsafe extern "C" fn destroy(executable: u64) -> Status {
    // SAFETY: the caller's argument, passed on.
    calls::destroy(executable, || unsafe { (original().destroy)(executable) })
}

unsafe extern "C" fn shut_down() -> Status {
    // SAFETY: there are no arguments.
    calls::shut_down(|| unsafe { (original().shut_down)() })
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
    unsafe { calls::queue_create(agent, queue, call) }
}

unsafe extern "C" fn queue_destroy(queue: u64) -> Status {
    // SAFETY: the caller's argument, passed on.
    calls::queue_destroy(queue, || unsafe { (original().queue_destroy)(queue) })
}

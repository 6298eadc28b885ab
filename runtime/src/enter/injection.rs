//! The injection of the CUDA driver: it loads the library that `CUDA_INJECTION64_PATH` names when a program starts CUDA,
//! and calls `InitializeInjection`. CUPTI then reports modules.
//!
//! `MODULE_LOADED` hands over the ELF, but no handle. It comes from the call around it, on the same thread.
//!
//! CUPTI reports modules and contexts while the driver holds locks. Another thread may be in a drain, and wait for one
//! of these locks. So [`crate::serve::cuda`] waits for nothing then, and does its work when the call returns, or before
//! the next drain.
#![expect(
    unsafe_code,
    reason = "exports a function and reads what CUPTI hands over"
)]

use std::cell::RefCell;
use std::ffi::{OsStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rocov::device::cuda::CUDA_LIBRARY;
use rocov::support::diagnostic::diagnostic;

use super::copy::send;
use super::cupti::{self, CUPTI, CallData, Cupti, Failure, ModuleData, ResourceData, calls};
use super::exchange::{self, Replacement};
use crate::elect;
use crate::elect::cuda_event::{CudaEvent, LoadedModule};
use crate::elect::event::Event;
use crate::guest::elf_objects::Object;
use crate::guest::{boundary, elf_objects, environment, log, process, settings};
use crate::serve::modules;

/// Set if the driver has loaded librocov.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// The variable that names the library for the driver to load.
const INJECTION: &str = "CUDA_INJECTION64_PATH";

/// A call of the driver that loads code, on this thread.
struct Call {
    library: u64,
    code: *const c_void,
    /// The file that is loaded instead.
    _replacement: Option<Replacement>,
    /// The modules that were loaded in it, each by its context and number.
    loaded: Vec<(u64, u32)>,
}

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// Subscribes to CUPTI. The driver calls this when the program starts CUDA, and never unloads librocov. Returns 1: there
/// is no failure that should stop the program.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    boundary::guest("the start of CUDA", || {
        IS_LOADED.store(true, Ordering::Relaxed);
        if environment::is_privileged() {
            return;
        }
        process::starting_cuda();
        let cupti = Cupti::open().map(|cupti| CUPTI.get_or_init(|| cupti));
        if let Err(failure) =
            cupti.and_then(|cupti| cupti.subscribe(called, settings::instrument().is_some()))
        {
            warn(&failure);
        }
    });
    1
}

/// Prints a line if the process has used CUDA, and the driver has loaded another tool instead of librocov. The process
/// ends.
pub(super) fn report_other_tool() {
    if IS_LOADED.load(Ordering::Relaxed) || environment::is_privileged() {
        return;
    }
    let other = environment::variable(INJECTION).filter(|path| !path.is_empty());
    // A program without CUDA may be in a sandbox that allows few calls.
    let is_driver = |object: &Object| object.path().ends_with(CUDA_LIBRARY);
    let Some(other) = other.filter(|_| elf_objects::all().iter().any(is_driver)) else {
        return;
    };
    boundary::guest("the end of CUDA", || {
        if is_own(&other) {
            return;
        }
        log::warn(diagnostic!(
            "{INJECTION} names {}, and not librocov: code on NVIDIA GPUs is not counted",
            other.display();
            "run the program without that tool"
        ));
    });
}

/// Returns whether the path is that of the object with this copy.
fn is_own(path: &OsStr) -> bool {
    elect::own_object().is_some_and(|own| own.path() == Path::new(path))
}

fn warn(failure: &Failure) {
    const LOST: &str = "code on NVIDIA GPUs is not counted";
    match failure {
        Failure::Missing => log::warn(diagnostic!(
            "CUPTI, which reports CUDA code to rocov, is not installed: {LOST}";
            "install the CUPTI of the CUDA toolkit, or name its library in ROCOV_CUPTI"
        )),
        Failure::TooOld(function) => log::warn(diagnostic!(
            "CUPTI has no {function}: {LOST}";
            "install CUPTI 11.1 or later, or name its library in ROCOV_CUPTI"
        )),
        Failure::Taken => log::warn(diagnostic!(
            "another tool uses CUPTI in this process: {LOST}";
            "run the program without that tool"
        )),
        Failure::Call(function, reason) => log::warn(diagnostic!(
            "{function} failed ({reason}): {LOST}";
            "install the CUPTI that belongs to the driver, or name its library in ROCOV_CUPTI"
        )),
    }
}

/// Handles what CUPTI reports, on the thread of the program's call.
unsafe extern "C" fn called(_user: *mut c_void, domain: c_int, id: u32, data: *const c_void) {
    if data.is_null() {
        return;
    }
    match domain {
        // SAFETY: the domain determines the type.
        cupti::RESOURCE => unsafe { resource(id, &*data.cast::<ResourceData>()) },
        // SAFETY: as above.
        cupti::DRIVER_API => unsafe { driver_call(id, &*data.cast::<CallData>()) },
        _ => {}
    }
}

/// # Safety
/// CUPTI has handed over `data` for the resource callback `id`.
unsafe fn resource(id: u32, data: &ResourceData) {
    let context = data.context as u64;
    if id == cupti::CONTEXT_GOES {
        tell(&CudaEvent::ContextGone(context));
        return;
    }
    if data.descriptor.is_null() {
        return;
    }
    // SAFETY: the descriptor of these callbacks is of this type.
    let module = unsafe { &*data.descriptor.cast::<ModuleData>() };
    if id == cupti::MODULE_GOES {
        tell(&CudaEvent::ModuleGone {
            context,
            id: module.id,
        });
        return;
    }
    if module.cubin.is_null() {
        return;
    }
    let call = within(|call| {
        call.loaded.push((context, module.id));
        (call.library, call.code)
    });
    let (library, code) = call.unwrap_or((0, std::ptr::null()));
    let ordinal = CUPTI.get().map_or(0, |cupti| cupti.device_of(data.context));
    tell(&CudaEvent::Loaded(LoadedModule {
        context,
        ordinal: ordinal as i32,
        id: module.id,
        cubin: module.cubin,
        len: module.len,
        is_called: call.is_some(),
        library,
        code,
    }));
}

/// Works on the innermost call of this thread. `None` if there is none.
fn within<T>(work: impl FnOnce(&mut Call) -> T) -> Option<T> {
    let worked = CALLS.try_with(|calls| calls.borrow_mut().last_mut().map(work));
    worked.ok().flatten()
}

/// The word at `index` of the arguments of a call.
///
/// # Safety
/// The call has so many arguments, and each of them is a pointer or a handle.
unsafe fn argument(data: &CallData, index: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { *data.parameters.cast::<u64>().add(index) }
}

/// # Safety
/// CUPTI has handed over `data` for the call `id`.
unsafe fn driver_call(id: u32, data: &CallData) {
    if data.parameters.is_null() {
        return;
    }
    // SAFETY: each of the calls below has one argument, and those that load code have two.
    let first = unsafe { argument(data, 0) };
    // SAFETY: only calls that load code ask for it.
    let second = || unsafe { argument(data, 1) };
    let is_entered = data.site == cupti::ENTER;
    match id {
        id if calls::LAUNCHES.contains(&id) => modules::launched(),
        calls::MODULE_UNLOAD if is_entered => tell(&CudaEvent::ModuleGoing(first)),
        calls::LIBRARY_UNLOAD if is_entered => tell(&CudaEvent::LibraryGoing(first)),
        id if calls::CONTEXT_ENDS.contains(&id) && is_entered => tell(&CudaEvent::ContextGoing),
        id if calls::CONTEXT_DESTROYS.contains(&id) && has_succeeded(data) => {
            tell(&CudaEvent::ContextGone(first));
        }
        id if calls::CAPTURE_BEGINS.contains(&id) => {
            if is_entered {
                tell(&CudaEvent::CaptureBegins(first));
            } else if !has_succeeded(data) {
                tell(&CudaEvent::CaptureEnded(first));
            }
        }
        id if calls::CAPTURE_ENDS.contains(&id) && !is_entered => {
            tell(&CudaEvent::CaptureEnded(first));
        }
        id if loads(id) && is_entered => begin(Call {
            library: match id {
                calls::LIBRARY_GET_MODULE => second(),
                _ => 0,
            },
            code: match id {
                calls::LIBRARY_GET_MODULE | calls::MODULE_LOAD_FILE | calls::LIBRARY_LOAD_FILE => {
                    std::ptr::null()
                }
                _ => second() as *const c_void,
            },
            // SAFETY: as the caller promises. The argument was read above.
            _replacement: unsafe { exchange::exchange(id, data) },
            loaded: Vec::new(),
        }),
        id if loads(id) => {
            let Some(call) = end() else { return };
            if has_succeeded(data) && first != 0 {
                // SAFETY: the call has written a handle.
                let handle = unsafe { *(first as *const u64) };
                loaded(id, handle, &call);
            }
            for (context, id) in call.loaded {
                tell(&CudaEvent::LoadReturns { context, id });
            }
        }
        calls::LINK_DATA | calls::LINK_FILE if is_entered => begin(Call {
            library: 0,
            code: std::ptr::null(),
            // SAFETY: as the caller promises.
            _replacement: unsafe { exchange::exchange_input(id, data) },
            loaded: Vec::new(),
        }),
        calls::LINK_DATA | calls::LINK_FILE => drop(end()),
        // SAFETY: the call has these arguments, and has written a cubin and its size.
        calls::LINK_COMPLETE if has_succeeded(data) => unsafe {
            exchange::linked(first, second(), argument(data, 2));
        },
        calls::LINK_DESTROY if is_entered => exchange::forget_link(first),
        _ => {}
    }
}

/// Returns whether a call has succeeded. It has returned.
fn has_succeeded(data: &CallData) -> bool {
    // SAFETY: CUPTI points to the status of a call that has returned.
    let status = unsafe { data.result.as_ref() };
    status.is_some_and(|status| *status == 0)
}

/// Returns whether a call loads code.
fn loads(id: u32) -> bool {
    let others = [
        calls::LIBRARY_LOAD,
        calls::LIBRARY_LOAD_FILE,
        calls::LIBRARY_GET_MODULE,
    ];
    calls::MODULE_LOAD.contains(&id) || others.contains(&id)
}

fn begin(call: Call) {
    let _ = CALLS.try_with(|calls| calls.borrow_mut().push(call));
}

fn end() -> Option<Call> {
    CALLS.try_with(|calls| calls.borrow_mut().pop()).ok()?
}

/// Tells of the handle that a call has returned.
fn loaded(id: u32, handle: u64, call: &Call) {
    if matches!(id, calls::LIBRARY_LOAD | calls::LIBRARY_LOAD_FILE) {
        tell(&CudaEvent::LibraryLoaded {
            library: handle,
            code: call.code,
        });
        return;
    }
    for (context, id) in &call.loaded {
        tell(&CudaEvent::HasHandle {
            context: *context,
            id: *id,
            handle,
        });
    }
}

fn tell(event: &CudaEvent) {
    send(Event::Cuda(event));
}

//! The modules of the CUDA driver that are loaded and unloaded.
//!
//! CUPTI reports a module or a context while the driver holds locks, for which a drain in another thread may wait, with
//! the lock of [`super::state`]. So these events are noted first ([`Late`]), and [`catch_up`] does the work.
#![expect(unsafe_code, reason = "reads the ELF that CUPTI hands over")]

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::OnceLock;

use rocov::device::Executable;
use rocov::device::cuda::modules::{LoadedCubin, Wanted};
use rocov::support::diagnostic::diagnostic;

use super::entrances::Entrances;
use super::modules::{Late, late, modules};
use super::state::{attach_own, is_held_here, with_device};
use super::{drain, loads, service};
use crate::elect;
use crate::elect::cuda_event::{CudaEvent, LoadedModule};
use crate::elect::event::NewSource;
use crate::guest::journal::{self, Note};
use crate::guest::{elf_objects, log, process, settings};

/// Serves an event of CUDA.
pub(super) fn seen(event: &CudaEvent, entrances: &Entrances) {
    if !process::may_use_hsa() {
        return;
    }
    match *event {
        CudaEvent::Loaded(module) => loaded(&module, entrances),
        CudaEvent::HasHandle {
            context,
            id,
            handle,
        } => modules().note_handle(context, id, handle),
        CudaEvent::LoadReturns { context, id } => {
            modules().load_returns(context, id);
            call_returns();
        }
        CudaEvent::LibraryLoaded { library, code } => {
            modules().library_loaded(library, file_of(code));
        }
        CudaEvent::LibraryGoing(library) => {
            if !modules().is_empty() {
                let device = attach_own();
                let device = device.as_ref().and_then(|gpus| gpus.cuda());
                let all = device.map(|device| device.modules_of(library));
                going(all.unwrap_or_default());
            }
            modules().library_gone(library);
        }
        CudaEvent::ModuleGoing(handle) => going(modules().find(&Wanted::Handle(handle))),
        // Nobody knows yet if it is the last user of the context.
        CudaEvent::ContextGoing if !modules().is_empty() => {
            drain::ending();
        }
        CudaEvent::ContextGoing => {}
        CudaEvent::ContextGone(context) => gone(modules().find(&Wanted::Context(context))),
        CudaEvent::ModuleGone { context, id } => {
            gone(modules().find(&Wanted::Numbered(context, id)));
        }
        CudaEvent::CaptureBegins(stream) => modules().captures().begins(stream),
        CudaEvent::CaptureEnded(stream) => modules().captures().ended(stream),
    }
}

/// Notes the PTX of a cubin that is about to be loaded.
pub(super) fn note_source(source: &NewSource) {
    if !process::may_use_hsa() {
        return;
    }
    // SAFETY: the sender has both, and waits for this.
    let (cubin, ptx) = unsafe {
        (
            std::slice::from_raw_parts(source.cubin, source.cubin_len),
            std::slice::from_raw_parts(source.ptx, source.ptx_len),
        )
    };
    modules().note_source(cubin, &String::from_utf8_lossy(ptx));
}

/// Notes a module, for [`catch_up`].
fn loaded(module: &LoadedModule, entrances: &Entrances) {
    journal::note(Note::Loaded);
    // SAFETY: CUPTI keeps the ELF for the time of its callback, which waits for this.
    let cubin = unsafe { std::slice::from_raw_parts(module.cubin, module.len) };
    let library = (module.library != 0).then_some(module.library);
    let found = modules().loaded(&LoadedCubin {
        context: module.context,
        ordinal: module.ordinal,
        id: module.id,
        cubin,
        is_called: module.is_called,
        library,
    });
    match found {
        Ok(None) => log::verbose(format_args!(
            "CUDA module {} loaded: not instrumented",
            module.id
        )),
        Ok(Some(executable)) if process::claim() => {
            let of_library = library.and_then(|library| modules().origin_of(library));
            let origin = of_library.or_else(|| file_of(module.code));
            late().push(Late::Loaded(executable, origin));
            note_counts();
            (entrances.register_early_exit)();
            service::start();
        }
        Ok(Some(_)) => {}
        Err(error) => {
            journal::note(Note::Lost);
            log::warn_once(diagnostic!(
                "a CUDA module cannot be read: {error}; its counts are lost";
                "compile it again"
            ));
        }
    }
}

/// Notes that the process has instrumented code, even if no drain follows. A filter may leave it out, so the drain notes
/// it then.
fn note_counts() {
    static IS_SURE: OnceLock<bool> = OnceLock::new();
    if *IS_SURE.get_or_init(|| !settings::has_filter()) {
        journal::note(Note::Counts);
    }
}

/// Catches up when a call that has loaded modules returns: the driver holds no lock any more.
fn call_returns() {
    // A drain that has made the call itself continues.
    if is_held_here() || late().is_empty() {
        return;
    }
    elect::pin();
    // Catches up first.
    with_device(|_, _| ());
}

/// Drains modules that are about to be unloaded.
fn going(executables: Vec<Executable>) {
    for executable in executables {
        loads::destroying(executable);
        modules().gone(executable);
    }
}

/// Forgets modules that are gone. They were drained before, unless they went in a way that rocov does not see coming.
fn gone(executables: Vec<Executable>) {
    for executable in executables {
        modules().gone(executable);
        late().push(Late::Gone(executable));
    }
}

/// Returns the file of the object that has the address.
fn file_of(code: *const c_void) -> Option<PathBuf> {
    if code.is_null() {
        return None;
    }
    let object = elf_objects::containing(code)?;
    Some(object.mapped_file())
}

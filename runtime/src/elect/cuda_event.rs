//! The events of the modules of the CUDA driver, which CUPTI reports.

use std::ffi::c_void;

/// An event of CUDA. All handles are the driver's. The layout is an interface between copies of librocov: a change
/// needs a new number of [`super::event::Event`].
#[repr(C, u32)]
#[derive(Clone, Copy, Debug)]
pub(crate) enum CudaEvent {
    /// A module is loaded into a context.
    Loaded(LoadedModule) = 0,
    /// The handle of the module with this number in `context` is known.
    HasHandle {
        /// The context.
        context: u64,
        /// CUPTI's number.
        id: u32,
        /// The module.
        handle: u64,
    } = 1,
    /// A library is loaded. `code` is in the memory of the object that has it, or null.
    LibraryLoaded {
        /// The library.
        library: u64,
        /// The address of its code in the host's memory.
        code: *const c_void,
    } = 2,
    /// A library is about to be unloaded.
    LibraryGoing(u64) = 3,
    /// The module with this handle is about to be unloaded.
    ModuleGoing(u64) = 4,
    /// A context may be about to be destroyed. Its modules go with it.
    ContextGoing = 5,
    /// A context goes. Its modules were drained before.
    ContextGone(u64) = 6,
    /// The module with this number goes.
    ModuleGone {
        /// The context.
        context: u64,
        /// CUPTI's number.
        id: u32,
    } = 7,
    /// A stream is about to capture a graph.
    CaptureBegins(u64) = 8,
    /// A stream captures no more.
    CaptureEnded(u64) = 9,
    /// The call that has loaded the module with this number returns.
    LoadReturns {
        /// The context.
        context: u64,
        /// CUPTI's number.
        id: u32,
    } = 10,
}

/// A module that is loaded into a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedModule {
    /// The context.
    pub(crate) context: u64,
    /// The number of its GPU.
    pub(crate) ordinal: i32,
    /// CUPTI's number of the module in the context.
    pub(crate) id: u32,
    /// The ELF, valid until the event is handled.
    pub(crate) cubin: *const u8,
    /// The size of the ELF in bytes.
    pub(crate) len: usize,
    /// True if a call of the program loads it, and [`CudaEvent::LoadReturns`] follows. False if the driver does by itself.
    pub(crate) is_called: bool,
    /// The library that it belongs to; 0 if that is not known.
    pub(crate) library: u64,
    /// The address of the code that the program has given to the call; null if that is not known.
    pub(crate) code: *const c_void,
}

//! The part of rocprofiler-sdk's interface that this tool uses, as the public headers declare it:
//! `registration.h`, `fwd.h`, `context.h` and `callback_tracing.h` of 2024 and 2025 (ROCm 6.2 to 7.0).

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// `rocprofiler_status_t`; 0 is success.
pub(crate) type Status = c_int;

/// `ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT` of `rocprofiler_callback_tracing_kind_t`.
pub(crate) const CODE_OBJECT: u32 = 10;
/// `ROCPROFILER_CODE_OBJECT_LOAD` of `rocprofiler_code_object_operation_t`: both the load and the
/// unload of a code object.
pub(crate) const LOAD: u32 = 1;

/// `rocprofiler_client_id_t`.
#[repr(C)]
pub struct ClientId {
    pub(crate) name: *const c_char,
    _handle: u32,
}

const _: () = assert!(size_of::<ClientId>() == 16);

/// `rocprofiler_client_finalize_t`.
pub(crate) type FinalizeClientFn = unsafe extern "C" fn(ClientId);

/// `rocprofiler_tool_configure_result_t`.
#[repr(C)]
pub struct ConfigureResult {
    /// The size of this structure in bytes.
    pub(crate) size: usize,
    pub(crate) initialize: unsafe extern "C" fn(Option<FinalizeClientFn>, *mut c_void) -> c_int,
    pub(crate) finalize: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) tool_data: *mut c_void,
}

const _: () = assert!(size_of::<ConfigureResult>() == 32);
const _: () = assert!(offset_of!(ConfigureResult, initialize) == 8);
const _: () = assert!(offset_of!(ConfigureResult, finalize) == 16);
const _: () = assert!(offset_of!(ConfigureResult, tool_data) == 24);

/// `rocprofiler_context_id_t`: a structure of one number, passed like a number.
pub(crate) type ContextId = u64;

pub(crate) type CreateContextFn = unsafe extern "C" fn(*mut ContextId) -> Status;
pub(crate) type StartContextFn = unsafe extern "C" fn(ContextId) -> Status;
/// `rocprofiler_callback_tracing_cb_t`: takes record, data of its user, data of ours.
pub(crate) type CallbackFn = unsafe extern "C" fn(Record, *mut c_void, *mut c_void);
/// Takes context, kind, operations and their number, callback and its data.
pub(crate) type ConfigureTracingFn =
    unsafe extern "C" fn(ContextId, u32, *const u32, usize, CallbackFn, *mut c_void) -> Status;

/// `rocprofiler_callback_tracing_record_t` up to its phase. There are two layouts: in the later one,
/// `correlation_id` has a third word, `ancestor`, and all fields after it are 8 bytes further.
#[repr(C)]
pub(crate) struct Record {
    _context: ContextId,
    _thread: u64,
    _correlation: [u64; 2],
    /// Kind, operation and phase, or the two halves of the ancestor before them.
    rest: [u32; 6],
}

const _: () = assert!(offset_of!(Record, rest) == 32);
const _: () = assert!(size_of::<Record>() == 56);

impl Record {
    /// Returns the phase of a code object; `None` for a record of another kind. The kind and the operation
    /// show the layout, because this tool asks for one kind only. An ancestor with their value would be
    /// the four billionth call of the process.
    pub(crate) fn phase(&self) -> Option<Phase> {
        let phase = match self.rest {
            [CODE_OBJECT, LOAD, phase, ..] => phase,
            [_, _, CODE_OBJECT, LOAD, phase, _] => phase,
            _ => return None,
        };
        match phase {
            1 => Some(Phase::Loaded),
            2 => Some(Phase::Unloading),
            _ => None,
        }
    }
}

/// `rocprofiler_callback_phase_t` of code objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `ROCPROFILER_CALLBACK_PHASE_LOAD`: the code object is loaded.
    Loaded,
    /// `ROCPROFILER_CALLBACK_PHASE_UNLOAD`: the code object is about to be unloaded.
    Unloading,
}

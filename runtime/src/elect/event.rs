//! Events, and their form between copies of librocov.
#![expect(unsafe_code, reason = "reads pointers that other copies have sent")]

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicU64;

use rocov::device::Executable;

use super::cuda_event::CudaEvent;
use crate::guest::log;
use crate::guest::status::RocovStatus;

/// A new queue. The layout is an interface between copies of librocov.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NewQueue {
    /// Handle of the agent that takes the queue's packets.
    pub(crate) agent: u64,
    /// Address of the `hsa_queue_t`.
    pub(crate) address: u64,
}

/// A range of the program, which becomes a label. The layout is an interface between copies of librocov.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NewRange {
    /// Its domain. Ranges of a thread nest in each domain by itself. 0 is that of `rocov_label_push`.
    pub(crate) domain: u64,
    /// The label, NUL terminated; null is not a label.
    pub(crate) label: *const c_char,
    /// The number of a range that any thread may end, which the drainer writes.
    pub(crate) number: AtomicU64,
}

/// The PTX that a cubin was made from. The layout is an interface between copies of librocov.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NewSource {
    /// The cubin.
    pub(crate) cubin: *const u8,
    /// The size of the cubin in bytes.
    pub(crate) cubin_len: usize,
    /// The PTX, text in UTF-8.
    pub(crate) ptx: *const u8,
    /// The size of the PTX in bytes.
    pub(crate) ptx_len: usize,
}

/// An event that a hook has seen, or a request of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    /// An executable was frozen.
    Frozen(Executable),
    /// An executable is about to be destroyed. [`RocovStatus::Loss`] forbids it.
    Destroying(Executable),
    /// HSA is about to be shut down, perhaps for good. [`RocovStatus::Loss`] forbids it.
    ShuttingDown,
    /// HSA was shut down.
    ShutDown,
    /// The process is about to end.
    Exiting,
    /// A queue was created.
    QueueCreated(&'a NewQueue),
    /// The queue at this address is about to be destroyed.
    QueueDestroying(u64),
    /// CUPTI has told of modules.
    Cuda(&'a CudaEvent),
    /// rocov has made a cubin of PTX, which is about to be loaded.
    CudaSource(&'a NewSource),
    /// `rocov_drain`.
    Drain,
    /// `rocov_reset`.
    Reset,
    /// `rocov_set_file`, with its argument.
    SetFile(*const c_char),
    /// `rocov_start`.
    Start,
    /// `rocov_stop`.
    Stop,
    /// `rocov_dump`, with its argument.
    Dump(*const c_char),
    /// `rocov_label_push`, with its argument.
    LabelPush(*const c_char),
    /// `rocov_label_pop`.
    LabelPop,
    /// A range opens within the last one of the calling thread.
    RangePush(&'a NewRange),
    /// The last range of the calling thread in this domain closes.
    RangePop(u64),
    /// A range opens that belongs to no thread.
    RangeStart(&'a NewRange),
    /// The range with this number closes.
    RangeEnd(u64),
    /// `rocov_code_loaded`.
    CodeLoaded,
    /// `rocov_code_unloading`.
    CodeUnloading,
    /// `rocov_kernel_stopped`, with its argument.
    KernelStopped(*const c_char),
}

impl Event<'_> {
    /// Returns the event as copies of other builds understand it.
    pub(super) fn encode(self) -> (c_int, u64) {
        match self {
            Event::Frozen(executable) => (0, executable.0),
            Event::Destroying(executable) => (1, executable.0),
            Event::ShuttingDown => (2, 0),
            Event::ShutDown => (3, 0),
            Event::Exiting => (4, 0),
            Event::Drain => (5, 0),
            Event::Reset => (6, 0),
            Event::SetFile(pattern) => (7, pattern as u64),
            // 8 was an event of earlier builds.
            Event::QueueCreated(queue) => (9, std::ptr::from_ref(queue) as u64),
            Event::QueueDestroying(queue) => (10, queue),
            Event::Start => (11, 0),
            Event::Stop => (12, 0),
            Event::Dump(label) => (13, label as u64),
            Event::LabelPush(label) => (14, label as u64),
            Event::LabelPop => (15, 0),
            Event::CodeLoaded => (16, 0),
            Event::CodeUnloading => (17, 0),
            Event::Cuda(event) => (18, std::ptr::from_ref(event) as u64),
            Event::RangePush(range) => (19, std::ptr::from_ref(range) as u64),
            Event::RangePop(domain) => (20, domain),
            Event::RangeStart(range) => (21, std::ptr::from_ref(range) as u64),
            Event::RangeEnd(number) => (22, number),
            Event::KernelStopped(reason) => (23, reason as u64),
            Event::CudaSource(source) => (24, std::ptr::from_ref(source) as u64),
        }
    }

    /// Returns whether this is a request of the program, and not an event that a hook has seen.
    pub(crate) fn is_request(self) -> bool {
        !matches!(
            self,
            Event::Frozen(_)
                | Event::Destroying(_)
                | Event::ShuttingDown
                | Event::ShutDown
                | Event::Exiting
                | Event::QueueCreated(_)
                | Event::QueueDestroying(_)
                | Event::Cuda(_)
                | Event::CudaSource(_)
        )
    }

    /// Returns whether the event matters before any code is loaded: it affects later loads.
    pub(super) fn affects_later_loads(self) -> bool {
        matches!(
            self,
            Event::Frozen(_)
                | Event::SetFile(_)
                | Event::QueueCreated(_)
                | Event::Start
                | Event::Stop
                | Event::LabelPush(_)
                | Event::LabelPop
                | Event::RangePush(_)
                | Event::RangePop(_)
                | Event::RangeStart(_)
                | Event::RangeEnd(_)
                | Event::Cuda(_)
                | Event::CudaSource(_)
        )
    }

    /// Returns the event with this number; `None` for a number of a later build.
    ///
    /// # Safety
    /// A copy of librocov has encoded both arguments, and waits for the answer.
    pub(crate) unsafe fn decode(number: c_int, argument: u64) -> Option<Self> {
        Some(match number {
            0 => Event::Frozen(Executable(argument)),
            1 => Event::Destroying(Executable(argument)),
            2 => Event::ShuttingDown,
            3 => Event::ShutDown,
            4 => Event::Exiting,
            5 => Event::Drain,
            6 => Event::Reset,
            7 => Event::SetFile(argument as *const c_char),
            // SAFETY: `encode` has taken this address, which is valid until the sender has its answer.
            9 => Event::QueueCreated(unsafe { &*(argument as *const NewQueue) }),
            10 => Event::QueueDestroying(argument),
            11 => Event::Start,
            12 => Event::Stop,
            13 => Event::Dump(argument as *const c_char),
            14 => Event::LabelPush(argument as *const c_char),
            15 => Event::LabelPop,
            16 => Event::CodeLoaded,
            17 => Event::CodeUnloading,
            // SAFETY: as for a queue.
            18 => Event::Cuda(unsafe { &*(argument as *const CudaEvent) }),
            // SAFETY: as for a queue.
            19 => Event::RangePush(unsafe { &*(argument as *const NewRange) }),
            20 => Event::RangePop(argument),
            // SAFETY: as for a queue.
            21 => Event::RangeStart(unsafe { &*(argument as *const NewRange) }),
            22 => Event::RangeEnd(argument),
            23 => Event::KernelStopped(argument as *const c_char),
            // SAFETY: as for a queue.
            24 => Event::CudaSource(unsafe { &*(argument as *const NewSource) }),
            _ => return None,
        })
    }
}

/// Calls `work` with the text at `argument`, or with `None` if that is null. If the text is not UTF-8,
/// prints a line that names `function`, a function of the C interface, and returns
/// [`RocovStatus::Invalid`].
///
/// # Safety
/// `argument` is null or NUL terminated.
pub(crate) unsafe fn with_text(
    function: &str,
    argument: *const c_char,
    work: impl FnOnce(Option<&str>) -> RocovStatus,
) -> RocovStatus {
    if argument.is_null() {
        return work(None);
    }
    // SAFETY: it is NUL terminated, as the caller promises.
    match unsafe { CStr::from_ptr(argument) }.to_str() {
        Ok(text) => work(Some(text)),
        Err(_) => {
            log::warn(format_args!(
                "{function}: the argument is not UTF-8: give another"
            ));
            RocovStatus::Invalid
        }
    }
}

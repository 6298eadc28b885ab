//! Events, and their form between copies of librocov.
#![expect(unsafe_code, reason = "reads pointers that other copies have sent")]

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicU64;

use rocov::device::Executable;
use rocov::support::diagnostic::diagnostic;

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

/// A code object that ROCr gets in place of the program's. The layout is an interface between copies of librocov.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NewExchange {
    /// Its address.
    pub(crate) start: u64,
    /// The URI of the program's, NUL terminated.
    pub(crate) uri: *const c_char,
}

/// The argument of an event, as copies of other builds understand it.
trait Argument {
    fn encode(self) -> u64;

    /// # Safety
    /// `argument` is from [`Argument::encode`] of a value of this type, whose sender waits for the answer.
    unsafe fn decode(argument: u64) -> Self;
}

impl Argument for u64 {
    fn encode(self) -> u64 {
        self
    }

    unsafe fn decode(argument: u64) -> Self {
        argument
    }
}

impl Argument for Executable {
    fn encode(self) -> u64 {
        self.0
    }

    unsafe fn decode(argument: u64) -> Self {
        Self(argument)
    }
}

impl Argument for *const c_char {
    fn encode(self) -> u64 {
        self as u64
    }

    unsafe fn decode(argument: u64) -> Self {
        argument as Self
    }
}

impl<T> Argument for &T {
    fn encode(self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    unsafe fn decode(argument: u64) -> Self {
        // SAFETY: `encode` has taken this address of a `T`, which is valid until the sender has its answer.
        unsafe { &*(argument as *const T) }
    }
}

/// Makes the events from a table. Each row has the number of the event between copies; whether a `hook` has seen it, or
/// it is a `request` of the program; and whether it matters `always`, because it affects later loads, or only once code
/// is `loaded`.
macro_rules! events {
    ($($(#[$doc:meta])* $number:literal $origin:ident $time:ident $name:ident $(($type:ty))?,)*) => {
        /// An event that a hook has seen, or a request of the program.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Event<'a> {
            $($(#[$doc])* $name $(($type))?,)*
        }

        impl<'a> Event<'a> {
            /// Returns the event as copies of other builds understand it.
            pub(super) fn encode(self) -> (c_int, u64) {
                match self {
                    $(events!(@pattern $name argument $($type)?) => {
                        ($number, events!(@encode argument $($type)?))
                    })*
                }
            }

            /// Returns whether this is a request of the program, and not an event that a hook has seen.
            pub(crate) fn is_request(self) -> bool {
                match self {
                    $(Event::$name { .. } => events!(@is_request $origin),)*
                }
            }

            /// Returns whether the event matters before any code is loaded: it affects later loads.
            pub(super) fn affects_later_loads(self) -> bool {
                match self {
                    $(Event::$name { .. } => events!(@affects_later_loads $time),)*
                }
            }

            /// Returns the event with this number; `None` for a number of a later build.
            ///
            /// # Safety
            /// A copy of librocov has encoded both arguments, and waits for the answer.
            pub(crate) unsafe fn decode(number: c_int, argument: u64) -> Option<Self> {
                Some(match number {
                    // SAFETY: the argument belongs to an event of this number, as the caller promises.
                    $($number => Event::$name $((unsafe { <$type>::decode(argument) }))?,)*
                    _ => return None,
                })
            }
        }
    };
    (@pattern $name:ident $argument:ident) => { Event::$name };
    (@pattern $name:ident $argument:ident $type:ty) => { Event::$name($argument) };
    (@encode $argument:ident) => { 0 };
    (@encode $argument:ident $type:ty) => { $argument.encode() };
    (@is_request hook) => { false };
    (@is_request request) => { true };
    (@affects_later_loads always) => { true };
    (@affects_later_loads loaded) => { false };
}

// 8 was an event of earlier builds.
events! {
    /// An executable was frozen.
    0 hook always Frozen(Executable),
    /// An executable is about to be destroyed. [`RocovStatus::Loss`] forbids it.
    1 hook loaded Destroying(Executable),
    /// HSA is about to be shut down, perhaps for good. [`RocovStatus::Loss`] forbids it.
    2 hook loaded ShuttingDown,
    /// HSA was shut down.
    3 hook loaded ShutDown,
    /// The process is about to end.
    4 hook loaded Exiting,
    /// A queue was created.
    9 hook always QueueCreated(&'a NewQueue),
    /// The queue at this address is about to be destroyed.
    10 hook loaded QueueDestroying(u64),
    /// CUPTI has reported modules.
    18 hook always Cuda(&'a CudaEvent),
    /// rocov has made a cubin of PTX, which is about to be loaded.
    24 hook always CudaSource(&'a NewSource),
    /// A reader is made of a code object that librocov hands to ROCr in place of the program's.
    25 hook always Exchanged(&'a NewExchange),
    /// Nothing that came from a reader of the code object at this address is loaded any more.
    26 hook loaded ExchangeEnded(u64),
    /// `rocov_drain`.
    5 request loaded Drain,
    /// `rocov_reset`.
    6 request loaded Reset,
    /// `rocov_set_file`, with its argument.
    7 request always SetFile(*const c_char),
    /// `rocov_start`.
    11 request always Start,
    /// `rocov_stop`.
    12 request always Stop,
    /// `rocov_dump`, with its argument.
    13 request loaded Dump(*const c_char),
    /// `rocov_label_push`, with its argument.
    14 request always LabelPush(*const c_char),
    /// `rocov_label_pop`.
    15 request always LabelPop,
    /// A range opens within the last one of the calling thread.
    19 request always RangePush(&'a NewRange),
    /// The last range of the calling thread in this domain closes.
    20 request always RangePop(u64),
    /// A range opens that belongs to no thread.
    21 request always RangeStart(&'a NewRange),
    /// The range with this number closes.
    22 request always RangeEnd(u64),
    /// `rocov_code_loaded`.
    16 request loaded CodeLoaded,
    /// `rocov_code_unloading`.
    17 request loaded CodeUnloading,
    /// `rocov_kernel_stopped`, with its argument.
    23 request loaded KernelStopped(*const c_char),
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
            log::warn(diagnostic!("{function}: the argument is not UTF-8"; "pass UTF-8"));
            RocovStatus::Invalid
        }
    }
}

//! Third station: the drainer's work, event by event.
//!
//! [`dispatch`] takes each event of all copies. [`state`] holds the loaded code, [`loads`] follows what
//! comes and goes, [`drain`] writes counts, and [`report`] prints the outcome. [`labels`] and [`dumps`]
//! serve the program's requests, [`service`] those from outside, in a thread of its own. [`kernel_wait`]
//! waits for kernels before a drain.
//! [`device_files`] records the files with device code, of which some was perhaps never launched.

pub(crate) mod cuda;
mod device_files;
pub(crate) mod drain;
mod dumps;
mod entrances;
pub(crate) mod fat_binaries;
mod host_builds;
pub(crate) mod kernel_wait;
mod labels;
mod loads;
pub(crate) mod modules;
mod report;
pub(crate) mod service;
mod state;

pub(crate) use entrances::Entrances;

use std::ffi::CStr;

use self::report::Moment;
use self::state::exchanged;
use crate::elect;
use crate::elect::event::{Event, with_text};
use crate::guest::process;
use crate::guest::status::RocovStatus;

/// Serves an event.
pub(crate) fn dispatch(event: Event<'_>, entrances: &Entrances) -> RocovStatus {
    if event.is_request() {
        if !process::may_use_hsa() {
            // Another thread of the parent may have held any lock at the fork.
            return RocovStatus::Nothing;
        }
        if process::claim_running() {
            elect::pin();
            service::start();
        }
    }
    handle(event, entrances)
}

/// Handles each event in its own way.
#[expect(unsafe_code, reason = "reads the arguments of the C interface")]
fn handle(event: Event<'_>, entrances: &Entrances) -> RocovStatus {
    match event {
        Event::Frozen(executable) => {
            elect::pin();
            loads::frozen(executable, entrances);
            service::start();
            RocovStatus::Ok
        }
        Event::Destroying(executable) => loads::destroying(executable),
        Event::ShuttingDown => {
            service::pause();
            loads::shutting_down()
        }
        Event::ShutDown => {
            loads::shut_down();
            service::resume();
            RocovStatus::Ok
        }
        Event::Exiting => {
            let status = drain::leaving();
            service::leave();
            status
        }
        Event::QueueCreated(queue) => {
            elect::pin();
            kernel_wait::created(queue);
            RocovStatus::Ok
        }
        Event::QueueDestroying(queue) => {
            kernel_wait::destroying(queue);
            RocovStatus::Ok
        }
        Event::Cuda(event) => {
            cuda::seen(event, entrances);
            RocovStatus::Ok
        }
        Event::CudaSource(source) => {
            cuda::note_source(source);
            RocovStatus::Ok
        }
        Event::Exchanged(exchange) => {
            elect::pin();
            // SAFETY: the sender has a NUL terminated text there, and waits for the answer.
            let uri = unsafe { CStr::from_ptr(exchange.uri) };
            exchanged().begins(exchange.start, &uri.to_string_lossy());
            RocovStatus::Ok
        }
        Event::ExchangeEnded(start) => {
            exchanged().ends(start);
            RocovStatus::Ok
        }
        Event::Drain => drain::draining(Moment::Asked),
        Event::Reset => drain::reset(),
        Event::SetFile(pattern) => {
            // SAFETY: the argument of `rocov_set_file` is null or NUL terminated.
            unsafe { with_text("rocov_set_file", pattern, drain::set_file) }
        }
        Event::Start => labels::start(),
        Event::Stop => labels::stop(),
        Event::Dump(label) => {
            // SAFETY: the argument of `rocov_dump` is null or NUL terminated.
            unsafe { with_text("rocov_dump", label, dumps::dump_of_program) }
        }
        Event::LabelPush(label) => {
            // SAFETY: the argument of `rocov_label_push` is null or NUL terminated.
            unsafe { with_text("rocov_label_push", label, labels::push) }
        }
        Event::LabelPop => labels::pop(),
        Event::RangePush(range) => {
            // SAFETY: the label of a range is null or NUL terminated.
            unsafe {
                with_text(labels::RANGE, range.label, |label| {
                    labels::push_range(range, label)
                })
            }
        }
        Event::RangePop(domain) => labels::pop_range(domain),
        Event::RangeStart(range) => {
            // SAFETY: as above.
            unsafe {
                with_text(labels::RANGE, range.label, |label| {
                    labels::start_range(range, label)
                })
            }
        }
        Event::RangeEnd(number) => labels::end_range(number),
        // The hooks have reported the load or unload already.
        Event::CodeLoaded | Event::CodeUnloading if (entrances.see_calls)() => RocovStatus::Nothing,
        Event::CodeLoaded => loads::look(entrances),
        Event::CodeUnloading => drain::ending(),
        Event::KernelStopped(reason) => {
            // SAFETY: the argument of `rocov_kernel_stopped` is null or NUL terminated.
            unsafe { with_text("rocov_kernel_stopped", reason, loads::kernel_stopped) }
        }
    }
}

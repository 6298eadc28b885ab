//! Creates events and waits for them.

use crate::abi::kfd::{CreateEvent, EventData, EventId, WaitEvents, event_type, wait_result};
use crate::event::Wait;
use crate::model::Model;
use crate::sys::Errno;
use crate::user;

/// The mmap offset of the driver's own page of event slots (`KFD_MMAP_TYPE_EVENTS`).
///
/// It must not be zero, although nobody maps it here. The thunk fills in an event's mailbox address
/// only if it got an offset. A signal without a mailbox gets no notification, and every blocking
/// wait hangs.
const EVENT_PAGE_OFFSET: u64 = 2 << 62;

pub(super) fn create(model: &Model, arguments: &mut CreateEvent) -> Result<(), Errno> {
    let id = model
        .events
        .create(arguments.event_type, arguments.auto_reset != 0)?;
    arguments.event_id = id;
    arguments.slot_index = id;
    arguments.trigger_data = id;
    if arguments.event_type == event_type::SIGNAL {
        arguments.page_offset = EVENT_PAGE_OFFSET;
    }
    Ok(())
}

pub(super) fn destroy(model: &Model, arguments: &mut EventId) -> Result<(), Errno> {
    model.events.destroy(arguments.event_id)
}

pub(super) fn set(model: &Model, arguments: &mut EventId) -> Result<(), Errno> {
    model.events.set(arguments.event_id)
}

pub(super) fn reset(model: &Model, arguments: &mut EventId) -> Result<(), Errno> {
    model.events.reset(arguments.event_id)
}

pub(super) fn wait(model: &Model, arguments: &mut WaitEvents) -> Result<(), Errno> {
    let mut data: Vec<EventData> = user::read_array(arguments.events, arguments.count)?;
    let all = arguments.wait_for_all != 0;
    arguments.result = match model.events.wait(&mut data, all, arguments.timeout_ms)? {
        Wait::Complete => {
            user::write_array(arguments.events, &data)?;
            wait_result::COMPLETE
        }
        Wait::TimedOut => wait_result::TIMEOUT,
    };
    Ok(())
}

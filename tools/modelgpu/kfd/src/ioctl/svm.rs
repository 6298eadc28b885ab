//! Shared virtual memory: attributes of the program's own memory.

use crate::abi::kfd::{Svm, SvmAttribute, svm_operation};
use crate::model::Model;
use crate::sys::{Errno, PAGE};

/// Sets or asks for attributes of a range of whole pages.
pub(super) fn handle(
    model: &Model,
    arguments: &mut Svm,
    attributes: &mut [SvmAttribute],
) -> Result<(), Errno> {
    let (start, size) = (arguments.start, arguments.size);
    if start == 0 || size == 0 || !start.is_multiple_of(PAGE) || !size.is_multiple_of(PAGE) {
        return Err(Errno(libc::EINVAL));
    }
    // Only the program's own memory has attributes.
    if model.memory.has_of_driver(start, size) {
        return Err(Errno(libc::EFAULT));
    }
    let (memory, gpus) = (&model.memory, model.config.gpus.len());
    match arguments.operation {
        svm_operation::SET => {
            memory.svm().set(start, size, attributes, gpus)?;
            memory.changed();
            model.note(
                2,
                format_args!("svm {start:#x}, {size:#x} bytes: {attributes:?}"),
            );
            Ok(())
        }
        svm_operation::GET => memory.svm().get(start, size, attributes, gpus),
        _ => Err(Errno(libc::EINVAL)),
    }
}

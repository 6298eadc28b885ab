//! `ioctl`: requests on device nodes go to the model, all others to the kernel.

use std::ffi::{c_int, c_ulong, c_void};

use super::target::{guard, to_c};
use crate::abi::{drm as drm_abi, kfd as kfd_abi};
use crate::model::Model;
use crate::paths::DeviceNode;
use crate::sys::{errno, set_errno};
use crate::user::Argument;
use crate::{drm, ioctl as kfd};

/// An ioctl request's parts (`asm-generic/ioctl.h`).
struct Request {
    number: u32,
    kind: u32,
    size: usize,
}

impl Request {
    fn new(request: c_ulong) -> Self {
        let request = request as u32;
        Self {
            number: request & 0xff,
            kind: request >> 8 & 0xff,
            size: (request >> 16 & 0x3fff) as usize,
        }
    }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let parts = Request::new(request);
    let of_a_gpu = matches!(parts.kind, kfd_abi::TYPE | drm_abi::TYPE);
    let model = Model::existing().filter(|_| of_a_gpu);
    let device = model.and_then(|model| Some((model, model.device_of(fd)?)));
    let Some((model, device)) = device else {
        // SAFETY: the caller's promise.
        return unsafe { libc::syscall(libc::SYS_ioctl, fd, request, argument) as c_int };
    };
    let saved = errno();
    // SAFETY: the request says that its argument has this size.
    let argument = unsafe { Argument::new(argument.cast(), parts.size) };
    let result = guard(|| match (device, parts.kind) {
        (DeviceNode::Kfd, kfd_abi::TYPE) => kfd::handle(model, parts.number, argument),
        (DeviceNode::Render(gpu), drm_abi::TYPE) => drm::ioctl(model, gpu, parts.number, argument),
        _ => Err(crate::sys::Errno(libc::ENOTTY)),
    });
    set_errno(saved);
    to_c(result.map(|()| 0))
}

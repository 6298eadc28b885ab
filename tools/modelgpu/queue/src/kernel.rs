//! Hands a dispatch to the instruction interpreter.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use modelgpu_amdgcn::code_object::KernelIdentity;
use modelgpu_amdgcn::{
    Code, DispatchContext, DispatchError, DispatchPacket, Hazard, LdsMistake, Statistics,
};

use crate::fault::{Fault, QueueError};
use crate::gpu::{Gpu, Launch};
use crate::thread::DispatchThreads;

/// The windows of LDS and private memory in the flat address space.
#[derive(Clone, Copy, Debug)]
pub struct Apertures {
    /// First address of the LDS window.
    pub shared: u64,
    /// First address of the private memory window.
    pub private: u64,
}

/// The kernels with a printed warning. Each kernel gets one warning, however often it runs.
#[derive(Debug, Default)]
pub struct Warned(Mutex<BTreeSet<String>>);

impl Warned {
    fn is_first(&self, kernel: &str) -> bool {
        let mut kernels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.insert(kernel.to_owned())
    }
}

/// Runs a kernel on the calling thread and on further ones of `threads`, on the target of `code`.
///
/// # Errors
/// Fails if the kernel cannot start, or fails while it runs.
pub fn run(
    gpu: &dyn Gpu,
    code: &mut Code,
    apertures: Apertures,
    warned: &Warned,
    threads: DispatchThreads,
    launch: &Launch<'_>,
) -> Result<Statistics, Fault> {
    let packet = DispatchPacket::parse(launch.packet);
    let mistakes: &(dyn Fn(LdsMistake) + Sync) = &|mistake| {
        let kind = if mistake.other.is_some() {
            "race"
        } else {
            "read"
        };
        if warned.is_first(&format!("{kind} {}", mistake.site.kernel)) {
            gpu.mistake(&mistake.to_string());
        }
    };
    let hazards: &(dyn Fn(Hazard) + Sync) = &|hazard| {
        if warned.is_first(&format!("{} {}", hazard.rule, hazard.site.kernel)) {
            gpu.mistake(&hazard.to_string());
        }
    };
    let stuck = Mutex::new(None);
    let context = DispatchContext {
        state: launch.state,
        packet_address: launch.packet_address,
        queue_address: launch.queue_address,
        shared_aperture: apertures.shared,
        private_aperture: apertures.private,
        dispatch_id: launch.dispatch_id,
        beyond_lds: &|warning| {
            if warned.is_first(&warning.site.kernel) {
                gpu.mistake(&warning.to_string());
            }
        },
        mistakes: gpu.watches_lds().then_some(mistakes),
        hazards: gpu.watches_hazards().then_some(hazards),
        stuck: &|now| {
            let text = now.to_string();
            gpu.stuck(&text);
            *stuck.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        },
        interrupt: &|data| gpu.interrupt(data as u8),
        clock: &|| gpu.clock(),
        files: gpu.files(),
        trace: gpu.trace(),
        workers: &threads,
        cancelled: launch.cancelled,
    };
    let done = modelgpu_amdgcn::dispatch(code, gpu.memory(), &packet, &context).map_err(fault)?;
    if let Some(text) = stuck.into_inner().unwrap_or_else(PoisonError::into_inner) {
        gpu.goes_on(&text);
    }
    Ok(done)
}

/// Displays the symbol of a kernel, and looks it up only for that.
pub struct Symbol<'a> {
    /// The GPU that it is loaded on.
    pub gpu: &'a dyn Gpu,
    /// Address of its descriptor.
    pub object: u64,
}

impl<'a> Symbol<'a> {
    /// The symbol of a launched kernel.
    pub fn new(gpu: &'a dyn Gpu, launch: &Launch<'_>) -> Self {
        Self {
            gpu,
            object: DispatchPacket::parse(launch.packet).kernel_object,
        }
    }
}

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&KernelIdentity::find(self.gpu.memory(), self.object).kernel)
    }
}

fn fault(error: DispatchError) -> Fault {
    let message = error.to_string();
    if let Some(address) = error.fault_address() {
        return Fault::KernelMemory { message, address };
    }
    let error = match error {
        DispatchError::Cancelled => return Fault::Cancelled,
        DispatchError::Launch { .. } => QueueError::InvalidCode,
        DispatchError::Fault {
            fault: modelgpu_amdgcn::Fault::Trap { .. },
            ..
        } => QueueError::Abort,
        _ => QueueError::IllegalInstruction,
    };
    Fault::Kernel { message, error }
}

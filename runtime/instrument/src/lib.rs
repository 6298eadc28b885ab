//! Gives GPU code counters while it is loaded.
//!
//! librocov opens this library if `ROCOV_INSTRUMENT` asks for it. It calls [`rocov_instrument_4`] for each call of the
//! program that loads CUDA code, and [`rocov_instrument_amdgpu_1`] for each code object of an AMD GPU. It is a library of its
//! own, because it parses and changes PTX and machine code, which programs with counters of clang do not need.
//!
//! `amdgpu` instruments code objects. For CUDA code, `memory` reads the code that the program loads, `choice` takes the PTX that fits the GPU best, `driver` has the
//! CUDA driver compile it, `cache` keeps the result, `fat_binary` packs results for several architectures, and `exchange`
//! does all of this in a row. `compilers` keeps the PTX of cubins that the program compiles itself. `loss` has the reasons
//! why code runs uncounted, `framework` finds who made it, and `texts` keeps the texts for librocov. `threads` help with large
//! code objects. `toolkit` is for JAX.

mod amdgpu;
mod cache;
mod choice;
mod compilers;
mod driver;
mod exchange;
mod fat_binary;
mod framework;
mod loss;
mod memory;
mod texts;
mod threads;
mod toolkit;

use std::ffi::c_void;
use std::panic::catch_unwind;

use rocov::device::cuda::exchange::{ExchangeAnswer, ExchangeRequest};
use rocov::device::hsa::exchange::{CodeAnswer, CodeRequest};
use rocov::settings::Counting;

use crate::exchange::Purpose;

/// Answers a request of librocov: [`rocov::device::cuda::exchange::FUNCTION`].
///
/// # Safety
/// `request` describes code that a program loads, and `answer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_instrument_4(
    request: *const ExchangeRequest,
    answer: *mut ExchangeAnswer,
) {
    // SAFETY: the caller has filled the request.
    let Some(request) = (unsafe { request.as_ref() }) else {
        return;
    };
    let found = catch_unwind(|| {
        // SAFETY: the request is for code that a program loads.
        let (code, options) = unsafe { (memory::code(request), memory::options(request)) };
        let purpose = match (request.is_to_be_linked, request.is_for_all) {
            (true, _) => Purpose::ToBeLinked,
            (false, true) => Purpose::ForAll,
            (false, false) => Purpose::ForContext,
        };
        exchange::answer(code, &options, purpose, counting(request.is_for_reached))
    });
    if let Some(answer) = std::ptr::NonNull::new(answer) {
        // SAFETY: the caller has room for an answer there.
        unsafe { answer.write(found.unwrap_or_else(|_| exchange::internal_error())) };
    }
}

/// Answers a request of librocov: [`rocov::device::hsa::exchange::FUNCTION`].
///
/// # Safety
/// `request` describes a code object that a program has made a reader of, and `answer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_instrument_amdgpu_1(
    request: *const CodeRequest,
    answer: *mut CodeAnswer,
) {
    // SAFETY: the caller has filled the request.
    let Some(request) = (unsafe { request.as_ref() }) else {
        return;
    };
    let found = catch_unwind(|| {
        // SAFETY: ROCr reads the code object, of this size, too.
        let code =
            unsafe { std::slice::from_raw_parts(request.code.cast::<u8>(), request.code_len) };
        amdgpu::answer(code, counting(request.is_for_reached))
    });
    if let Some(answer) = std::ptr::NonNull::new(answer) {
        // SAFETY: the caller has room for an answer there.
        unsafe { answer.write(found.unwrap_or_else(|_| amdgpu::internal_error())) };
    }
}

/// Takes a code object back: [`rocov::device::hsa::exchange::RELEASE`].
///
/// # Safety
/// [`rocov_instrument_amdgpu_1`] has given the owner, and nobody reads its code object any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_instrument_release_1(owner: *const c_void) {
    // SAFETY: as the caller promises.
    unsafe { amdgpu::release(owner) };
}

fn counting(is_for_reached: bool) -> Counting {
    match is_for_reached {
        true => Counting::Reached,
        false => Counting::Exact,
    }
}

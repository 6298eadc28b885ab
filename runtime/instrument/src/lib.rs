//! Gives CUDA code counters while it is loaded.
//!
//! librocov opens this library if `ROCOV_INSTRUMENT` asks for it, and calls [`rocov_instrument_3`] for each call of the
//! program that loads code. It is a library of its own, because it parses and changes PTX, which programs with counters of
//! clang do not need.
//!
//! `memory` reads the code that the program loads, `choice` takes the PTX that fits the GPU best, `driver` has the
//! CUDA driver compile it, `cache` keeps the result, `fat_binary` packs results for several architectures, and `exchange`
//! does all of this in a row.

mod cache;
mod choice;
mod driver;
mod exchange;
mod fat_binary;
mod loss;
mod memory;

use std::panic::catch_unwind;

use rocov::device::cuda::exchange::{ExchangeAnswer, ExchangeRequest};
use rocov::settings::Counting;

use crate::exchange::Purpose;

/// Answers a request of librocov: [`rocov::device::cuda::exchange::FUNCTION`].
///
/// # Safety
/// `request` describes code that a program loads, and `answer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocov_instrument_3(
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
        let counting = match request.is_for_reached {
            true => Counting::Reached,
            false => Counting::Exact,
        };
        exchange::answer(code, &options, purpose, counting)
    });
    if let Some(answer) = std::ptr::NonNull::new(answer) {
        // SAFETY: the caller has room for an answer there.
        unsafe { answer.write(found.unwrap_or_else(|_| exchange::internal_error())) };
    }
}

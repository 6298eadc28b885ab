//! The functions that hand the process over to another program, and `chroot`, after which the paths of files lead
//! elsewhere. Everything must be written before.
//!
//! `execl` and its kin take any number of arguments, and Rust cannot define such functions. So each
//! function here is a few instructions that drain and then jump to the C library's function, with all
//! registers and the stack as they were.
#![expect(unsafe_code, reason = "defines and finds functions of the C library")]

use std::ffi::{CStr, c_int, c_void};

use super::{immediate_exit, next_symbol};
use crate::guest::process;

/// Defines C functions that drain, and then run the functions of their name behind them.
macro_rules! drain_before {
    ($($name:ident)*) => {$(
        const _: () = {
            extern "C" fn next() -> *const c_void {
                const NAME: &str = concat!(stringify!($name), "\0");
                drain_and_find(CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default())
            }

            /// # Safety
            /// As for the C library's function of this name.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                // The arguments are in six registers, rax (the number of vector registers, for
                // variable arguments) and the stack. The seven pushes and the frame leave the stack one
                // word short of its alignment for the call.
                std::arch::naked_asm!(
                    "push rbp",
                    "mov rbp, rsp",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    "sub rsp, 8",
                    "call {next}",
                    "mov r11, rax",
                    "add rsp, 8",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rbp",
                    "jmp r11",
                    next = sym next,
                )
            }
        };
    )*};
}

drain_before! { chroot execl execle execlp execv execve execvp execvpe fexecve }

/// Drains, and finds the C library's function. If that function fails, the program continues, and a later
/// drain adds to this one: nothing is counted twice.
///
/// The next program has the same process id, but another word in the names of its files.
fn drain_and_find(name: &CStr) -> *const c_void {
    if name == c"chroot" {
        process::note_root();
    }
    immediate_exit::before_leaving();
    // SAFETY: any function is an address.
    unsafe { next_symbol::next(name) }.unwrap_or(missing as *const c_void)
}

/// Fails, for a C library without the function.
extern "C" fn missing() -> c_int {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

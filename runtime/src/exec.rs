//! Programs that hand their process over to another one: by then, everything must be written.
//!
//! `execl` and its kin take as many arguments as the caller likes, which Rust cannot define. So
//! each function here is a few instructions that drain, and go on to the C library's function with
//! all registers and the stack as they were.

use std::ffi::{CStr, c_int, c_void};

use crate::election::Event;
use crate::hooks;

/// Defines C functions that drain before the functions of the same name behind them run.
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
                // The arguments: six registers, rax (the number of vector registers among them,
                // where there may be more than are declared), and the stack. Pushing seven and a
                // frame aligns the stack for the call but for one more word.
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

drain_before! { execl execle execlp execv execve execvp execvpe fexecve }

/// Drains, and finds the C library's function. If that fails and returns to the program, what has
/// been drained is drained again later: nothing is counted twice.
///
/// The next program has the same process id, so files of the same names, and cannot tell files of
/// this one from those that an earlier process of the same number has left: times of files are too
/// coarse, and of other machines' clocks. So it is this one's files that make way, for names that
/// nobody takes.
fn drain_and_find(name: &CStr) -> *const c_void {
    // Two events, of which copies of other builds know the first at least.
    hooks::before_leaving(&[Event::Exiting, Event::HandingOver]);
    // SAFETY: any function is an address.
    unsafe { hooks::next(name) }.unwrap_or(missing as *const c_void)
}

/// For a C library without the function.
extern "C" fn missing() -> c_int {
    // SAFETY: the pointer is valid for the life of the thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

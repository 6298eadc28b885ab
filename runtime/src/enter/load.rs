//! The constructor of librocov.

use super::{exit, gtest, tool_table};
use crate::elect::interposer::Interposer;
use crate::guest::process;
use crate::serve::{kernel_wait, service};

/// Registers the late exit drain and the fork handlers, and notes whether HSA runs already and whether our
/// hooks will see its calls. Does nothing on a GPU and starts no thread, because the process may never use
/// a GPU.
///
/// If the program is linked with ROCr ahead of this library, its calls of HSA do not pass our hooks.
/// ROCr 5.2 must then learn of us before it starts, by a variable of the environment. Later versions look
/// for [`tool_table::HSA_AMD_TOOL_PRIORITY`].
#[ctor::ctor(unsafe)]
pub(super) fn at_load() {
    gtest::at_load();
    exit::register_late();
    process::watch_forks(service::forked);
    let interposer = Interposer::now();
    if !process::came_in(interposer != Interposer::Unknown) {
        kernel_wait::note_all_seen();
    }
    tool_table::announce(interposer);
}

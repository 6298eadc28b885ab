//! Runs the user's program as a child process, forwards signals to it, and returns its exit status.
//!
//! rocov stays in the child's process group, so that the terminal's job control works as it does without
//! rocov. That decides which signals rocov forwards:
//!
//! - The terminal's signals (Ctrl-C, Ctrl-\, a hang-up) are not forwarded. They come from the kernel and
//!   reach every process of the group. Forwarding would deliver them twice, and many programs take a second
//!   Ctrl-C for "give up cleaning up".
//! - A signal that another process sends to rocov with kill(2) is forwarded. If that process sends it to the
//!   whole group, the child gets it twice: rocov cannot distinguish the two cases.
//! - A signal that the child sends is not sent back to it.
//! - SIGTSTP, SIGTTIN and SIGTTOU keep their default action: Ctrl-Z stops both.
//!
//! rocov blocks these signals and takes them one by one with sigwaitinfo(2). So nothing here runs in a signal
//! handler, and no signal is lost between fork and wait.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// Signals that rocov passes on. Those missing stop or end a process for a reason of its own
/// (SIGSEGV, SIGPIPE), cannot be caught, or belong to job control.
const FORWARDED: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCONT,
    libc::SIGWINCH,
];

/// Starts `command`, and forwards signals to it until it ends. Returns its process id and its status.
///
/// # Errors
///
/// Fails if the command cannot be started, or if rocov cannot block signals, wait for the command, or put
/// the signals back. If the program is not there or may not be run, the error has that kind.
pub(crate) fn run(command: &mut Command) -> io::Result<(u32, ExitStatus)> {
    let inherited = Inherited::take_over()?;
    // SAFETY: the closure runs between fork and exec and makes async-signal-safe system calls only;
    // it touches memory of its own and allocates nothing.
    unsafe { command.pre_exec(move || inherited.restore()) };
    let child = command.spawn();
    let status = child.and_then(|mut child| Ok((child.id(), wait(&mut child)?)));
    inherited.restore()?;
    status
}

/// Forwards signals to `child` until it ends.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let set = waited_for();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: both pointers are to live objects of the right types.
        let signal = unsafe { libc::sigwaitinfo(&set, info.as_mut_ptr()) };
        if signal < 0 {
            let error = io::Error::last_os_error();
            // Stopping and continuing this process interrupts the call too.
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        // SAFETY: sigwaitinfo succeeded, so it filled the structure in.
        let info = unsafe { info.assume_init() };
        // SAFETY: si_pid is valid for signals sent by a process, the only ones it is used for.
        let sender = unsafe { info.si_pid() };
        let child_pid = child.id().cast_signed();
        if signal != libc::SIGCHLD && sent_by_a_process(&info) && sender != child_pid {
            // SAFETY: plain system call. The child has not been waited for, so that its process id
            // still is its own; should it have ended meanwhile, the call has no effect.
            unsafe { libc::kill(child_pid, signal) };
        }
    }
}

/// Blocks the signals that [`run`] takes, for a thread that would otherwise end the command by them.
pub(crate) fn leave_signals_to_others() {
    // SAFETY: the pointer is to a live set; a null pointer asks for no old value.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &waited_for(), std::ptr::null_mut()) };
}

/// Returns whether a process sent the signal, rather than the kernel on behalf of the terminal.
fn sent_by_a_process(info: &libc::siginfo_t) -> bool {
    matches!(
        info.si_code,
        libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE
    )
}

/// The signal mask and the disposition of SIGCHLD that rocov was started with, which the child
/// gets too.
#[derive(Clone, Copy)]
struct Inherited {
    mask: libc::sigset_t,
    child_disposition: libc::sighandler_t,
}

impl Inherited {
    /// Blocks the signals that [`wait`] takes, and makes sure that ended children can be waited
    /// for: a parent may have left SIGCHLD ignored, which makes the kernel reap them by itself.
    fn take_over() -> io::Result<Self> {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: both pointers are to live objects of the right type.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &waited_for(), mask.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: the default action is no handler of ours.
        let child_disposition = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        if child_disposition == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: pthread_sigmask succeeded, so it filled the set in.
            mask: unsafe { mask.assume_init() },
            child_disposition,
        })
    }

    /// Puts both back. Async-signal-safe.
    fn restore(&self) -> io::Result<()> {
        // SAFETY: the disposition is the one that was in force at the start of this program, which
        // can only be "default" or "ignore", as handlers do not survive exec.
        if unsafe { libc::signal(libc::SIGCHLD, self.child_disposition) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the pointer is to a live set; a null pointer asks for no old value.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut()) };
        match result {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// [`FORWARDED`] and SIGCHLD, which says that the child has ended.
fn waited_for() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set that the other calls add to, and the signal numbers
    // are valid, so none of them can fail.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in FORWARDED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        set.assume_init()
    }
}

/// The exit status that a shell would give for `status`.
pub(crate) fn exit_status(status: ExitStatus, signal_base: u8) -> u8 {
    match (status.code(), status.signal()) {
        // Exit codes have 8 bits and signal numbers 7: neither conversion can fail.
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => {
            u8::try_from(signal).map_or(u8::MAX, |n| signal_base.saturating_add(n))
        }
        (None, None) => u8::MAX,
    }
}

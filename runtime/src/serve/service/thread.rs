//! The thread, which serves one request after the other.
#![expect(unsafe_code, reason = "starts a thread and polls")]

use std::ffi::{c_int, c_void};
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rocov::control::{DumpRequest, Reply, Request};
use rocov::drain::Scope;
use rocov::store::LabelError;
use rocov::support::diagnostic::diagnostic;
use rocov::support::threads;

use super::connection::Connection;
use super::owned_fd::{self, Owner};
use super::settings::Settings;
use super::{hsa_gate, signals, socket, wake};
use crate::guest::journal::{self, Note};
use crate::guest::status::RocovStatus;
use crate::guest::{boundary, log, stack};
use crate::serve::drain;
use crate::serve::dumps::{self, Dumped};
use crate::serve::state::{self, Status};

/// The answer if nothing can be drained any more.
const ENDING: &str = "the process is ending";

/// The size of the stack, which suffices for a drain. Pages that are never used take no memory.
const STACK: usize = 1 << 20;

/// Starts the thread. Returns false if that fails.
pub(super) fn start(settings: Settings) -> bool {
    let service = Box::into_raw(Box::new(Service {
        listener: settings
            .directory
            .as_deref()
            .and_then(socket::listen)
            .and_then(Owner::new),
        connection: None,
        window: None,
        every: settings.every,
        due: settings.every.map(|every| Instant::now() + every),
        standard_error: owned_fd::file(libc::STDERR_FILENO),
    }));
    // SAFETY: the service belongs to the new thread only.
    match unsafe { threads::start(STACK, run, service.cast()) } {
        Ok(thread) => {
            // SAFETY: nothing joins it.
            unsafe { libc::pthread_detach(thread) };
            true
        }
        Err(error) => {
            // SAFETY: there is no thread to own it.
            drop(unsafe { Box::from_raw(service) });
            socket::gone();
            wake::close();
            log::warn(diagnostic!(
                "cannot start a thread: {}; rocov does not take snapshots or answer requests",
                std::io::Error::from_raw_os_error(error);
                "raise the limit on threads (ulimit -u)"
            ));
            false
        }
    }
}

extern "C" fn run(service: *mut c_void) -> *mut c_void {
    // SAFETY: `start` has made the service for this thread.
    let mut service = unsafe { Box::from_raw(service.cast::<Service>()) };
    // For another thread the C library would open a file, without close-on-exec.
    // SAFETY: the name is NUL terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"rocov".as_ptr()) };
    stack::this_is_our_thread();
    while service.step() {}
    wake::forget();
    service.give_up();
    std::ptr::null_mut()
}

struct Service {
    listener: Option<Owner<UnixListener>>,
    /// The present client. Others wait.
    connection: Option<Connection>,
    /// A dump that is open now.
    window: Option<Window>,
    /// The time between snapshots.
    every: Option<Duration>,
    /// The time of the next snapshot.
    due: Option<Instant>,
    /// The file of standard error at the start.
    standard_error: Option<(u64, u64)>,
}

/// A dump of the counts of some time.
struct Window {
    label: String,
    reset: bool,
    /// The client that waits for it.
    connection: Connection,
    until: Instant,
}

impl Service {
    /// Waits for the next event, and serves it. Returns false if the program has closed descriptors of
    /// ours.
    fn step(&mut self) -> bool {
        let request_for = |descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let asking = match (&self.connection, &self.listener) {
            (Some(connection), _) => connection.descriptor(),
            (None, Some(listener)) => listener.number(),
            (None, None) => -1,
        };
        let Some(event) = wake::event() else {
            return false;
        };
        let mut descriptors = [event, asking].map(request_for);
        // SAFETY: two requests, which outlive the call.
        unsafe { libc::poll(descriptors.as_mut_ptr(), 2, self.timeout()) };
        // The events may be those of other files by now.
        if !self.are_ours() {
            return false;
        }
        wake::clear();
        boundary::guest("a request", || self.serve());
        true
    }

    /// Returns whether the program has left the descriptors alone. Closing the pipe ends the wait.
    fn are_ours(&self) -> bool {
        let of_window = self.window.as_ref().map(|window| &window.connection);
        let mut connections = self.connection.iter().chain(of_window);
        wake::event().is_some()
            && self.listener.as_ref().is_none_or(Owner::is_ours)
            && connections.all(Connection::is_ours)
    }

    /// Ends the service after the program has closed descriptors of ours.
    fn give_up(self) {
        socket::gone();
        // The program may be reusing the number just now, so the listener stays open.
        std::mem::forget(self.listener);
        // Standard error may be another file, too.
        if owned_fd::file(libc::STDERR_FILENO) == self.standard_error {
            log::warn(diagnostic!(
                "the program has closed rocov's file descriptors: rocov no longer takes snapshots or answers requests";
                "change it to close only descriptors that it has opened"
            ));
        }
    }

    /// Returns the milliseconds until the next deadline; -1 if there is none.
    fn timeout(&self) -> c_int {
        let deadline = self
            .connection
            .as_ref()
            .map(|connection| connection.deadline);
        let window = self.window.as_ref().map(|window| window.until);
        let Some(first) = [deadline, window, self.due].into_iter().flatten().min() else {
            return -1;
        };
        let left = first.saturating_duration_since(Instant::now());
        // Rounded up: otherwise the last millisecond would be a busy loop.
        c_int::try_from(left.as_millis() + 1).unwrap_or(c_int::MAX)
    }

    /// Serves everything that is due: first the drain that a signal handler waits for.
    fn serve(&mut self) {
        self.drain_for_handlers();
        self.take_snapshot();
        self.close_window();
        self.accept();
        self.answer();
    }

    fn drain_for_handlers(&self) {
        if let Some(wanted) = wake::wanted() {
            hsa_gate::pass(drain::ending);
            // Most programs end by the signal that has requested it.
            journal::note(Note::Ended);
            wake::done(wanted);
        }
    }

    fn take_snapshot(&mut self) {
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if signals::wants_snapshot() || is_due {
            hsa_gate::pass(drain::snapshot);
            self.due = self.every.map(|every| Instant::now() + every);
        }
    }

    fn close_window(&mut self) {
        let is_over = |window: &mut Window| window.until <= Instant::now();
        if let Some(window) = self.window.take_if(is_over) {
            let close = || dumps::close(&window.label, window.reset);
            window.connection.answer(&dumped(close));
        }
    }

    fn accept(&mut self) {
        if self.connection.is_none()
            && let Some(listener) = self.listener.as_ref().and_then(Owner::get)
        {
            self.connection = match listener.accept() {
                Ok((stream, _)) => Connection::new(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(_) => {
                    // The process has no descriptor left: the client waits.
                    sleep(Duration::from_millis(100));
                    None
                }
            };
        }
    }

    fn answer(&mut self) {
        if let Some(request) = self.connection.as_mut().and_then(Connection::request)
            && let Some(connection) = self.connection.take()
        {
            match request {
                Ok(Request::Status) => connection.answer(&status()),
                Ok(Request::Dump(dump)) => self.dump(dump, connection),
                Err(why) => connection.refuse(&why),
            }
        }
    }

    /// Dumps now, or at the end of the window that the request names.
    fn dump(&mut self, dump: DumpRequest, connection: Connection) {
        if self.window.is_some() {
            // This dump would take counts away from the open one.
            connection.refuse(&"a dump with --window is under way: try again when it is over");
            return;
        }
        let label = dump.label.as_ref().map(ToString::to_string);
        let Some(window) = dump.window else {
            connection.answer(&dumped(|| dumps::dump(label.as_deref(), dump.reset)));
            return;
        };
        match hsa_gate::pass(|| dumps::open(label.as_deref())) {
            None => connection.refuse(&ENDING),
            Some(Err(error)) => connection.refuse(&error),
            Some(Ok(label)) => {
                self.window = Some(Window {
                    label,
                    reset: dump.reset,
                    connection,
                    until: Instant::now() + window,
                });
            }
        }
    }
}

fn status() -> Reply {
    let Status {
        agents,
        loads,
        scope,
        directory,
    } = state::status();
    let reply = Reply::done()
        .with("agents", &agents)
        .with("loads", &loads)
        .with("directory", &directory.display());
    match scope {
        Scope::Unlabelled => reply,
        Scope::Labelled(label) => reply.with("label", &label),
        Scope::LeftOut => reply.with("left-out", &"yes"),
    }
}

fn dumped(dump: impl FnOnce() -> Result<Dumped, LabelError>) -> Reply {
    match hsa_gate::pass(dump) {
        None => Reply::refused(&ENDING),
        Some(Err(error)) => Reply::refused(&error),
        Some(Ok(dumped)) => Reply::done()
            .with("label", &dumped.label)
            .with("files", &dumped.files)
            .with("in-flight", &yes(dumped.in_flight))
            .with("lost", &yes(dumped.status == RocovStatus::Loss)),
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

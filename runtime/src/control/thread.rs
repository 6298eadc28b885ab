//! The thread: waits for what is asked for, one thing after the other.

use std::ffi::{c_int, c_void};
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rocov::control::{DumpRequest, Reply, Request};
use rocov::drain::Scope;
use rocov::output::LabelError;

use super::asked::Asked;
use super::connection::Connection;
use super::own::{self, Owner};
use super::{gate, signals, socket, wake};
use crate::exports::RocovStatus;
use crate::journal::{self, Note};
use crate::requests::{self, Dumped, Status};
use crate::{boundary, caller, lifecycle, log};

/// What is said where nothing can be drained any more.
const ENDING: &str = "the process is ending";

/// Room for a drain. Only what is used takes memory.
const STACK: usize = 1 << 20;

/// Starts the thread, with all signals blocked: the program's are for the program's threads.
pub(super) fn start(asked: Asked) -> bool {
    let service = Box::into_raw(Box::new(Service {
        listener: asked
            .directory
            .as_deref()
            .and_then(socket::listen)
            .and_then(Owner::new),
        connection: None,
        window: None,
        every: asked.every,
        due: asked.every.map(|every| Instant::now() + every),
        says_to: own::file(libc::STDERR_FILENO),
    }));
    // SAFETY: the sets and the attributes are initialised before they are used, and the thread
    // gets the service, which is nobody else's.
    let error = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let error =
            libc::pthread_create(&raw mut thread, &raw const attributes, run, service.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        error
    };
    if error != 0 {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(service) });
        socket::gone();
        wake::close();
        log::warn(format_args!(
            "cannot start a thread: {}; there are no snapshots and no answers",
            std::io::Error::from_raw_os_error(error)
        ));
    }
    error == 0
}

extern "C" fn run(service: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` has made for this thread.
    let mut service = unsafe { Box::from_raw(service.cast::<Service>()) };
    // By another thread, the C library would open a file for it, which is not close-on-exec.
    // SAFETY: the name is NUL terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"rocov".as_ptr()) };
    caller::this_is_our_thread();
    while service.step() {}
    wake::forget();
    service.give_up();
    std::ptr::null_mut()
}

struct Service {
    listener: Option<Owner<UnixListener>>,
    /// Who is being listened to. Others wait.
    connection: Option<Connection>,
    /// The dump of what is being counted now.
    window: Option<Window>,
    /// The time between snapshots, and when the next is due.
    every: Option<Duration>,
    due: Option<Instant>,
    /// The file that standard error was.
    says_to: Option<(u64, u64)>,
}

/// A dump of what is counted in some time.
struct Window {
    label: String,
    reset: bool,
    /// Who wants it.
    connection: Connection,
    until: Instant,
}

impl Service {
    /// Waits for what comes first, and does it. False where the descriptors are gone: the program has
    /// closed what is not its own.
    fn step(&mut self) -> bool {
        let waits_for = |descriptor| libc::pollfd {
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
        let mut descriptors = [event, asking].map(waits_for);
        // SAFETY: two descriptions, that live.
        unsafe { libc::poll(descriptors.as_mut_ptr(), 2, self.timeout()) };
        // What is told may be of other files by now.
        if !self.are_ours() {
            return false;
        }
        wake::clear();
        boundary::guest("a request", || self.serve());
        true
    }

    /// Whether the program has left the descriptors alone. A pipe that it has closed ends the wait.
    fn are_ours(&self) -> bool {
        let of_window = self.window.as_ref().map(|window| &window.connection);
        let mut connections = self.connection.iter().chain(of_window);
        wake::event().is_some()
            && self.listener.as_ref().is_none_or(Owner::is_ours)
            && connections.all(Connection::is_ours)
    }

    /// The descriptors are gone, and with them whoever has asked.
    fn give_up(self) {
        socket::gone();
        // The program may be taking its number just now: it stays open.
        std::mem::forget(self.listener);
        // Standard error may be another file, too.
        if own::file(libc::STDERR_FILENO) == self.says_to {
            log::warn(format_args!(
                "the program has closed descriptors of rocov's: there are no more snapshots and no \
                 answers"
            ));
        }
    }

    /// Milliseconds until something is to be done anyway; -1 for never.
    fn timeout(&self) -> c_int {
        let deadline = self.connection.as_ref().map(|it| it.deadline);
        let window = self.window.as_ref().map(|window| window.until);
        let Some(first) = [deadline, window, self.due].into_iter().flatten().min() else {
            return -1;
        };
        let left = first.saturating_duration_since(Instant::now());
        // Rounded up, or it would be polled again and again within the last one.
        c_int::try_from(left.as_millis() + 1).unwrap_or(c_int::MAX)
    }

    /// Does all that is to be done now. What the process waits for comes first.
    fn serve(&mut self) {
        if let Some(wanted) = wake::wanted() {
            gate::pass(lifecycle::ending);
            // Most programs end by the signal that this is for.
            journal::note(Note::Ended);
            wake::done(wanted);
        }
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if signals::wants_snapshot() || is_due {
            gate::pass(lifecycle::draining);
            self.due = self.every.map(|every| Instant::now() + every);
        }
        let is_over = |window: &mut Window| window.until <= Instant::now();
        if let Some(window) = self.window.take_if(is_over) {
            let close = || requests::close_dump(&window.label, window.reset);
            window.connection.answer(&dumped(close));
        }
        if self.connection.is_none()
            && let Some(listener) = self.listener.as_ref().and_then(Owner::get)
        {
            self.connection = match listener.accept() {
                Ok((stream, _)) => Connection::new(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(_) => {
                    // The process has no descriptor left: whoever knocks is heard later.
                    sleep(Duration::from_millis(100));
                    None
                }
            };
        }
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

    /// Dumps now, or once what the window has is counted.
    fn dump(&mut self, dump: DumpRequest, connection: Connection) {
        if self.window.is_some() {
            // It would take what is being counted away from the other.
            connection.refuse(&"a dump with --window is under way: ask again when it is over");
            return;
        }
        let label = dump.label.as_ref().map(ToString::to_string);
        let Some(window) = dump.window else {
            connection.answer(&dumped(|| requests::dump(label.as_deref(), dump.reset)));
            return;
        };
        match gate::pass(|| requests::open_dump(label.as_deref())) {
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
    } = requests::status();
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
    match gate::pass(dump) {
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

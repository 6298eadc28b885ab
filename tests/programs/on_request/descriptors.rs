//! Files and sockets that librocov opens: other programs do not inherit them, none stays open, and
//! a program that closes them can use their numbers for its own files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::server::{Server, controlled, leave_socket, send, server, until};
use crate::support::artifacts::cache_directory;
use crate::support::command::run;

/// System calls that create a descriptor or clear its close-on-exec flag.
const CALLS: &str = "open,openat,openat2,creat,socket,socketpair,accept,accept4,eventfd,eventfd2,\
                     epoll_create,epoll_create1,pipe,pipe2,dup,dup2,dup3,fcntl,memfd_create,\
                     inotify_init,inotify_init1,signalfd,signalfd4,timerfd_create,pidfd_open";

/// A system call in strace's output, and the libraries on its stack, the innermost first.
#[derive(Debug)]
struct Call {
    line: String,
    through: Vec<String>,
}

impl Call {
    /// The caller of the C library, or of the model's function before it. If the model opens files
    /// itself, the caller is unknown.
    fn caller(&self) -> Option<&str> {
        let mut through = self.through.iter().map(String::as_str);
        through.find(|library| !["libc.so.6", "librocov_modelgpu.so"].contains(library))
    }

    /// Returns whether other programs inherit its descriptor.
    fn is_for_others(&self) -> bool {
        let other = ["F_DUPFD,", "F_SETFD,"];
        let makes_one = !self.line.starts_with("fcntl(")
            || other.iter().any(|command| self.line.contains(command));
        makes_one && !self.line.contains("CLOEXEC") && !self.line.starts_with("+++ ")
    }

    /// Its name and arguments, without numbers.
    fn what(&self) -> String {
        let what = self
            .line
            .rsplit_once(" = ")
            .map_or(&*self.line, |parts| parts.0);
        what.replace(|c: char| c.is_ascii_digit(), "")
    }
}

/// The calls in strace's output of a process, one file per thread. Below each call is its stack, as
/// ` > LIBRARY(FUNCTION+OFFSET) [ADDRESS]`.
fn calls(directory: &Path) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for entry in fs::read_dir(directory).expect("strace's directory") {
        let log = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        for line in log.lines() {
            let Some(frame) = line.strip_prefix(" > ") else {
                let (line, through) = (line.to_owned(), Vec::new());
                calls.push(Call { line, through });
                continue;
            };
            let library = frame.split_once('(').map_or(frame, |parts| parts.0);
            let name = Path::new(library).file_name().unwrap_or_default();
            let call = calls.last_mut().expect("a call is above its stack");
            call.through.push(name.to_string_lossy().into_owned());
        }
    }
    calls
}

/// The calls of a server that launches twice. In between it gets a dump request if it has librocov.
fn calls_of_a_server(with_rocov: bool) -> Vec<Call> {
    let traced = tempfile::tempdir().expect("a temporary directory");
    let log = traced.path().join("log");
    // The server must not be the tracer's child, so that it keeps its announced number.
    let strace = ["strace", "-D", "-ff", "-k", "-q", "-e", "signal=none", "-e"]
        .into_iter()
        .map(str::to_owned)
        .chain([
            format!("trace={CALLS}"),
            "-o".into(),
            log.display().to_string(),
        ]);
    let mut starting = controlled().under(strace);
    if !with_rocov {
        starting = starting.without_rocov();
    }
    // Shared profiles, so librocov locks them.
    let pattern = starting.data().join("%m.profraw").display().to_string();
    let starting = starting.with("LLVM_PROFILE_FILE", &pattern);
    // Under strace on a busy machine, rocov must not give kernels and copies up, and print that.
    let starting = starting.with("ROCOV_WAIT", "300");
    // Another process has left its socket behind: rocov checks whether it listens.
    let mut server = starting.start_after(leave_socket);
    server.launch(1, 1);
    if with_rocov {
        run(&mut server.rocov(&["dump", "--label", "one"])).success();
    }
    server.launch(1, 2);
    let main = log.with_extension(server.pid().to_string());
    assert_eq!(server.quits().all(), if with_rocov { 2 } else { 0 });
    // The tracer is not a child of this process.
    until("strace has written all", || {
        fs::read_to_string(&main).is_ok_and(|log| log.ends_with(" +++\n"))
    });
    calls(traced.path())
}

#[test]
fn all_are_closed_when_another_program_starts() {
    let calls = calls_of_a_server(true);
    let without = calls_of_a_server(false);
    let hips: BTreeSet<_> = without.iter().map(Call::what).collect();
    let is_ours = |call: &&Call| match call.caller() {
        None => !hips.contains(&call.what()),
        Some(caller) => caller == "librocov.so",
    };
    let left_open = calls.iter().filter(|call| call.is_for_others());
    // tools/dev/coverage puts LLVM's runtime into librocov; its files lie next to the build profiles.
    let cache = cache_directory();
    let counts = cache.parent().expect("a target directory").display();
    let mut left_open = left_open.filter(|call| !call.line.contains(&format!("\"{counts}/")));
    let ours = left_open.find(is_ours);
    assert!(ours.is_none(), "{ours:?}");
    // The trace has all kinds: the socket and the client's connection, the descriptor that wakes
    // the thread, directories, files for one use, locked files, copies.
    let lines: Vec<_> = calls.iter().map(|call| call.line.as_str()).collect();
    for (call, what) in [
        ("accept4(", ""),
        ("pipe2(", ""),
        ("openat(", "labels/one"),
        ("openat(", "/labels/one/.rocov-"),
        ("openat(", "O_TMPFILE"),
        ("openat(", ".profraw\", O_RDWR"),
    ] {
        let is_it = |line: &&str| line.starts_with(call) && line.contains(what);
        assert!(lines.iter().any(is_it), "{call}..{what}: {lines:#?}");
    }
    let mut callers = calls.iter().map(Call::caller);
    assert!(
        callers.any(|caller| caller == Some("librocov.so")),
        "{calls:#?}"
    );
}

/// The descriptors of a process, and their targets.
fn open(server: &Server) -> Vec<(PathBuf, PathBuf)> {
    let directory = format!("/proc/{}/fd", server.pid());
    let entries = fs::read_dir(directory)
        .expect("the server lives")
        .map(|entry| entry.expect("an entry").path());
    let mut open: Vec<_> = entries
        // It may have closed since the listing.
        .filter_map(|entry| Some((entry.clone(), fs::read_link(entry).ok()?)))
        .collect();
    open.sort();
    open
}

/// The numbers of librocov's descriptors: a pipe and the socket. Programs inherit the ones that the
/// process has from its parent.
#[track_caller]
fn ours(server: &Server) -> Vec<String> {
    let is_ours = |(path, file): &(PathBuf, PathBuf)| {
        let file = file.to_string_lossy();
        let info = path.to_string_lossy().replace("/fd/", "/fdinfo/");
        let info = fs::read_to_string(info).unwrap_or_default();
        let mut words = info.split_whitespace();
        let flags = words
            .find(|word| *word == "flags:")
            .and(words.next())
            .and_then(|digits| i32::from_str_radix(digits, 8).ok());
        let for_others = flags.unwrap_or_default() & libc::O_CLOEXEC == 0;
        !for_others
            && ["pipe:", "socket:"]
                .iter()
                .any(|kind| file.starts_with(kind))
    };
    let number = |(path, _): (PathBuf, PathBuf)| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let open = open(server).into_iter();
    let ours: Vec<_> = open.filter(is_ours).map(number).collect();
    assert_eq!(ours.len(), 3, "{ours:?}");
    ours
}

#[test]
fn requests_leave_none_open() {
    let mut server = server("default", &[("ROCOV_SNAPSHOT_SIGNAL", "USR2")])
        .listening()
        .start();
    server.launch(1, 1);
    let before = open(&server);
    ours(&server);
    for round in 1..=10 {
        run(&mut server.rocov(&["dump"])).success();
        run(&mut server.rocov(&["status"])).success();
        assert!(server.sends(b"garbage\n").contains("error"));
        server.launch(1, 1 + round);
        server.signal(libc::SIGUSR2);
        // The server answers a client even after it hung up on one.
        until("the descriptors are as before", || open(&server) == before);
    }
    assert_eq!(server.quits().all(), 11);
}

/// Returns whether librocov's thread lives.
fn has_thread(server: &Server) -> bool {
    let tasks = format!("/proc/{}/task", server.pid());
    let tasks = fs::read_dir(tasks).expect("the server lives");
    let mut names =
        tasks.map(|task| fs::read_to_string(task.expect("an entry").path().join("comm")));
    // A thread that has just ended has no name.
    names.any(|name| name.is_ok_and(|name| name == "rocov\n"))
}

/// Daemons close all descriptors that they did not open, and their own files then get the numbers.
#[test]
fn those_that_the_program_takes_are_left_alone() {
    let mut server = server("default", &[("ROCOV_SNAPSHOT_SIGNAL", "USR2")])
        .listening()
        .start();
    server.launch(1, 1);
    until("the thread has its name", || has_thread(&server));
    let numbers = ours(&server);
    for number in &numbers {
        assert_eq!(server.ask(&format!("take {number}")), "taken");
    }
    server.signal(libc::SIGUSR2);
    until("the thread has ended", || !has_thread(&server));
    assert!(!server.socket().exists(), "nobody listens");
    // A signal handler, and a forked child, without the thread.
    server.signal(libc::SIGUSR2);
    server.launch(1, 2);
    let child: u32 = server.ask("fork").parse().expect("a number");
    for number in &numbers {
        let file = |pid| fs::read_link(format!("/proc/{pid}/fd/{number}")).ok();
        assert_eq!(file(child), file(server.pid()));
    }
    send(child, libc::SIGKILL);
    assert_eq!(server.ask("taken"), "16 0 16 0 16 0 ");
    server.tell("quit");
    let (status, said) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert_eq!(
        said,
        "rocov: the program has closed rocov's file descriptors: rocov no longer takes snapshots or answers requests; change it to close only descriptors that it has opened\n"
    );
    assert_eq!(server.written().all(), 2);
}

//! Signals sent to `rocov run` reach the program, once.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rocov_tests::cli::{empty_libraries, rocov};
use tempfile::TempDir;

/// Builds the program that reports its signals.
fn reporting_program(directory: &Path) -> PathBuf {
    let program = directory.join("signals");
    rocov_tests::cli::run(
        Command::new("cc")
            .arg(rocov_tests::cli::data("signals.c"))
            .arg("-o")
            .arg(&program),
    );
    program
}

/// A program under `rocov run` that reports its signals.
struct Running {
    rocov: Child,
    said: BufReader<ChildStdout>,
    _libraries: TempDir,
}

impl Running {
    /// Runs a shell script, which prints "ready" first. Signals have their default actions in it: a
    /// caller may ignore some, as nohup does.
    fn script(script: &str) -> Self {
        let words = ["env", "--default-signal", "sh", "-c", script];
        Self::start(|_| words.map(OsString::from).to_vec())
    }

    /// Runs the command that `command` makes, if need be in the directory that it is given.
    fn start(command: impl FnOnce(&Path) -> Vec<OsString>) -> Self {
        let libraries = empty_libraries();
        let mut rocov = rocov()
            .env("ROCOV_LIBRARY_DIR", libraries.path())
            .args(["run", "--"])
            .args(command(libraries.path()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Self {
            said: BufReader::new(rocov.stdout.take().unwrap()),
            rocov,
            _libraries: libraries,
        };
        running.expect("ready");
        running
    }

    fn send(&self, signal: libc::c_int) {
        // SAFETY: plain system call on a child that has not been waited for.
        let result = unsafe { libc::kill(self.rocov.id().cast_signed(), signal) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    /// Waits for the end, and checks that nothing more was printed.
    fn ends_with(mut self, status: i32) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert_eq!(self.rocov.wait().unwrap().code(), Some(status));
    }
}

#[test]
fn signals_are_forwarded_and_the_program_decides() {
    let mut running = Running::start(|directory| vec![reporting_program(directory).into()]);
    for (signal, word) in [
        (libc::SIGUSR1, "usr1"),
        (libc::SIGINT, "int"),
        (libc::SIGCONT, "cont"),
        (libc::SIGTERM, "term"),
    ] {
        running.send(signal);
        running.expect(word);
    }
    running.ends_with(7);
}

#[test]
fn a_forwarded_signal_that_ends_the_program_shows_in_the_status() {
    for (signal, status) in [
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
        (libc::SIGUSR2, 140),
    ] {
        let running = Running::script("echo ready; exec sleep 60");
        running.send(signal);
        running.ends_with(status);
    }
}

#[test]
fn a_signal_from_the_program_is_not_sent_back() {
    // The parent of the program is rocov. A forwarded USR1 would end the program with 138.
    let script = "echo ready; kill -USR1 $PPID; sleep 0.2; exit 5";
    Running::script(script).ends_with(5);
}

#[test]
fn the_program_inherits_the_mask_and_the_ignored_signals() {
    let libraries = empty_libraries();
    let signals_of = |command: &mut Command| {
        let output = rocov_tests::cli::run(command.env("ROCOV_LIBRARY_DIR", libraries.path()));
        let text = rocov_tests::cli::stdout(&output);
        let lines = text.lines().filter(|line| line.starts_with("Sig"));
        let chosen = lines.filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"));
        chosen.map(str::to_owned).collect::<Vec<_>>()
    };
    let set_up = |command: &mut Command| {
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR2);
                libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                Ok(())
            })
        };
    };
    let mut direct = Command::new("cat");
    set_up(direct.arg("/proc/self/status"));
    let mut under_rocov = rocov();
    set_up(under_rocov.args(["run", "--", "cat", "/proc/self/status"]));
    let expected = signals_of(&mut direct);
    assert_eq!(expected.len(), 2);
    assert_eq!(signals_of(&mut under_rocov), expected);
}

#[test]
fn ctrl_c_at_a_terminal_reaches_the_program_once() {
    let libraries = empty_libraries();
    let (mut terminal, slave) = open_terminal();
    let duplicate = || Stdio::from(slave.try_clone().unwrap());
    let mut command = rocov();
    command
        .env("ROCOV_LIBRARY_DIR", libraries.path())
        .args(["run", "--"])
        .arg(reporting_program(libraries.path()))
        .stdin(duplicate())
        .stdout(duplicate())
        .stderr(duplicate());
    // SAFETY: both calls are async-signal-safe. Standard input is the terminal already.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        })
    };
    let mut rocov = command.spawn().unwrap();
    drop(command);
    drop(slave);
    let mut said = BufReader::new(terminal.try_clone().unwrap());
    let mut line = || {
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        // The terminal echoes what is typed: ^C comes before what the program says.
        line.trim_end().trim_start_matches("^C").to_owned()
    };
    assert_eq!(line(), "ready");
    // A second SIGINT is lost when the first is still pending: often enough it would not be.
    for _ in 0..20 {
        terminal.write_all(b"\x03").unwrap();
        assert_eq!(line(), "int");
        // Until rocov has seen it too and could have sent it on.
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: plain system call on a child that has not been waited for.
    unsafe { libc::kill(rocov.id().cast_signed(), libc::SIGTERM) };
    assert_eq!(line(), "term");
    assert_eq!(rocov.wait().unwrap().code(), Some(7));
}

/// Both ends of a new terminal.
fn open_terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: the pointers are to live integers, or null for the defaults.
    let result = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    // SAFETY: openpty succeeded, so both are open and owned by nobody else.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

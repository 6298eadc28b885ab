//! The server of testdata/programs/on_request: a program that runs until a request ends it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::artifacts::built;
use crate::support::command::without_leaks;
use crate::support::gpu::Stack;
use crate::support::profile::{functions, merge, raw_profiles};
use crate::support::program::{Program, TARGET};

/// The time limit of each wait. A busy machine is slow, but only a failure comes near this.
const LIMIT: Duration = Duration::from_secs(300);

/// Calls and turns of the branch in one launch.
const CALLS: u64 = 256;
const BRANCHES: u64 = 64;

/// The program, on the usual stack.
pub(super) fn program() -> PathBuf {
    Program::build(Stack::usual(), &["on_request/server.hip"], &[], &[]).file
}

/// A running server, killed on drop.
pub(super) struct Server {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: Option<ChildStderr>,
    pub(super) directory: tempfile::TempDir,
}

/// The settings of a server before its start.
pub(super) struct Starting {
    term: &'static str,
    directory: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    under: Vec<OsString>,
    with_rocov: bool,
}

/// A server with these variables and this action on SIGTERM.
pub(super) fn server(term: &'static str, variables: &[(&'static str, &str)]) -> Starting {
    let variables = variables.iter();
    Starting {
        term,
        directory: tempfile::tempdir().expect("a temporary directory"),
        variables: variables
            .map(|(name, value)| (*name, (*value).into()))
            .collect(),
        under: Vec::new(),
        with_rocov: true,
    }
}

/// A server with a control socket.
pub(super) fn controlled() -> Starting {
    server("default", &[]).listening()
}

impl Starting {
    pub(super) fn without_rocov(mut self) -> Self {
        self.with_rocov = false;
        self
    }

    pub(super) fn listening(self) -> Self {
        let sockets = self.directory.path().join("sockets");
        self.with("ROCOV_CONTROL", &sockets.display().to_string())
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The profile directory.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Puts a command before the program, which replaces the command in its process.
    pub(super) fn under<T: Into<OsString>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.under = words.into_iter().map(Into::into).collect();
        self
    }

    /// Starts it.
    pub(super) fn start(self) -> Server {
        self.start_after(|_, _| {})
    }

    /// Starts the server after `prepare`, which gets the directory of the sockets and the process
    /// id.
    pub(super) fn start_after(self, prepare: impl FnOnce(&Path, u32)) -> Server {
        let program = program();
        // Shells start background jobs with SIGINT ignored, and nohup ignores SIGHUP. The server
        // would inherit that, and librocov does not handle an ignored signal.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            // The program replaces the shell and keeps its process id.
            .args(["sh", "-c", r#"read go; exec "$@""#, "sh"])
            .args(self.under)
            .arg(&program)
            .arg(self.term)
            .env("ROCOV_MODELGPU", TARGET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut preloaded = built("librocov_modelgpu.so").into_os_string();
        if self.with_rocov {
            preloaded.push(":");
            preloaded.push(built("librocov.so"));
        }
        command.env("LD_PRELOAD", preloaded);
        let data = self.directory.path().join("data");
        command.env("LLVM_PROFILE_FILE", data.join("%p.profraw"));
        command.envs(self.variables);
        let mut child = command.spawn().expect("a shell");
        prepare(&self.directory.path().join("sockets"), child.id());
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let _ = sender.send(line);
            }
        });
        let mut server = Server {
            input: child.stdin.take().expect("a pipe"),
            lines,
            errors: child.stderr.take(),
            child,
            directory: self.directory,
        };
        server.tell("go");
        server
    }
}

impl Server {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn socket(&self) -> PathBuf {
        let sockets = self.directory.path().join("sockets");
        sockets.join(format!("{}.sock", self.pid()))
    }

    /// Sends a request without an answer.
    pub(super) fn tell(&mut self, request: &str) {
        writeln!(self.input, "{request}").expect("the server reads");
    }

    /// The next line of the server's output.
    #[track_caller]
    pub(super) fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(LIMIT);
        line.unwrap_or_else(|error| panic!("the server says nothing: {error}"))
    }

    /// Sends a request and returns its answer.
    #[track_caller]
    pub(super) fn ask(&mut self, request: &str) -> String {
        self.tell(request);
        self.line()
    }

    /// Launches the kernel `launches` times; the total is then `all`.
    #[track_caller]
    pub(super) fn launch(&mut self, launches: u64, all: u64) {
        assert_eq!(self.ask(&format!("launch {launches}")), all.to_string());
    }

    pub(super) fn signal(&self, signal: libc::c_int) {
        send(self.pid(), signal);
    }

    /// Waits until the server has ended.
    #[track_caller]
    pub(super) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server has ended", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Waits for the end. Also returns all of standard error, so no child of the server may live.
    #[track_caller]
    pub(super) fn ended(&mut self) -> (ExitStatus, String) {
        let status = self.wait();
        let mut said = String::new();
        let mut errors = self.errors.take().expect("asked once");
        errors.read_to_string(&mut said).expect("text");
        (status, without_leaks(&said).0)
    }

    /// Makes the server return from main, and expects no messages.
    #[track_caller]
    pub(super) fn quits(mut self) -> Launches {
        self.tell("quit");
        let (status, said) = self.ended();
        assert_eq!((status.code(), said.as_str()), (Some(0), ""));
        self.written()
    }

    /// The launches in the profiles written so far.
    pub(super) fn written(&self) -> Launches {
        Launches::read(&self.directory.path().join("data"))
    }

    /// Sends bytes to the socket and returns the whole answer.
    pub(super) fn sends(&self, bytes: &[u8]) -> String {
        answered(self.connect(), bytes)
    }

    pub(super) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("the server listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
        stream
    }

    /// `rocov ARGUMENTS PID`.
    pub(super) fn rocov(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::command::limited(built("rocov"));
        command.args(arguments).arg(self.pid().to_string());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends bytes and returns the whole answer.
pub(super) fn answered(mut stream: UnixStream, bytes: &[u8]) -> String {
    // The server hangs up on a client that sends too much.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

pub(super) fn send(pid: u32, signal: libc::c_int) {
    // SAFETY: plain system call, on a process that this test has started.
    let result = unsafe { libc::kill(pid.cast_signed(), signal) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Waits for a condition. Fails after the time limit.
#[track_caller]
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Creates a directory with the mode that sockets need.
pub(super) fn make_own(directory: &Path) {
    let made = DirBuilder::new().mode(0o700).create(directory);
    made.expect("a directory can be made");
}

/// Leaves a socket for process `pid` in a new directory, as a process does that was killed.
pub(super) fn leave_socket(directory: &Path, pid: u32) {
    make_own(directory);
    let path = directory.join(format!("{pid}.sock"));
    let left = UnixListener::bind(&path).expect("a socket");
    // A process that another test starts just now has a copy of the descriptor until its exec, and would
    // still listen.
    // SAFETY: plain system call, on a descriptor of this function.
    let result = unsafe { libc::shutdown(left.as_raw_fd(), libc::SHUT_RDWR) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    drop(left);
    let metadata = fs::symlink_metadata(path).expect("it stays");
    assert!(metadata.file_type().is_socket());
}

/// The launches in profiles, as llvm-profdata reads them: without a label, and for each label.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Launches {
    pub(super) unlabelled: u64,
    pub(super) labels: Vec<(String, u64)>,
}

impl Launches {
    pub(super) fn unlabelled(launches: u64) -> Self {
        Self {
            unlabelled: launches,
            labels: Vec::new(),
        }
    }

    fn read(data: &Path) -> Self {
        let mut labels = Vec::new();
        below(&data.join("labels"), "", &mut labels);
        labels.sort();
        Self {
            unlabelled: launches(data),
            labels,
        }
    }

    pub(super) fn all(&self) -> u64 {
        self.unlabelled
            + self
                .labels
                .iter()
                .map(|(_, launches)| launches)
                .sum::<u64>()
    }
}

fn below(directory: &Path, label: &str, found: &mut Vec<(String, u64)>) {
    let Ok(entries) = directory.read_dir() else {
        return;
    };
    if !raw_profiles(directory).is_empty() {
        found.push((
            label.trim_start_matches('/').to_owned(),
            launches(directory),
        ));
    }
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        below(&path, &format!("{label}/{name}"), found);
    }
}

/// The launches in the profiles of this directory only. A complete profile has whole launches.
fn launches(directory: &Path) -> u64 {
    let profiles = raw_profiles(directory);
    if profiles.is_empty() {
        return 0;
    }
    let merged = tempfile::NamedTempFile::new().expect("a temporary file");
    merge(&profiles, merged.path());
    let functions = functions(merged.path());
    let counted = functions.get("counted").expect("the kernel");
    assert_eq!(counted.calls % CALLS, 0, "{profiles:?}: {counted:?}");
    let launches = counted.calls / CALLS;
    assert_eq!(counted.blocks, [BRANCHES * launches], "{profiles:?}");
    launches
}

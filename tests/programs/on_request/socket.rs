//! The control socket: its permitted clients, its rejections, and old sockets of other processes in
//! its place.

use std::fs::{self, Permissions};
use std::io::{Write as _, stderr};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use super::server::{answered, controlled, leave_socket, make_own, server, until};
use crate::support::artifacts::built;
use crate::support::command::{copy_program, limited, run};

/// The user `nobody`.
const NOBODY: &str = "65534";

/// A client of a socket in Perl, which every Debian has and every user may run.
const CLIENT: &str = r#"$s = IO::Socket::UNIX->new($ARGV[0]) or die "$!\n"; print <$s>"#;

/// Runs the appended program as another user.
fn as_nobody() -> Command {
    let mut command = limited("setpriv");
    let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    command.args(user).arg("--clear-groups");
    command
}

#[test]
fn another_user_is_refused() {
    let user = fs::metadata("/proc/self").expect("/proc").uid();
    if user != 0 {
        // Written around the capture of passing tests' output, so that the line is always visible.
        let _ = writeln!(
            stderr(),
            "not root: that other users are refused is not tested"
        );
        return;
    }
    let mut server = controlled().start();
    server.launch(1, 1);
    let sockets = server.directory.path().join("sockets");
    let mode = |path| fs::symlink_metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(&sockets), 0o700);
    assert_eq!(mode(&server.socket()), 0o600);

    let mut client = as_nobody();
    client
        .args(["perl", "-MIO::Socket::UNIX", "-e", CLIENT])
        .arg(server.socket());
    fs::set_permissions(&server.directory, Permissions::from_mode(0o755)).expect("ours");
    run(&mut client).says(&["Permission denied"]);
    // Even if the directory is open for all users.
    fs::set_permissions(&sockets, Permissions::from_mode(0o755)).expect("ours");
    fs::set_permissions(server.socket(), Permissions::from_mode(0o777)).expect("ours");
    let refused = run(&mut client).success().silently().stdout;
    assert_eq!(
        refused,
        "rocov-1 error only user 0 and root may send requests\n"
    );

    let copy = server.directory.path().join("rocov");
    copy_program(&built("rocov"), &copy);
    let mut command = as_nobody();
    command
        .arg(copy)
        .arg("status")
        .arg(server.pid().to_string());
    let said = run(&mut command).with_status(1).stderr;
    let expected = format!(
        "rocov: process {} belongs to user 0: run the command as that user or as root\n",
        server.pid()
    );
    assert_eq!(said, expected);
    assert_eq!(server.quits().all(), 1);
}

#[test]
fn garbage_is_refused_in_a_line() {
    let mut server = controlled().start();
    server.launch(1, 1);
    let long = [b'x'; 5000];
    for (sent, why) in [
        (
            &b"\x00\xff\xfe\n"[..],
            "not a request in the protocol rocov-1",
        ),
        (
            b"GET / HTTP/1.1\r\n\r\n",
            "not a request in the protocol rocov-1",
        ),
        (
            b"rocov-1 stop\n",
            "unknown request \"stop\": use status, or dump with reset, ",
        ),
        (
            b"rocov-1 dump label=../up\n",
            "the label \"../up\" cannot be used: ",
        ),
        (&long, "a request is a line of at most 4096 bytes"),
    ] {
        let answer = server.sends(sent);
        assert!(
            answer.starts_with(&format!("rocov-1 error {why}")),
            "{answer}"
        );
        assert_eq!(answer.lines().count(), 1, "{answer}");
    }
    let half = server.connect();
    half.shutdown(std::net::Shutdown::Write).expect("connected");
    let answer = answered(half, b"");
    assert_eq!(answer, "rocov-1 error a request ends with a line feed\n");

    // A silent client does not block others for long, and it gets a message.
    let silent = server.connect();
    server.launch(1, 2);
    run(&mut server.rocov(&["dump"])).success().silently();
    let answer = answered(silent, b"");
    assert_eq!(answer, "rocov-1 error no request within 5 s\n");
    assert_eq!(server.quits().all(), 2);
}

#[test]
fn a_stale_socket_is_cleaned() {
    // A process that no longer exists.
    let mut server = controlled().start();
    server.launch(1, 1);
    server.signal(libc::SIGKILL);
    server.ended();
    assert!(server.socket().exists());
    let sockets = server.directory.path().join("sockets");
    let mut status = server.rocov(&["status"]);
    let said = run(status.env("ROCOV_CONTROL", &sockets))
        .with_status(1)
        .stderr;
    let (pid, socket) = (server.pid(), server.socket());
    let gone = format!("rocov: there is no process {pid}: check the PID");
    let removed = "rocov removed its socket";
    assert_eq!(said, format!("{gone}; {removed}: {}\n", socket.display()));
    assert!(!socket.exists());
    let said = run(&mut status).with_status(1).stderr;
    assert_eq!(said, format!("{gone}\n"));

    // An old socket for this process id, made before the program starts.
    let mut server = controlled().start_after(leave_socket);
    server.launch(1, 1);
    run(&mut server.rocov(&["status"])).success().silently();
    assert_eq!(server.quits().all(), 1);

    // A socket for this process id, of a program that does not listen.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sockets = directory.path().join("sockets");
    let mut other = Command::new("sleep");
    let mut other = other
        .arg("60")
        .env("ROCOV_CONTROL", &sockets)
        .stdin(Stdio::null())
        .spawn()
        .expect("a process");
    leave_socket(&sockets, other.id());
    let mut dump = limited(built("rocov"));
    dump.arg("dump").arg(other.id().to_string());
    until("it has its environment", || {
        let said = run(&mut dump).with_status(1).stderr;
        said.contains("no process listens on")
    });
    assert_eq!(sockets.read_dir().expect("it is there").count(), 0);
    run(&mut dump).with_status(1).says(&["does not listen on"]);
    other.kill().expect("a child");
    other.wait().expect("a child");
}

#[test]
fn a_socket_that_somebody_listens_on_is_not_taken_over() {
    let mut others = None;
    let mut server = controlled().start_after(|directory, pid| {
        make_own(directory);
        let path = directory.join(format!("{pid}.sock"));
        others = Some(UnixListener::bind(path).expect("a socket"));
    });
    server.launch(1, 1);
    let said = run(&mut server.rocov(&["status"])).with_status(1).stderr;
    let expected = format!("rocov: process {} listens on ", std::process::id());
    assert!(said.starts_with(&expected), "{said}");
    server.tell("quit");
    let (status, said) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("in another PID namespace listens there"),
        "{said}"
    );
    assert!(server.socket().exists());
    drop(UnixStream::connect(server.socket()).expect("it is still the other's"));
}

#[test]
fn a_directory_that_is_not_the_users_alone_gets_no_socket() {
    for make in [
        (|directory| {
            make_own(directory);
            fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("ours");
        }) as fn(&std::path::Path),
        |directory| {
            let elsewhere = directory.with_file_name("elsewhere");
            make_own(&elsewhere);
            symlink(&elsewhere, directory).expect("a link");
        },
    ] {
        let mut server = controlled().start_after(|directory, _| make(directory));
        server.launch(1, 1);
        assert!(!server.socket().exists());
        server.tell("quit");
        let (status, said) = server.ended();
        assert_eq!(status.code(), Some(0));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.contains("belong to this user and have mode 0700"),
            "{said}"
        );
        assert_eq!(server.written().all(), 1);
    }
}

#[test]
fn a_process_that_cannot_be_asked_says_what_to_do() {
    let mut server = server("default", &[]).start();
    server.launch(1, 1);
    let said = run(&mut server.rocov(&["dump"])).with_status(1).stderr;
    let expected = format!(
        "rocov: process {} has no control socket: start it with `rocov run --control`\n",
        server.pid()
    );
    assert_eq!(said, expected);
}

//! rocov starts no thread and no socket without a request, and none in a forked child.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::server::{controlled, send, server, until};
use crate::support::command::run;

/// The names of a process's threads.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let name = |task: &Path| fs::read_to_string(task.join("comm")).unwrap_or_default();
    let mut names: Vec<_> = tasks
        .map(|task| name(&task.expect("a task").path()).trim_end().to_owned())
        .collect();
    names.sort();
    names
}

/// Returns whether a process is gone or waits for its parent.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn there_is_no_thread_unless_asked_for() {
    let mut alone = server("default", &[]).without_rocov().start();
    let mut drained = server("default", &[("ROCOV_CONTROL", "0")]).start();
    let mut controlled = controlled().start();
    for server in [&mut alone, &mut drained, &mut controlled] {
        server.launch(1, 1);
    }
    let expected = threads(alone.pid());
    assert_eq!(threads(drained.pid()), expected);
    assert!(!drained.directory.path().join("sockets").exists());

    let mut more = Vec::new();
    // The thread sets its own name.
    until("there is a thread of this name", || {
        more = threads(controlled.pid());
        more.contains(&"rocov".to_owned())
    });
    more.retain(|name| name != "rocov");
    assert_eq!(more, expected);
    assert_eq!(threads(controlled.pid()).len(), expected.len() + 1);
    assert!(controlled.socket().exists());
    let socket = controlled.socket();
    controlled.tell("quit");
    assert_eq!(controlled.ended().0.code(), Some(0));
    assert!(!socket.exists(), "it is removed at exit");
}

#[test]
fn a_forked_child_has_neither_thread_nor_socket() {
    let mut server = controlled().start();
    server.launch(1, 1);
    let child: u32 = server.ask("fork").parse().expect("a process id");
    assert_eq!(threads(child).len(), 1);
    let mut status = server.rocov(&["status"]);
    run(&mut status).success();
    // The child has no socket for its own number, and does not keep its parent's socket alive.
    server.signal(libc::SIGKILL);
    server.wait();
    let refused = UnixStream::connect(server.socket()).expect_err("nobody listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // The signal ends it at once.
    send(child, libc::SIGTERM);
    until("the child has ended", || has_ended(child));
}

#[test]
fn a_program_that_becomes_another_takes_its_socket_away() {
    let mut server = controlled().start();
    server.launch(1, 1);
    assert!(server.socket().exists());
    server.tell("exec");
    until("the socket is gone", || !server.socket().exists());
    until("it has become another", || {
        let of_it = |what| fs::read(format!("/proc/{}/{what}", server.pid())).unwrap_or_default();
        // The kernel shows a program's name before its environment.
        of_it("comm") == b"sleep\n" && !of_it("environ").is_empty()
    });
    let said = run(&mut server.rocov(&["status"])).with_status(1).stderr;
    assert!(said.contains("does not listen on"), "{said}");
}

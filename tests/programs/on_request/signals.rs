//! Signals that end programs, if rocov has a thread: rocov writes the counts, and then the
//! program's own action follows.

use std::os::unix::process::ExitStatusExt;

use super::server::{Launches, Server, server};

/// A server that has launched twice, with a rocov thread that has had no request.
fn running(term: &'static str) -> Server {
    let mut server = server(term, &[("ROCOV_SNAPSHOT_EVERY", "10m")]).start();
    server.launch(2, 2);
    assert_eq!(server.written().all(), 0);
    server
}

#[test]
fn the_default_kills() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut server = running("default");
        server.signal(signal);
        let (status, said) = server.ended();
        assert_eq!((status.signal(), said.as_str()), (Some(signal), ""));
        assert_eq!(server.written(), Launches::unlabelled(2));
    }
}

#[test]
fn the_programs_own_handler_is_called_as_without_us() {
    let mut server = server("handler", &[]).listening().start();
    server.launch(2, 2);
    assert!(server.socket().exists());
    server.signal(libc::SIGTERM);
    assert_eq!(server.line(), format!("handler {} 1", std::process::id()));
    let (status, said) = server.ended();
    assert_eq!((status.code(), said.as_str()), (Some(7), ""));
    assert_eq!(server.written(), Launches::unlabelled(2));
    assert!(!server.socket().exists());
}

#[test]
fn what_is_ignored_stays_so() {
    let mut server = running("ignore");
    server.signal(libc::SIGTERM);
    server.launch(1, 3);
    assert_eq!(server.written().all(), 0);
    assert_eq!(server.quits(), Launches::unlabelled(3));
}

/// rocov waits only a limited time for a kernel that never ends.
#[test]
fn the_wait_is_bounded() {
    let variables = [("ROCOV_SNAPSHOT_EVERY", "10m"), ("ROCOV_WAIT", "1")];
    let mut server = server("default", &variables).start();
    server.launch(2, 2);
    assert_eq!(server.ask("endless"), "endless");
    server.signal(libc::SIGTERM);
    let (status, said) = server.ended();
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    assert!(
        said.contains("a kernel is still running after 1 s"),
        "{said}"
    );
    assert_eq!(server.written(), Launches::unlabelled(2));
}

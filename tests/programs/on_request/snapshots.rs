//! Snapshots: the files of a killed program.

use super::server::{Launches, server, until};

#[test]
fn a_killed_program_has_lost_no_more_than_since_the_last_snapshot() {
    let mut server = server("default", &[("ROCOV_SNAPSHOT_EVERY", "50ms")]).start();
    server.launch(2, 2);
    until("the first snapshot", || server.written().all() == 2);
    server.launch(3, 5);
    until("the second snapshot", || server.written().all() == 5);
    server.launch(1, 6);
    server.signal(libc::SIGKILL);
    let (_, said) = server.ended();
    assert_eq!(said, "");
    // Another snapshot may lie between the last launch and the end.
    let left = server.written();
    assert!([5, 6].map(Launches::unlabelled).contains(&left), "{left:?}");
}

#[test]
fn a_signal_asks_for_one() {
    for word in ["USR2", "SIGHUP"] {
        let mut server = server("default", &[("ROCOV_SNAPSHOT_SIGNAL", word)]).start();
        let signal = match word {
            "USR2" => libc::SIGUSR2,
            _ => libc::SIGHUP,
        };
        server.launch(2, 2);
        assert_eq!(server.written().all(), 0);
        server.signal(signal);
        until("the snapshot", || server.written().all() == 2);
        server.launch(1, 3);
        assert_eq!(server.written().all(), 2);
        server.signal(signal);
        until("the second snapshot", || server.written().all() == 3);
        server.launch(1, 4);
        assert_eq!(server.quits(), Launches::unlabelled(4));
    }
}

#[test]
fn what_cannot_be_asked_for_is_said_once() {
    for (variable, value, why) in [
        (
            "ROCOV_SNAPSHOT_EVERY",
            "30",
            "a time from 10ms to 1440m, such as 500ms, 30s or 5m",
        ),
        ("ROCOV_SNAPSHOT_SIGNAL", "KILL", "HUP, USR1 or USR2"),
        (
            "ROCOV_CONTROL",
            "sockets",
            "1, or the absolute path of a directory",
        ),
    ] {
        let mut server = server("default", &[(variable, value)]).start();
        server.launch(1, 1);
        server.tell("quit");
        let (status, said) = server.ended();
        assert_eq!(status.code(), Some(0));
        let expected =
            format!("rocov: {variable}: {value:?} is not valid, so rocov ignores it; use {why}\n");
        assert_eq!(said, expected);
        assert_eq!(server.written(), Launches::unlabelled(1));
    }
}

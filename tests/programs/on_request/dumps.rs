//! Dumps by process id: each count is in exactly one dump, and together the dumps have all of the
//! host's launches.

use std::thread;

use super::server::{Launches, answered, controlled};
use crate::support::artifacts::built;
use crate::support::command::{limited, run};
use crate::support::json::json;
use crate::support::schemas::validate;

#[test]
fn each_dump_has_what_was_counted_since_the_last() {
    let mut server = controlled().start();
    server.launch(3, 3);
    let dump = |arguments: &[&str]| {
        run(&mut server.rocov(arguments))
            .success()
            .silently()
            .stdout
    };
    assert_eq!(dump(&["dump"]), "dump-1: 1 file\n");
    assert_eq!(dump(&["dump"]), "dump-2: nothing was counted\n");
    server.launch(2, 5);
    let label = ["dump", "--label", "suite/second one"];
    let said = run(&mut server.rocov(&label)).success().silently().stdout;
    assert_eq!(said, "suite/second one: 1 file\n");

    // The window does not contain earlier counts. One thread does all the work, so it answers a
    // status request after it has opened the window.
    server.launch(5, 10);
    let window = server.connect();
    let asked = b"rocov-1 dump window=3000 label=window\n";
    let window = thread::spawn(move || answered(window, asked));
    super::server::until("the window is open", || {
        server
            .sends(b"rocov-1 dump label=none\n")
            .contains("--window is under way")
    });
    server.launch(4, 14);
    let answer = window.join().expect("an answer");
    assert_eq!(
        answer,
        "rocov-1 ok\nlabel window\nfiles 1\nin-flight no\nlost no\n"
    );
    let said = run(&mut server.rocov(&["dump", "--window", "10ms", "--label", "brief"]));
    assert_eq!(
        said.success().silently().stdout,
        "brief: nothing was counted\n"
    );

    server.launch(1, 15);
    let reset = ["dump", "--reset", "--label", "reset"];
    run(&mut server.rocov(&reset)).success().silently();
    server.launch(1, 16);
    let labels = [
        ("dump-1", 3),
        ("reset", 1),
        ("suite/second%20one", 2),
        ("window", 4),
    ];
    let expected = Launches {
        unlabelled: 5 + 1,
        labels: labels
            .map(|(label, launches)| (label.into(), launches))
            .into(),
    };
    assert_eq!(expected.all(), 16);
    assert_eq!(server.quits(), expected);
}

#[test]
fn a_status_says_what_there_is() {
    let mut server = controlled().with("ROCOV_LABEL", "a/b c").start();
    server.launch(1, 1);
    let data = server.directory.path().join("data");
    let said = run(&mut server.rocov(&["status"]))
        .success()
        .silently()
        .stdout;
    assert_eq!(
        said,
        format!(
            "process    {}: 1 GPU, 1 instrumented code object\n\
             profiles   {}\n\
             label      a/b c\n",
            server.pid(),
            data.display()
        )
    );
    let said = run(&mut server.rocov(&["status", "--json"]))
        .success()
        .silently()
        .stdout;
    validate(&[("status", said.as_bytes())]);
    let found = json(said);
    assert_eq!(found["rocov_status"], 1);
    assert_eq!(found["pid"], server.pid());
    assert_eq!(found["agents"], 1);
    assert_eq!(found["loads"], 1);
    assert_eq!(found["label"], "a/b c");
    assert_eq!(found["left_out"], false);
    assert_eq!(found["directory"], data.display().to_string());

    // Without a label.
    let mut server = controlled().start();
    server.launch(1, 1);
    let said = run(&mut server.rocov(&["status", "--json"])).success();
    validate(&[("status", said.stdout.as_bytes())]);
    assert!(json(said.stdout)["label"].is_null());
}

/// No dump so far has the later counts of a running kernel.
#[test]
fn kernels_that_still_run_are_told() {
    let mut server = controlled().with("ROCOV_WAIT", "1").start();
    server.launch(2, 2);
    assert_eq!(server.ask("endless"), "endless");
    let said = run(&mut server.rocov(&["dump"]))
        .success()
        .silently()
        .stdout;
    // The modelled GPU drains when it finds that the kernel makes no progress. On a busy machine that may come first,
    // and then the dump has nothing new.
    let files = said
        .strip_suffix("; kernels are still running, and their counts go to the next dump\n")
        .and_then(|rest| rest.strip_prefix("dump-1: "))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(["1 file", "nothing was counted"].contains(&files), "{said}");
    assert_eq!(server.written().all(), 2);
}

#[test]
fn rocov_run_makes_the_socket() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut command = limited(built("rocov"));
    command.args([
        "run",
        "--gpu",
        "model",
        "--snapshot-every",
        "5m",
        "--snapshot-on",
        "SIGUSR2",
    ]);
    command
        .arg("--control=sockets")
        .arg("-o")
        .arg(&data)
        .arg("--");
    // The script waits for the server's answer to the launch and then sends the requests.
    let script = r#"
        mkfifo in out; "$1" default <in >out & exec 3>in 4<out
        echo launch 2 >&3; read said <&4; test "$said" = 2
        "$0" dump --label one $! && "$0" status $!
        env | grep ^ROCOV_ | sort; kill -USR2 $!; kill -TERM $!; wait $! || echo $?"#;
    let rocov = built("rocov");
    command.args(["sh", "-ec", script]).arg(rocov);
    command
        .arg(super::server::program())
        .current_dir(&directory);
    let ended = run(&mut command).success();
    // The shell's message about a job that a signal ends while the shell waits.
    assert!(["", "Terminated\n"].contains(&&*ended.stderr), "{ended}");
    let said = &ended.stdout;
    let sockets = directory.path().join("sockets");
    for part in [
        "one: 1 file\n".to_owned(),
        format!("profiles   {}\n", data.display()),
        format!("ROCOV_CONTROL={}\n", sockets.display()),
        "ROCOV_SNAPSHOT_EVERY=300s\n".to_owned(),
        "ROCOV_SNAPSHOT_SIGNAL=USR2\n".to_owned(),
        "\n143\n".to_owned(),
    ] {
        assert!(said.contains(&part), "{part:?} is not in {said}");
    }
    assert_eq!(sockets.read_dir().expect("it was made").count(), 0);
}

//! Work that runs beside the stages: what the tests need is installed while the workspace is built, and lints are compiled
//! while the tests run, in the time in which these leave processors idle.

use std::io::{self, Write};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::process::{failed, in_background, run_logged};
use crate::{Failure, Outcome};

/// The log of `cargo test`, whose first test program starts other commands: before it, cargo locks the build.
pub struct WhenTestsRun<'log> {
    log: &'log mut dyn Write,
    name: &'static str,
    commands: Vec<Command>,
    started: Option<Beside>,
}

impl<'log> WhenTestsRun<'log> {
    /// Returns a log that starts commands.
    pub fn new(log: &'log mut dyn Write, name: &'static str, commands: Vec<Command>) -> Self {
        Self {
            log,
            name,
            commands,
            started: None,
        }
    }

    /// Starts the commands, unless they run.
    #[must_use]
    pub fn start(mut self) -> Beside {
        self.start_once();
        self.started.expect("the commands were started")
    }

    fn start_once(&mut self) {
        let commands = std::mem::take(&mut self.commands);
        self.started
            .get_or_insert_with(|| Beside::start(self.name, commands));
    }
}

impl Write for WhenTestsRun<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if self.started.is_none() && text.trim_start().starts_with("Running ") {
            self.start_once();
        }
        self.log.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

/// Work that runs concurrently with the other stages.
pub struct Beside<T = ()> {
    name: &'static str,
    thread: JoinHandle<(Vec<u8>, Outcome<T>)>,
}

impl Beside {
    /// Starts commands, which run one after another when processors are idle. The name is that of their stage. Those after
    /// one that fails do not run.
    #[must_use]
    pub fn start(name: &'static str, commands: Vec<Command>) -> Self {
        Self::spawn(name, move |output| {
            for command in &commands {
                if !run_logged(&mut in_background(command), output)? {
                    return Err(failed(command));
                }
            }
            Ok(())
        })
    }
}

impl<T: Send + 'static> Beside<T> {
    /// Starts work that writes what it prints. The name is that of its stage.
    #[must_use]
    pub fn spawn(
        name: &'static str,
        work: impl FnOnce(&mut Vec<u8>) -> Outcome<T> + Send + 'static,
    ) -> Self {
        let run = move || {
            let mut output = Vec::new();
            let outcome = work(&mut output);
            (output, outcome)
        };
        Self {
            name,
            thread: thread::spawn(run),
        }
    }

    /// Returns the name of the stage.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Waits for the work, and prints what it printed.
    ///
    /// # Errors
    ///
    /// Fails if the work fails.
    pub fn join(self) -> Outcome<T> {
        let (output, outcome) = self
            .thread
            .join()
            .map_err(|_| Failure::Check(format!("{} stopped by a panic", self.name)))?;
        let _ = io::stdout().write_all(&output);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::program;

    #[test]
    fn commands_start_when_the_first_test_runs() {
        let place = std::env::temp_dir().join(format!("xtask-{}", std::process::id()));
        let mut touch = program("touch");
        touch.arg(&place);
        let mut log = Vec::new();
        let mut tests = WhenTestsRun::new(&mut log, "test", vec![touch]);
        let lines = ["   Compiling rocov v0.1.0\n", "     Running tests/abi.rs\n"];
        tests.write_all(lines[0].as_bytes()).expect("a line");
        assert!(tests.started.is_none());
        tests.write_all(lines[1].as_bytes()).expect("a line");
        assert!(tests.started.is_some());
        assert_eq!(tests.start().join(), Ok(()));
        assert!(place.exists());
        fs::remove_file(&place).expect("the file");
        assert_eq!(log, lines.concat().as_bytes());
    }

    #[test]
    fn commands_beside_stop_at_the_first_failure() {
        let shell = |script: &str| {
            let mut shell = program("sh");
            shell.args(["-c", script]);
            shell
        };
        let beside = Beside::start(
            "test",
            vec![shell("true"), shell("exit 1"), shell("exit 2")],
        );
        let failure = beside.join().expect_err("the second fails");
        assert_eq!(failure.to_string(), "sh -c exit 1 failed");
        assert_eq!(Beside::start("test", vec![shell("true")]).join(), Ok(()));
    }
}

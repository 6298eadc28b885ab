//! Commands that are compiled while the tests run, in the time in which these leave processors idle.

use std::io::{self, Write};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::process::{in_background, run_logged, shown};
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

/// Commands that run one after another, concurrently with the other stages, when processors are idle.
pub struct Beside {
    name: &'static str,
    thread: JoinHandle<(Vec<u8>, Outcome)>,
}

impl Beside {
    /// Starts commands. The name is that of their stage.
    #[must_use]
    pub fn start(name: &'static str, commands: Vec<Command>) -> Self {
        let run = move || {
            let mut output = Vec::new();
            for command in &commands {
                match run_logged(&mut in_background(command), &mut output) {
                    Ok(true) => {}
                    Ok(false) => {
                        let failure = format!("{} failed", shown(command));
                        return (output, Err(Failure::Check(failure)));
                    }
                    Err(failure) => return (output, Err(failure)),
                }
            }
            (output, Ok(()))
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

    /// Waits for the commands, and prints what they printed.
    ///
    /// # Errors
    ///
    /// Fails if a command fails: those after it do not run.
    pub fn join(self) -> Outcome {
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

//! The stages of a long command: how long each took, and how busy the processors were.

use std::fs;
use std::time::{Duration, Instant};

use crate::say;

/// Prints the headings of stages, and takes their times.
pub struct Stages {
    started: Instant,
    processors: Processors,
    name: String,
    finished: Vec<(String, Duration, Option<u64>)>,
}

impl Stages {
    /// Starts the first stage.
    #[must_use]
    pub fn start(name: &str) -> Self {
        say(format_args!("\n== {name}"));
        Self {
            started: Instant::now(),
            processors: Processors::read(),
            name: name.to_owned(),
            finished: Vec::new(),
        }
    }

    /// Ends the stage, and starts another one.
    pub fn next(&mut self, name: &str) {
        self.end();
        say(format_args!("\n== {name}"));
        name.clone_into(&mut self.name);
    }

    /// Ends the last stage, and prints the time of each.
    pub fn finish(mut self) {
        self.end();
        say("\n== Seconds of each stage, and how busy the processors were");
        for (name, time, busy) in &self.finished {
            let busy = busy.map_or_else(String::new, |percent| format!("{percent:4} %"));
            say(format_args!("{:6} {busy}  {name}", time.as_secs()));
        }
    }

    fn end(&mut self) {
        let now = Processors::read();
        let busy = now.busy_since(&self.processors);
        let name = std::mem::take(&mut self.name);
        self.finished.push((name, self.started.elapsed(), busy));
        self.started = Instant::now();
        self.processors = now;
    }
}

/// The time of all processors since the system started, in ticks.
#[derive(Debug, Default, PartialEq)]
struct Processors {
    all: u64,
    idle: u64,
}

impl Processors {
    fn read() -> Self {
        fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Self::from_stat(&text))
            .unwrap_or_default()
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. The guests' time that
    /// follows is a part of the first two.
    fn from_stat(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = line.split_whitespace().take(8).map(str::parse::<u64>);
        let ticks: Vec<_> = ticks.collect::<Result<_, _>>().ok()?;
        Some(Self {
            all: ticks.iter().sum(),
            idle: ticks.get(3)? + ticks.get(4)?,
        })
    }

    /// Returns the percentage of the time since `before` in which processors were busy.
    fn busy_since(&self, before: &Self) -> Option<u64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = self.idle.checked_sub(before.idle)?;
        Some(100 - (100 * idle / all).min(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_when_they_neither_idle_nor_wait() {
        let before = "cpu  100 0 50 200 10 0 5 0 7 0\ncpu0 1 1 1 1\n";
        let after = "cpu  160 10 60 240 30 0 5 10 9 0\ncpu0 1 1 1 1\n";
        let [before, after] =
            [before, after].map(|text| Processors::from_stat(text).expect("ticks"));
        assert_eq!(
            before,
            Processors {
                all: 365,
                idle: 210
            }
        );
        // 150 ticks more, 60 of them idle or waiting.
        assert_eq!(after.busy_since(&before), Some(60));
        assert_eq!(before.busy_since(&before), None);
    }

    #[test]
    fn another_text_has_no_ticks() {
        for text in ["", "cpu0 1 2", "cpu  1 2 x 4 5", "cpu  1 2"] {
            assert_eq!(Processors::from_stat(text), None, "{text}");
        }
    }
}

//! A process, as the journal of a run names it: `PID:START:NAMESPACE`.
//!
//! A number alone would be that of several processes: it repeats in containers, and the system gives it to a later
//! process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// A process, in its own namespace of process ids. 0 stands for a start or a namespace that it could not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalProcess {
    /// Its number in its namespace.
    pub(super) pid: u32,
    /// Its start, in ticks since boot.
    start: u64,
    /// The inode of its namespace.
    namespace: u64,
}

/// The error for a text that names no process.
#[derive(Debug)]
pub(super) struct NoProcess;

impl FromStr for JournalProcess {
    type Err = NoProcess;

    fn from_str(text: &str) -> Result<Self, NoProcess> {
        let mut words = text.split(':');
        let mut next = || words.next().map(str::parse);
        let pid = next().and_then(Result::ok).ok_or(NoProcess)?;
        let mut next = || {
            words
                .next()
                .map_or(Ok(0), str::parse)
                .map_err(|_| NoProcess)
        };
        Ok(Self {
            pid,
            start: next()?,
            namespace: next()?,
        })
    }
}

impl JournalProcess {
    /// Returns whether its number is one of this namespace.
    pub(super) fn is_here(&self) -> bool {
        let ours = fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        [0, ours].contains(&self.namespace)
    }

    /// Returns whether it still runs. A process that nobody has waited for does not.
    pub(super) fn is_alive(&self) -> bool {
        if self.is_here() {
            return self.is_at(&Path::new("/proc").join(self.pid.to_string()));
        }
        // Processes of namespaces below have other numbers here.
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut processes = entries.map(|entry| entry.path());
        processes.any(|directory| self.is_at(&directory) && self.is_numbered(&directory))
    }

    /// Returns whether the process of `directory` runs and has this start.
    fn is_at(&self, directory: &Path) -> bool {
        let Ok(stat) = fs::read_to_string(directory.join("stat")) else {
            return false;
        };
        // The name before the last parenthesis may contain anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut words = rest.split_whitespace();
        let is_over = matches!(words.next(), Some("Z" | "X") | None);
        let start = words.nth(18).and_then(|word| word.parse().ok());
        !is_over && (self.start == 0 || start == Some(self.start))
    }

    /// Returns whether the process of `directory` has this number in its own namespace, which is this one.
    fn is_numbered(&self, directory: &Path) -> bool {
        // The namespaces of another user's process are not shown.
        let namespace = fs::metadata(directory.join("ns/pid"));
        if namespace.is_ok_and(|metadata| metadata.ino() != self.namespace) {
            return false;
        }
        let status = fs::read_to_string(directory.join("status")).unwrap_or_default();
        let mut lines = status.lines();
        let numbers = lines.find_map(|line| line.strip_prefix("NSpid:"));
        let own = numbers.and_then(|numbers| numbers.split_whitespace().last());
        own.is_some_and(|own| own.parse() == Ok(self.pid))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn process(text: &str) -> JournalProcess {
        text.parse().unwrap()
    }

    #[test]
    fn a_process_is_its_number_start_and_namespace() {
        assert_eq!(process("7"), process("7:0:0"));
        assert_ne!(process("7:1:2"), process("7:2:2"));
        assert_ne!(process("7:1:2"), process("7:1:3"));
        for text in ["", "x", "7:", "7:x", "7:1:-1"] {
            assert!(text.parse::<JournalProcess>().is_err(), "{text}");
        }
        assert!(!process("7:1:2").is_here());
    }

    #[test]
    fn a_later_process_of_the_number_is_another() {
        let mut child = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let start: u64 = stat.split(' ').nth(21).unwrap().parse().unwrap();
        let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let named =
            |start: u64, namespace: u64| process(&format!("{}:{start}:{namespace}", child.id()));
        let all = [
            named(start, namespace),
            named(start + 1, namespace),
            named(start, namespace + 1),
            named(0, 0),
        ];
        let alive: Vec<_> = all.iter().map(JournalProcess::is_alive).collect();
        assert_eq!(alive, [true, false, false, true]);
        child.kill().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while all[0].is_alive() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(
            !all[0].is_alive(),
            "nobody has waited for it, but it has ended"
        );
        child.wait().unwrap();
        assert!(!all[3].is_alive());
    }
}

//! The journal of a run: the words that its processes write about themselves, and the line that `rocov
//! run` ends with.
//!
//! librocov appends lines to a file that exists only for the run: `PROCESS WORD`, `PROCESS program` with the label and
//! the command line, `PROCESS name WORD`, `PROCESS registry PATH`, and `PROCESS uncounted` with a number, what it counts,
//! its file and the reason. The modelled GPU appends lines about kernels: `PROCESS mistake TEXT`, `PROCESS stuck TEXT`,
//! and `PROCESS goes-on TEXT` if that kernel has ended after all. The directory of the profiles shows neither which run
//! wrote a profile, nor which profiles are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::SystemTime;

use anyhow::Result;
use rocov::settings::Uncounted;
use rocov::store::ProcessWord;
use rocov::support::diagnostic::{Diagnostic, diagnostic};
use tempfile::NamedTempFile;

use super::command::quoted;
use crate::support::temporary;
use crate::system::journal_process::JournalProcess;
use crate::term::plural::count;

/// The file.
pub(crate) struct Journal(NamedTempFile);

/// The notes of each process. A process that has run several programs (`exec`) has several.
#[derive(Debug, Default)]
struct Notes(Vec<(JournalProcess, ProcessNotes)>);

/// The notes of a process.
#[derive(Debug, Default)]
struct ProcessNotes {
    /// The word in the names of its files.
    name: Option<ProcessWord>,
    words: BTreeSet<String>,
    /// The mistakes of its kernels, and its kernels without progress.
    sentences: Vec<String>,
    /// The label, if it has one, and the words of its command line, if they are known.
    label: Option<String>,
    command: Vec<String>,
    /// The code that ran uncounted, by its kind and its file; for each reason, the number.
    uncounted: BTreeMap<(Uncounted, String), BTreeMap<String, usize>>,
}

/// A process that has ended, and its notes for reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its number.
    pub(crate) pid: u32,
    /// The word in the names of its files.
    pub(crate) word: ProcessWord,
    /// The words of its command line, if they are known.
    pub(crate) command: Vec<String>,
    /// Sentences, the most important one first.
    pub(crate) notes: Vec<String>,
}

/// The end of a run, and its conditions.
pub(crate) struct Ending<'a> {
    /// The program as the user wrote it.
    pub(crate) program: &'a OsStr,
    /// Its process.
    pub(crate) pid: u32,
    /// The exit status of the program.
    pub(crate) status: ExitStatus,
    /// True if there is a GPU, of the machine or modelled.
    pub(crate) has_gpu: bool,
    /// True if there are snapshots.
    pub(crate) has_snapshots: bool,
    /// True if processes had instrumented code that they did not launch, and it counts as zero.
    pub(crate) has_zeros: bool,
    /// True if a profile was written that the journal does not contain, as on another host.
    pub(crate) has_profiles: &'a dyn Fn() -> bool,
    /// The line about a program whose code is for none of the modelled GPUs.
    pub(crate) misfit: &'a dyn Fn() -> Option<Diagnostic>,
}

impl Journal {
    /// Makes an empty journal.
    ///
    /// # Errors
    ///
    /// Fails if there is no room for temporary files.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(temporary::file("rocov-journal-")?))
    }

    /// The moment at which it was made, by the clock of files, which lags behind the system's by up to a
    /// tick.
    pub(crate) fn made_at(&self) -> SystemTime {
        let metadata = self.0.as_file().metadata();
        let made_at = metadata.and_then(|metadata| metadata.modified());
        made_at.unwrap_or_else(|_| SystemTime::now())
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The registries that processes have left.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be read.
    pub(crate) fn registries(&self) -> io::Result<BTreeSet<PathBuf>> {
        let text = fs::read(self.path())?;
        let lines = text.split(|byte| *byte == b'\n');
        let paths = lines.filter_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            line[space..].strip_prefix(b" registry ")
        });
        Ok(paths
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect())
    }

    /// The line for the end of the run; `None` if all is well.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn closing_line(&self, ending: &Ending<'_>) -> io::Result<Option<Diagnostic>> {
        Ok(self.notes()?.closing_line(ending, JournalProcess::is_alive))
    }

    /// The processes that have ended and have notes for reports.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn noted(&self, ending: &Ending<'_>) -> io::Result<Vec<Noted>> {
        Ok(self.notes()?.noted(ending, JournalProcess::is_alive))
    }

    /// A line for each file with CUDA modules, code objects, or parts of these that ran uncounted in any process.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn uncounted(&self) -> io::Result<Vec<String>> {
        Ok(self.notes()?.uncounted())
    }

    fn notes(&self) -> io::Result<Notes> {
        let text = fs::read(self.path())?;
        Ok(Notes::parse(&String::from_utf8_lossy(&text)))
    }
}

impl Notes {
    fn parse(text: &str) -> Self {
        let mut notes = Self::default();
        for line in text.lines() {
            if let Some((process, note)) = line.split_once(' ')
                && let Ok(process) = process.parse()
            {
                notes.entry(process, note).add(note);
            }
        }
        notes.0.sort_by_key(|(process, _)| process.pid);
        notes
    }

    /// The notes of the program that `process` runs at a `note`. After `exec`, another program has the process: it notes
    /// its command line, and another name.
    fn entry(&mut self, process: JournalProcess, note: &str) -> &mut ProcessNotes {
        let known = self.0.iter().rposition(|(known, _)| *known == process);
        let is_over = |place: &usize| {
            let notes = &self.0[*place].1;
            (note.starts_with("name ") && notes.name.is_some())
                || (note.starts_with("program ") && !notes.command.is_empty())
        };
        let place = known.filter(|place| !is_over(place)).unwrap_or_else(|| {
            self.0.push((process, ProcessNotes::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    fn any_has(&self, word: &str) -> bool {
        self.0.iter().any(|(_, notes)| notes.has(word))
    }

    fn uncounted(&self) -> Vec<String> {
        /// The modules of a file that ran uncounted.
        #[derive(Default)]
        struct Modules<'a> {
            processes: usize,
            by_reason: BTreeMap<&'a str, usize>,
        }
        let mut files: BTreeMap<&(Uncounted, String), Modules<'_>> = BTreeMap::new();
        for (file, reasons) in self.0.iter().flat_map(|(_, notes)| &notes.uncounted) {
            let modules = files.entry(file).or_default();
            modules.processes += 1;
            for (reason, number) in reasons {
                *modules.by_reason.entry(reason).or_default() += number;
            }
        }
        let lines = files.into_iter().filter_map(|((what, file), modules)| {
            let reasons = modules.by_reason.iter();
            let (reason, _) = reasons.max_by_key(|(_, number)| **number)?;
            let processes = match modules.processes {
                1 => String::new(),
                several => format!(" in {}", count(several, "process")),
            };
            let others = match modules.by_reason.len() - 1 {
                0 => String::new(),
                others => format!("; `rocov run -v` prints {}", count(others, "other reason")),
            };
            let number = modules.by_reason.values().sum();
            Some(what.line(number, file, &processes, &format!("{reason}{others}")))
        });
        lines.collect()
    }

    fn noted(&self, ending: &Ending<'_>, is_alive: impl Fn(&JournalProcess) -> bool) -> Vec<Noted> {
        // A process that still runs may write its registry again.
        let over: Vec<_> = self
            .0
            .iter()
            .filter(|(process, _)| !is_alive(process))
            .filter(|(_, notes)| notes.has("counts"))
            .collect();
        let cut_off = over.iter().filter(|(_, notes)| notes.lack_last_drain());
        let others = cut_off.count().saturating_sub(1);
        let all = over.into_iter().map(|(process, notes)| {
            let end = notes.lack_last_drain().then(|| {
                let end = ending.cut_off(process, notes, others);
                let who = match &notes.label {
                    Some(label) => format!("with label {label}, it"),
                    None => "it".to_owned(),
                };
                Diagnostic::new(format!("{who} {end}"), ending.remedy()).to_string()
            });
            let sentences = end.into_iter().chain(notes.sentences.iter().cloned());
            Noted {
                pid: process.pid,
                word: notes.name.clone().unwrap_or_default(),
                command: notes.command.clone(),
                notes: sentences.collect(),
            }
        });
        all.filter(|process| !process.notes.is_empty()).collect()
    }

    fn closing_line(
        &self,
        ending: &Ending<'_>,
        is_alive: impl Fn(&JournalProcess) -> bool,
    ) -> Option<Diagnostic> {
        let is_cut_off = |(process, notes): &&(JournalProcess, ProcessNotes)| {
            notes.lack_last_drain() && !is_alive(process)
        };
        let cut_off: Vec<_> = self.0.iter().filter(is_cut_off).collect();
        if let [(first, notes), others @ ..] = cut_off.as_slice() {
            return Some(ending.line_of_cut_off(first, notes, others.len()));
        }
        if self.any_has("lost") {
            return Some(diagnostic!("counts are lost"; "see the lines above"));
        }
        if self.any_has("wrote") || self.any_has("neighbour") || (ending.has_profiles)() {
            return None;
        }
        // The program that used the GPU, not what started it.
        let used = ["loaded", "hip", "cuda"].into_iter().find_map(|word| {
            let mut users = self.0.iter().filter(|(_, notes)| notes.has(word));
            users.find_map(|(_, notes)| notes.command.first())
        });
        let program = used.map_or_else(|| ending.program.display().to_string(), Clone::clone);
        let misfit = || {
            let is_possible = !self.any_has("counts");
            is_possible.then(|| (ending.misfit)()).flatten()
        };
        let why = if let Some(misfit) = misfit() {
            misfit
        } else if ending.has_zeros {
            return Some(diagnostic!(
                "no instrumented kernel was launched: this run adds only zeros to the report";
                "check the command and its arguments"
            ));
        } else if self.any_has("counts") {
            diagnostic!("no profile contains the counts"; "`rocov run -v` prints the steps of the drain")
        } else if self.any_has("skipped") {
            diagnostic!(
                "ROCOV_ONLY and ROCOV_SKIP leave out all GPU code that was loaded";
                "change or unset them"
            )
        } else if self.any_has("hip") && !ending.has_gpu {
            diagnostic!(
                "this machine has no GPU (no /dev/kfd)";
                "`rocov run --gpu model` runs the program on a modelled one"
            )
        } else if !["hip", "cuda", "loaded"]
            .iter()
            .any(|word| self.any_has(word))
        {
            if ending.has_gpu {
                diagnostic!("no process used a GPU"; "check the command and its arguments")
            } else {
                diagnostic!(
                    "no process used a GPU, and this machine has none (no /dev/kfd, no /dev/nvidiactl)";
                    "run the program on a machine with a GPU, or use --gpu model if its code is for AMD GPUs"
                )
            }
        } else if let Some(signal) = ending.killed_by() {
            diagnostic!(
                "`{program}` was killed by {signal} before it loaded instrumented GPU code";
                "fix that first"
            )
        } else {
            diagnostic!(
                "no process loaded instrumented GPU code";
                "compile it with the flags that `rocov flags` prints, or have hipRTC compile it with the flags that \
                 `rocov flags --hiprtc` prints, and run `rocov doctor {program}`; to keep the current flags, use \
                 `rocov run --instrument` or `rocov run --trace --gpu model`"
            )
        };
        Some(why.within("nothing was drained"))
    }
}

impl ProcessNotes {
    fn add(&mut self, note: &str) {
        match note.split_once(' ') {
            Some(("name", word)) => self.name = word.parse().ok(),
            // Each queue reports a mistake once.
            Some(("mistake", text)) if self.sentences.iter().any(|sentence| sentence == text) => {}
            Some(("mistake" | "stuck", text)) => self.sentences.push(text.to_owned()),
            Some(("program", text)) => {
                let mut words = text.split('\t').map(str::to_owned);
                self.label = words.next().filter(|label| !label.is_empty());
                self.command = words.collect();
            }
            Some(("uncounted", text)) => {
                let mut parts = text.splitn(4, '\t');
                if let (Some(Ok(number)), Some(what), Some(file), Some(reason)) = (
                    parts.next().map(str::parse::<usize>),
                    parts.next().and_then(Uncounted::from_word),
                    parts.next(),
                    parts.next(),
                ) {
                    let reasons = self.uncounted.entry((what, file.to_owned())).or_default();
                    *reasons.entry(reason.to_owned()).or_default() += number;
                }
            }
            Some(("goes-on", text)) => {
                if let Some(place) = self.sentences.iter().position(|sentence| sentence == text) {
                    self.sentences.remove(place);
                }
            }
            _ => {
                self.words.insert(note.to_owned());
            }
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Returns whether the last drain is missing.
    fn lack_last_drain(&self) -> bool {
        self.has("counts") && !self.has("ended") && !self.has("neighbour")
    }
}

impl Ending<'_> {
    /// Returns whether `process` is the program, and not one of its number in a container.
    fn is_program(&self, process: &JournalProcess) -> bool {
        process.pid == self.pid && process.is_here()
    }

    /// The name of the signal that killed the program, if one did. A shell that has seen a program die says so
    /// by its exit status.
    fn killed_by(&self) -> Option<&'static str> {
        let of_status = self.status.code().map(|code| code - 128);
        self.status.signal().or(of_status).and_then(signal_name)
    }

    /// The end of a process that came before its last drain, as did those of so many `others`. The status of a shell
    /// does not show which of them a signal has killed.
    fn cut_off(&self, process: &JournalProcess, notes: &ProcessNotes, others: usize) -> String {
        let is_meant = self.is_program(process) || self.status.signal().is_none() && others == 0;
        let end = match self.killed_by().filter(|_| is_meant) {
            Some(name) => format!("was killed by {name}"),
            None => "ended".to_owned(),
        };
        // It may have written a profile before, or not.
        match notes.has("wrote") {
            true => format!("{end} after its last drain: later counts are lost"),
            false => format!("{end} before its counters were drained: they are lost"),
        }
    }

    /// The line about a process, and so many `others`, that ended before the last drain.
    fn line_of_cut_off(
        &self,
        process: &JournalProcess,
        notes: &ProcessNotes,
        others: usize,
    ) -> Diagnostic {
        let who = self.name_of(process, notes);
        let mut line = format!("{who} {}", self.cut_off(process, notes, others));
        if others > 0 {
            line += &format!(", as are those of {}", count(others, "other process"));
        }
        Diagnostic::new(line, self.remedy())
    }

    /// The process: its command line and its label, as far as they are known. A wrapper's name says little.
    fn name_of(&self, process: &JournalProcess, notes: &ProcessNotes) -> String {
        let label = notes.label.as_ref().map(|label| format!("label {label}"));
        if notes.command.is_empty() {
            return match self.is_program(process) {
                true => format!("`{}`", self.program.display()),
                false => format!("process {}", process.pid),
            };
        }
        let words = notes.command.iter().map(|word| quoted(word.as_ref()));
        let command = words.collect::<Vec<_>>().join(" ");
        let number = (!self.is_program(process)).then(|| format!("process {}", process.pid));
        let parts: Vec<_> = number.into_iter().chain(label).collect();
        match parts.is_empty() {
            true => format!("`{command}`"),
            false => format!("`{command}` ({})", parts.join(", ")),
        }
    }

    /// The way to lose less.
    fn remedy(&self) -> &'static str {
        match self.has_snapshots {
            true => "a shorter `--snapshot-every` loses less",
            false => "`rocov run --snapshot-every 1s` drains while a program runs",
        }
    }
}

/// The name of a signal that ends programs.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

//! The session of a page: its commands in one shell, in a fresh directory.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use regex::Regex;
use tempfile::TempDir;

use super::blocks::{Block, Step, is_printed};
use super::pages::{Mark, Page, Use};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};

/// The parts of the repository to which pages refer.
const PARTS: [&str; 5] = ["tools", "testdata", "examples", "runtime", "tests"];

/// Defines the functions of setups: `scale SOURCE PROGRAM` makes the program of examples/cmake, of which all lines run with
/// the arguments 256 and 100. `scale_library NAME FLAGS` makes a library with a function NAME instead of `main`. A page
/// runs on a machine with ROCm's Clang, which is Clang 22 with Debian's HIP here, and with a GPU, the modelled one.
const BEGIN: &str = r#"
stand_in() { printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
mkdir -p bin opt/rocm/llvm/bin
for name in clang++ clang hipcc; do
  stand_in "$name" "exec clang++-22 --config=$REPOSITORY/testdata/sample/debian12.cfg \"\$@\""
done
ln -s "$HERE/bin/clang++" "$HERE/bin/clang" opt/rocm/llvm/bin
printf '[run]\ngpu = "model"\n' >rocov.toml
instrumented() { clang++ $(rocov flags --clang clang++) -O1 "$@"; }
scale() { cp examples/cmake/scale.hip "$1"; instrumented "$1" -o "$2"; }
scale_library() {
  sed -e "s/int main(/int $1(/" -e '$s/}/  return 0;\n}/' examples/cmake/scale.hip >"$1.hip"
  instrumented -fPIC -shared "${@:2}" "$1.hip" -o "lib$1.so"
}
commit() { git add -A && git -c user.name=N -c user.email=e@mail commit -q -m "$1"; }
"#;

/// Runs command lines that cannot work here, as far as they are rocov's: rocov must read them. A program that is not here
/// does nothing, but a command of rocov in its arguments runs.
const ELSEWHERE: &str = r#"
PATH=$BIN
command_not_found_handle() {
  while [ $# -gt 0 ]; do
    if [ "$1" = sh ] || { [ "$1" = rocov ] && [[ ${2-} =~ ^[a-z]+$ ]] && [ "$2" != rocov ]; }; then
      "$@"
      return
    fi
    shift
  done
}
"#;

/// The stand-in for rocov there.
const READS: &str = r#"#!/bin/bash
"$ROCOV" "$@" >>"$READ.log" 2>&1 </dev/null
echo "$?: rocov $*" >>"$READ"
"#;

/// The programs that are there.
const TOOLS: [&str; 6] = ["bash", "cat", "mkdir", "printf", "sh", "tr"];

/// The expected output of a step.
enum Expected {
    /// Nothing is known about it.
    Anything,
    /// All of its output.
    All(Vec<String>),
    /// Lines of it, one after the other.
    Lines(Vec<String>),
    /// Words anywhere in it.
    Words(Vec<String>),
}

pub(super) struct Session {
    page: &'static Page,
    directory: TempDir,
    script: String,
    /// For each expectation the number of its step, and the place in the page.
    expected: Vec<(usize, String, Expected)>,
    steps: usize,
    /// Blocks that only rocov reads, with their places in the page.
    elsewhere: Vec<(String, String)>,
}

impl Session {
    /// `None` if something that the page needs is not unpacked here. Standard error then names it.
    pub(super) fn begin(page: &'static Page) -> Option<Self> {
        let needed: Option<Vec<String>> =
            page.needs.iter().map(|need| need.environment()).collect();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let session = Self {
            page,
            script: format!("{BEGIN}\n{}\n{}\n", needed?.join("\n"), page.setup),
            directory,
            expected: Vec::new(),
            steps: 0,
            elsewhere: Vec::new(),
        };
        let target = built("rocov");
        let target = target.ancestors().nth(2).expect("cargo's target directory");
        let link = |place: &Path, name: &str| {
            symlink(place, session.path(name)).expect("a link can be made");
        };
        fs::create_dir(session.path("")).expect("a new directory");
        link(target, "target");
        for part in PARTS {
            link(&repository(part), part);
        }
        Some(session)
    }

    /// A path in the directory of the page.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("page").join(name)
    }

    /// A path next to it, for what the test writes.
    fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a block to the session, in the way of its mark.
    pub(super) fn add(&mut self, block: &Block, mark: Option<&'static Mark>) {
        let place = format!("{}:{}", self.page.path, block.line);
        let mark = mark.unwrap_or(&Mark::RUN);
        if !matches!(mark.used, Use::Elsewhere(_)) {
            let _ = writeln!(self.script, "{}", mark.before);
        }
        match mark.used {
            Use::Run => {
                let steps = block.steps().unwrap_or_else(|| {
                    panic!(
                        "{place}: a test must use this block: it is of {:?}, so say in the table of pages which file it \
                         is, of which output it is a part, or why it is used elsewhere",
                        block.language
                    )
                });
                for step in steps {
                    self.step(&place, &step);
                }
            }
            Use::File(name) => {
                let text = self.here(&block.text);
                let _ = writeln!(
                    self.script,
                    "mkdir -p $(dirname {name})\ncat >>{name} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK"
                );
            }
            Use::PrintedBy(command) => {
                let command = command.to_owned();
                let printed = block.text.lines().map(str::to_owned).collect();
                self.step(&place, &Step { command, printed });
            }
            Use::Output => {
                let lines = self.lines(&block.text);
                let last = self
                    .steps
                    .checked_sub(1)
                    .expect("a command before its output");
                self.expect(last, &place, Expected::Lines(lines));
            }
            Use::PartOf(file) => {
                let whole = fs::read_to_string(repository(file)).expect("a file of the repository");
                let whole: Vec<_> = whole.lines().map(code_of).collect();
                for line in block.text.lines().filter(|line| !line.is_empty()) {
                    assert!(
                        whole.contains(&code_of(line)),
                        "{place}: {file} has no line {line:?}"
                    );
                }
            }
            Use::Elsewhere(_) => {
                let steps = block.steps().unwrap_or_default();
                let commands = steps.into_iter().map(|step| step.command);
                let commands = [mark.before.to_owned()]
                    .into_iter()
                    .chain(commands)
                    .collect::<Vec<_>>()
                    .join("\n");
                self.elsewhere.push((place.clone(), self.here(&commands)));
            }
        }
        let _ = writeln!(self.script, "{}", mark.then);
        if !mark.prints.is_empty() {
            let last = self.steps.checked_sub(1).expect("a command that prints");
            let words = mark.prints.iter().map(|&words| words.to_owned());
            self.expect(last, &place, Expected::Words(words.collect()));
        }
    }

    fn step(&mut self, place: &str, step: &Step) {
        let number = self.steps;
        self.steps += 1;
        let printed = self.lines(&step.printed.join("\n"));
        let expected = match printed.is_empty() {
            true => Expected::Anything,
            false => Expected::All(printed),
        };
        self.expect(number, place, expected);
        let command = self.here(&step.command);
        let _ = writeln!(
            self.script,
            "echo '{place}' >\"$STEPS/now\"\n{{\n{command}\n}} >\"$STEPS/{number}\" 2>&1"
        );
    }

    fn expect(&mut self, step: usize, place: &str, expected: Expected) {
        self.expected.push((step, place.to_owned(), expected));
    }

    /// A text of the page with the names that differ here.
    fn here(&self, text: &str) -> String {
        let rocm = [("/opt/rocm", "$HERE/opt/rocm")];
        let names = rocm.iter().chain(self.page.here);
        names.fold(text.to_owned(), |text, (written, here)| {
            text.replace(written, here)
        })
    }

    /// The lines of a text, with marks for what no page can know.
    fn lines(&self, text: &str) -> Vec<String> {
        let directory = self.path(".").canonicalize().expect("the page's directory");
        let text = text
            .replace(&*directory.to_string_lossy(), "HERE")
            .replace(&*repository("").to_string_lossy(), "HERE/");
        let unknown = |pattern: &str| Regex::new(pattern).expect("a pattern");
        let text = unknown(r"\b[0-9a-f]{32}\b").replace_all(&text, "IDENTITY");
        let text = self
            .page
            .varies
            .iter()
            .fold(text.into_owned(), |text, (pattern, mark)| {
                unknown(pattern).replace_all(&text, *mark).into_owned()
            });
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Runs the commands, and compares what they print.
    pub(super) fn run(self) {
        let ended = self.run_script();
        for (step, place, expected) in &self.expected {
            let file = self.beside("steps").join(step.to_string());
            let text = fs::read_to_string(file).unwrap_or_default();
            let found = self.lines(&text);
            match expected {
                Expected::Anything => {}
                Expected::All(lines) => {
                    assert!(
                        is_printed(lines, &found, true),
                        "{place}: the page prints\n{}\n\nand the command\n{}",
                        lines.join("\n"),
                        found.join("\n")
                    );
                }
                Expected::Lines(lines) => {
                    let is_there =
                        (0..found.len()).any(|start| is_printed(lines, &found[start..], false));
                    assert!(
                        is_there,
                        "{place}: the page prints\n{}\n\nand the command before\n{}",
                        lines.join("\n"),
                        found.join("\n")
                    );
                }
                Expected::Words(all) => {
                    for words in all {
                        assert!(text.contains(words), "{place}: no {words:?} in\n{text}");
                    }
                }
            }
        }
        self.has_no_other_message(&ended);
        for (place, commands) in &self.elsewhere {
            self.reads(place, commands);
        }
    }

    fn run_script(&self) -> Ended {
        let steps = self.beside("steps");
        fs::create_dir(&steps).expect("a new directory");
        let here = self.path(".").canonicalize().expect("the page's directory");
        let rocov = built("rocov");
        let place = rocov.parent().expect("a file is in a directory");
        let script = self.beside("script");
        fs::write(&script, &self.script).expect("a file can be written");
        let mut shell = limited("bash");
        shell.args(["-e", "-u", "-o", "pipefail"]).arg(&script);
        let path = std::env::var("PATH").expect("a PATH");
        shell
            .env(
                "PATH",
                format!("{}/bin:{}:{path}", here.display(), place.display()),
            )
            .env("HERE", &here)
            .env(
                "REPOSITORY",
                repository(".").canonicalize().expect("a directory"),
            )
            .env("STEPS", &steps)
            .env_remove("LLVM_PROFILE_FILE")
            .current_dir(&here);
        let ended = run(&mut shell);
        if !ended.status.success() {
            let now = fs::read_to_string(steps.join("now")).unwrap_or_default();
            let mut printed = String::new();
            for step in 0..self.steps {
                if let Ok(text) = fs::read_to_string(steps.join(step.to_string())) {
                    printed = text;
                }
            }
            panic!("{}: {printed}\n{ended}", now.trim());
        }
        ended
    }

    /// Expects that rocov reports nothing but what the page shows, and what its mark names.
    fn has_no_other_message(&self, ended: &Ended) {
        let page = fs::read_to_string(repository(self.page.path)).expect("a page");
        let page = self.lines(&page);
        let outputs = (0..self.steps).map(|step| {
            let file = self.beside("steps").join(step.to_string());
            fs::read_to_string(file).unwrap_or_default()
        });
        for text in outputs.chain([ended.stderr.clone()]) {
            for line in self.lines(&text) {
                let is_message = line.starts_with("rocov: ");
                let is_known = self.page.messages.iter().any(|part| line.contains(part));
                assert!(
                    !is_message || is_known || page.contains(&line),
                    "{}: rocov prints a line that the page does not have: {line}",
                    self.page.path
                );
            }
        }
    }

    /// Has rocov read the command lines of a block that does not run here. It ends with 2 if it does not know an option,
    /// a value, or a combination.
    fn reads(&self, place: &str, commands: &str) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bin = directory.path().join("bin");
        let empty = directory.path().join("empty");
        for folder in [&bin, &empty] {
            fs::create_dir(folder).expect("a new directory");
        }
        for tool in TOOLS {
            let program = Path::new("/usr/bin").join(tool);
            symlink(program, bin.join(tool)).expect("a link can be made");
        }
        let stand_in = bin.join("rocov");
        fs::write(&stand_in, READS).expect("a file can be written");
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let read = directory.path().join("read");
        let mut shell = limited("bash");
        shell.arg("-c").arg(format!("{ELSEWHERE}\n{commands}"));
        shell
            .env("BIN", &bin)
            .env("HOME", &empty)
            .env("HERE", &empty)
            .env("ROCOV", built("rocov"))
            .env("READ", &read)
            .current_dir(&empty);
        let ended = run(&mut shell);
        let read = fs::read_to_string(read).unwrap_or_default();
        let names = Regex::new(r"\brocov (?:[a-z]+) ").expect("a pattern");
        assert!(
            !read.is_empty() || !names.is_match(commands),
            "{place}: rocov has read no command line: {ended}"
        );
        for line in read.lines() {
            let log = fs::read_to_string(directory.path().join("read.log")).unwrap_or_default();
            assert!(
                !line.starts_with("2: "),
                "{place}: rocov rejects {line}\n{log}"
            );
        }
    }
}

/// A line of a file without its comment.
fn code_of(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

//! A git repository with a kernel, and data of runs of it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The kernel before the change.
pub(crate) const BEFORE: &str = "\
#define __global__ __attribute__((global))

extern \"C\" __global__ void step(int *value) {
  if (*value > 3) {
    *value = 1;
  }
}
";

/// After it: with a branch that gfx942 alone has, and one that neither takes.
pub(crate) const AFTER: &str = "\
#define __global__ __attribute__((global))

extern \"C\" __global__ void step(int *value) {
#ifdef __gfx942__
  if (*value > 9) {
    *value = 9;
  }
#endif
  if (*value > 3) {
    *value = 1;
  } else if (*value < 0) {
    *value = 0; // never
  }
  value[1] = 2; // a comment
}
";

/// A place with a repository in it.
pub(crate) struct Repository {
    pub(crate) place: Place,
    /// The directory of the sources.
    pub(crate) root: PathBuf,
}

impl Repository {
    /// An empty one, in a directory of this name.
    pub(crate) fn new(name: &str) -> Self {
        let place = Place::new();
        let root = place.path().canonicalize().unwrap().join(name);
        fs::create_dir(&root).unwrap();
        let repository = Self { place, root };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    /// One with the change to `name` as its last commit.
    pub(crate) fn with_change(name: &str) -> Self {
        let repository = Self::new("source");
        for text in [BEFORE, AFTER] {
            repository.write(name, text);
            repository.commit();
        }
        repository
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(arguments);
        stdout(&run(&mut git))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "change"]);
    }

    /// Compiles the source at `path` for an arch, and writes a profile in which every counter is at
    /// 3, except those that `is_missed` says of a function's.
    pub(crate) fn ran(&self, path: &Path, arch: &str, is_missed: fn(u64) -> bool) -> PathBuf {
        let name = format!("{arch}.elf");
        let elf = compile_source(path, self.place.path(), &name, arch, &INSTRUMENTED);
        let count = |_: &str, number: u64| if is_missed(number) { 0 } else { 3 };
        let profile = self.place.profile_path(&elf, arch, 0);
        profile::write_counts(&elf, &count, RAW_VERSION, &profile);
        self.place.keep_as(&elf, arch);
        elf
    }

    /// Both archs have run the source at `path`, and neither has taken the new branches.
    pub(crate) fn ran_on_both(&self, path: &Path) {
        self.ran(path, "gfx90a", |number| number == 2);
        self.ran(path, "gfx942", |number| matches!(number, 1 | 3));
    }

    /// `rocov report ARGUMENTS` where the sources are.
    pub(crate) fn report(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command();
        command.current_dir(&self.root);
        command.arg(self.place.data()).args(arguments);
        command
    }

    /// The lines of a file that the last commit brought, by git's annotation of it.
    pub(crate) fn blamed(&self, name: &str) -> BTreeSet<u64> {
        let head = self.git(&["rev-parse", "HEAD"]);
        let blame = self.git(&["blame", "--porcelain", name]);
        let lines = blame.lines().filter_map(|line| {
            // HASH, line then, line now.
            let rest = line.strip_prefix(head.trim())?;
            rest.split_whitespace().nth(1)?.parse().ok()
        });
        lines.collect()
    }

    /// The counts of a file's lines on an arch, by llvm-cov.
    pub(crate) fn counted(&self, path: &Path, arch: &str) -> BTreeMap<u64, u64> {
        let merged = profile::indexed(&self.place.data(), arch);
        let mut export = Command::new("llvm-cov-22");
        export.args(["export", "-format=lcov", "-instr-profile"]);
        export.arg(merged);
        export.arg(self.place.path().join(format!("{arch}.elf")));
        let tracefile = stdout(&run(export.arg(path)));
        let lines = crate::report::archs::lcov_lines(&tracefile).into_iter();
        lines.map(|(line, count)| (line.into(), count)).collect()
    }
}

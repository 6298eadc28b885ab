//! Sources that were compiled in several checkouts.

use super::*;

/// A kernel with a static function, whose name in the profile has the path of the source, and a header.
const SOURCES: [(&str, &str); 2] = [
    (
        "src/step.hip",
        "\
#include \"limit.h\"
static __attribute__((device, noinline)) int half(int value) {
  return value / 2;
}
extern \"C\" __attribute__((global)) void step(int *value) {
  if (*value > 3) {
    *value = limit(half(*value));
  } else {
    *value = 0;
  }
}
",
    ),
    (
        "src/limit.h",
        "\
static inline __attribute__((device)) int limit(int value) {
  return value > 9 ? 9 : value;
}
",
    ),
];

/// The names of the shards' checkouts.
const SHARDS: [&str; 2] = ["shardA", "shardB"];

fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments);
    run(&mut git);
}

fn write(root: &Path) {
    for (name, text) in SOURCES {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn commit(root: &Path) {
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "kernel"]);
}

/// A place with the sources in two checkouts.
struct Shards {
    place: Place,
    roots: [PathBuf; 2],
}

impl Shards {
    /// Neither checkout is a work tree.
    fn plain() -> Self {
        let place = Place::new();
        let here = place.path().canonicalize().unwrap();
        let roots = SHARDS.map(|name| here.join(name));
        for root in &roots {
            write(root);
        }
        Self { place, roots }
    }

    /// Both are clones of one repository.
    fn cloned() -> Self {
        let shards = Self::plain();
        commit(&shards.roots[0]);
        fs::remove_dir_all(&shards.roots[1]).unwrap();
        git(shards.place.path(), &["clone", "-q", SHARDS[0], SHARDS[1]]);
        shards
    }

    /// Compiles the kernel in the checkout with this number, and writes what the shard with that number counts: the
    /// first takes one branch, the other takes both.
    fn ran(&self, checkout: usize, shard: usize, data: &str) {
        let source = self.roots[checkout].join("src/step.hip");
        let data = self.place.path().join(data).join(SHARDS[shard]);
        fs::create_dir_all(data.join("profraw/labels/unit")).unwrap();
        let elf = compile_source(&source, &data, "step.elf", "gfx90a", &INSTRUMENTED);
        let identity = profile::identity(&elf);
        let count =
            |_: &str, number: u64| [7, if shard == 0 { 0 } else { 5 }][usize::from(number > 0)];
        let name = format!("profraw/labels/unit/gfx90a.{identity}.0.{shard}.profraw");
        profile::write_counts(&elf, &count, RAW_VERSION, &data.join(name));
        let kept = data.join(format!("objects/gfx90a.{identity}.elf"));
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::rename(elf, kept).unwrap();
    }

    /// Both shards ran, each in its checkout; `once` has them in one.
    fn ran_both(&self) {
        for shard in [0, 1] {
            self.ran(shard, shard, "art");
            self.ran(0, shard, "once");
        }
    }

    /// `rocov SUBCOMMAND ARGUMENTS` on the artifacts of both shards.
    fn rocov(&self, subcommand: &str, data: &str, arguments: &[&str]) -> Output {
        let mut command = rocov();
        command.current_dir(self.place.path()).arg(subcommand);
        command.args(SHARDS.map(|name| format!("{data}/{name}")));
        command.args(arguments).output().unwrap()
    }

    fn report(&self, data: &str, arguments: &[&str]) -> Output {
        self.rocov("report", data, arguments)
    }

    /// The tracefile of shards that ran in one checkout.
    fn expected(&self) -> String {
        stdout(&self.report("once", &["--lcov"]))
    }

    /// Checks that a report has each source twice, with one line about it that ends with `roots`.
    fn check_apart(&self, roots: &[PathBuf; 2]) {
        let output = self.report("art", &["--lcov"]);
        assert_eq!(stdout(&output).matches("SF:").count(), 4);
        let said = stderr(&output);
        let [one, other] = [&self.roots[0], &self.roots[1]].map(|root| root.join("src/limit.h"));
        let expected = format!(
            "rocov: {} and {} look like one source, and are reported as two, as do 1 other pair: to join them, use \
             --source-root {} --source-root {}\n",
            one.display(),
            other.display(),
            roots[0].display(),
            roots[1].display(),
        );
        assert_eq!(said, expected);
        // The advice is right.
        let roots = roots.each_ref().map(|path| path.to_str().unwrap());
        let arguments = [
            "--lcov",
            "--source-root",
            roots[0],
            "--source-root",
            roots[1],
        ];
        let output = self.report("art", &arguments);
        assert_eq!(stderr(&output), "");
        assert_eq!(stdout(&output), self.expected());
    }
}

#[test]
fn checkouts_of_one_commit_are_reported_as_one() {
    let shards = Shards::cloned();
    shards.ran_both();
    // By llvm-cov: the first shard misses the else branch's other side, the second nothing.
    let tracefile = shards.expected();
    assert!(tracefile.contains("DA:7,"), "{tracefile}");
    for arguments in [
        &["--lcov"][..],
        &["--json"],
        &["--cobertura"],
        &["--sonar"],
        &["--markdown"],
        &["--markdown", "--per-test"],
        &["--show"],
        &["--lcov", "--path-map=/nowhere=/else"],
    ] {
        let [joined, once] = ["art", "once"].map(|data| shards.report(data, arguments));
        if !arguments.contains(&"--path-map=/nowhere=/else") {
            assert_eq!(stderr(&joined), "", "{arguments:?}");
        }
        let masked = |output: &Output| {
            let text = stdout(output);
            // Object files differ, and times.
            let lines = text
                .lines()
                .filter(|line| !line.contains(".elf") && !line.contains("profile"));
            lines
                .map(|line| {
                    line.replace("<coverage ", "")
                        .split(" timestamp")
                        .next()
                        .unwrap_or_default()
                        .to_owned()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(masked(&joined), masked(&once), "{arguments:?}");
    }
    let output = shards.report("art", &["--fail-under-lines=100", "--quiet"]);
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
    assert_eq!(
        failure(
            &shards.report(
                "art",
                &[
                    "--fail-under-lines=100",
                    "--quiet",
                    "--arch=gfx90a",
                    "--exclude=**/shardA/**"
                ]
            ),
            3
        )
        .matches("gate")
        .count(),
        1
    );
}

#[test]
fn lines_tests_and_merged_profiles_have_one_source() {
    let shards = Shards::cloned();
    shards.ran_both();
    let merge = shards.rocov("merge", "art", &["--per-test", "-o", "merged"]);
    assert!(merge.status.success(), "{merge:?}");
    for name in SHARDS {
        let line = format!("{name}/src/step.hip:9");
        let mut which = rocov();
        which.current_dir(shards.place.path());
        let output = run(which.args(["which", &line, "merged", "--json"]));
        assert_eq!(stderr(&output), "");
        let answer: serde_json::Value = json(output.stdout);
        let tests = &answer["lines"][0]["tests"];
        assert_eq!(tests.as_array().unwrap().len(), 1, "{answer}");
    }
    let mut diff = rocov();
    diff.current_dir(shards.place.path());
    let output = diff.args(["diff", "art", "once"]).output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(!stdout(&output).contains("shardB"), "{output:?}");
}

#[test]
fn checkouts_that_are_gone_are_joined_on_request() {
    let shards = Shards::cloned();
    shards.ran_both();
    let expected = shards.expected();
    for gone in [&[1][..], &[0, 1]] {
        for number in gone {
            fs::rename(
                &shards.roots[*number],
                shards
                    .place
                    .path()
                    .join(format!("gone{number}-{}", gone.len())),
            )
            .unwrap_or_default();
        }
        assert_eq!(shards.expected(), expected);
        shards.check_apart(&shards.roots);
    }
    // The order of the roots decides where the source is.
    let [first, second] = [0, 1].map(|path| shards.roots[path].to_str().unwrap());
    let output = shards.report(
        "art",
        &[
            "--lcov",
            "--source-root",
            second,
            "--source-root",
            first,
            "--source-root=idle",
        ],
    );
    assert_eq!(stdout(&output), expected.replace("shardA", "shardB"));
    let idle = shards.place.path().canonicalize().unwrap().join("idle");
    let idle = idle.display();
    assert_eq!(
        stderr(&output),
        format!(
            "rocov: no source is below --source-root {idle}: none was compiled in {idle}; fix it, or leave it out\n"
        )
    );
}

#[test]
fn equal_sources_of_two_repositories_stay_apart() {
    let shards = Shards::plain();
    for root in &shards.roots {
        // Commits of one second are equal, too.
        fs::write(root.join("README"), root.as_os_str().as_encoded_bytes()).unwrap();
        commit(root);
    }
    shards.ran_both();
    shards.check_apart(&shards.roots);
}

#[test]
fn copies_outside_of_repositories_stay_apart() {
    let shards = Shards::plain();
    shards.ran_both();
    shards.check_apart(&shards.roots);
}

#[test]
fn only_equal_sources_of_two_commits_are_joined() {
    let shards = Shards::cloned();
    let header = shards.roots[1].join("src/limit.h");
    let text = SOURCES[1]
        .1
        .replace("value > 9", "value > 8")
        .replace('?', "\n?");
    fs::write(&header, text).unwrap();
    git(&shards.roots[1], &["add", "."]);
    git(&shards.roots[1], &["commit", "-q", "-m", "limit"]);
    shards.ran_both();
    let output = shards.report("art", &["--lcov"]);
    assert_eq!(stderr(&output), "");
    let tracefile = stdout(&output);
    let mut sources: Vec<_> = tracefile
        .lines()
        .filter_map(|line| line.strip_prefix("SF:"))
        .collect();
    sources.sort_unstable();
    let [first, second] = &shards.roots;
    let expected = [
        first.join("src/limit.h"),
        first.join("src/step.hip"),
        second.join("src/limit.h"),
    ];
    assert_eq!(
        sources,
        expected.each_ref().map(|path| path.to_str().unwrap())
    );
}

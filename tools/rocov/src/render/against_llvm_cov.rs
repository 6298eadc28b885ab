//! The model has what llvm-cov has: regions, segments, branches, MC/DC and every figure.
//!
//! Objects of the host stand for code objects here, as they need no GPU to be counted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rocov_tests::json::json;
use serde_json::Value;
use tempfile::TempDir;

use super::{Format, JsonContents, write};
use crate::coverage::collect::{CountedBinary, collect};
use crate::coverage::exclusions::Exclusions;
use crate::coverage::model::{Side, Source};
use crate::coverage::view::{By, Rules, View};
use crate::llvm::LlvmTools;
use crate::profdata::{BinaryCounts, CountKind, CountKinds};
use crate::system::command;

/// Counts of any size.
pub(super) const LCOV: Format = Format::Lcov {
    max_count: u64::MAX,
};

const COV: &str = "llvm-cov-22";

/// A program and a library that it needs, each with a profile of its own counts.
struct Counted {
    directory: TempDir,
}

impl Counted {
    fn run() -> Self {
        let counted = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        counted.compile("other", &["-shared", "-fPIC"]);
        let library = counted.object("other");
        counted.compile("shapes", &[library.to_str().unwrap()]);
        let mut program = Command::new(counted.object("shapes"));
        command::output(program.env_remove("LLVM_PROFILE_FILE")).unwrap();
        for names in [&["shapes"][..], &["other"], &["other", "shapes"]] {
            let mut merge = Command::new("llvm-profdata-22");
            merge.arg("merge").arg("-o").arg(counted.profile(names));
            merge.args(names.iter().map(|name| counted.raw(name)));
            command::output(&mut merge).unwrap();
        }
        counted
    }

    fn compile(&self, name: &str, more: &[&str]) {
        let data = rocov_tests::cli::data("coverage");
        let raw = self.raw(name);
        let mut clang = Command::new("clang++-22");
        clang
            .arg(format!("-fprofile-instr-generate={}", raw.display()))
            .args(["-fcoverage-mapping", "-fcoverage-mcdc", "-w", "-o"])
            .arg(self.object(name))
            .arg(data.join(name).with_extension("cpp"))
            .args(more);
        command::output(&mut clang).unwrap();
    }

    fn object(&self, name: &str) -> PathBuf {
        self.directory.path().join(name).with_extension("so")
    }

    fn raw(&self, name: &str) -> PathBuf {
        self.directory.path().join(name).with_extension("profraw")
    }

    fn profile(&self, names: &[&str]) -> PathBuf {
        let mut names = names.to_vec();
        names.sort_unstable();
        let name = names.join("-");
        self.directory.path().join(name).with_extension("profdata")
    }

    /// The output of `llvm-cov export` for these objects together.
    fn export(&self, names: &[&str], options: &[&str]) -> Vec<u8> {
        let mut export = Command::new(COV);
        export.arg("export").args(options);
        export.arg("-instr-profile").arg(self.profile(names));
        for name in names {
            export.arg("-object").arg(self.object(name));
        }
        command::output(&mut export).unwrap().stdout
    }

    /// These objects, each read with its own profile.
    fn sources(&self, names: &[&str]) -> Vec<Source> {
        let inputs: Vec<_> = names
            .iter()
            .map(|name| CountedBinary {
                side: Side::Host,
                arch: "host".to_owned(),
                identity: String::new(),
                binary: self.object(name),
                objects: vec![self.object(name)],
                counts: BinaryCounts::Indexed(self.profile(&[name])),
                kinds: CountKinds::from([CountKind::Mapping]),
                sizes: Arc::default(),
                uniformity: None,
            })
            .collect();
        let installed = LlvmTools::find(None).unwrap();
        let collected = collect(&inputs, &installed, str::to_owned).unwrap();
        assert_eq!(collected.warnings, []);
        collected.sources
    }

    fn written(&self, names: &[&str], format: Format) -> String {
        self.written_by(Rules::LlvmCov, names, format)
    }

    fn written_by(&self, rules: Rules, names: &[&str], format: Format) -> String {
        let view = View::by_rules(
            rules,
            &Exclusions::none(),
            self.sources(names),
            By::Arch,
            |_| true,
        );
        let mut out = Vec::new();
        write(&view, format, &BTreeMap::new(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

/// The first export, its lists in an order of their contents.
pub(super) fn sorted(text: &[u8]) -> Value {
    let mut export = json(text)["data"][0].take();
    let sort = |list: &mut Value| {
        if let Some(list) = list.as_array_mut() {
            list.sort_by_key(ToString::to_string);
        }
    };
    for file in export["files"].as_array_mut().unwrap() {
        for list in ["branches", "mcdc_records", "expansions"] {
            sort(&mut file[list]);
        }
    }
    sort(&mut export["functions"]);
    export
}

#[test]
fn one_object_is_as_llvm_cov_has_it() {
    let counted = Counted::run();
    for names in [&["shapes"][..], &["other"]] {
        compare(&counted, names);
    }
}

#[test]
fn several_objects_are_as_llvm_cov_has_them_together() {
    let counted = Counted::run();
    compare(&counted, &["shapes", "other"]);
    compare(&counted, &["other", "shapes"]);
}

fn compare(counted: &Counted, names: &[&str]) {
    let expected = sorted(&counted.export(names, &[]));
    let format = Format::Json {
        contents: JsonContents::All,
    };
    let found = sorted(counted.written(names, format).as_bytes());
    // One by one, for a message that can be read.
    assert_eq!(found["totals"], expected["totals"], "{names:?}");
    for list in ["files", "functions"] {
        let (found, expected) = (&found[list], &expected[list]);
        let (found, expected) = (found.as_array().unwrap(), expected.as_array().unwrap());
        for (found, expected) in found.iter().zip(expected) {
            for (key, value) in expected.as_object().unwrap() {
                let name = &expected["filename"];
                assert_eq!(&found[key], value, "{names:?}: {list}: {name} {key}");
            }
        }
        assert_eq!(found.len(), expected.len(), "{names:?}: {list}");
    }
    assert!(expected["totals"]["mcdc"]["count"].as_u64() > Some(0) || names == ["other"]);
}

#[test]
fn lcov_has_the_records_of_llvm_cov() {
    let counted = Counted::run();
    let names = ["other", "shapes"];
    let expected = counted.export(&names, &["-format=lcov"]);
    let expected = String::from_utf8(expected).unwrap();
    let by_its_rules = counted.written(&names, LCOV);
    let all = |tracefile: &str| {
        let mut lines: Vec<_> = tracefile.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(all(&by_its_rules), all(&expected));
    let found = counted.written_by(Rules::Own, &names, LCOV);
    for record in ["SF:", "FN:", "FNDA:"] {
        let (found, expected) = (records(&found, record), records(&expected, record));
        assert!(expected.len() > 2, "{expected:?}");
        assert_eq!(found, expected);
    }
    // A line that one of two instances ran. llvm-cov takes the count of the other.
    let lines =
        [&expected, &found].map(|text| text.lines().filter(|line| line.starts_with("DA:28,")));
    let [of_llvm_cov, own] = lines.map(Iterator::collect::<Vec<_>>);
    assert!(
        of_llvm_cov.contains(&"DA:28,0") && own.contains(&"DA:28,1"),
        "{own:?}"
    );
    // llvm-cov writes a folded side as one that never ran.
    for (line, expected) in [
        ("31", &["0,0,6"][..]),
        ("34", &["0,0,3", "0,1,1"]),
        ("56", &["0,0,1"]),
    ] {
        let found = records(&found, &format!("BRDA:{line},"));
        assert_eq!(found, expected, "branches of line {line}");
    }
    // And it takes the conditions of one macro for one: here are two macros of three conditions each,
    // with a folded side in each.
    assert_eq!(records(&found, "BRDA:67,").len(), 10);
}

/// The records that start with `kind`, without it, sorted.
fn records<'a>(tracefile: &'a str, kind: &str) -> Vec<&'a str> {
    let lines = tracefile.lines();
    let mut records: Vec<_> = lines.filter_map(|line| line.strip_prefix(kind)).collect();
    records.sort_unstable();
    records
}

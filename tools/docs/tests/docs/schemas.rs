//! The schemas that chapters describe by hand, compared with the code: the registry, the control protocol and
//! the names of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rocov::control::{DumpRequest, REQUEST_MAX, Request};
use rocov::format::codeobject::{Identity, Kernel};
use rocov::format::registry::Runs;
use rocov::format::registry::model::{
    AgentRecord, CodeFileRecord, CodeObjectRecord, DeviceCodeRecord, Document, GroupLoad,
    GroupRecord, HostRecord, KernelAddress, LoadRecord, MachineRecord, NeverLoadedRecord,
    ProcessRecord, Unload, VERSION,
};
use rocov::store::layout::{self, OBJECTS};
use rocov::store::{Expansion, Label, PARTIAL, ProfileName, ProfileNameParts};
use serde_json::Value;

use crate::{read, repository};

/// Reads a chapter of the reference.
fn chapter(name: &str) -> String {
    read(&repository("docs/src/reference").join(name))
}

/// Returns the rows of the table whose head is `head`, as cells.
fn table<'a>(chapter: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let mut lines = chapter.lines().skip_while(|line| *line != head);
    assert!(lines.next().is_some(), "no table starts with {head}");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

/// Returns the code spans of a text.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A kernel with a value in each field. It names all fields, so that a new one is added here.
fn kernel() -> Kernel {
    Kernel {
        name: "k".into(),
        display_name: Some("k()".into()),
        descriptor: 1,
        entry: 1,
        kernarg_size: 1,
        kernarg_align: 1,
        constant_size: 1,
        group_size: 1,
        private_size: 1,
        sgprs: 1,
        vgprs: 1,
        agprs: 1,
        sgpr_spills: 1,
        vgpr_spills: 1,
        wavefront_size: 1,
        max_workgroup_size: 1,
        instrumented: true,
        source: Some("k.hip".into()),
    }
}

/// A registry with a value in each field.
fn document() -> Document {
    let code_object = CodeObjectRecord {
        identity: "0f3c".into(),
        target: "gfx90a".into(),
        size: 1,
        clang: Some(22),
        instrumented: true,
        file: Some("objects/gfx90a.0f3c.elf".into()),
        kernels: vec![kernel()],
        damage: Some("none".into()),
    };
    let load = LoadRecord {
        generation: 1,
        time: 1,
        agent: 0,
        executable: 1,
        uri: "file:///app".into(),
        base: 1,
        size: 1,
        delta: 1,
        code_object: Some("0f3c".into()),
        host: Some(0),
        profile: Some("profraw/x.profraw".into()),
        partial: Some("x: build it again".into()),
        kernels: vec![KernelAddress {
            name: "k".into(),
            object: 1,
            entry: 1,
        }],
        unload: Some(Unload {
            generation: 2,
            time: 2,
        }),
    };
    let process = ProcessRecord {
        pid: 1,
        host: "node7".into(),
        start: 1,
        epoch: 1,
        command: vec!["app".into()],
        agents: vec![AgentRecord {
            index: 0,
            name: "gfx90a".into(),
            isa: Some("gfx90a".into()),
            uuid: Some("GPU-XX".into()),
            node: Some(1),
        }],
        hosts: vec![HostRecord {
            path: "/app".into(),
            build: "0f3c".into(),
        }],
        loads: vec![load],
        device_code: Some(DeviceCodeRecord {
            traced: true,
            profiles: "profraw".into(),
            files: vec![CodeFileRecord {
                path: "/app".into(),
                build: Some("0f3c".into()),
                modified: Some(1),
            }],
        }),
        never_loaded: vec![NeverLoadedRecord {
            file: "/app".into(),
            build: Some("0f3c".into()),
            agent: 0,
            code_objects: vec!["0f3c".into()],
        }],
        stops: vec!["kernel k: stopped".into()],
        notes: vec!["kernel k: a data race".into()],
    };
    let group = GroupRecord {
        first: 2,
        last: 2,
        command: process.command.clone(),
        agents: process.agents.clone(),
        hosts: process.hosts.clone(),
        loads: vec![GroupLoad {
            times: 1,
            agent: 0,
            code_object: Some("0f3c".into()),
            file: Some("/app".into()),
            host: Some(0),
            partial: Some("x: build it again".into()),
        }],
        device_code: process.device_code.clone(),
        never_loaded: process.never_loaded.clone(),
        stops: process.stops.clone(),
        notes: process.notes.clone(),
        processes: vec![MachineRecord {
            machine: "node7".into(),
            runs: Runs::new("node7", 1, 1),
        }],
    };
    Document {
        rocov_registry: VERSION,
        code_objects: vec![code_object],
        processes: vec![process],
        groups: vec![group],
    }
}

/// Collects the fields below `value`, in the record of the row `row`. A list of records has a row if its name
/// is in `rows`, with its parent's.
fn fields(
    value: &Value,
    row: &str,
    rows: &BTreeSet<String>,
    found: &mut BTreeMap<String, BTreeSet<String>>,
) {
    match value {
        Value::Object(record) => {
            for (name, value) in record {
                found
                    .entry(row.to_owned())
                    .or_default()
                    .insert(name.clone());
                let below = match row {
                    "" => name.clone(),
                    _ => format!("{row}.{name}"),
                };
                let below = if rows.contains(&below) {
                    below
                } else {
                    row.to_owned()
                };
                fields(value, &below, rows, found);
            }
        }
        Value::Array(records) => {
            for record in records {
                fields(record, row, rows, found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_chapter_on_the_registry_names_its_fields() {
    let chapter = chapter("registry.md");
    let mut documented: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut top = String::new();
    for row in table(&chapter, "| field | contents |") {
        let [field, contents] = row[..] else {
            panic!("a row of other cells: {row:?}");
        };
        let field = field.trim_matches('`');
        documented.entry(String::new()).or_default();
        let path = match field.strip_prefix("....") {
            Some(below) => format!("{top}.{below}"),
            None => {
                field.clone_into(&mut top);
                documented
                    .entry(String::new())
                    .or_default()
                    .insert(top.clone());
                top.clone()
            }
        };
        if field == "rocov_registry" {
            assert!(contents.contains(&format!(", {VERSION}.")), "{contents}");
        } else {
            let words = spans(contents).into_iter().map(str::to_owned);
            documented.insert(path, words.collect());
        }
    }
    let rows = documented.keys().cloned().collect();
    let text = serde_json::from_slice(&document().to_json()).expect("a registry is JSON");
    let mut actual = BTreeMap::new();
    fields(&text, "", &rows, &mut actual);
    let every: BTreeSet<_> = actual.values().flatten().collect();
    assert!(
        actual.keys().eq(documented.keys()),
        "{actual:?}, but the rows are {documented:?}"
    );
    for (row, fields) in &actual {
        let words = &documented[row];
        let missing: Vec<_> = fields.difference(words).collect();
        assert!(
            missing.is_empty(),
            "registry.md: the row {row:?} lacks {missing:?}"
        );
        // A row may refer to a field of another record.
        let unknown: Vec<_> = words.iter().filter(|word| !every.contains(word)).collect();
        assert!(
            unknown.is_empty(),
            "registry.md: the row {row:?} has {unknown:?}"
        );
    }
}

#[test]
fn the_chapter_on_the_protocol_names_its_requests() {
    let chapter = chapter("control.md");
    let rows = table(&chapter, "| request | asks for |");
    let spans: Vec<_> = rows.iter().map(|row| spans(row[0])).collect();
    let [[status], [dump, options @ ..]] = [&spans[0][..], &spans[1][..]] else {
        panic!("other requests: {spans:?}");
    };
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!(Request::parse(status), Ok(Request::Status));
    // All options, so that a new one is added here.
    let request = Request::Dump(DumpRequest {
        label: Some("LABEL".parse().expect("a label")),
        reset: true,
        window: Some(std::time::Duration::from_millis(100)),
    });
    let line = format!("{dump} {}", options.join(" ")).replace("MILLISECONDS", "100");
    assert_eq!(Request::parse(&line), Ok(request.clone()));
    assert_eq!(request.to_string(), line);
    let limit = format!("at most {REQUEST_MAX} bytes");
    assert!(chapter.contains(&limit), "control.md does not say: {limit}");
}

#[test]
fn the_chapter_on_the_protocol_names_the_keys_of_answers() {
    let chapter = chapter("control.md");
    let rows = table(&chapter, "| request | keys |");
    let keys = |text| {
        let keys = spans(text).into_iter();
        // Values are spans too.
        keys.filter(|key| !["yes", "no"].contains(key))
            .collect::<BTreeSet<_>>()
    };
    let documented: BTreeSet<_> = rows.iter().map(|row| keys(row[1])).collect();
    let source = read(&repository("runtime/src/serve/service/thread.rs"));
    let answers = source.split("Reply::done()").skip(1);
    let actual: BTreeSet<_> = answers
        .map(|answer| {
            let function = answer.split("\n}\n").next().unwrap_or_default();
            let keys = function.split(".with(\"").skip(1);
            keys.filter_map(|key| key.split('"').next())
                .collect::<BTreeSet<_>>()
        })
        .collect();
    assert_eq!(actual, documented);
}

/// The values that the words of file names have in this test.
const WORDS: [(&str, &str); 10] = [
    ("BUILD", "d0d0cafe"),
    ("TARGET", "gfx90a-xnack-"),
    ("ARCH", "gfx90a"),
    ("IDENTITY", "0f3c9b"),
    ("AGENT", "3"),
    ("PID", "4711"),
    ("RUN", "mfzwizlt"),
    ("WORD", "q3ovk2ya"),
    ("LABEL", "unit"),
    ("KERNEL", "0123abcd"),
];

/// Returns a documented name with values for its words.
fn with_values(name: &str) -> String {
    WORDS.iter().fold(name.to_owned(), |name, (word, value)| {
        name.replace(word, value)
    })
}

/// Returns the name of profiles for a pattern in the data directory `/d`.
fn profiles(pattern: &str) -> ProfileName {
    let values = Expansion {
        pid: 4711,
        word: "q3ovk2ya".parse().expect("a word"),
        ..Expansion::default()
    };
    let name = ProfileName::parse(&format!("/d/profraw/{pattern}"), &values, Path::new("/"));
    name.expect("a good pattern").in_data(Path::new("/d"))
}

#[test]
fn the_chapter_on_files_has_the_names_that_are_made() {
    let identity = Identity::from_build_id(&[0x0f, 0x3c, 0x9b]).expect("an identity");
    let own = profiles("%p-mfzwizlt.profraw");
    let label: Label = "unit".parse().expect("a label");
    let profile = own.for_load("gfx90a", &identity, 3);
    let elf = layout::device_elf_name("gfx90a:xnack-", &identity);
    let ptx = layout::source_name("gfx90a:xnack-", &identity);
    let labelled = own.clone().with_label(Some(label));
    let made = [
        profile.clone(),
        labelled.for_load("gfx90a", &identity, 3),
        own.for_zeros().for_load("gfx90a", &identity, 0),
        own.for_sections(&profile, 1),
        own.for_registry(),
        PathBuf::from("/d").join(OBJECTS).join(elf),
        PathBuf::from("/d").join(OBJECTS).join(ptx),
        PathBuf::from(format!("/d/{PARTIAL}0123abcd-1")),
    ];
    let mut made: BTreeSet<String> = made
        .iter()
        .map(|path| path.strip_prefix("/d").expect("it is below"))
        .map(|path| path.display().to_string())
        .collect();
    // Names of other programs, and of the command.
    let names = read(&repository("tools/rocov/src/data/names.rs"));
    assert!(
        names.contains("const DATABASE: &str = \"rocpd.db\""),
        "the database has another name"
    );
    let others = ["profraw/PID-RUN.profraw", "ARCH.profdata", "rocpd.db"];
    for row in table(&chapter("files.md"), "| file | written by | contents |") {
        let documented = row[0].trim_matches('`');
        if others.contains(&documented) {
            continue;
        }
        let name = with_values(documented);
        let matches = |path: &String| match name.split_once("....") {
            Some((start, end)) => path.starts_with(start) && path.ends_with(end),
            None => path.starts_with(name.trim_end_matches("...")),
        };
        if let Some(path) = made.iter().find(|path| matches(path)).cloned() {
            made.remove(&path);
            continue;
        }
        // The drain chooses these names while it writes: readers at least take them for profiles.
        let end = name
            .strip_prefix("....")
            .unwrap_or_else(|| panic!("no {documented} is made"));
        let full = format!("gfx90a.0f3c9b.{end}");
        let full = if end.starts_with("0.") {
            full
        } else {
            format!("gfx90a.0f3c9b.3.{end}")
        };
        assert!(
            ProfileNameParts::parse(&full).is_some(),
            "{documented} is no profile: {full}"
        );
    }
    assert!(made.is_empty(), "files.md does not list {made:?}");
}

#[test]
fn the_chapter_on_files_has_all_specifiers() {
    let chapter = chapter("files.md");
    let rows = table(&chapter, "| in the pattern | stands for |");
    let documented: BTreeSet<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let values = Expansion::default();
    let is_known = |specifier: &str| {
        let pattern = format!("x{specifier}.profraw");
        ProfileName::parse(&pattern, &values, Path::new("/")).is_ok()
    };
    let letters = ('!'..='~').map(|letter| format!("%{letter}"));
    let known: BTreeSet<_> = letters
        .chain(["%4m".to_owned()])
        .filter(|specifier| is_known(specifier))
        .collect();
    assert!(
        known
            .iter()
            .map(String::as_str)
            .eq(documented.iter().copied()),
        "{known:?}"
    );
}

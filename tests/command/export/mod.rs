//! `rocov export --format rocpd`, read by Python's sqlite3 module: another SQLite, and no code of
//! the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov_tests::cli::place::Place;
use rocov_tests::cli::registry::{DESCRIPTOR, code_object, document, kernel, load, write};
use rocov_tests::cli::{data, failure, rocov, run, stderr, stdout};
use serde_json::{Value, json};

const SCALE: &str = "_Z5scalePff";
const FILL: &str = "_Z4fillIiEvPT_S0_";
const BASE: u64 = 0x7f00_0000;
/// A load address that is negative to SQLite.
const HIGH: u64 = 0xffff_8000_0000_0000;

/// Two processes of one host and a third of another, with the process id of the first.
fn three_processes(place: &Place) {
    let one = code_object("aa", vec![kernel(SCALE, 1), kernel("plain", 2)]);
    let mut other = code_object("bb", vec![kernel(FILL, 3)]);
    other.target = "gfx908".to_owned();
    let objects = [one.clone(), other.clone()];
    let mut unread = load(&other, HIGH, 4, None);
    unread.uri = "memory://8#offset=0x10&size=9".to_owned();
    unread.code_object = None;
    unread.kernels.clear();
    let loads = vec![
        load(&one, BASE, 1, Some(3)),
        load(&other, HIGH, 2, None),
        unread,
    ];
    let first = document(7, &objects, loads);
    let second = document(8, &objects[..1], vec![load(&one, BASE, 1, None)]);
    let mut third = second.clone();
    third.processes[0].pid = 7;
    third.processes[0].host = "node9".to_owned();
    write(&first, &place.data());
    write(&second, &place.data());
    fs::write(place.data().join("third.kernels.json"), third.to_json()).unwrap();
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = rocov();
    command.current_dir(place.path());
    command
        .args(["export", "--format", "rocpd"])
        .args(arguments);
    command
}

/// Exports, and gives the database.
fn export(place: &Place) -> PathBuf {
    let output = run(&mut command(place, &[]));
    assert_eq!(stderr(&output), "");
    assert_eq!(
        stdout(&output),
        "rocov-data/rocpd.db: 3 processes with 5 loaded code objects and 7 kernel symbols\n"
    );
    place.data().join("rocpd.db")
}

/// The rows that Python's SQLite gives for a query.
fn query(database: &Path, query: &str) -> Value {
    python(&["query", database.to_str().unwrap(), query])
}

fn python(arguments: &[&str]) -> Value {
    let output = run(Command::new("python3")
        .arg(data("rocpd.py"))
        .args(arguments));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tables_have_a_suffix_and_views_have_none() {
    let place = Place::new();
    three_processes(&place);
    let database = export(&place);
    let metadata = query(
        &database,
        "SELECT tag, value FROM rocpd_metadata ORDER BY id",
    );
    let guid = metadata[2][1].as_str().unwrap();
    let suffix = format!("_{}", guid.replace('-', "_"));
    assert_eq!(metadata[0], json!(["schema_version", "3"]));
    assert_eq!(metadata[1], json!(["uuid", suffix]));
    assert_eq!(metadata[2][0], "guid");
    for name in [
        "metadata",
        "string",
        "info_node",
        "info_process",
        "info_agent",
        "info_code_object",
        "info_kernel_symbol",
    ] {
        let kinds = query(
            &database,
            &format!(
                "SELECT type, name FROM sqlite_master WHERE name LIKE 'rocpd\\_{name}%' \
                 ESCAPE '\\' AND sql IS NOT NULL ORDER BY type"
            ),
        );
        let table = format!("rocpd_{name}{suffix}");
        assert_eq!(
            kinds,
            json!([["table", table], ["view", format!("rocpd_{name}")]])
        );
        let rows = |name: &str| query(&database, &format!("SELECT * FROM \"{name}\""));
        assert_eq!(rows(&table), rows(&format!("rocpd_{name}")));
        if name != "metadata" {
            let guids = query(
                &database,
                &format!("SELECT DISTINCT guid FROM rocpd_{name}"),
            );
            assert_eq!(guids, json!([[guid]]), "{name}");
        }
    }
    assert_eq!(query(&database, "PRAGMA integrity_check"), json!([["ok"]]));
    assert_eq!(query(&database, "PRAGMA foreign_key_check"), json!([]));
}

#[test]
fn the_columns_have_what_the_registry_says() {
    let place = Place::new();
    three_processes(&place);
    let database = export(&place);
    let nodes = query(
        &database,
        "SELECT id, machine_id, hostname, system_name FROM rocpd_info_node",
    );
    assert_eq!(
        nodes,
        json!([
            [1, "node7", "node7", "Linux"],
            [2, "node9", "node9", "Linux"]
        ])
    );
    // The process id is the key, but for the one of another host.
    let processes = query(
        &database,
        "SELECT id, nid, pid, init, start, fini, command, environment FROM rocpd_info_process \
         ORDER BY nid, pid",
    );
    let expected = json!([
        [7, 1, 7, 500, 500, null, "app a b", "{}"],
        [8, 1, 8, 500, 500, null, "app a b", "{}"],
        [9, 2, 7, 500, 500, null, "app a b", "{}"],
    ]);
    assert_eq!(processes, expected);
    let agents = query(
        &database,
        "SELECT nid, pid, type, absolute_index, logical_index, type_index, name, \
         json_extract(extdata, '$.uuid') FROM rocpd_info_agent ORDER BY nid, pid",
    );
    assert_eq!(
        agents[0],
        json!([1, 7, "GPU", 2, null, 0, "gfx90a", "GPU-4f1d"])
    );
    assert_eq!(agents.as_array().unwrap().len(), 3);

    let loads = query(
        &database,
        "SELECT c.nid, c.pid, a.pid, c.uri, c.load_base, c.load_size, c.load_delta, c.storage_type, \
         json_extract(c.extdata, '$.identity'), json_extract(c.extdata, '$.unload_generation') \
         FROM rocpd_info_code_object c JOIN rocpd_info_agent a ON a.id = c.agent_id \
         WHERE c.pid = 7 ORDER BY c.id",
    );
    let [base, high] = [BASE, HIGH].map(u64::cast_signed);
    let uri = |identity: &str| format!("file:///app/{identity}#offset=4096&size=4000");
    let memory = "memory://8#offset=0x10&size=9";
    let expected = json!([
        [1, 7, 7, uri("aa"), base, 0x3000, base, "FILE", "aa", 3],
        [1, 7, 7, uri("bb"), high, 0x3000, high, "FILE", "bb", null],
        [1, 7, 7, memory, high, 0x3000, high, "MEMORY", null, null],
    ]);
    assert_eq!(loads, expected);

    let symbols = query(
        &database,
        "SELECT k.kernel_name, k.display_name, k.kernel_object, k.kernarg_segment_size, \
         k.kernarg_segment_alignment, k.group_segment_size, k.private_segment_size, k.sgpr_count, \
         k.arch_vgpr_count, k.accum_vgpr_count, json_extract(k.extdata, '$.wavefront_size') \
         FROM rocpd_info_kernel_symbol k WHERE k.pid = 7 ORDER BY k.id",
    );
    let object = base + DESCRIPTOR.cast_signed();
    // gfx90a has vector and accumulation registers in one file, gfx908 has two.
    let expected = json!([
        [
            "_Z5scalePff.kd",
            "scale(float*, float)",
            object,
            16,
            8,
            1001,
            2001,
            21,
            33,
            8,
            64
        ],
        [
            "plain.kd",
            "plain",
            object + 0x40,
            16,
            8,
            1002,
            2002,
            22,
            26,
            16,
            64
        ],
        [
            "_Z4fillIiEvPT_S0_.kd",
            "void fill<int>(int*, int)",
            high + DESCRIPTOR.cast_signed(),
            16,
            8,
            1003,
            2003,
            23,
            43,
            24,
            64
        ],
    ]);
    assert_eq!(symbols, expected);
    let strings = query(
        &database,
        "SELECT string FROM rocpd_string WHERE string LIKE '%scale%'",
    );
    assert_eq!(strings.as_array().unwrap().len(), 2, "{strings}");
}

#[test]
fn it_joins_with_a_database_of_rocprofv3() {
    let place = Place::new();
    three_processes(&place);
    let database = export(&place);
    let recorded = place.path().join("results.db");
    let [database, recorded] = [&database, &recorded].map(|path| path.to_str().unwrap());
    python(&["record", recorded]);
    let rows = python(&["join", recorded, database]);
    // Dispatches of each kernel as recorded, with what only the registry knows.
    let expected = json!([
        ["_Z4fillIiEvPT_S0_.kd", 1, "bb", 24],
        ["_Z5scalePff.kd", 2, "aa", 8],
    ]);
    assert_eq!(rows, expected);
}

#[test]
fn a_file_that_is_there_is_kept_unless_forced() {
    let place = Place::new();
    three_processes(&place);
    let file = place.path().join("out.db");
    fs::write(&file, "mine").unwrap();
    let message = failure(&command(&place, &["-o", "out.db"]).output().unwrap(), 1);
    assert!(
        message.contains("out.db exists") && message.contains("--force"),
        "{message}"
    );
    assert_eq!(fs::read(&file).unwrap(), b"mine");

    run(&mut command(&place, &["-o", "out.db", "--force"]));
    let first = fs::read(&file).unwrap();
    assert!(first.starts_with(b"SQLite format 3\0"));
    run(&mut command(&place, &["-o", "out.db", "--force"]));
    assert!(
        fs::read(&file).unwrap() == first,
        "one registry, one database"
    );
    let mut names: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["out.db", "rocov-data"], "nothing else is left");

    let message = failure(&command(&place, &["-o", "no/out.db"]).output().unwrap(), 1);
    assert!(message.contains("cannot write no/out.db"), "{message}");
}

#[test]
fn a_registry_that_cannot_be_read_is_named_and_the_others_exported() {
    let place = Place::new();
    three_processes(&place);
    fs::write(place.data().join("9.kernels.json"), "{}").unwrap();
    let message = failure(&command(&place, &[]).output().unwrap(), 1);
    assert!(
        message.contains("left out: rocov-data/9.kernels.json"),
        "{message}"
    );
    let count = query(
        &place.data().join("rocpd.db"),
        "SELECT count(*) FROM rocpd_info_process",
    );
    assert_eq!(count, json!([[3]]));
}

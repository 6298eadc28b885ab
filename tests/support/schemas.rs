//! JSON that rocov writes, held to the schemas in the book.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::artifacts::repository;
use super::unpacked::not_run;

/// The validator: python3-jsonschema.
const VALIDATOR: &str = include_str!("schemas.py");
/// The status of the validator if it is not there.
const ABSENT: i32 = 77;

/// Validates documents, each by the schema of a name. A field that the schema does not describe is an error, too.
pub fn validate(documents: &[(&str, &[u8])]) {
    let pair = |(name, document): &(&str, &[u8])| {
        let path = repository(&format!("docs/src/reference/schemas/{name}.schema.json"));
        let schema = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let [schema, document]: [Value; 2] =
            [&schema, *document].map(|text| serde_json::from_slice(text).expect("JSON"));
        json!([name, schema, document])
    };
    let pairs: Vec<_> = documents.iter().map(pair).collect();
    let mut python = Command::new("python3")
        .args(["-c", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut input = python.stdin.take().expect("a pipe");
    input
        .write_all(Value::from(pairs).to_string().as_bytes())
        .ok();
    drop(input);
    let output = python.wait_with_output().unwrap();
    if output.status.code() == Some(ABSENT) {
        not_run("schemas of JSON: python3-jsonschema is not installed");
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

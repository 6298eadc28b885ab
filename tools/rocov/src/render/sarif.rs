//! The changed lines that did not run as SARIF 2.1.0, which code scanning of GitHub and other services read.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::coverage::changed::covered::{Changed, ChangedSource};
use crate::coverage::view::View;
use crate::term::line_ranges::spans;

/// The rules, by their numbers in the document: lines that ran nowhere, and lines that one arch did not run.
const RULES: [(&str, &str, &str, &str); 2] = [
    (
        "changed-line-not-run",
        "warning",
        "A changed line did not run",
        "No test ran this line of GPU code, which the change adds or modifies. Add a test that reaches it, or exclude it.",
    ),
    (
        "changed-line-not-run-on-arch",
        "note",
        "A changed line did not run on one architecture",
        "A test ran this line on another GPU architecture only. Run the tests on this one too, or exclude the line.",
    ),
];

/// The name of the repository's root in the document.
const ROOT: &str = "%SRCROOT%";

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let nothing = Changed::default();
    let changed = view.changed.as_ref().unwrap_or(&nothing);
    let rules = RULES.map(|(id, level, short, full)| {
        json!({
            "id": id,
            "shortDescription": {"text": short},
            "fullDescription": {"text": full},
            "help": {"text": full},
            "defaultConfiguration": {"level": level},
        })
    });
    let files = changed.files.iter();
    let results: Vec<_> = files.flat_map(|file| results(view, file)).collect();
    let left_out = changed.left_out.iter();
    let left_out =
        left_out.map(|line| json!({"level": "warning", "message": {"text": line.to_string()}}));
    let mut run = json!({
        "tool": {"driver": {
            "name": "rocov",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": rules,
        }},
        "invocations": [{
            "executionSuccessful": true,
            "toolExecutionNotifications": left_out.collect::<Vec<_>>(),
        }],
        "results": results,
    });
    if let Some(root) = &changed.root {
        run["originalUriBaseIds"] = json!({ROOT: {"uri": format!("file://{}/", uri(root))}});
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// A result for each range of lines of a file that did not run.
fn results(view: &View, file: &ChangedSource) -> Vec<Value> {
    let missed = view.missed(&file.lines);
    let nowhere = spans(missed.nowhere).into_iter();
    let mut results: Vec<_> = nowhere.map(|span| result(file, 0, span, "")).collect();
    for (label, lines) in missed.here {
        let place = format!(" on {label}");
        let spans = spans(lines).into_iter();
        results.extend(spans.map(|span| result(file, 1, span, &place)));
    }
    results
}

/// The result that a range of lines did not run at a place.
fn result(file: &ChangedSource, rule: usize, (first, last): (u32, u32), place: &str) -> Value {
    let lines = match first == last {
        true => format!("Line {first}"),
        false => format!("Lines {first} to {last}"),
    };
    let (id, level, ..) = RULES[rule];
    json!({
        "ruleId": id,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": format!("{lines} did not run{place}.")},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(Path::new(&file.name)), "uriBaseId": ROOT},
            "region": {"startLine": first, "endLine": last},
        }}],
    })
}

/// A path as a part of a URI.
fn uri(path: &Path) -> String {
    let mut uri = String::new();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_part_of_a_uri() {
        let path = Path::new("src/a b:c#d\u{e4}%.hip");
        assert_eq!(uri(path), "src/a%20b%3Ac%23d%C3%A4%25.hip");
    }
}

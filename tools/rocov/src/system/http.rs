//! Requests to a service that speaks JSON, by curl, which has the proxies and certificates of the user.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use rocov::support::diagnostic::{diagnostic, fail};
use serde_json::Value;

use super::command::display;
use crate::support::temporary;

/// The seconds that a request may take.
const LIMIT: &str = "60";

/// Sends a request and returns the answer. A secret is in `headers` only, which no other process sees.
///
/// # Errors
///
/// Fails if curl is not there, or the service cannot be reached or refuses the request.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: &[String],
    body: Option<&Value>,
) -> Result<Value> {
    let mut curl = Command::new("curl");
    // Not the options of the user's own file.
    curl.args(["-q", "--silent", "--show-error", "--max-time", LIMIT]);
    curl.args(["--request", method, "--write-out", "\n%{http_code}"]);
    let mut config = String::new();
    for header in headers {
        config += &format!("header = {}\n", quoted(header));
    }
    // It lives until the request has ended.
    let file = match body {
        Some(body) => {
            let mut file = temporary::file("rocov-")?;
            file.write_all(body.to_string().as_bytes())
                .context("cannot write a temporary file")?;
            config += "header = \"Content-Type: application/json\"\n";
            curl.arg("--data-binary");
            curl.arg(format!("@{}", file.path().display()));
            Some(file)
        }
        None => None,
    };
    curl.args(["--config", "-", url]);
    curl.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = curl
        .spawn()
        .with_context(|| diagnostic!("cannot run {}", display(&curl); "install curl"))?;
    let mut input = child
        .stdin
        .take()
        .context("the child process has no pipe")?;
    let written = input.write_all(config.as_bytes());
    drop(input);
    let output = child
        .wait_with_output()
        .context("cannot wait for a command")?;
    drop(file);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        fail!(
            "cannot reach {url}: {}", said.trim().trim_start_matches("curl: ");
            "check the address and the network"
        );
    }
    written.context("cannot write to curl")?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let (answer, status) = answer.rsplit_once('\n').unwrap_or(("", &answer));
    let json: Value = serde_json::from_str(answer).unwrap_or_default();
    if !status.starts_with('2') {
        let reason = json["message"].as_str().or(json["error"].as_str());
        fail!(
            "{method} {url} failed ({status}): {}", reason.unwrap_or("no reason");
            "check the token and its rights, and the job's variables"
        );
    }
    Ok(json)
}

/// A value in a configuration of curl.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stays_a_line() {
        assert_eq!(quoted("a: b\"c\\d\nurl = e"), "\"a: b\\\"c\\\\d url = e\"");
    }
}

//! `rocov comment`: puts a report in Markdown on a pull request, in one comment that stays one.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::support::diagnostic::diagnostic;
use serde_json::{Value, json};

use crate::cli::CommentArguments;
use crate::support::failure::failure;
use crate::support::mmap;
use crate::system::http::request;
use crate::term::exit_status::CommandResult;
use crate::term::print;

/// The comments that a page of the list has at most.
const PAGE: usize = 100;
/// The end of a comment that is too long.
const SHORTENED: &str = "\n\n(The report is longer than a comment can be.)\n";

/// The comments of one pull request.
struct Comments {
    /// The address of the list, to which new ones are added.
    list: String,
    /// The address of one, without its number.
    one: String,
    /// The method that replaces the text of one.
    replaces: &'static str,
    headers: Vec<String>,
    /// The most characters of a comment.
    longest: usize,
}

/// Writes the comment.
pub(crate) fn comment(arguments: &CommentArguments) -> CommandResult {
    let text = mmap::read_text(&arguments.file)?;
    let text = String::from_utf8_lossy(&text);
    let Some(comments) = Comments::from_environment()? else {
        print::warn(&[diagnostic!(
            "no comment was written, because this job does not belong to a pull request or merge request";
            "run `rocov comment` in one that does"
        )]);
        return Ok(0);
    };
    let marker = format!("<!-- rocov: {} -->", arguments.name);
    let body = format!("{marker}\n{text}");
    comments.put(&marker, &shortened(&body, comments.longest))?;
    Ok(0)
}

impl Comments {
    /// Those of the pull request that this job is of; `None` if it is of none.
    fn from_environment() -> Result<Option<Self>> {
        if env::var_os("GITHUB_ACTIONS").is_some() {
            Self::from_github()
        } else if env::var_os("GITLAB_CI").is_some() {
            Self::from_gitlab()
        } else {
            Err(failure!(
                "neither GITHUB_ACTIONS nor GITLAB_CI is set";
                "run `rocov comment` in a GitHub or GitLab job"
            ))
        }
    }

    fn from_github() -> Result<Option<Self>> {
        let event = variable("GITHUB_EVENT_PATH")?;
        let event = mmap::read_text(Path::new(&event))?;
        let event: Value =
            serde_json::from_slice(&event).context("the event of GITHUB_EVENT_PATH is not JSON")?;
        let Some(number) = event["pull_request"]["number"].as_u64() else {
            return Ok(None);
        };
        let api =
            env::var("GITHUB_API_URL").unwrap_or_else(|_| "https://api.github.com".to_owned());
        let issues = format!("{api}/repos/{}/issues", variable("GITHUB_REPOSITORY")?);
        Ok(Some(Self {
            list: format!("{issues}/{number}/comments"),
            one: format!("{issues}/comments"),
            replaces: "PATCH",
            headers: vec![
                format!("Authorization: Bearer {}", variable("GITHUB_TOKEN")?),
                "Accept: application/vnd.github+json".to_owned(),
                "X-GitHub-Api-Version: 2022-11-28".to_owned(),
            ],
            longest: 65_536,
        }))
    }

    fn from_gitlab() -> Result<Option<Self>> {
        let Ok(number) = env::var("CI_MERGE_REQUEST_IID") else {
            return Ok(None);
        };
        let (api, project) = (variable("CI_API_V4_URL")?, variable("CI_PROJECT_ID")?);
        let notes = format!("{api}/projects/{project}/merge_requests/{number}/notes");
        Ok(Some(Self {
            list: notes.clone(),
            one: notes,
            replaces: "PUT",
            headers: vec![format!("PRIVATE-TOKEN: {}", variable("GITLAB_TOKEN")?)],
            longest: 1_000_000,
        }))
    }

    /// Replaces the text of the comment that starts with `marker`, or adds one.
    fn put(&self, marker: &str, body: &str) -> Result<()> {
        let body = json!({"body": body});
        let (method, url) = match self.find(marker)? {
            Some(number) => (self.replaces, format!("{}/{number}", self.one)),
            None => ("POST", self.list.clone()),
        };
        request(method, &url, &self.headers, Some(&body))?;
        Ok(())
    }

    /// The number of the comment that starts with `marker`.
    fn find(&self, marker: &str) -> Result<Option<u64>> {
        for page in 1.. {
            let url = format!("{}?per_page={PAGE}&page={page}", self.list);
            let answer = request("GET", &url, &self.headers, None)?;
            let comments = answer.as_array().map(Vec::as_slice).unwrap_or_default();
            let is_it = |comment: &&Value| {
                let body = comment["body"].as_str().unwrap_or_default();
                body.lines().next() == Some(marker)
            };
            if let Some(found) = comments.iter().find(is_it) {
                return Ok(found["id"].as_u64());
            }
            if comments.len() < PAGE {
                break;
            }
        }
        Ok(None)
    }
}

/// A variable of the job. Services set one to nothing if its value is a secret that the job may not have.
fn variable(name: &str) -> Result<String> {
    let value = env::var(name).ok().filter(|value| !value.is_empty());
    value.with_context(
        || diagnostic!("{name} is not set"; "pass it to the step that posts the comment"),
    )
}

/// A comment of at most so many characters: first without the lists that are folded, then without its end.
fn shortened(body: &str, longest: usize) -> String {
    let length = |text: &str| text.chars().count();
    if length(body) <= longest {
        return body.to_owned();
    }
    let mut short = String::new();
    let mut is_folded = false;
    for line in body.split_inclusive('\n') {
        is_folded |= line.starts_with("<details>");
        if !is_folded {
            short += line;
        }
        is_folded &= !line.starts_with("</details>");
    }
    let room = longest - length(SHORTENED);
    if length(&short) > room {
        let cut: String = short.chars().take(room).collect();
        let end = cut.rfind('\n').unwrap_or(cut.len());
        cut[..end].clone_into(&mut short);
    }
    short + SHORTENED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_fits() {
        let body = "<!-- a -->\n| b |\n<details>\nlong\n</details>\nc\n";
        assert_eq!(shortened(body, 1000), body);
        let end = SHORTENED.chars().count();
        let without = "<!-- a -->\n| b |\nc\n";
        assert_eq!(
            shortened(&body.repeat(9), 9 * 20 + end),
            without.repeat(9) + SHORTENED
        );
        let cut = shortened(&"x\n".repeat(100), 50 + end);
        assert!(cut.chars().count() <= 50 + end, "{cut}");
        assert!(
            cut.starts_with("x\nx\n") && cut.ends_with(SHORTENED),
            "{cut}"
        );
    }
}

//! The command line of `rocov comment`.

use std::path::PathBuf;

use clap::Args;

/// Post a Markdown report on a pull request, as one comment that later runs update
///
/// Writes FILE, which `rocov report --markdown` wrote, as a comment on the GitHub pull request or GitLab merge request
/// that this job belongs to. The comment starts with a hidden line. rocov finds the comment again by this line and
/// replaces its text, and writes a new comment only if there is none.
///
/// Reads the service, the request and its number from the job's variables. The token is in GITHUB_TOKEN or
/// GITLAB_TOKEN. Needs curl.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if the comment was written, or if the job belongs to no pull request, which standard error reports; 1 if the \
service refuses it, or a variable is missing; 2 for a usage error.")]
pub(crate) struct CommentArguments {
    /// The text in Markdown
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The name of the comment in its hidden line, `<!-- rocov: NAME -->`: give each of several comments its own name
    #[arg(long, default_value = "coverage", value_parser = name)]
    pub(crate) name: String,
}

/// Reads a name that a comment of HTML can have.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._/+-".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) && !text.contains("--") {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, spaces, and . _ / + -, but not --".to_owned()),
    }
}

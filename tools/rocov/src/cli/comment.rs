//! The command line of `rocov comment`.

use std::path::PathBuf;

use clap::Args;

/// Post a Markdown report on a pull request, as one comment that later runs update
///
/// Posts FILE, which `rocov report --markdown` wrote, as a comment on the GitHub pull request or GitLab merge request
/// that this job belongs to. The comment starts with a hidden line, by which rocov finds it again to replace its text.
/// rocov writes a new comment only if there is none yet.
///
/// Reads the service, the kind of request and its number from the job's variables, and the token from GITHUB_TOKEN or
/// GITLAB_TOKEN. Requires curl.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if the comment was written, or if the job does not belong to a pull request, which standard error \
reports; 1 if the service refuses it, or a variable is missing; 2 for a usage error.")]
pub(crate) struct CommentArguments {
    /// The file with the Markdown text
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The name of the comment in its hidden line, `<!-- rocov: NAME -->`. If you post several comments, give each a
    /// different name
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

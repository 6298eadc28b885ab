//! Lines that a shell splits into words.

use std::ffi::OsString;

use anyhow::Result;
use rocov::support::diagnostic::fail;

/// One line for $(rocov flags): the shell splits it at white space and takes no quotes in it.
///
/// # Errors
///
/// Fails if a word has white space in it.
pub(crate) fn shell_line(words: &[OsString]) -> Result<Vec<u8>> {
    let splits = |word: &&OsString| word.as_encoded_bytes().iter().any(u8::is_ascii_whitespace);
    if let Some(word) = words.iter().find(splits) {
        fail!(
            "`{}` contains a space, at which a shell splits $(rocov ...)", word.display();
            "choose a path without one"
        );
    }
    let mut line = words.join(&OsString::from(" ")).into_encoded_bytes();
    line.push(b'\n');
    Ok(line)
}

//! `LLVM_PROFILE_FILE`: the user's pattern for profile names.

use thiserror::Error;

/// What the specifiers stand for in this process.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// `%p`: process id.
    pub pid: u32,
    /// `%h`: host name.
    pub host: String,
    /// `%t`: the directory `TMPDIR`, without a slash at its end.
    pub tmpdir: String,
}

/// Why a pattern is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// A specifier that is not supported.
    #[error("{found:?} in the profile name {pattern:?} is not supported, use %p, %h, %t or %%")]
    Unsupported {
        /// The specifier.
        found: String,
        /// The whole pattern.
        pattern: String,
    },
}

/// Expands `pattern` as LLVM's runtime does: `%p` process id, `%h` host name, `%t` `TMPDIR`,
/// `%%` a percent sign.
///
/// # Errors
/// Fails for any other specifier. `%m` and `%b` would promise merging into one file per binary;
/// `%c` a file that the counters are mapped into, which device memory cannot be.
pub fn expand(pattern: &str, values: &Expansion) -> Result<String, PatternError> {
    let mut expanded = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        expanded.push_str(&rest[..at]);
        let specifier = &rest[at + 1..];
        match specifier.chars().next() {
            Some('p') => expanded.push_str(&values.pid.to_string()),
            Some('h') => expanded.push_str(&values.host),
            Some('t') => expanded.push_str(&values.tmpdir),
            Some('%') => expanded.push('%'),
            _ => {
                let len = specifier
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(specifier.len());
                let found = specifier.chars().take(len + 1).collect::<String>();
                return Err(PatternError::Unsupported {
                    found: format!("%{found}"),
                    pattern: pattern.to_owned(),
                });
            }
        }
        rest = &specifier[1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Expansion {
        Expansion {
            pid: 42,
            host: "node7".into(),
            tmpdir: "/tmp".into(),
        }
    }

    #[test]
    fn specifiers_stand_for_what_llvm_says() {
        let expanded = expand("%t/run-%h-%p/100%%.profraw", &values()).unwrap();
        assert_eq!(expanded, "/tmp/run-node7-42/100%.profraw");
        assert_eq!(expand("plain.profraw", &values()).unwrap(), "plain.profraw");
    }

    #[test]
    fn others_are_named() {
        for (pattern, found) in [
            ("a-%m.profraw", "%m"),
            ("%4m", "%4m"),
            ("x%c", "%c"),
            ("x%", "%"),
            ("%é", "%é"),
        ] {
            let error = expand(pattern, &values()).unwrap_err();
            assert_eq!(
                error,
                PatternError::Unsupported {
                    found: found.into(),
                    pattern: pattern.into()
                }
            );
        }
    }
}

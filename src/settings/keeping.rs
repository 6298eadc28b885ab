//! The files to keep next to the profiles.

use std::ffi::OsString;
use std::str::FromStr;

use super::error::{SettingError, refuse};
use super::variables::{OBJECTS, OBJECTS_MAX, REGISTRY, Setting};

/// The files to keep next to the profiles. The default keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keeping {
    /// The condition for writing the registry.
    pub document: DocumentWhen,
    /// The device ELFs to keep.
    pub objects: ObjectsKept,
    /// The most bytes of device ELFs that a process writes.
    pub objects_max: u64,
}

impl Keeping {
    /// Returns what the environment asks for. `variable` returns the value of a variable, and `refused` is called with
    /// each value that cannot be used.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        refused: impl Fn(&Setting, &SettingError),
    ) -> Self {
        let word = |setting: &Setting| variable(setting.name);
        let refused = |setting: Setting| {
            let refused = &refused;
            move |error: &SettingError| refused(&setting, error)
        };
        Self {
            document: REGISTRY.value(word(&REGISTRY).as_deref(), str::parse, refused(REGISTRY)),
            objects: OBJECTS.value(word(&OBJECTS).as_deref(), str::parse, refused(OBJECTS)),
            objects_max: OBJECTS_MAX.value(
                word(&OBJECTS_MAX).as_deref(),
                parse_bytes,
                refused(OBJECTS_MAX),
            ),
        }
    }
}

/// The condition for writing the registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentWhen {
    /// Write it if an instrumented code object was loaded, or if the process had device code of which nobody
    /// knows yet whether it is instrumented.
    Auto,
    /// Write it if any code object was loaded.
    Always,
    /// Never.
    #[default]
    None,
}

impl FromStr for DocumentWhen {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        match word {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "none" => Ok(Self::None),
            _ => Err(refuse(word, "auto, always or none")),
        }
    }
}

/// The device ELFs to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectsKept {
    /// All that rocov reads.
    All,
    /// Those of instrumented code objects.
    Instrumented,
    /// None.
    #[default]
    None,
}

impl FromStr for ObjectsKept {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        match word {
            "all" => Ok(Self::All),
            "instrumented" => Ok(Self::Instrumented),
            "none" => Ok(Self::None),
            _ => Err(refuse(word, "all, instrumented or none")),
        }
    }
}

/// A number of bytes: digits, and `K`, `M`, `G` for powers of 1024.
///
/// # Errors
/// Fails if `word` is anything else, or a number of 2^64 or more.
pub fn parse_bytes(word: &str) -> Result<u64, SettingError> {
    let (digits, unit) = match word.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if word.ends_with('K') => (digits, 1 << 10),
        Some(digits) if word.ends_with('M') => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 30),
        None => (word, 1_u64),
    };
    let number = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<u64>().ok(),
        false => None,
    };
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| refuse(word, "a number of bytes such as 1000, 64K, 500M or 4G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_as_they_are_written() {
        assert_eq!("auto".parse(), Ok(DocumentWhen::Auto));
        assert_eq!("always".parse(), Ok(DocumentWhen::Always));
        assert_eq!("none".parse(), Ok(DocumentWhen::None));
        let error = DocumentWhen::from_str("Auto").unwrap_err().to_string();
        assert_eq!(error, r#""Auto" is not valid: use auto, always or none"#);
        assert_eq!("all".parse(), Ok(ObjectsKept::All));
        assert_eq!("instrumented".parse(), Ok(ObjectsKept::Instrumented));
        assert_eq!("none".parse(), Ok(ObjectsKept::None));
        let error = ObjectsKept::from_str("some").unwrap_err().to_string();
        assert_eq!(
            error,
            r#""some" is not valid: use all, instrumented or none"#
        );
    }

    #[test]
    fn bytes_have_units() {
        for (word, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("64K", 64 << 10),
            ("500M", 500 << 20),
            ("4G", 4 << 30),
            ("17179869183G", 17_179_869_183 << 30),
        ] {
            assert_eq!(parse_bytes(word), Ok(bytes), "{word}");
        }
        for word in ["", "G", "4g", "4GB", "+4", "-1", "1.5G", "17179869184G"] {
            let error = parse_bytes(word).unwrap_err().to_string();
            let expected = "is not valid: use a number of bytes such as 1000, 64K, 500M or 4G";
            assert_eq!(error, format!("{word:?} {expected}"));
        }
    }
}

//! References of host files to [kpack archives](super::kpack) with their device code.
//!
//! The section `.rocm_kpack_ref` of the host file has its name in archives, and the paths of these, relative to the file.
//! `@GFXARCH@` in a path stands for a target.

use crate::format::codeobject::msgpack::{Reader, Value};

/// The part of a path that stands for a target.
pub const ANY_TARGET: &str = "@GFXARCH@";

/// The reference of a host file to the archives with its device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitOff {
    /// The name of the host file in archives, such as `lib/librocrand.so.1.1`.
    pub name: String,
    /// The paths of archives, relative to the directory of the host file. [`ANY_TARGET`] in one stands for a target.
    pub archives: Vec<String>,
}

impl SplitOff {
    /// Parses the contents of `.rocm_kpack_ref`. `None` if they are no reference.
    pub(super) fn parse(section: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(section);
        let (mut name, mut archives) = (None, Vec::new());
        let Value::Map(pairs) = reader.start().ok()? else {
            return None;
        };
        for _ in 0..pairs {
            let Value::Text(key) = reader.value().ok()? else {
                return None;
            };
            match (key, reader.start().ok()?) {
                (b"kernel_name", Value::Text(text)) => name = Some(str::from_utf8(text).ok()?),
                (b"kpack_search_paths", Value::List(count)) => {
                    for _ in 0..count {
                        let Ok(Value::Text(path)) = reader.value() else {
                            return None;
                        };
                        archives.push(str::from_utf8(path).ok()?.to_owned());
                    }
                }
                (_, other) => reader.finish(other).ok()?,
            }
        }
        Some(Self {
            name: name?.to_owned(),
            archives,
        })
    }
}

//! The identity of a code object, across loads, processes and machines.

use std::fmt;
use std::io::{self, Read};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::format::codeobject::cuda::with_sections;
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

/// The identity of a code object: its GNU build id, else a hash of all its bytes.
///
/// Written as lower-case hexadecimal digits, as in file names. Code objects with one identity have the same
/// sections at the same addresses, so their counters can be added up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(String);

impl Identity {
    /// The identity of the code object with the bytes `image`.
    ///
    /// Stock clang writes no build id into device code, so the hash is the common case: 128 bits of XXH3, 32
    /// digits. A build id of `ld.lld --build-id` has 16 or 40 digits.
    ///
    /// A cubin has the identity of the ELF that rocov lays out from it, which is what a profile is of.
    ///
    /// # Errors
    /// Fails if `image` is not a code object.
    pub fn from_image(image: &[u8]) -> Result<Self, CodeObjectError> {
        let by_id = CodeObject::parse(image)?.build_id()?;
        let by_id = by_id.and_then(Self::from_build_id);
        Ok(by_id.unwrap_or_else(|| Self::from_bytes(&with_sections(image))))
    }

    /// The identity of a code object with this build id. `None` if the id is empty.
    #[must_use]
    pub fn from_build_id(id: &[u8]) -> Option<Self> {
        (!id.is_empty()).then(|| Self(hex(id)))
    }

    /// The identity of a code object without a build id: the hash of all its bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(hex(&xxh3_128(bytes).to_be_bytes()))
    }

    /// The identity of a code object without a build id: the hash of all bytes of `image`, read piece by
    /// piece.
    ///
    /// # Errors
    /// Fails if `image` cannot be read.
    pub fn from_reader(mut image: impl Read) -> io::Result<Self> {
        let mut hash = Xxh3::new();
        let mut piece = vec![0; 32 << 10];
        loop {
            match image.read(&mut piece) {
                Ok(0) => return Ok(Self(hex(&hash.digest128().to_be_bytes()))),
                Ok(len) => hash.update(&piece[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The identity of a code object whose ELF cannot be read: a hash of sections that are also on the
    /// device. It differs from the one of [`Identity::from_image`].
    #[must_use]
    pub fn from_sections<'a>(sections: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Xxh3::new();
        sections
            .into_iter()
            .for_each(|section| hash.update(section));
        Self(hex(&hash.digest128().to_be_bytes()))
    }

    /// The identity with these digits, as in a file name. `None` unless they are lower-case hexadecimal
    /// digits.
    #[must_use]
    pub fn from_digits(digits: &str) -> Option<Self> {
        Self::is_identity(digits).then(|| Self(digits.to_owned()))
    }

    /// Returns whether a text has the digits of an identity.
    pub(crate) fn is_identity(digits: &str) -> bool {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !digits.is_empty() && digits.bytes().all(is_digit)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    digits.collect()
}

/// A target id as part of a file name: `gfx90a:sramecc+:xnack-` becomes `gfx90a-sramecc+-xnack-`. Colons
/// split lists such as `LD_LIBRARY_PATH`, and Windows shares refuse them. Any other character that could
/// leave the directory is replaced too.
#[must_use]
pub fn sanitize_target(target: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_');
    target
        .chars()
        .map(|c| if safe(c) { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_ids_become_file_name_parts() {
        assert_eq!(sanitize_target("gfx90a"), "gfx90a");
        assert_eq!(
            sanitize_target("gfx90a:sramecc+:xnack-"),
            "gfx90a-sramecc+-xnack-"
        );
        assert_eq!(sanitize_target("../x"), "---x");
    }

    #[test]
    fn what_is_no_code_object_has_no_identity() {
        assert!(Identity::from_image(b"").is_err());
        assert!(Identity::from_image(b"\x7fELF and then nothing").is_err());
        let host = std::fs::read("/proc/self/exe").unwrap();
        let error = Identity::from_image(&host).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a code object: ELF machine 0x3e, expected 0xe0 (AMDGPU) or 0xbe (CUDA)"
        );
    }
}

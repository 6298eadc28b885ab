//! Checks the names of functions, as readers of a profile will unpack them.
//!
//! There are one or more lists. Each has the size of the list in bytes, its compressed size or 0, both as
//! ULEB128, and then the list, as a zlib stream if it is compressed. `\x01` separates the names. Zeros may
//! follow each list (LLVM's `readAndDecodeStrings`). If a list is damaged or cut short, llvm-profdata rejects
//! the whole profile.

use std::collections::HashMap;
use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::format::decompress::Inflate;
use crate::format::leb128::uleb128;
use crate::validate::{MAX_SECTION_BYTES, SectionsError};

/// The byte between two names.
const SEPARATOR: u8 = 1;

/// The limit in bytes for all names of a code object when unpacked: the limit of four sections, and seconds
/// of work. The names of the largest programs take some MiB.
const MAX_UNPACKED: u64 = 4 * MAX_SECTION_BYTES;

const EMPTY: &str = "has an empty name";
const DAMAGED: &str = "cannot be unpacked";
const OTHER_SIZE: &str = "has another size than it says";
const TOO_MUCH: &str = "takes the names to more than 1 GiB";

/// The result of a check. An error has the offset of the first damaged list, and the reason.
type Checked = Result<(), (usize, &'static str)>;

/// A checker for names. It remembers the results, because names do not change while kernels run.
#[derive(Default)]
pub struct NamesChecker {
    /// The results, by hashes of names: 128 bits of XXH3.
    known: HashMap<u128, Checked>,
    /// Made on first use: that takes longer than to unpack the names of a code object.
    inflate: Option<Inflate>,
}

impl fmt::Debug for NamesChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.known).finish()
    }
}

impl NamesChecker {
    /// Checks that all names can be unpacked. Only a part of them is in memory at a time. A list is unpacked
    /// up to its declared size.
    ///
    /// # Errors
    /// Fails if a list is damaged. The error names the offset of the first one.
    pub fn check(&mut self, names: &[u8]) -> Result<(), SectionsError> {
        let mut hash = Xxh3::new();
        hash.update(names);
        let hash = hash.digest128();
        let checked = match self.known.get(&hash) {
            Some(checked) => *checked,
            None => {
                let checked = self.check_lists(names);
                self.known.insert(hash, checked);
                checked
            }
        };
        checked.map_err(|(at, reason)| SectionsError::Names { at, reason })
    }

    fn check_lists(&mut self, names: &[u8]) -> Checked {
        let mut rest = names;
        let mut room = MAX_UNPACKED;
        while !rest.is_empty() {
            let at = names.len() - rest.len();
            rest = self
                .after_list(rest, &mut room)
                .map_err(|reason| (at, reason))?;
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = &rest[zeros..];
        }
        Ok(())
    }

    /// Checks the first list of `names`, and returns the bytes after it. Takes its size from `room`.
    fn after_list<'a>(
        &mut self,
        names: &'a [u8],
        room: &mut u64,
    ) -> Result<&'a [u8], &'static str> {
        let stored = Stored::at_start_of(names)?;
        *room = room.checked_sub(stored.size as u64).ok_or(TOO_MUCH)?;
        let mut found = List::of(stored.size);
        match stored.is_compressed {
            false => found.take(stored.bytes)?,
            true => self.unpack(stored.bytes, &mut found)?,
        }
        found.end()?;
        Ok(stored.rest)
    }

    /// Unpacks `list` and hands the parts to `found`.
    fn unpack(&mut self, list: &[u8], found: &mut List) -> Result<(), &'static str> {
        let inflate = self.inflate.get_or_insert_default();
        let mut result = Ok(());
        let unpacked = inflate.unpack(list, &mut |part| {
            result = found.take(part);
            result.is_ok()
        });
        result.and(unpacked.map(drop).map_err(|_| DAMAGED))
    }
}

/// Calls `take` with each name of a names section.
///
/// # Errors
/// Fails if a list cannot be unpacked, and names it.
pub fn for_each_name(section: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), SectionsError> {
    let mut inflate = None;
    let mut rest = section;
    while !rest.is_empty() {
        let at = section.len() - rest.len();
        let damaged = |reason| SectionsError::Names { at, reason };
        let stored = Stored::at_start_of(rest).map_err(damaged)?;
        let mut unpacked = Vec::new();
        let list = match stored.is_compressed {
            false => stored.bytes,
            true => {
                let inflate: &mut Inflate = inflate.get_or_insert_default();
                let result = inflate.unpack(stored.bytes, &mut |part| {
                    unpacked.extend_from_slice(part);
                    unpacked.len() <= stored.size
                });
                result.map_err(|_| damaged(DAMAGED))?;
                &unpacked
            }
        };
        if list.len() != stored.size {
            return Err(damaged(OTHER_SIZE));
        }
        list.split(|byte| *byte == SEPARATOR).for_each(&mut take);
        let zeros = stored.rest.iter().take_while(|byte| **byte == 0).count();
        rest = &stored.rest[zeros..];
    }
    Ok(())
}

/// A list of names as it is stored.
struct Stored<'a> {
    /// Bytes of the list.
    size: usize,
    is_compressed: bool,
    bytes: &'a [u8],
    /// The bytes after the list.
    rest: &'a [u8],
}

impl<'a> Stored<'a> {
    fn at_start_of(names: &'a [u8]) -> Result<Self, &'static str> {
        let number = |from: &[u8]| {
            let (number, len) = uleb128(from).ok_or("has no size")?;
            let number = usize::try_from(number).map_err(|_| "has no size")?;
            Ok((number, len))
        };
        let (size, len) = number(names)?;
        let names = &names[len..];
        let (compressed, len) = number(names)?;
        let names = &names[len..];
        let stored = if compressed == 0 { size } else { compressed };
        let (bytes, rest) = names.split_at_checked(stored).ok_or("is cut short")?;
        Ok(Stored {
            size,
            is_compressed: compressed > 0,
            bytes,
            rest,
        })
    }
}

/// A list of names that arrives in parts.
struct List {
    /// The number of bytes that are still to come.
    missing: usize,
    last: u8,
}

impl List {
    fn of(size: usize) -> Self {
        Self {
            missing: size,
            last: SEPARATOR,
        }
    }

    fn take(&mut self, part: &[u8]) -> Result<(), &'static str> {
        self.missing = self.missing.checked_sub(part.len()).ok_or(OTHER_SIZE)?;
        for byte in part {
            if (*byte, self.last) == (SEPARATOR, SEPARATOR) {
                return Err(EMPTY);
            }
            self.last = *byte;
        }
        Ok(())
    }

    fn end(self) -> Result<(), &'static str> {
        match self {
            Self {
                last: SEPARATOR, ..
            } => Err(EMPTY),
            Self { missing: 0, .. } => Ok(()),
            _ => Err(OTHER_SIZE),
        }
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

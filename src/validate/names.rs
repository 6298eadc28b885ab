//! Checks the names of functions, as readers of a profile will unpack them.
//!
//! There are one or more lists. Each has the size of the list in bytes, its compressed size or 0, both as
//! ULEB128, and then the list, as a zlib stream if it is compressed. `\x01` separates the names. Zeros may
//! follow each list (LLVM's `readAndDecodeStrings`). If a list is damaged or cut short, llvm-profdata rejects
//! the whole profile.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::format::codeobject::name_ref;
use crate::format::decompress::Inflate;
use crate::format::leb128::uleb128;
use crate::validate::{MAX_SECTION_BYTES, SectionsError};

/// The byte between two names.
const SEPARATOR: u8 = 1;

/// The limit in bytes for all names of a code object when unpacked: the limit of four sections, and seconds
/// of work. The names of the largest programs take some MiB.
const MAX_UNPACKED: u64 = 4 * MAX_SECTION_BYTES;

/// The limit for the number of names of a code object: seconds of work. The largest programs have a million functions.
const MAX_NAMES: usize = 4 << 20;

/// The limit in bytes for a name. The longest names of templates take some ten KiB.
const MAX_NAME: usize = 1 << 20;

/// The limit in bytes for the names that are kept in memory.
const MAX_KEPT: usize = MAX_SECTION_BYTES as usize;

const EMPTY: &str = "has an empty name";
const DAMAGED: &str = "cannot be unpacked";
const OTHER_SIZE: &str = "has a size other than stated";
const TOO_MUCH: &str = "takes the names to more than 1 GiB";
const TOO_MANY: &str = "takes the names to more than 4194304";
const TOO_LONG: &str = "has a name of more than 1 MiB";
const TOO_MUCH_TO_KEEP: &str = "takes the different names to more than 256 MiB";

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
        Walk::new(&mut self.inflate, &mut |_| Ok(())).lists(names)
    }
}

/// Calls `take` with each name of a names section. Only a part of the names is in memory at a time.
///
/// # Errors
/// Fails if a list cannot be unpacked, or is larger than any real one, and names it. `take` has got names before it then.
pub fn for_each_name(section: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), SectionsError> {
    let take = &mut |name: &[u8]| -> Result<(), &'static str> {
        take(name);
        Ok(())
    };
    walk(section, take)
}

/// The names of a names section, by their hashes.
///
/// # Errors
/// Fails if a list cannot be unpacked, or is larger than any real one, and names it.
pub fn names_by_hash(section: &[u8]) -> Result<HashMap<u64, Vec<u8>>, SectionsError> {
    let mut names = HashMap::new();
    let mut room = MAX_KEPT;
    let take = &mut |name: &[u8]| -> Result<(), &'static str> {
        if let Entry::Vacant(place) = names.entry(name_ref(name)) {
            room = room.checked_sub(name.len()).ok_or(TOO_MUCH_TO_KEEP)?;
            place.insert(name.to_vec());
        }
        Ok(())
    };
    walk(section, take)?;
    Ok(names)
}

fn walk(section: &[u8], take: &mut Take<'_>) -> Result<(), SectionsError> {
    let mut inflate = None;
    let mut walk = Walk::new(&mut inflate, take);
    // An empty list has no name, and no reader misses one.
    walk.takes_empty_lists = true;
    let walked = walk.lists(section);
    walked.map_err(|(at, reason)| SectionsError::Names { at, reason })
}

/// Takes a name, or rejects all.
type Take<'a> = dyn FnMut(&[u8]) -> Result<(), &'static str> + 'a;

/// A walk over all names of a code object, within limits for all of them together.
struct Walk<'a> {
    inflate: &'a mut Option<Inflate>,
    take: &'a mut Take<'a>,
    takes_empty_lists: bool,
    /// The number of bytes that may still be unpacked.
    room: u64,
    /// The number of names that may still come.
    left: usize,
}

impl<'a> Walk<'a> {
    fn new(inflate: &'a mut Option<Inflate>, take: &'a mut Take<'a>) -> Self {
        Self {
            inflate,
            take,
            takes_empty_lists: false,
            room: MAX_UNPACKED,
            left: MAX_NAMES,
        }
    }

    fn lists(&mut self, names: &[u8]) -> Checked {
        let mut rest = names;
        while !rest.is_empty() {
            let at = names.len() - rest.len();
            rest = self.after_list(rest).map_err(|reason| (at, reason))?;
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = &rest[zeros..];
        }
        Ok(())
    }

    /// Walks over the first list of `names`, and returns the bytes after it.
    fn after_list<'n>(&mut self, names: &'n [u8]) -> Result<&'n [u8], &'static str> {
        let stored = Stored::at_start_of(names)?;
        self.room = self.room.checked_sub(stored.size as u64).ok_or(TOO_MUCH)?;
        if stored.size == 0 && !stored.is_compressed && self.takes_empty_lists {
            return Ok(stored.rest);
        }
        let mut list = List {
            missing: stored.size,
            name: Vec::new(),
        };
        match stored.is_compressed {
            false => self.part(&mut list, stored.bytes)?,
            true => self.unpack(&mut list, stored.bytes)?,
        }
        self.name(&mut list, b"")?;
        match list.missing {
            0 => Ok(stored.rest),
            _ => Err(OTHER_SIZE),
        }
    }

    /// Unpacks `packed`, and walks over the parts.
    fn unpack(&mut self, list: &mut List, packed: &[u8]) -> Result<(), &'static str> {
        let mut inflate = self.inflate.take().unwrap_or_default();
        let mut result = Ok(());
        let unpacked = inflate.unpack(packed, &mut |part| {
            result = self.part(list, part);
            result.is_ok()
        });
        *self.inflate = Some(inflate);
        result.and(unpacked.map(drop).map_err(|_| DAMAGED))
    }

    /// Walks over the next part of a list.
    fn part(&mut self, list: &mut List, part: &[u8]) -> Result<(), &'static str> {
        list.missing = list.missing.checked_sub(part.len()).ok_or(OTHER_SIZE)?;
        let mut rest = part;
        while let Some(end) = rest.iter().position(|byte| *byte == SEPARATOR) {
            self.name(list, &rest[..end])?;
            rest = &rest[end + 1..];
        }
        list.begin(rest)
    }

    /// Takes a name, of which `end` comes after what the list has of it.
    fn name(&mut self, list: &mut List, end: &[u8]) -> Result<(), &'static str> {
        // Most names lie wholly in one part.
        let is_split = !list.name.is_empty();
        if is_split {
            list.begin(end)?;
        }
        let name = if is_split { &list.name[..] } else { end };
        if name.is_empty() {
            return Err(EMPTY);
        }
        if name.len() > MAX_NAME {
            return Err(TOO_LONG);
        }
        self.left = self.left.checked_sub(1).ok_or(TOO_MANY)?;
        (self.take)(name)?;
        list.name.clear();
        Ok(())
    }
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
    /// The start of a name whose end is in a later part.
    name: Vec<u8>,
}

impl List {
    /// Adds bytes to the name that has begun.
    fn begin(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.name.len() + bytes.len() > MAX_NAME {
            return Err(TOO_LONG);
        }
        self.name.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

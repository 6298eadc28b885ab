//! Results on disk: an entry for each cubin that was made, and for each PTX that the driver refuses.
//!
//! An entry is named for everything that it depends on, and starts with a hash of its contents. So a damaged entry is made
//! again. Entries appear wholly or not at all, so several processes may write one at a time. A cache that cannot be written
//! is no failure.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | in ASCII: `rocovins`, or `rocovnot` for a refusal |
//! | 16 | XXH3 of the contents, 128 bits, little endian |
//! | | the contents: the code that was made, or the reason of the refusal |

use rocov::store::{CacheFolder, InstrumentCache};
use xxhash_rust::xxh3::xxh3_128;

/// The start of code that was made.
const MADE: &[u8; 8] = b"rocovins";
/// The start of a refusal.
const REFUSED: &[u8; 8] = b"rocovnot";
const HEADER: usize = 24;

/// The cache of this user.
#[derive(Debug)]
pub(crate) struct Cache(InstrumentCache);

impl Cache {
    /// The cache that the environment names. `None` if it names none.
    pub(crate) fn for_user() -> Option<Self> {
        InstrumentCache::for_user().map(Self)
    }

    /// The result with this key: code, or the reason why there is none. `None` if there is no entry, or a damaged one, or
    /// one that another user has written.
    pub(crate) fn get(&self, key: u128) -> Option<Result<Vec<u8>, String>> {
        contents(&InstrumentCache::read(&self.0.code(key), user())?)
    }

    /// Keeps a result, if it can be written.
    pub(crate) fn put(&self, key: u128, result: Result<&[u8], &str>) {
        let place = self.0.code(key);
        let _ = self.0.write(CacheFolder::Code, &place, &entry(result));
    }

    /// The PTX of the cubin with these contents, which the stand-in for ptxas or a compiler of the process has made.
    pub(crate) fn source(&self, cubin: &[u8]) -> Option<String> {
        let text = InstrumentCache::read(&self.0.source(cubin), user())?;
        String::from_utf8(text).ok()
    }

    /// Keeps the PTX of a cubin, if it can be written.
    pub(crate) fn keep_source(&self, cubin: &[u8], text: &str) {
        let place = self.0.source(cubin);
        let _ = self.0.write(CacheFolder::Sources, &place, text.as_bytes());
    }
}

/// The entry of a result.
fn entry(result: Result<&[u8], &str>) -> Vec<u8> {
    let (magic, contents) = match result {
        Ok(code) => (MADE, code),
        Err(reason) => (REFUSED, reason.as_bytes()),
    };
    let hash = xxh3_128(contents).to_le_bytes();
    [magic.as_slice(), &hash, contents].concat()
}

/// The result in an entry. `None` if it is damaged.
fn contents(entry: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let (header, contents) = entry.split_at_checked(HEADER)?;
    let (magic, hash) = header.split_at(MADE.len());
    if hash != xxh3_128(contents).to_le_bytes() {
        return None;
    }
    match magic {
        magic if magic == MADE => Some(Ok(contents.to_vec())),
        magic if magic == REFUSED => Some(Err(String::from_utf8(contents.to_vec()).ok()?)),
        _ => None,
    }
}

/// The number of this user.
#[expect(unsafe_code, reason = "asks for the user of the process")]
fn user() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_contents_or_none() {
        let code = entry(Ok(b"cubin"));
        assert_eq!(contents(&code).unwrap(), Ok(b"cubin".to_vec()));
        assert_eq!(contents(&entry(Ok(b""))).unwrap(), Ok(Vec::new()));
        let refused = entry(Err("it is wrong"));
        assert_eq!(contents(&refused).unwrap(), Err("it is wrong".to_owned()));
        for whole in [code, refused] {
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                assert_eq!(contents(&damaged), None, "byte {at}");
                assert_eq!(contents(&whole[..at]), None, "{at} bytes");
            }
        }
    }
}

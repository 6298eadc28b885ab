//! Results on disk: an entry for each cubin that was made, and for each PTX that the driver refuses.
//!
//! An entry is named for everything that it depends on, and ends with a hash of its contents. So a damaged entry is made
//! again. The contents come first: code may take more than a gigabyte, and none of it is copied. Entries appear wholly or
//! not at all, so several processes may write one at a time. A cache that cannot be written is no failure.
//!
//! | bytes | field |
//! |---|---|
//! | | the contents: the code that was made, or the reason of the refusal |
//! | 8 | in ASCII: `rocovins`, or `rocovnot` for a refusal |
//! | 16 | XXH3 of the contents, 128 bits, little endian |

use rocov::store::{CacheFolder, InstrumentCache};
use xxhash_rust::xxh3::xxh3_128;

/// The words behind code that was made.
const MADE: &[u8; 8] = b"rocovins";
/// Those behind a refusal.
const REFUSED: &[u8; 8] = b"rocovnot";

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
        contents(InstrumentCache::read(&self.0.code(key), user())?)
    }

    /// Keeps code that was made, if it can be written. The code is as before afterwards.
    pub(crate) fn put(&self, key: u128, code: &mut Vec<u8>) {
        let len = code.len();
        add_end(code, MADE);
        self.write(key, code);
        code.truncate(len);
    }

    /// Keeps the reason of a refusal, if it can be written.
    pub(crate) fn put_refusal(&self, key: u128, reason: &str) {
        let mut entry = reason.as_bytes().to_vec();
        add_end(&mut entry, REFUSED);
        self.write(key, &entry);
    }

    fn write(&self, key: u128, entry: &[u8]) {
        let place = self.0.code(key);
        let _ = self.0.write(CacheFolder::Code, &place, entry);
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

/// Makes an entry of its contents.
fn add_end(contents: &mut Vec<u8>, magic: &[u8; 8]) {
    let hash = xxh3_128(contents).to_le_bytes();
    contents.extend_from_slice(magic);
    contents.extend(hash);
}

/// The result in an entry. `None` if it is damaged.
fn contents(mut entry: Vec<u8>) -> Option<Result<Vec<u8>, String>> {
    let (rest, hash) = entry.split_last_chunk()?;
    let (contents, magic) = rest.split_last_chunk()?;
    if *hash != xxh3_128(contents).to_le_bytes() {
        return None;
    }
    let (magic, len) = (*magic, contents.len());
    entry.truncate(len);
    match &magic {
        MADE => Some(Ok(entry)),
        REFUSED => Some(Err(String::from_utf8(entry).ok()?)),
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
        let entry = |contents: &[u8], magic| {
            let mut entry = contents.to_vec();
            add_end(&mut entry, magic);
            entry
        };
        let code = entry(b"cubin", MADE);
        assert_eq!(contents(code.clone()).unwrap(), Ok(b"cubin".to_vec()));
        assert_eq!(contents(entry(b"", MADE)).unwrap(), Ok(Vec::new()));
        let refused = entry(b"it is wrong", REFUSED);
        let reason = contents(refused.clone()).unwrap();
        assert_eq!(reason, Err("it is wrong".to_owned()));
        for whole in [code, refused] {
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                assert_eq!(contents(damaged), None, "byte {at}");
                assert_eq!(contents(whole[..at].to_vec()), None, "{at} bytes");
            }
        }
    }
}

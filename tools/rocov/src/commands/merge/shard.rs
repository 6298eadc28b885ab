//! The share of one task in a merge that many tasks do.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::cli::ShardNumber;
use crate::data::ProcessPlaces;

/// Tells the processes of one share from those of others.
///
/// A hash of the paths decides, and not a place in a list: two tasks that look at a directory at different times
/// then still take disjoint shares.
pub(super) struct Shard {
    number: ShardNumber,
    places: ProcessPlaces,
}

impl Shard {
    pub(super) fn new(number: ShardNumber) -> Self {
        Self {
            number,
            places: ProcessPlaces::default(),
        }
    }

    /// Returns whether the process that wrote the file at `path` belongs to this share.
    pub(super) fn has(&mut self, path: &Path) -> bool {
        let place = self.places.of(path);
        let place = place.data.join("registry").join(place.name);
        let hash = xxh3_64(place.as_os_str().as_encoded_bytes());
        hash % u64::from(self.number.of) == u64::from(self.number.index)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_process_is_in_one_share_by_any_of_its_paths() {
        let directory = tempfile::tempdir().unwrap();
        symlink(directory.path(), directory.path().join("link")).unwrap();
        let mut shards: Vec<_> = (0..4)
            .map(|index| Shard::new(ShardNumber { index, of: 4 }))
            .collect();
        let mut sizes = [0; 4];
        for process in 0..400 {
            let name = format!("{process}.profraw");
            let [path, other] = ["", "link"].map(|it| directory.path().join(it).join(&name));
            let mut places = |path: &Path| -> Vec<_> {
                (0..4).filter(|number| shards[*number].has(path)).collect()
            };
            let found = places(&path);
            assert_eq!(found, places(&other));
            assert_eq!(found.len(), 1);
            sizes[found[0]] += 1;
        }
        assert!(
            sizes.iter().all(|size| (60..140).contains(size)),
            "{sizes:?}"
        );
    }
}

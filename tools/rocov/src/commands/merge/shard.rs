//! The share of one task in a merge that many tasks do.

use xxhash_rust::xxh3::xxh3_64;

use crate::cli::ShardNumber;
use crate::data::ProcessPlace;

/// Returns whether a process belongs to a share.
///
/// A hash of its place decides, and not a place in a list: two tasks that look at a directory at different times
/// then still take disjoint shares.
pub(super) fn has(shard: ShardNumber, place: &ProcessPlace) -> bool {
    let place = place.data.join("registry").join(&place.name);
    let hash = xxh3_64(place.as_os_str().as_encoded_bytes());
    hash % u64::from(shard.of) == u64::from(shard.index)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::data::ProcessPlaces;

    #[test]
    fn each_process_is_in_one_share_by_any_of_its_paths() {
        let directory = tempfile::tempdir().unwrap();
        symlink(directory.path(), directory.path().join("link")).unwrap();
        let mut places = ProcessPlaces::default();
        let mut sizes = [0; 4];
        for process in 0..400 {
            let name = format!("{process}.profraw");
            let [path, other] =
                ["", "link"].map(|folder| directory.path().join(folder).join(&name));
            let mut shares = |path: &Path| -> Vec<_> {
                let place = places.place(path);
                let shares = (0..4).filter(|index| {
                    let shard = ShardNumber {
                        index: *index,
                        of: 4,
                    };
                    has(shard, &place)
                });
                shares.collect()
            };
            let found = shares(&path);
            assert_eq!(found, shares(&other));
            assert_eq!(found.len(), 1);
            sizes[found[0] as usize] += 1;
        }
        assert!(
            sizes.iter().all(|size| (60..140).contains(size)),
            "{sizes:?}"
        );
    }
}

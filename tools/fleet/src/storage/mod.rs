//! The place of a data set: a directory, or a prefix in the bucket of an object store.
//!
//! Both appear as files with paths below the data set, of names with `/` between them. A file appears whole or not at
//! all. [`Storage::create`] makes a file only if there is none, for one of several writers at once: importers
//! need nothing else of each other.

#[cfg(feature = "s3")]
mod bucket;
pub(super) mod content;
mod directory;

use std::path::Path;

use anyhow::Result;
#[cfg(not(feature = "s3"))]
use rocov::store::layout::IN_BUCKETS;
use rocov::store::layout::in_bucket;
#[cfg(not(feature = "s3"))]
use rocov::support::diagnostic::fail;

#[cfg(feature = "s3")]
use self::bucket::Bucket;
use self::content::Content;
use self::directory::Directory;

/// The place of a data set.
#[derive(Debug)]
pub(super) enum Storage {
    Directory(Directory),
    #[cfg(feature = "s3")]
    Bucket(Bucket),
}

impl Storage {
    /// The place that the user names: a directory, or `s3://BUCKET/PREFIX`. Nothing is looked at there.
    ///
    /// # Errors
    ///
    /// Fails if it is in a bucket, and this build has no object stores, or its settings are wrong.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if let Some(within) = in_bucket(path) {
            #[cfg(feature = "s3")]
            return Ok(Self::Bucket(Bucket::open(within)?));
            #[cfg(not(feature = "s3"))]
            fail!(
                "cannot use {IN_BUCKETS}{within}: this rocov was built without support for object stores";
                "build it with `ROCOV_PARTS= cargo install --path tools/rocov --features s3` in a clone of rocov, or \
                 copy the data set with `aws s3 sync`"
            );
        }
        Ok(Self::Directory(Directory::new(path)))
    }

    /// The name of a file in messages.
    pub(super) fn name(&self, path: &str) -> String {
        match self {
            Self::Directory(directory) => directory.path(path).display().to_string(),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.name(path),
        }
    }

    /// Makes the place, if that is needed before files can be written there.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub(super) fn make(&self) -> Result<()> {
        match self {
            Self::Directory(directory) => directory.make(),
            #[cfg(feature = "s3")]
            Self::Bucket(_) => Ok(()),
        }
    }

    /// Returns whether there is a file that is not of an importer at this moment.
    ///
    /// # Errors
    ///
    /// Fails if the place cannot be read.
    pub(super) fn has_any(&self) -> Result<bool> {
        match self {
            Self::Directory(directory) => directory.has_any(),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.has_any(),
        }
    }

    /// The paths of the files below the directory `below`, in order. Only directories whose names `is_wanted` are
    /// looked into.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read. There are none if the directory is not there.
    pub(super) fn list(
        &self,
        below: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut found = match self {
            Self::Directory(directory) => directory.list(below, is_wanted)?,
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.list(below, is_wanted)?,
        };
        found.sort();
        Ok(found)
    }

    /// The contents of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<Option<Content>> {
        match self {
            Self::Directory(directory) => directory.read(path),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.read(path),
        }
    }

    /// The contents of files in the order of their paths; `None` for each that is not there. Those of a bucket are read
    /// at once.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be read.
    pub(super) fn read_all(&self, paths: &[&str]) -> Result<Vec<Option<Content>>> {
        match self {
            Self::Directory(directory) => paths.iter().map(|path| directory.read(path)).collect(),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.read_all(paths),
        }
    }

    /// Writes a file, in the place of one that is there.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(super) fn put(&self, path: &str, contents: Vec<u8>) -> Result<()> {
        match self {
            Self::Directory(directory) => directory.put(path, &contents),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.put(path, contents),
        }
    }

    /// Writes a file, unless there is one. Returns whether it did.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(super) fn create(&self, path: &str, contents: Vec<u8>) -> Result<bool> {
        match self {
            Self::Directory(directory) => directory.create(path, &contents),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.create(path, contents),
        }
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be removed.
    pub(super) fn remove(&self, path: &str) -> Result<()> {
        match self {
            Self::Directory(directory) => directory.remove(path),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.remove(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_writers_creates_a_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("set");
        let storages = [0; 8].map(|_| Storage::open(&path).unwrap());
        storages[0].make().unwrap();
        let created = std::thread::scope(|scope| {
            let writers = storages.iter().enumerate().map(|(number, storage)| {
                scope.spawn(move || storage.create("a/b/1", vec![b'a'; number + 1]).unwrap())
            });
            let writers: Vec<_> = writers.collect();
            let created = writers.into_iter().map(|writer| writer.join().unwrap());
            created.collect::<Vec<_>>()
        });
        assert_eq!(created.iter().filter(|is_first| **is_first).count(), 1);
        let winner = created.iter().position(|is_first| *is_first).unwrap();
        let contents = storages[0].read("a/b/1").unwrap().unwrap();
        assert_eq!(contents.bytes().unwrap().len(), winner + 1);
        storages[0].put("a/b/1", b"new".to_vec()).unwrap();
        let contents = storages[1].read("a/b/1").unwrap().unwrap();
        assert_eq!(&*contents.bytes().unwrap(), b"new");
        let list = |wanted: &str| {
            storages[1]
                .list("", &|name| name == wanted || name == "a")
                .unwrap()
        };
        assert_eq!(list("b"), ["a/b/1"]);
        assert!(list("c").is_empty());
        for _ in 0..2 {
            storages[0].remove("a/b/1").unwrap();
        }
        assert!(storages[0].read("a/b/1").unwrap().is_none());
        // Nothing that begins with a dot is left.
        drop(storages);
        let left = std::fs::read_dir(path).unwrap().count();
        assert_eq!(left, 1);
    }
}

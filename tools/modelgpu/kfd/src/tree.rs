//! Writes the generated tree: one directory per configuration, shared by all processes.

use std::ffi::CString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::Config;
use crate::sys;
use crate::topology::{self, Entry, Host};

/// The reason why the tree could not be made.
#[derive(Debug, Error)]
pub(crate) enum TreeError {
    #[error("cannot write the modelled machine's description to {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
    #[error("{path} belongs to user {owner}, not to user {user}; set ROCOV_MODELGPU_TMP")]
    Owner {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("ROCOV_MODELGPU_TMP={path:?}: the path is too long or holds a NUL")]
    Path { path: PathBuf },
}

/// A tree on disk.
pub(crate) struct Tree {
    root: CString,
}

/// Longest path inside the tree, with room to spare.
pub(crate) const PATH_BYTES: usize = 1024;
/// Room for the paths inside the tree.
const INNER_BYTES: usize = 256;

impl Tree {
    /// Finds or creates the tree for a configuration.
    pub(crate) fn find_or_create(config: &Config) -> Result<Self, TreeError> {
        let host = Host {
            processors: sys::sysconf(libc::_SC_NPROCESSORS_ONLN),
            memory_bytes: sys::sysconf(libc::_SC_PHYS_PAGES) * sys::sysconf(libc::_SC_PAGESIZE),
        };
        let entries = topology::entries(config, host);
        let root = config.tmp.join(name(config, &entries));
        let bytes = root.as_os_str().as_bytes();
        let too_long = bytes.len() + INNER_BYTES > PATH_BYTES;
        let path = match CString::new(bytes) {
            Ok(path) if !too_long => path,
            _ => {
                return Err(TreeError::Path {
                    path: config.tmp.clone(),
                });
            }
        };
        if !is_complete(&root, &entries) {
            create(&root, &entries).map_err(|error| TreeError::Write {
                path: root.clone(),
                error,
            })?;
        }
        // Anybody can know the directory's name, so another user may have made it.
        let user = sys::user_id();
        match fs::symlink_metadata(&root) {
            Ok(found) if found.uid() == user => Ok(Self { root: path }),
            Ok(found) => Err(TreeError::Owner {
                path: root,
                owner: found.uid(),
                user,
            }),
            Err(error) => Err(TreeError::Write { path: root, error }),
        }
    }

    /// The tree's own path, without a slash at its end.
    pub(crate) fn root(&self) -> &[u8] {
        self.root.to_bytes()
    }
}

/// The directory's name: the GPUs, for human readers, and a hash of all contents. So another
/// version or another machine gets another directory.
fn name(config: &Config, entries: &[Entry]) -> String {
    let gpus: Vec<&str> = config.gpus.iter().map(|target| target.name()).collect();
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    let (user, gpus, hash) = (sys::user_id(), gpus.join("+"), hasher.finish());
    format!("rocov-modelgpu-{user}-{gpus}-{hash:016x}")
}

/// A path inside the tree. `path` starts with a slash, and `join` would take it as absolute.
fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Returns whether every entry exists: cleaners of temporary directories remove old files one by
/// one.
fn is_complete(root: &Path, entries: &[Entry]) -> bool {
    let mut entries = entries.iter();
    entries.all(|entry| inside(root, entry.path()).exists())
}

/// Writes the tree in a neighbouring directory and renames it: other processes see the whole tree
/// or none.
fn create(root: &Path, entries: &[Entry]) -> io::Result<()> {
    let beside = |what: &str| {
        let mut path = root.as_os_str().to_owned();
        path.push(format!(
            ".{what}-{}-{}",
            std::process::id(),
            sys::thread_id()
        ));
        PathBuf::from(path)
    };
    let (unfinished, damaged) = (beside("new"), beside("old"));
    let result = write(&unfinished, entries).and_then(|()| {
        // A directory can only be renamed onto an empty one.
        if root.exists() && !is_complete(root, entries) {
            let _ = fs::rename(root, &damaged);
            let _ = fs::remove_dir_all(&damaged);
        }
        fs::rename(&unfinished, root)
    });
    match result {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_dir_all(&unfinished);
            // Another process was quicker; use its tree.
            match is_complete(root, entries) {
                true => Ok(()),
                false => Err(error),
            }
        }
    }
}

fn write(root: &Path, entries: &[Entry]) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(root)?;
    for entry in entries {
        match entry {
            Entry::Directory(path) => fs::create_dir_all(inside(root, path))?,
            Entry::File(path, content) => {
                let path = inside(root, path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, content)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(tmp: &Path) -> Config {
        let config = Config::read(|name| match name {
            "ROCOV_MODELGPU" => Some("gfx90ax2".into()),
            "ROCOV_MODELGPU_TMP" => Some(tmp.into()),
            _ => None,
        });
        config.unwrap().unwrap()
    }

    /// An empty directory, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("rocov-modelgpu-test-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn entries(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_tree_is_made_once_and_shared() {
        let scratch = Scratch::new("shared");
        let config = config(&scratch.0);
        let trees: Vec<Tree> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| Tree::find_or_create(&config).unwrap());
            let threads: Vec<_> = (0..4).map(|_| make()).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(trees.iter().all(|tree| tree.root() == trees[0].root()));
        assert_eq!(scratch.entries(), 1);
    }

    #[test]
    fn a_damaged_tree_is_replaced() {
        let scratch = Scratch::new("damaged");
        let config = config(&scratch.0);
        let tree = Tree::find_or_create(&config).unwrap();
        let root = PathBuf::from(std::str::from_utf8(tree.root()).unwrap());
        let file = root.join("sys/devices/virtual/kfd/kfd/topology/nodes/2/gpu_id");
        fs::remove_file(&file).unwrap();
        Tree::find_or_create(&config).unwrap();
        assert!(file.exists());
        assert_eq!(scratch.entries(), 1);
    }

    #[test]
    fn a_long_path_is_refused() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(PATH_BYTES)));
        let error = Tree::find_or_create(&config(&long)).err().unwrap();
        assert!(
            error
                .to_string()
                .ends_with("the path is too long or holds a NUL")
        );
    }
}

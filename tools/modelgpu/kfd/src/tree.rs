//! Writes the generated tree: one directory per configuration, shared by all processes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::{Bar, Config};
use crate::sys;
use crate::topology::{self, Entry, Host};

/// Part of the directory's name; changes whenever the generated files do.
const FORMAT: &str = "v1";

/// Why there is no tree.
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
/// Room that paths inside the tree need.
const INNER_BYTES: usize = 256;

impl Tree {
    /// The tree for a configuration: an existing one, or a new one.
    pub(crate) fn find_or_create(config: &Config) -> Result<Tree, TreeError> {
        let host = Host {
            processors: sys::sysconf(libc::_SC_NPROCESSORS_ONLN),
            memory_bytes: sys::sysconf(libc::_SC_PHYS_PAGES) * sys::sysconf(libc::_SC_PAGESIZE),
        };
        let root = config.tmp.join(name(config, host));
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
        if !root.exists() {
            create(&root, &topology::entries(config, host)).map_err(|error| TreeError::Write {
                path: root.clone(),
                error,
            })?;
        }
        // The directory's name is no secret: somebody else may have made it.
        let user = sys::user_id();
        match fs::symlink_metadata(&root) {
            Ok(found) if found.uid() == user => Ok(Tree { root: path }),
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

/// The directory's name: all that the files depend on, so that a look at it tells.
fn name(config: &Config, host: Host) -> String {
    let gpus: Vec<&str> = config.gpus.iter().map(|target| target.name()).collect();
    format!(
        "rocov-modelgpu-{FORMAT}-user{}-{}-{}{}-{}MiB-host{}x{}MiB",
        sys::user_id(),
        gpus.join("+"),
        match config.bar {
            Bar::Small => "small",
            Bar::Large => "large",
        },
        if config.xgmi { "-xgmi" } else { "" },
        config.vram_bytes >> 20,
        host.processors,
        host.memory_bytes >> 20,
    )
}

/// Writes the tree beside its place and renames it: other processes see all of it or nothing.
fn create(root: &Path, entries: &[Entry]) -> io::Result<()> {
    let mut unfinished = root.as_os_str().to_owned();
    unfinished.push(format!(".{}-{}", std::process::id(), sys::thread_id()));
    let unfinished = PathBuf::from(unfinished);
    let result = write(&unfinished, entries).and_then(|()| fs::rename(&unfinished, root));
    match result {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_dir_all(&unfinished);
            // Another process was quicker: its tree is as good.
            if root.exists() { Ok(()) } else { Err(error) }
        }
    }
}

fn write(root: &Path, entries: &[Entry]) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(root)?;
    // Paths inside start with a slash, which `join` would take for the root.
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    for entry in entries {
        match entry {
            Entry::Directory(path) => fs::create_dir_all(inside(path))?,
            Entry::File(path, content) => {
                let path = inside(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, content)?;
            }
        }
    }
    Ok(())
}

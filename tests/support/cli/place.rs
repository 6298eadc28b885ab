//! A data directory that a test makes up.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::profile;

/// The raw version of the tests' compiler.
pub const RAW_VERSION: u64 = 10;

/// A working directory with a data directory in it.
pub struct Place(TempDir);

impl Default for Place {
    fn default() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.data()).unwrap();
        place
    }
}

impl Place {
    /// Makes both.
    pub fn new() -> Self {
        Self::default()
    }

    /// The working directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("rocov-data")
    }

    /// Writes the profile of `elf` as librocov would, every counter at `count`.
    pub fn profile(&self, elf: &Path, arch: &str, agent: u32, count: u64) -> PathBuf {
        let path = self.profile_path(elf, arch, agent);
        profile::write(elf, count, RAW_VERSION, &path);
        path
    }

    /// The path at which librocov would write the profile of `elf`.
    pub fn profile_path(&self, elf: &Path, arch: &str, agent: u32) -> PathBuf {
        let identity = profile::identity(elf);
        let name = format!("{arch}.{identity}.{agent}.4711.profraw");
        self.data().join(name)
    }

    /// Puts a device ELF for gfx90a where librocov keeps those that it sees.
    pub fn keep(&self, elf: &Path) -> PathBuf {
        self.keep_as(elf, "gfx90a")
    }

    /// The path of a profile of `elf` for another arch.
    pub fn keep_as(&self, elf: &Path, arch: &str) -> PathBuf {
        let name = format!("{arch}.{}.elf", profile::identity(elf));
        let path = self.data().join("objects").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(elf, &path).unwrap();
        path
    }
}

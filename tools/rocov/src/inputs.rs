//! What the profiles of a data directory are shown with: read once, for every command that does.

use crate::child;
use crate::kept::Kept;
use crate::objects::ObjectFile;
use crate::profdata;
use crate::profiles::{self, DeviceProfile, Listing};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Profiles, and the files that their device ELFs are looked for in.
pub(crate) struct Inputs {
    /// The profiles; those of device code have coverage.
    pub(crate) listing: Listing,
    /// Device profiles of `-fprofile-generate`, which have none.
    pub(crate) ir_level: Vec<DeviceProfile>,
    /// Device ELFs in the directory.
    pub(crate) kept: Kept,
    /// Files that the user named.
    pub(crate) named: Vec<ObjectFile>,
}

impl Inputs {
    /// Reads `directory` and opens `objects`. Says which device ELFs are damaged or refused.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub(crate) fn read(directory: &Path, objects: &[PathBuf]) -> Result<Self> {
        let mut listing = profiles::list(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        let ir_level = listing
            .device
            .extract_if(.., |profile| profdata::is_ir_level(&profile.path))
            .collect();
        let objects = objects.iter();
        let named: Vec<_> = objects
            .map(|path| ObjectFile::open(path))
            .collect::<Result<_>>()?;
        for file in &named {
            for error in &file.damage {
                let path = file.path.display();
                child::say(&[format!("left out: a part of {path}: {error}")]);
            }
        }
        let wanted = listing.device.iter();
        let wanted = wanted.map(|profile| profile.identity.as_str()).collect();
        let kept = Kept::find(directory, &wanted)?;
        for refused in &kept.refused {
            child::say(&[format!("refused: {refused:#}")]);
        }
        Ok(Self {
            listing,
            ir_level,
            kept,
            named,
        })
    }
}

//! What the profiles of a data directory are shown with: read once, for every command that does.

use crate::child;
use crate::data::{DataDirectory, DeviceProfile, Kept};
use crate::objects::ObjectFile;
use crate::profdata;
use anyhow::Result;
use std::path::PathBuf;

/// Profiles, and the files that their device ELFs are looked for in.
pub(crate) struct Inputs {
    /// What lies there; the profiles of device code have coverage.
    pub(crate) data: DataDirectory,
    /// Device profiles of `-fprofile-generate`, which have none.
    pub(crate) ir_level: Vec<DeviceProfile>,
    /// Device ELFs that were kept there.
    pub(crate) kept: Kept,
    /// Files that the user named.
    pub(crate) named: Vec<ObjectFile>,
}

impl Inputs {
    /// Opens what belongs to the profiles of `data`, and `objects`. Says which device ELFs are damaged or
    /// refused.
    ///
    /// # Errors
    ///
    /// When one of `objects` cannot be read.
    pub(crate) fn of(mut data: DataDirectory, objects: &[PathBuf]) -> Result<Self> {
        let ir_level = data
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
        let wanted = data.device.iter();
        let wanted = wanted.map(|profile| profile.identity.as_str()).collect();
        let kept = Kept::find(&data, &wanted);
        for refused in &kept.refused {
            child::say(&[format!("refused: {refused:#}")]);
        }
        Ok(Self {
            data,
            ir_level,
            kept,
            named,
        })
    }
}

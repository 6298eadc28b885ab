//! Adds up the counts of several runs of one code object.

use crate::format::profraw::counts::add;
use crate::format::profraw::layout::padding;
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::{ProfileError, room};
use crate::format::sections::Section;

/// A raw profile that others of the same code can be added to, as the bytes of its file.
#[derive(Clone, Debug)]
pub struct Sum {
    file: Vec<u8>,
    profile: RawProfile,
}

impl Sum {
    /// Starts with the counts of the raw profile `file`.
    ///
    /// # Errors
    /// Fails if `file` is not a raw profile of a known version, is cut short, or has parts that rocov does
    /// not add.
    pub fn new(file: impl AsRef<[u8]> + Into<Vec<u8>>) -> Result<Self, ProfileError> {
        let profile = parse_whole(file.as_ref())?;
        let (file, profile) = room::plain(file, profile)?;
        Ok(Self { file, profile })
    }

    /// Adds the counts of the raw profile `file`, as [`Counts::add`](crate::format::profraw::Counts::add) does. Apart
    /// from the counts and their place, both files must be equal: then they are of the same code and version.
    ///
    /// # Errors
    /// Fails if they differ, for the reasons of [`Sum::new`], or if the counts in force in `file` are not
    /// whole: an addition would silently lose the older ones. The sum does not change then.
    pub fn add(&mut self, file: &[u8]) -> Result<(), ProfileError> {
        let theirs = parse_whole(file)?;
        theirs.check_counts(file)?;
        if !theirs.header.is_like(&self.profile.header)
            || theirs.unchanging(file) != self.profile.unchanging(&self.file)
        {
            return Err(ProfileError::OtherCode);
        }
        let version = self.profile.header.version();
        version.layout().record.take_wave_sizes(
            &mut self.file[self.profile.sections.data.clone()],
            &file[theirs.sections.data.clone()],
        );
        for section in Section::counted() {
            let into = &mut self.file[self.profile.sections.get(section).clone()];
            add(
                section,
                version,
                into,
                &file[theirs.sections.get(section).clone()],
            );
        }
        Ok(())
    }

    /// The parsed profile. All profiles in the sum have its version, variant and parts.
    #[must_use]
    pub fn profile(&self) -> &RawProfile {
        &self.profile
    }

    /// The sum as the bytes of a raw profile.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.file
    }
}

/// Parses a profile that has only known parts: one that ends with its names.
fn parse_whole(file: &[u8]) -> Result<RawProfile, ProfileError> {
    let profile = RawProfile::parse(file)?;
    let end = profile.sections.names.end + padding(profile.sections.names.len());
    if file.len() > end {
        return Err(ProfileError::MoreParts {
            end,
            found: file.len() - end,
        });
    }
    Ok(profile)
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;

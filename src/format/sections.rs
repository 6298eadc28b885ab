//! The profile sections of a code object, listed in one place.
//!
//! If a new raw profile version has one more section, add it here, and in the layouts of
//! [`super::profraw`].

use std::fmt;

/// A profile section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// `__llvm_prf_data`: one record per function.
    Data,
    /// `__llvm_prf_cnts`: the counters.
    Counters,
    /// `__llvm_prf_bits`: MC/DC bitmaps.
    Bitmap,
    /// `__llvm_prf_ucnts`: counters of whole waves (LLVM 23).
    Uniform,
    /// `__llvm_prf_names`: compressed function names.
    Names,
}

/// The rule that adds up two counts of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addition {
    /// Adds words of 8 bytes, little endian.
    Words,
    /// Sets a bit if it is set in either.
    Or,
    /// Sets a bit if it is set in both: 0 means reached.
    And,
    /// Keeps the section: it does not change while kernels run.
    None,
}

impl Section {
    /// All sections, in the order of a raw profile.
    pub const ALL: [Self; 5] = [
        Self::Data,
        Self::Counters,
        Self::Bitmap,
        Self::Uniform,
        Self::Names,
    ];

    /// The name of the section in an ELF.
    #[must_use]
    pub const fn elf_name(self) -> &'static str {
        match self {
            Self::Data => "__llvm_prf_data",
            Self::Counters => "__llvm_prf_cnts",
            Self::Bitmap => "__llvm_prf_bits",
            Self::Uniform => "__llvm_prf_ucnts",
            Self::Names => "__llvm_prf_names",
        }
    }

    /// The name of the section in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Counters => "counters",
            Self::Bitmap => "bitmap",
            Self::Uniform => "uniform counters",
            Self::Names => "names",
        }
    }

    /// Returns whether the section changes while kernels run.
    pub(crate) const fn is_counted(self) -> bool {
        matches!(self, Self::Counters | Self::Bitmap | Self::Uniform)
    }

    /// The sections that change while kernels run, in the order of a raw profile.
    pub(crate) fn counted() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|section| section.is_counted())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each profile section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSection<T> {
    /// The data records.
    pub data: T,
    /// The counters.
    pub counters: T,
    /// The MC/DC bitmaps.
    pub bitmap: T,
    /// The uniform counters.
    pub uniform: T,
    /// The names.
    pub names: T,
}

impl<T> PerSection<T> {
    /// Makes each value with `make`, in the order of a raw profile.
    pub fn from_fn(mut make: impl FnMut(Section) -> T) -> Self {
        Self {
            data: make(Section::Data),
            counters: make(Section::Counters),
            bitmap: make(Section::Bitmap),
            uniform: make(Section::Uniform),
            names: make(Section::Names),
        }
    }

    /// Makes each value with `make`, in the order of a raw profile, and stops at the first failure.
    ///
    /// # Errors
    /// Fails if `make` fails.
    pub fn try_from_fn<E>(mut make: impl FnMut(Section) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            data: make(Section::Data)?,
            counters: make(Section::Counters)?,
            bitmap: make(Section::Bitmap)?,
            uniform: make(Section::Uniform)?,
            names: make(Section::Names)?,
        })
    }

    /// The value of one section.
    pub fn get(&self, section: Section) -> &T {
        match section {
            Section::Data => &self.data,
            Section::Counters => &self.counters,
            Section::Bitmap => &self.bitmap,
            Section::Uniform => &self.uniform,
            Section::Names => &self.names,
        }
    }

    /// The value of one section, mutable.
    pub fn get_mut(&mut self, section: Section) -> &mut T {
        match section {
            Section::Data => &mut self.data,
            Section::Counters => &mut self.counters,
            Section::Bitmap => &mut self.bitmap,
            Section::Uniform => &mut self.uniform,
            Section::Names => &mut self.names,
        }
    }

    /// Each section with its value, in the order of a raw profile.
    pub fn iter(&self) -> impl Iterator<Item = (Section, &T)> {
        Section::ALL
            .into_iter()
            .map(|section| (section, self.get(section)))
    }

    /// The bytes of each section.
    pub(crate) fn slices(&self) -> PerSection<&[u8]>
    where
        T: AsRef<[u8]>,
    {
        PerSection::from_fn(|section| self.get(section).as_ref())
    }

    /// Makes a new value from each value.
    pub fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> PerSection<U> {
        PerSection::from_fn(|section| make(self.get(section)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_has_one_place() {
        let mut all = PerSection::from_fn(|section| section);
        for section in Section::ALL {
            assert_eq!(*all.get(section), section);
            assert_eq!(*all.get_mut(section), section);
        }
        let order: Vec<_> = all.iter().map(|(_, section)| *section).collect();
        assert_eq!(order, Section::ALL);
        let names = all.map(|section| section.elf_name());
        assert_eq!(names.uniform, "__llvm_prf_ucnts");
        let failed = PerSection::try_from_fn(|section| match section {
            Section::Bitmap => Err(section),
            section => Ok(section),
        });
        assert_eq!(failed, Err(Section::Bitmap));
    }
}

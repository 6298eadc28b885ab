//! Units that were split off (`-gsplit-dwarf`): the ELF has a skeleton of each with its line table, and a file `.dwo` has
//! the functions, or one package (`.dwp`) has those of all units.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::File;
use rocov::store::read_input;

use super::sections::{Bytes, InSections, contents};

type Section = Cow<'static, [u8]>;

/// The limit in bytes of such a file.
const MAX: u64 = 2 << 30;

/// The files that units were split off to.
#[derive(Default)]
pub(super) struct SplitFiles {
    /// The package of the ELF, or the reason why it cannot be read. `None` if there is none.
    package: Option<Result<DwarfPackageSections<Section>, String>>,
    /// The files of single units by their paths, or the reasons why they cannot be read.
    files: BTreeMap<PathBuf, Result<DwarfSections<Section>, String>>,
}

fn borrow(section: &Section) -> Bytes<'_> {
    EndianSlice::new(section, LittleEndian)
}

impl SplitFiles {
    /// Reads the files of these units, which are in the ELF at `elf`. Its package is next to it. The file of a unit is
    /// where the compiler wrote it, or next to the ELF.
    pub(super) fn read(units: &[InSections<'_>], elf: &Path) -> Self {
        let mut found = Self::default();
        let mut names = units.iter().filter_map(name).peekable();
        if names.peek().is_none() {
            return found;
        }
        let mut package = OsString::from(elf);
        package.push(".dwp");
        let package = Path::new(&package);
        if package.exists() {
            found.package = Some(read(package, |id| DwarfPackageSections::load(id)));
        }
        for path in names {
            let beside = path.file_name().map(|name| elf.with_file_name(name));
            let place = beside.filter(|file| !path.exists() && file.exists());
            let place = place.unwrap_or_else(|| path.clone());
            let file = read(&place, |section| DwarfSections::load(section));
            found.files.entry(path).or_insert(file);
        }
        found
    }

    /// The sections of a unit in the package. Else the reason why they are not known, if there is a package.
    fn in_package<'a>(
        &'a self,
        skeleton: &InSections<'a>,
    ) -> Result<Dwarf<Bytes<'a>>, Option<String>> {
        let package = self.package.as_ref().ok_or(None)?;
        let package = package.as_ref().map_err(|reason| Some(reason.clone()))?;
        let empty = EndianSlice::new(&[], LittleEndian);
        let found = package.borrow(borrow, empty).and_then(|package| {
            let id = skeleton.unit.dwo_id;
            id.map_or(Ok(None), |id| package.find_cu(id, &skeleton.dwarf))
        });
        let found = found.map_err(|error| Some(error.to_string()))?;
        found.ok_or_else(|| Some("it lacks this file".to_owned()))
    }

    /// The whole of a unit: with the line table of its skeleton, as LLVM numbers the files there. Else the reason, if it
    /// was split off.
    pub(super) fn unit<'a>(
        &'a self,
        skeleton: &InSections<'a>,
    ) -> Result<InSections<'a>, Option<String>> {
        let id = skeleton.unit.dwo_id.ok_or(None)?;
        let path = name(skeleton).ok_or(None)?;
        let failed = |reason: String| Some(format!("{}: {reason}", path.display()));
        let damaged = |error: gimli::Error| failed(format!("it is damaged: {error}"));
        let dwarf = match (self.in_package(skeleton), self.files.get(&path)) {
            (Ok(dwarf), _) => dwarf,
            (_, Some(Ok(sections))) => {
                let mut dwarf: Dwarf<Bytes<'a>> = sections.borrow(borrow);
                dwarf.make_dwo(&skeleton.dwarf);
                dwarf
            }
            (Err(None), Some(Err(reason))) => return Err(failed(reason.clone())),
            (Err(Some(of_package)), Some(Err(reason))) => {
                return Err(failed(format!(
                    "{reason}; the package next to the ELF: {of_package}"
                )));
            }
            (Err(_), None) => return Err(None),
        };
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().map_err(damaged)? {
            let mut unit = dwarf.unit(header).map_err(damaged)?;
            if unit.dwo_id == Some(id) {
                unit.copy_relocated_attributes(&skeleton.unit);
                unit.line_program.clone_from(&skeleton.unit.line_program);
                unit.comp_dir = skeleton.unit.comp_dir;
                return Ok(InSections {
                    dwarf: Arc::new(dwarf),
                    unit,
                });
            }
        }
        Err(failed("it is of another build".to_owned()))
    }
}

/// The path of the file that a unit was split off to. `None` if it was not.
fn name(skeleton: &InSections<'_>) -> Option<PathBuf> {
    let InSections { dwarf, unit } = skeleton;
    unit.dwo_id?;
    let text = dwarf.attr_string(unit, unit.dwo_name().ok()??).ok()?;
    let directory = unit.comp_dir.map(|directory| directory.to_string_lossy());
    Some(Path::new(&*directory.unwrap_or_default()).join(&*text.to_string_lossy()))
}

/// The reason why a file cannot be read.
struct Unreadable(String);

impl From<String> for Unreadable {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<gimli::Error> for Unreadable {
    fn from(error: gimli::Error) -> Self {
        Self(error.to_string())
    }
}

/// Reads the sections of a file by `load`.
fn read<T>(
    path: &Path,
    load: impl FnOnce(&mut dyn FnMut(SectionId) -> Result<Section, Unreadable>) -> Result<T, Unreadable>,
) -> Result<T, String> {
    let bytes = read_input(path, MAX).map_err(|error| error.to_string())?;
    let elf = File::parse(&*bytes).map_err(|error| error.to_string())?;
    let mut section = |id: SectionId| match id.dwo_name() {
        Some(name) => Ok(contents(&elf, name)?.into_owned().into()),
        None => Ok(Section::default()),
    };
    load(&mut section).map_err(|Unreadable(reason)| reason)
}

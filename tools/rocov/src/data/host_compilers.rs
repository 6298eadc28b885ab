//! The clangs that compiled host code, as programs and libraries carry their names.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use rocov::discover::host_files::build_of;
use rocov::format::codeobject::latest_clang;

use super::registries::Registries;
use crate::llvm::clang_releases;
use crate::support::mmap;

/// Releases of clang.
type Releases = RangeInclusive<u32>;

/// The programs and libraries that host code may be in.
#[derive(Debug, Default)]
pub(crate) struct HostCompilers {
    /// The files that registries name, by build id.
    files: HashMap<String, BTreeSet<PathBuf>>,
    /// The releases that compiled builds.
    known: RefCell<HashMap<String, Option<Releases>>>,
    /// Those that compiled the files that the user named.
    named: Option<Releases>,
}

impl HostCompilers {
    /// Finds the files that registries name, and reads those that the user `named`.
    ///
    /// # Errors
    ///
    /// Fails if one of these cannot be read, or does not tell its compiler.
    pub(crate) fn of(registries: &Registries, named: &[PathBuf]) -> Result<Self> {
        let mut compilers = Self::default();
        for (_, process) in registries.processes() {
            let hosts = process.hosts.iter().map(|it| (&it.path, &it.build));
            let device_code = process.device_code.iter().flat_map(|it| &it.files);
            let others = device_code.filter_map(|it| Some((&it.path, it.build.as_ref()?)));
            for (path, build) in hosts.chain(others) {
                let files = compilers.files.entry(build.clone()).or_default();
                files.insert(path.into());
            }
        }
        for path in named {
            let build =
                build_of(path).with_context(|| format!("cannot read {}", path.display()))?;
            let Some(releases) = releases(path) else {
                bail!(
                    "{} does not tell which clang compiled it: leave out --host-binary, or give the file as it was \
                     before `strip`",
                    path.display()
                );
            };
            compilers.named = Some(joined(compilers.named.as_ref(), &releases));
            compilers.known.get_mut().insert(build, Some(releases));
        }
        Ok(compilers)
    }

    /// The releases of clang that may have compiled the files with these build ids; `None` if that is not known.
    /// Files that the user named count if there is no build id.
    pub(crate) fn releases(&self, build_ids: &[&[u8]]) -> Option<Releases> {
        let mut all: Option<Releases> = None;
        for id in build_ids {
            let releases = self.of_build(&hex(id)).or_else(|| self.named.clone())?;
            all = Some(joined(all.as_ref(), &releases));
        }
        all.or_else(|| self.named.clone())
    }

    /// The releases that compiled the files of a build.
    fn of_build(&self, build: &str) -> Option<Releases> {
        if let Some(known) = self.known.borrow().get(build) {
            return known.clone();
        }
        let mut files = self.files.get(build).into_iter().flatten();
        let releases = files.find_map(|path| match build_of(path) {
            Ok(now) if now == build => releases(path),
            _ => None,
        });
        let known = &mut self.known.borrow_mut();
        known.insert(build.to_owned(), releases.clone());
        releases
    }
}

/// The releases of clang that may have compiled the program or library at `path`.
fn releases(path: &Path) -> Option<Releases> {
    let file = mmap::map(path).ok()?;
    let elf = ElfFile64::<LittleEndian>::parse(&file[..]).ok()?;
    let comment = elf.section_by_name(".comment")?.data().ok()?;
    clang_releases(latest_clang(&String::from_utf8_lossy(comment))?)
}

/// The releases of both, and those between them.
fn joined(some: Option<&Releases>, more: &Releases) -> Releases {
    match some {
        Some(some) => *some.start().min(more.start())..=*some.end().max(more.end()),
        None => more.clone(),
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! The functions of a code object with their names and descriptions, read once for many profiles: from its coverage
//! mapping, its line table, or both.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use object::{Object, ObjectSection};
use rocov::format::codeobject::{MappedFunction, mapped_functions};
use rocov::support::diagnostic::{Diagnostic, diagnostic};
use rocov::validate::names_by_hash;

use super::function::IndexedFunction;
use super::test_vectors::MAX_WAYS;
use crate::coverage::activity::Activities;
use crate::coverage::function::{Function, Key, symbol};
use crate::coverage::hiprtc::{RunTimeSources, Texts};
use crate::coverage::line_table::{ListedFunction, is_without_lines, read_elf, read_ptx};
use crate::coverage::model::SharedFunctions;
use crate::coverage::ran_lines::RanLines;
use crate::profdata::kinds::is_elf;
use crate::profdata::{CountKind, CountKinds, ProfileCounts};
use crate::support::failure::failure;
use crate::support::mmap;
use crate::term::remedy::explained;

/// The functions of code objects.
#[derive(Debug)]
pub(crate) struct ObjectIndex {
    /// The paths of the code objects, in messages.
    pub(super) paths: String,
    /// The functions: first those of coverage mappings, in the order of llvm-cov.
    pub(super) functions: Vec<CountedFunction>,
    /// The functions of line tables that have lines in files of the coverage mapping, or no lines and are in it: that has the
    /// counts of these.
    /// Only their executed instructions are shown.
    only_active: Vec<ListedFunction>,
    warnings: Vec<Diagnostic>,
    /// The texts of the sources that hipRTC compiled.
    texts: Texts,
    /// The lines of the sources as they were when the code ran.
    ran_lines: RanLines,
}

/// A function that can be evaluated.
#[derive(Debug)]
pub(super) enum CountedFunction {
    Mapped(IndexedFunction),
    Listed(ListedFunction),
}

impl CountedFunction {
    pub(super) fn description(&self) -> &Arc<Function> {
        match self {
            Self::Mapped(function) => &function.description,
            Self::Listed(function) => &function.description,
        }
    }

    fn description_mut(&mut self) -> &mut Arc<Function> {
        match self {
            Self::Mapped(function) => &mut function.description,
            Self::Listed(function) => &mut function.description,
        }
    }

    fn set_key(&mut self, key: usize) {
        match self {
            Self::Mapped(function) => function.key = key,
            Self::Listed(function) => function.key = key,
        }
    }
}

/// The error that files have no coverage mapping.
#[derive(Debug)]
pub(crate) struct Unmapped(String);

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = &self.0;
        write!(f, "no coverage mapping in {paths}")
    }
}

impl Error for Unmapped {}

impl Unmapped {
    /// The error of the host's programs and libraries.
    pub(crate) fn host_error(&self) -> anyhow::Error {
        let paths = &self.0;
        failure!(
            "no coverage mapping in {paths}";
            "compile it with the flags that `rocov flags --host` prints"
        )
    }
}

/// The functions that were read of code objects.
#[derive(Debug, Default)]
struct Reading {
    mapped: Vec<IndexedFunction>,
    listed: Vec<ListedFunction>,
    texts: Texts,
    ran_lines: RanLines,
    warnings: Vec<Diagnostic>,
}

impl ObjectIndex {
    /// Reads the functions of the code object in the files `objects` that have counts of these `kinds`, in its
    /// coverage mapping or in its line table.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or is damaged, or if there is a coverage mapping to read and none has it.
    pub(crate) fn read(objects: &[PathBuf], kinds: &CountKinds) -> Result<Self> {
        let paths: Vec<_> = objects
            .iter()
            .map(|object| object.display().to_string())
            .collect();
        let paths = paths.join(", ");
        let mut reading = Reading::default();
        for path in objects {
            if kinds.contains(&CountKind::Mapping) {
                reading.add_mapped(path)?;
            }
            reading.add_listed(path, kinds)?;
        }
        if reading.mapped.is_empty() && *kinds == CountKinds::from([CountKind::Mapping]) {
            let message = diagnostic!(
                "no coverage mapping in {paths}";
                "compile it with the flags that `rocov flags` prints"
            );
            return Err(anyhow::Error::new(Unmapped(paths)).context(message));
        }
        let mapped = reading.mapped.iter().map(|function| &function.description);
        let names = mapped
            .clone()
            .map(|description| symbol(&description.name).to_owned());
        let names: HashSet<_> = names.collect();
        let mapped: HashSet<_> = mapped
            .flat_map(|function| &function.filenames)
            .cloned()
            .collect();
        let is_mapped = |listed: &ListedFunction| {
            let description = &listed.description;
            let mut paths = description.filenames.iter();
            let is_without_lines = is_without_lines(description.main_path());
            paths.any(|path| mapped.contains(path))
                || is_without_lines && names.contains(symbol(&description.name))
        };
        let (only_active, listed): (Vec<_>, Vec<_>) =
            reading.listed.into_iter().partition(is_mapped);
        let functions = reading.mapped.into_iter().map(CountedFunction::Mapped);
        let functions = functions.chain(listed.into_iter().map(CountedFunction::Listed));
        let mut functions: Vec<_> = functions.collect();
        let mut keys: HashMap<Key, usize> = HashMap::new();
        for function in &mut functions {
            let next = keys.len();
            let key = *keys.entry(function.description().key()).or_insert(next);
            function.set_key(key);
        }
        Ok(Self {
            paths,
            functions,
            only_active,
            warnings: reading.warnings,
            texts: reading.texts,
            ran_lines: reading.ran_lines,
        })
    }

    /// The instructions that were executed of each line, as far as they are counted.
    pub(crate) fn activities(&self, counts: &ProfileCounts) -> Activities {
        let listed = self.functions.iter().filter_map(|function| match function {
            CountedFunction::Mapped(_) => None,
            CountedFunction::Listed(function) => Some(function),
        });
        let mut activities = Activities::new();
        for function in listed.chain(&self.only_active) {
            function.add_activity(counts, &mut activities);
        }
        activities
    }

    /// The texts of the sources that hipRTC compiled, and the lines of others as they were when the code ran.
    pub(crate) fn into_texts(self) -> (Texts, RanLines) {
        (self.texts, self.ran_lines)
    }

    /// Makes the functions share known descriptions, as [`SharedFunctions::share`] does.
    pub(crate) fn share(&mut self, shared: &mut SharedFunctions, place: impl Fn(&str) -> String) {
        let descriptions = self.functions.iter_mut();
        shared.share(descriptions.map(CountedFunction::description_mut), place);
    }

    /// A line for each MC/DC decision that rocov cannot evaluate, and for each damaged line table.
    pub(crate) fn left_out(&self) -> Vec<Diagnostic> {
        let functions = self.functions.iter().filter_map(|function| match function {
            CountedFunction::Mapped(function) => Some(function),
            CountedFunction::Listed(_) => None,
        });
        let decisions = functions
            .flat_map(|function| function.left_out.iter().map(move |place| (function, place)));
        let lines = decisions.map(|(function, place)| {
            diagnostic!(
                "left out: the MC/DC decision of {} at {}:{}, because there are more than {MAX_WAYS} paths through \
                 its conditions",
                function.description.name, place.line, place.column;
                "split it"
            )
        });
        lines.chain(self.warnings.iter().cloned()).collect()
    }

    /// The functions of coverage mappings, each with the hash of its name and the hash of its structure.
    #[cfg(feature = "fleet")]
    pub(crate) fn hashed(&self) -> impl Iterator<Item = ((u64, u64), &Arc<Function>)> {
        self.functions.iter().filter_map(|function| match function {
            CountedFunction::Mapped(function) => Some((function.hashes, &function.description)),
            CountedFunction::Listed(_) => None,
        })
    }

    /// The functions of line tables, without those of files in the coverage mapping.
    #[cfg(feature = "fleet")]
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.iter().filter_map(|function| match function {
            CountedFunction::Mapped(_) => None,
            CountedFunction::Listed(function) => Some(&function.description),
        })
    }

    /// The descriptions of the functions, by their numbers.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.iter().map(CountedFunction::description)
    }
}

impl Reading {
    /// Adds the functions in the coverage mapping of the object at `path`.
    fn add_mapped(&mut self, path: &Path) -> Result<()> {
        let object = MappedObject::read(path)?;
        for mapped in object.functions {
            let name = object.names.get(&mapped.name).ok_or_else(|| {
                let (path, hash) = (path.display(), mapped.name);
                failure!(
                    "{path}: no name has the hash {hash:#018x} of a function";
                    "build it again"
                )
            })?;
            let mut function = IndexedFunction::new(mapped, name);
            // A description that was just made has no other owner yet.
            if let Some(description) = Arc::get_mut(&mut function.description)
                && !object.run_time.rename(description, &mut self.texts)
            {
                continue;
            }
            self.mapped.push(function);
        }
        Ok(())
    }

    /// Adds the functions in the line table of the object or the PTX at `path`.
    fn add_listed(&mut self, path: &Path, kinds: &CountKinds) -> Result<()> {
        let [trace, ptx] = [CountKind::Trace, CountKind::Ptx].map(|kind| kinds.contains(&kind));
        if !trace && !ptx {
            return Ok(());
        }
        let contents = mmap::map(path)?;
        let failed = || format!("cannot read the lines of {}", path.display());
        let listed = match is_elf(&contents) {
            true if trace => read_elf(&contents, path).with_context(failed)?,
            false if ptx => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let (_, identity) = name.rsplit_once('.').unwrap_or(("", &name));
                match read_ptx(&contents, identity) {
                    Ok(listed) => listed,
                    Err(error) => {
                        self.warnings.push(diagnostic!(
                            "left out: the counts of its PTX, which rocov cannot read: {}",
                            explained(&error).what();
                            "run the program again"
                        ));
                        return Ok(());
                    }
                }
            }
            _ => return Ok(()),
        };
        let paths = listed
            .functions
            .iter()
            .flat_map(|function| &function.description.filenames);
        let run_time = match object::File::parse(&*contents) {
            Ok(elf) => RunTimeSources::read(&elf, paths.map(|path| &**path)),
            Err(_) => RunTimeSources::default(),
        };
        for mut function in listed.functions {
            if let Some(description) = Arc::get_mut(&mut function.description)
                && !run_time.rename(description, &mut self.texts)
            {
                continue;
            }
            self.listed.push(function);
        }
        self.texts.extend(listed.texts);
        self.ran_lines.add(&listed.ran_lines);
        self.warnings.extend(listed.warnings);
        Ok(())
    }
}

/// The functions of an object that have a coverage mapping, and the names of functions by their hashes.
struct MappedObject {
    functions: Vec<MappedFunction>,
    names: HashMap<u64, String>,
    run_time: RunTimeSources,
}

impl MappedObject {
    /// Reads the coverage mapping of the object at `path`. There are no functions if it has none.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if its coverage mapping is damaged.
    fn read(path: &Path) -> Result<Self> {
        let contents = mmap::map(path)?;
        let failed = || format!("cannot read the coverage mapping of {}", path.display());
        Self::parse(&contents).with_context(failed)
    }

    fn parse(contents: &[u8]) -> Result<Self> {
        let elf = object::File::parse(contents)?;
        let section = |name: &str| -> Result<&[u8]> {
            match elf.section_by_name(name) {
                Some(section) => Ok(section.data()?),
                None => Ok(&[]),
            }
        };
        let functions = mapped_functions(section("__llvm_covmap")?, section("__llvm_covfun")?)?;
        let names = names_by_hash(section("__llvm_prf_names")?)?.into_iter();
        let names = names.map(|(hash, name)| (hash, text(name))).collect();
        let paths = functions.iter().flat_map(|function| &function.files);
        let run_time = RunTimeSources::read(&elf, paths.map(|path| &**path));
        Ok(Self {
            functions,
            names,
            run_time,
        })
    }
}

/// A name as text.
fn text(name: Vec<u8>) -> String {
    String::from_utf8(name)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

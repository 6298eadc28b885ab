//! The functions of a code object with their names and descriptions, read once for many profiles.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use object::{Object, ObjectSection};
use rocov::format::codeobject::{MappedFunction, mapped_functions, name_ref};
use rocov::validate::for_each_name;

use super::function::IndexedFunction;
use super::test_vectors::MAX_WAYS;
use crate::coverage::function::{Function, Key};
use crate::coverage::hiprtc::{RunTimeSources, Texts};
use crate::coverage::model::SharedFunctions;
use crate::support::mmap;

/// The functions of code objects that have a coverage mapping.
#[derive(Debug)]
pub(crate) struct ObjectIndex {
    /// The paths of the code objects, in messages.
    pub(super) paths: String,
    /// The functions, in the order of llvm-cov.
    pub(super) functions: Vec<IndexedFunction>,
    /// The texts of the sources that hipRTC compiled.
    texts: Texts,
}

impl ObjectIndex {
    /// Reads the coverage mappings of code objects.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or is damaged, or if none has a coverage mapping.
    pub(crate) fn read(objects: &[PathBuf]) -> Result<Self> {
        let paths: Vec<_> = objects.iter().map(|it| it.display().to_string()).collect();
        let paths = paths.join(", ");
        let mut functions = Vec::new();
        let mut texts = Texts::new();
        let mut keys: HashMap<Key, usize> = HashMap::new();
        for path in objects {
            let object = MappedObject::read(path)?;
            for mapped in object.functions {
                let name = object.names.get(&mapped.name).ok_or_else(|| {
                    let (path, hash) = (path.display(), mapped.name);
                    anyhow!(
                        "{path}: no name has the hash {hash:#018x} of a function: build it again"
                    )
                })?;
                let mut function = IndexedFunction::new(mapped, name);
                // A description that was just made has no other owner yet.
                if let Some(description) = Arc::get_mut(&mut function.description)
                    && !object.run_time.rename(description, &mut texts)
                {
                    continue;
                }
                let next = keys.len();
                function.key = *keys.entry(function.description.key()).or_insert(next);
                functions.push(function);
            }
        }
        if functions.is_empty() {
            bail!("no coverage mapping in {paths}: compile it with what `rocov flags` prints");
        }
        Ok(Self {
            paths,
            functions,
            texts,
        })
    }

    /// The texts of the sources that hipRTC compiled.
    pub(crate) fn into_texts(self) -> Texts {
        self.texts
    }

    /// Makes the functions share known descriptions, as [`SharedFunctions::share`] does.
    pub(crate) fn share(&mut self, shared: &mut SharedFunctions, place: impl Fn(&str) -> String) {
        let descriptions = self.functions.iter_mut().map(|it| &mut it.description);
        shared.share(descriptions, place);
    }

    /// A line for each MC/DC decision that rocov cannot evaluate.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let functions = self.functions.iter();
        let decisions = functions.flat_map(|it| it.left_out.iter().map(move |place| (it, place)));
        let lines = decisions.map(|(function, place)| {
            format!(
                "left out: the MC/DC decision of {} at {}:{}, as there are more than {MAX_WAYS} ways \
                 through its conditions: split it",
                function.description.name, place.line, place.column
            )
        });
        lines.collect()
    }

    /// The functions, each with the hash of its name and the hash of its structure.
    pub(crate) fn hashed(&self) -> impl Iterator<Item = ((u64, u64), &Arc<Function>)> {
        self.functions.iter().map(|it| (it.hashes, &it.description))
    }

    /// The descriptions of the functions, by their numbers.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.iter().map(|it| &it.description)
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
        Self::of(&contents).with_context(failed)
    }

    fn of(contents: &[u8]) -> Result<Self> {
        let elf = object::File::parse(contents)?;
        let section = |name: &str| -> Result<&[u8]> {
            match elf.section_by_name(name) {
                Some(section) => Ok(section.data()?),
                None => Ok(&[]),
            }
        };
        let functions = mapped_functions(section("__llvm_covmap")?, section("__llvm_covfun")?)?;
        let mut names = HashMap::new();
        for_each_name(section("__llvm_prf_names")?, |name| {
            names.insert(name_ref(name), String::from_utf8_lossy(name).into_owned());
        })?;
        let paths = functions.iter().flat_map(|function| &function.files);
        let run_time = RunTimeSources::read(&elf, paths.map(|path| &**path));
        Ok(Self {
            functions,
            names,
            run_time,
        })
    }
}

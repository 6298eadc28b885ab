//! Records the sources of device ELFs, as they are when a run has ended.
//!
//! A source that is newer than the program was changed after the build, so that a run of the program says nothing of it: then
//! the record of an earlier run stays.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use rocov::format::codeobject::CodeObject;
use rocov::store::layout::SOURCES;
use rocov::store::write_atomic;

use super::evaluate::ObjectIndex;
use super::ran_sources::{RanSource, SourcesRecord, VERSION, hash_of_code};
use crate::profdata::{CountKind, CountKinds};
use crate::support::mmap;
use crate::term::warnings::Warnings;

/// Records the sources of device ELFs that were just run, as they are now. Each ELF comes with the file that the program
/// had it in. A failure is a warning.
pub(crate) fn record(elfs: &BTreeMap<PathBuf, PathBuf>, warnings: &mut Warnings) {
    let mut sources = PresentSources::default();
    for (elf, host) in elfs {
        if let Err(error) = record_of(elf, host, &mut sources) {
            warnings.add(format!(
                "cannot record the sources of {}: {error:#}; reports do not see whether they change: run the program again",
                elf.display()
            ));
        }
    }
}

/// Records the sources of a device ELF.
fn record_of(elf: &Path, host: &Path, present: &mut PresentSources) -> Result<()> {
    let path = elf.with_extension(SOURCES);
    let known = SourcesRecord::read(&path);
    let sources: Vec<String> = match &known {
        Some(known) => known.sources.keys().cloned().collect(),
        // Reports say what is wrong with code that cannot be read.
        None => sources_of(elf).unwrap_or_default().into_iter().collect(),
    };
    let built = fs::metadata(host).ok().map(|host| modified(&host));
    let mut record = SourcesRecord {
        rocov_sources: VERSION,
        sources: BTreeMap::new(),
    };
    for source in sources {
        let earlier = known.as_ref().and_then(|known| known.sources.get(&source));
        let now = present.find(&source, earlier.and_then(Option::as_ref), built);
        record.sources.insert(source, now);
    }
    if known.is_some_and(|known| known.sources == record.sources) {
        return Ok(());
    }
    let text = serde_json::to_vec(&record).context("cannot write JSON")?;
    Ok(write_atomic(&path, &text)?)
}

/// The sources that a device ELF was compiled from: those of its coverage mapping, or else of its line table.
fn sources_of(elf: &Path) -> Result<BTreeSet<String>> {
    let contents = mmap::map(elf)?;
    let kind = match CodeObject::parse(&contents[..])?.is_mapped()? {
        true => CountKind::Mapping,
        false => CountKind::Trace,
    };
    let index = ObjectIndex::read(&[elf.to_owned()], &CountKinds::from([kind]))?;
    let paths = index
        .descriptions()
        .flat_map(|function| &function.filenames);
    // hipRTC gives sources any names, and code objects have their texts.
    let paths = paths.filter(|path| Path::new(&***path).is_absolute());
    let paths: BTreeSet<&Arc<str>> = paths.collect();
    Ok(paths.into_iter().map(ToString::to_string).collect())
}

/// Sources as they are now, each read once.
#[derive(Debug, Default)]
struct PresentSources(HashMap<String, Option<RanSource>>);

impl PresentSources {
    /// The source at `path`, unless it has changed after the program was `built`. Then it is the one of the `earlier` run,
    /// if there is one.
    fn find(
        &mut self,
        path: &str,
        earlier: Option<&RanSource>,
        built: Option<u64>,
    ) -> Option<RanSource> {
        let Ok(metadata) = fs::metadata(path) else {
            return earlier.cloned();
        };
        let modified = modified(&metadata);
        let is_same =
            |earlier: &&RanSource| (earlier.size, earlier.modified) == (metadata.len(), modified);
        if built.is_some_and(|built| modified > built) || !metadata.is_file() {
            return earlier.cloned();
        }
        if let Some(earlier) = earlier.filter(is_same) {
            return Some(earlier.clone());
        }
        let known = self.0.entry(path.to_owned()).or_insert_with(|| {
            let text = mmap::read(Path::new(path)).ok()?;
            Some(RanSource {
                size: metadata.len(),
                modified,
                code: hash_of_code(path, &text),
            })
        });
        known.clone()
    }
}

/// The time of the last change of a file, in nanoseconds since 1970.
fn modified(file: &fs::Metadata) -> u64 {
    let since = file.modified().ok();
    let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

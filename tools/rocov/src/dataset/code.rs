//! The rows of a code object: those that do not depend on a run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use parquet::data_type::ByteArray;
use rocov::format::codeobject::{CodeObject, Identity};
use rocov::format::profraw::{Sum, Version};
use rocov::store::layout::device_elf_name;

use super::file::Rows;
use super::schema::{BRANCH, CODE_OBJECT, FUNCTION, LINE, REGION};
use super::store::CodeRows;
use crate::coverage::evaluate::ObjectIndex;
use crate::coverage::function::{Function, Kind, Span};
use crate::coverage::model::{Record, Side, Source};
use crate::coverage::segments::lines;
use crate::coverage::{By, View};
use crate::data::match_elfs::MatchedCodeObject;
use crate::profdata::kinds::kinds;
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts};
use crate::support::demangle::shown;

/// A code object, read once for many runs.
pub(super) struct Code {
    arch: String,
    pub(super) identity: ByteArray,
    index: ObjectIndex,
    /// The keys of the data records of its profiles, with the numbers of counters.
    keys: Vec<((u64, u64), u32)>,
    /// The paths of its source files.
    paths: HashMap<Arc<str>, ByteArray>,
}

impl Code {
    /// Reads a code object that has the profile `sum`. `directory` is for temporary files.
    ///
    /// # Errors
    ///
    /// Fails if it is damaged.
    pub(super) fn read(
        arch: &str,
        object: &MatchedCodeObject<'_>,
        sum: &Sum,
        directory: &Path,
    ) -> Result<(Self, CodeRows)> {
        let identity = object.elf.identity.as_str();
        let path = object.file.place(object.elf, arch, directory)?;
        let counts = ProfileCounts {
            version: *sum.profile().header.version(),
            functions: sum.functions()?,
        };
        let mapping = CountKinds::from([CountKind::Mapping]);
        let counts = BinaryCounts::Summed(Arc::new(counts));
        if kinds(std::slice::from_ref(&path), &counts) != mapping {
            bail!(
                "code object {identity} has counts of a trace or of PTX, or no coverage mapping: a data set has counts \
                 of coverage mappings only, take `rocov report` for others"
            );
        }
        let index = ObjectIndex::read(&[path], &mapping)?;
        let mut code = Self {
            arch: arch.to_owned(),
            identity: identity.into(),
            index,
            keys: sum.record_keys(),
            paths: HashMap::new(),
        };
        let descriptions = code.index.descriptions();
        let paths = descriptions.flat_map(|it| &it.filenames);
        let paths: HashMap<_, _> = paths.map(|it| (Arc::clone(it), (&**it).into())).collect();
        code.paths = paths;
        let elf = object.file.bytes(object.elf);
        let parsed = CodeObject::parse(elf)?;
        let kernels = parsed.kernels().unwrap_or_default();
        let is_kernel = |name: &str| kernels.iter().any(|kernel| kernel.name == name);
        let keys = &code.keys;
        let counters: u64 = keys.iter().map(|(_, counters)| u64::from(*counters)).sum();
        let version = sum.profile().header.version();
        let mut object_row = Rows::new(&CODE_OBJECT);
        object_row.push([
            (&code.identity).into(),
            parsed.compiler().unwrap_or_default().as_str().into(),
            version.layout().version.into(),
            version.is_single_byte().into(),
            keys.len().into(),
            u32::try_from(counters).unwrap_or(u32::MAX).into(),
            elf_name(arch, object)?.as_str().into(),
            elf.to_vec().into(),
            sum.blank().bytes().to_vec().into(),
        ]);
        let [functions, regions, branches] = code.functions(is_kernel);
        let lines = code.lines(*version)?;
        let rows = CodeRows {
            arch: arch.to_owned(),
            identity: identity.to_owned(),
            rows: vec![functions, regions, branches, lines, object_row],
        };
        Ok((code, rows))
    }

    /// Checks that a profile has the data records of the others.
    ///
    /// # Errors
    ///
    /// Fails if it has not.
    pub(super) fn check(&self, sum: &Sum) -> Result<()> {
        if sum.record_keys() != self.keys {
            bail!(
                "a profile of code object {} has other data records than the first, as of a trace: a data set has counts \
                 of coverage mappings only, take `rocov report` for others",
                path_of(&self.identity)
            );
        }
        Ok(())
    }

    /// The rows of functions, regions and branches. The number of a function is the place of its data record. Those
    /// that have none come after the others.
    fn functions(&self, is_kernel: impl Fn(&str) -> bool) -> [Rows; 3] {
        let keys = &self.keys;
        let mut all = [&FUNCTION, &REGION, &BRANCH].map(Rows::new);
        let mut described: HashMap<(u64, u64), &Arc<Function>> = HashMap::new();
        let mut more = Vec::new();
        for (key, function) in self.index.hashed() {
            described.entry(key).or_insert_with(|| {
                if !keys.iter().any(|(it, _)| *it == key) {
                    more.push(key);
                }
                function
            });
        }
        let numbered = keys.iter().copied();
        let numbered = numbered.chain(more.into_iter().map(|key| (key, 0)));
        for (number, (key, counters)) in numbered.enumerate() {
            let function = described.get(&key);
            let [functions, regions, branches] = &mut all;
            let name = function.map_or("", |it| &*it.name);
            functions.push([
                (&self.identity).into(),
                number.into(),
                name.into(),
                shown(name).as_str().into(),
                is_kernel(name).into(),
                function.map_or("", |it| &**it.main_path()).into(),
                function.map_or(0, |it| it.start().line).into(),
                counters.into(),
            ]);
            let Some(function) = function else { continue };
            let place = |Span { start, end }: Span| {
                [start.line, start.column, end.line, end.column].map(super::file::Value::from)
            };
            for (index, region) in function.regions.iter().enumerate() {
                let [line, column, end_line, end_column] = place(region.location.span);
                let file = function.path(region.location.file);
                regions.push([
                    (&self.identity).into(),
                    number.into(),
                    index.into(),
                    kind(region.kind).into(),
                    self.path(file).into(),
                    line,
                    column,
                    end_line,
                    end_column,
                ]);
            }
            for (index, branch) in function.branches.iter().enumerate() {
                let [line, column, end_line, end_column] = place(branch.location.span);
                let file = function.path(branch.location.file);
                branches.push([
                    (&self.identity).into(),
                    number.into(),
                    index.into(),
                    self.path(file).into(),
                    line,
                    column,
                    end_line,
                    end_column,
                    branch.folded[0].into(),
                    branch.folded[1].into(),
                ]);
            }
        }
        all
    }

    /// The rows of all lines with code.
    fn lines(&self, version: Version) -> Result<Rows> {
        let mut rows = Rows::new(&LINE);
        let nothing = ProfileCounts {
            version,
            functions: Default::default(),
        };
        for (path, line, _) in self.counted(&nothing)? {
            rows.push([(&self.identity).into(), (&path).into(), line.into()]);
        }
        Ok(rows)
    }

    /// The lines with code in each file, with their counts.
    ///
    /// # Errors
    ///
    /// Fails if an MC/DC decision is damaged.
    pub(super) fn counted(&self, counts: &ProfileCounts) -> Result<Vec<(ByteArray, u32, u64)>> {
        let view = self.view(self.index.evaluate(counts)?.records);
        let mut all = Vec::new();
        for path in &view.paths {
            for column in &view.columns {
                let path = self.path(path);
                let lines = lines(&column.segments(path_of(path))).into_iter();
                all.extend(lines.map(|(line, count)| (path.clone(), line, count)));
            }
        }
        Ok(all)
    }

    fn view(&self, records: Vec<Record>) -> View {
        let source = Source {
            side: Side::Device,
            arch: self.arch.clone(),
            identity: String::new(),
            binary: Default::default(),
            kernels: Vec::new(),
            compiler: None,
            records,
            texts: Default::default(),
            activities: Default::default(),
            kinds: CountKinds::from([CountKind::Mapping]),
        };
        View::new(vec![source], By::Arch, |_| true)
    }

    /// The path of a source file, which all rows share.
    fn path(&self, path: &Arc<str>) -> &ByteArray {
        &self.paths[path]
    }
}

fn path_of(path: &ByteArray) -> &str {
    path.as_utf8().unwrap_or_default()
}

/// The name of a device ELF in a data directory.
fn elf_name(arch: &str, object: &MatchedCodeObject<'_>) -> Result<String> {
    let own = object.file.path.file_name().and_then(|it| it.to_str());
    let is_kept = rocov::store::layout::elf_identity(&object.file.path);
    if let (Some(own), Some(_)) = (own, is_kept) {
        return Ok(own.to_owned());
    }
    let identity = object.elf.identity.as_str();
    let identity = Identity::from_digits(identity).context("an identity of other digits")?;
    let target = object.elf.target.as_deref().unwrap_or(arch);
    Ok(device_elf_name(target, &identity))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Code => "code",
        Kind::Expansion => "expansion",
        Kind::Skipped => "skipped",
        Kind::Gap => "gap",
    }
}

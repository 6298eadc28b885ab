//! The rows of a code object: those that do not depend on a run.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::format::blocks::{Kind as BlockKind, trace};
use rocov::format::codeobject::{CodeObject, Identity, name_ref};
use rocov::format::profraw::{Sum, Version};
use rocov::format::ptx::{Module, modules};
use rocov::store::layout::device_elf_name;
use rocov_fleet::{
    BRANCH, CODE_OBJECT, CodeRows, FUNCTION, LINE, REGION, Rows, SharedBytes, Value,
};

use crate::coverage::evaluate::ObjectIndex;
use crate::coverage::function::{Function, Kind, Span};
use crate::coverage::model::{Record, Side, Source};
use crate::coverage::{By, View};
use crate::data::matched_elfs::MatchedCodeObject;
use crate::profdata::kinds::kinds;
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts};
use crate::support::demangle::shown;
use crate::support::mmap;

/// A code object, read once for many runs.
pub(super) struct Code {
    arch: String,
    /// Its identity in the tables, which [`object_identity`] splits.
    pub(super) identity: SharedBytes,
    kinds: CountKinds,
    index: ObjectIndex,
    /// The keys of the data records of its profiles, with the numbers of counters.
    keys: Vec<((u64, u64), u32)>,
    /// The paths of its source files.
    paths: HashMap<Arc<str>, SharedBytes>,
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
        let files = object.files(arch, directory)?;
        let ptx = object.file.ptx();
        let counts = ProfileCounts {
            version: *sum.profile().header.version(),
            functions: sum.functions()?,
        };
        // Counts of code without a coverage mapping or a line table have no places.
        let kinds = match object.is_placed() {
            true => kinds(&files, &BinaryCounts::Summed(Arc::new(counts))),
            false => CountKinds::new(),
        };
        let identity = table_identity(object.elf.identity.as_str(), &kinds);
        let index = ObjectIndex::read(&files, &kinds)?;
        let ptx = match ptx {
            Some(path) => mmap::read(&path)?,
            None => Vec::new(),
        };
        let mut code = Self {
            arch: arch.to_owned(),
            identity: identity.as_str().into(),
            kinds,
            index,
            keys: sum.record_keys(),
            paths: HashMap::new(),
        };
        let descriptions = code.index.descriptions();
        let paths: HashMap<_, _> = descriptions
            .flat_map(|description| &description.filenames)
            .map(|path| (Arc::clone(path), (&**path).into()))
            .collect();
        code.paths = paths;
        let elf = object.file.bytes(object.elf);
        let parsed = CodeObject::parse(elf)?;
        let kernels = parsed.kernels().unwrap_or_default();
        let is_kernel = |name: &str| kernels.iter().any(|kernel| kernel.name == name);
        let names = block_names(&parsed, &ptx);
        let words: Vec<_> = code.kinds.iter().map(|kind| kind.word()).collect();
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
            words.join(" ").as_str().into(),
            ptx.clone().into(),
        ]);
        let [functions, regions, branches] = code.functions(&names, is_kernel);
        let lines = code.lines(*version)?;
        let rows = CodeRows {
            arch: arch.to_owned(),
            identity,
            row: object_row,
            others: vec![functions, regions, branches, lines],
        };
        Ok((code, rows))
    }

    /// Returns whether a profile has the data records of those that this was read with.
    pub(super) fn has_records_of(&self, sum: &Sum) -> bool {
        sum.record_keys() == self.keys
    }

    /// The rows of functions, regions and branches. The number of a function is the place of its data record. Those
    /// that have none come after the others.
    ///
    /// `names` has the names of functions without a coverage mapping, by the keys of their data records.
    fn functions(
        &self,
        names: &HashMap<(u64, u64), String>,
        is_kernel: impl Fn(&str) -> bool,
    ) -> [Rows; 3] {
        let keys = &self.keys;
        let mut all = [&FUNCTION, &REGION, &BRANCH].map(Rows::new);
        let mut described: HashMap<(u64, u64), &Arc<Function>> = HashMap::new();
        let mut more = Vec::new();
        for (key, function) in self.index.hashed() {
            described.entry(key).or_insert_with(|| {
                if !keys.iter().any(|(other, _)| *other == key) {
                    more.push(key);
                }
                function
            });
        }
        let mut listed: HashMap<&str, &Arc<Function>> = HashMap::new();
        for function in self.index.listed() {
            listed.entry(&function.name).or_insert(function);
        }
        let own_names: HashSet<&str> = (keys.iter())
            .filter_map(|(key, _)| names.get(key).map(String::as_str))
            .collect();
        let numbered = keys.iter().map(|(key, counters)| {
            let name = names.get(key).map_or("", String::as_str);
            let function = described.get(key).or_else(|| listed.get(name)).copied();
            (name, function, *counters)
        });
        let more = more.iter().map(|key| ("", described.get(key).copied(), 0));
        // Functions that the compiler only put into others.
        let inlined = self
            .index
            .listed()
            .filter(|function| !own_names.contains(&*function.name))
            .map(|function| ("", Some(function), 0));
        let numbered = numbered.chain(more).chain(inlined);
        for (number, (name, function, counters)) in numbered.enumerate() {
            let [functions, regions, branches] = &mut all;
            let name = function.map_or(name, |function| &*function.name);
            functions.push([
                (&self.identity).into(),
                number.into(),
                name.into(),
                shown(name).as_str().into(),
                is_kernel(name).into(),
                function
                    .map_or("", |function| &**function.main_path())
                    .into(),
                function.map_or(0, |function| function.start().line).into(),
                counters.into(),
            ]);
            let Some(function) = function else { continue };
            let place = |Span { start, end }: Span| {
                [start.line, start.column, end.line, end.column].map(Value::from)
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
    pub(super) fn counted(&self, counts: &ProfileCounts) -> Result<Vec<(SharedBytes, u32, u64)>> {
        let view = self.view(self.index.evaluate(counts)?.records);
        let mut all = Vec::new();
        for path in &view.paths {
            for column in &view.columns {
                let path = self.path(path);
                let segments = column.segments(path_of(path));
                let lines = column.lines(path_of(path), &segments).into_iter();
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
            ran_lines: Default::default(),
            activities: Default::default(),
            kinds: self.kinds.clone(),
            unit: None,
        };
        View::new(vec![source], By::Arch, |_| true)
    }

    /// The path of a source file, which all rows share.
    fn path(&self, path: &Arc<str>) -> &SharedBytes {
        &self.paths[path]
    }
}

fn path_of(path: &SharedBytes) -> &str {
    path.as_utf8().unwrap_or_default()
}

/// The identity of a code object in the tables. Profiles of traces and of PTX have records of their own, so that their code
/// objects have rows of their own.
fn table_identity(identity: &str, kinds: &CountKinds) -> String {
    let of_blocks = kinds.iter().filter(|kind| **kind != CountKind::Mapping);
    let words: Vec<_> = of_blocks.map(|kind| format!("+{}", kind.word())).collect();
    identity.to_owned() + &words.concat()
}

/// The identity of a code object, from that in the tables.
pub(super) fn object_identity(identity: &str) -> &str {
    identity.split('+').next().unwrap_or(identity)
}

/// The names of the functions that a trace or PTX can have data records of, by the keys of these.
fn block_names<'a>(elf: &CodeObject<'a, &'a [u8]>, ptx: &[u8]) -> HashMap<(u64, u64), String> {
    let key = |kind: BlockKind, symbol: &str, hash| {
        let name = name_ref(kind.record_name(symbol).as_bytes());
        ((name, hash), symbol.to_owned())
    };
    let mut names = HashMap::new();
    let traced = trace::functions(elf).unwrap_or_default().into_iter();
    names.extend(traced.map(|function| {
        key(
            BlockKind::Trace,
            function.name,
            BlockKind::Trace.hash(function.code),
        )
    }));
    for text in modules(std::str::from_utf8(ptx).unwrap_or_default()) {
        let Ok(module) = Module::parse(text) else {
            continue;
        };
        let functions = module.functions.iter();
        names.extend(functions.map(|function| key(BlockKind::Ptx, function.symbol, function.hash)));
    }
    names
}

/// The name of a device ELF in a data directory.
fn elf_name(arch: &str, object: &MatchedCodeObject<'_>) -> Result<String> {
    let own = object.file.path.file_name().and_then(|name| name.to_str());
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

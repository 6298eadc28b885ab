//! The functions of a device ELF with the lines of their machine code. Its units are words.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use object::File;
use rocov::format::blocks::Kind;
use rocov::format::blocks::trace::{WORD_BYTES, functions, is_helper};
use rocov::format::codeobject::{CodeObject, FunctionCode, Identity, name_ref};
use rocov::support::diagnostic::diagnostic;

use super::dwarf::{DebugInformation, Row, Scope, read as read_dwarf};
use super::{
    Draft, DraftCopy, Extent, LineUnits, Listed, ListedFunction, UnitCounters, WithoutLines,
};
use crate::term::plural::count;

/// Reads the functions of the device ELF at `path`. They have no lines if its line table is damaged, which is a warning.
///
/// # Errors
///
/// Fails if it is not an ELF, or if its symbols are damaged.
pub(crate) fn read(contents: &[u8], path: &Path) -> Result<Listed> {
    let object = CodeObject::parse(contents)?;
    let functions = functions(&object)?;
    let elf = File::parse(contents).context("not an ELF")?;
    let mut warnings = Vec::new();
    let information = read_dwarf(&elf, path).unwrap_or_else(|error| {
        warnings.push(diagnostic!(
            "left out: its lines, because its line table is damaged: {error}";
            "build it again"
        ));
        DebugInformation::default()
    });
    if let Some(first) = information.split_off.first() {
        let others = match information.split_off.len() - 1 {
            0 => String::new(),
            others => format!(", and {}", count(others, "other file")),
        };
        warnings.push(diagnostic!(
            "left out: its inlined functions, because their debug information was split off to {first}{others}";
            "build without -gsplit-dwarf, or keep the files where the compiler writes them"
        ));
    }
    let kernels = object.kernels().unwrap_or_default();
    let lanes = kernels
        .iter()
        .map(|kernel| u64::from(kernel.wavefront_size));
    let lanes = lanes.max().unwrap_or(0);
    let is_kernel = |name: &str| kernels.iter().any(|kernel| kernel.name == name);
    let has_lines = !information.rows.is_empty();
    let mut drafts = Drafts::new(&information, lanes);
    let mut without_lines = WithoutLines::default();
    for function in functions
        .iter()
        .filter(|function| !is_helper(function.name))
    {
        if !drafts.add(function)? && (is_kernel(function.name) || !has_lines) {
            without_lines.add(function.name, counters(function, lanes), words(function));
        }
    }
    let mut listed = Listed {
        functions: ListedFunction::from_drafts(Kind::Trace, drafts.finish()),
        warnings,
        ..Listed::default()
    };
    without_lines.finish(
        Kind::Trace,
        Identity::from_image(contents)?.as_str(),
        &mut listed,
    );
    Ok(listed)
}

/// The number of words of a function's code.
fn words(function: &FunctionCode<'_>) -> u32 {
    let words = (function.code.len() as u64).div_ceil(WORD_BYTES);
    u32::try_from(words).unwrap_or(u32::MAX)
}

fn counters(function: &FunctionCode<'_>, lanes: u64) -> UnitCounters {
    let name = Kind::Trace.record_name(function.name);
    UnitCounters {
        key: (name_ref(name.as_bytes()), Kind::Trace.hash(function.code)),
        lanes,
    }
}

/// Returns whether a file is of a compiler, of a GPU runtime or of rocov. Coverage mappings leave out system headers, too.
pub(super) fn is_of_system(path: &str) -> bool {
    let starts = ["/usr/include/", "/usr/lib/", "/opt/rocm"];
    let parts = ["/include/hip/", "/lib/clang/", "/include/rocm-core/"];
    // The header by which code with coverage flags counts.
    path.ends_with("/rocov_device.h")
        || starts.iter().any(|start| path.starts_with(start))
        || parts.iter().any(|part| path.contains(part))
}

/// The functions that are being put together from the debug information.
struct Drafts<'a> {
    information: &'a DebugInformation,
    lanes: u64,
    /// The scopes that were inlined into each scope.
    inlined: Vec<Vec<usize>>,
    /// The out-of-line scopes, with the start of each of their ranges, by rising address.
    starts: Vec<(u64, usize)>,
    /// By the index of the function's declaration.
    declared: BTreeMap<usize, Draft>,
    /// Functions without a declaration.
    others: Vec<Draft>,
    /// The words that may still be given to scopes.
    room: u64,
}

impl<'a> Drafts<'a> {
    fn new(information: &'a DebugInformation, lanes: u64) -> Self {
        /// The most words of all scopes together. Real programs nest inlined functions a few dozen deep.
        const ROOM: u64 = 1 << 30;
        let mut inlined = vec![Vec::new(); information.scopes.len()];
        let mut starts = Vec::new();
        for (index, scope) in information.scopes.iter().enumerate() {
            match scope.parent {
                Some(parent) => inlined[parent].push(index),
                None => starts.extend(scope.addresses.iter().map(|address| (address.start, index))),
            }
        }
        starts.sort_unstable();
        Self {
            information,
            lanes,
            inlined,
            starts,
            declared: BTreeMap::new(),
            others: Vec::new(),
            room: ROOM,
        }
    }

    /// Adds a function of the ELF and all functions that were inlined into it. Returns whether it has lines.
    ///
    /// # Errors
    ///
    /// Fails if the debug information inlines more than can be.
    fn add(&mut self, function: &FunctionCode<'_>) -> Result<bool> {
        let start = function.address;
        let end = start.saturating_add(function.code.len() as u64);
        let number = words(function);
        let word = |address: u64| (address.clamp(start, end) - start) / WORD_BYTES;
        let word = |address: u64| u32::try_from(word(address)).unwrap_or(number).min(number);
        let counters = counters(function, self.lanes);
        let extent = |scope: &Scope| Extent {
            entry: word(scope.entry),
            units: scope
                .addresses
                .iter()
                .map(|address| word(address.start)..word(address.end))
                .collect(),
        };

        // The innermost scope of each word.
        let first = self.starts.partition_point(|(address, _)| *address < start);
        let roots = self.starts[first..].iter();
        let roots = roots.take_while(|(address, _)| *address < end);
        let root = roots.map(|(_, scope)| *scope).next();
        let mut order: Vec<usize> = root.into_iter().collect();
        let mut innermost: Vec<Option<usize>> = vec![None; number as usize];
        let mut next = 0;
        while let Some(scope) = order.get(next).copied() {
            next += 1;
            for units in extent(&self.information.scopes[scope]).units {
                let size = u64::from(units.end.saturating_sub(units.start));
                self.room = self.room.checked_sub(size).with_context(|| {
                    diagnostic!(
                        "its debug information inlines functions endlessly";
                        "build it again"
                    )
                })?;
                let words = innermost.get_mut(units.start as usize..units.end as usize);
                words.unwrap_or_default().fill(Some(scope));
            }
            order.extend(&self.inlined[scope]);
        }

        // Copies by scope; `None` for words of no scope.
        let mut copies: BTreeMap<Option<usize>, DraftCopy> = BTreeMap::new();
        let copy = |extent| DraftCopy {
            counters,
            extent,
            lines: Vec::new(),
            calls: Vec::new(),
        };
        copies.insert(root, copy(Extent::whole(number)));
        for scope in &order[order.len().min(1)..] {
            copies.insert(Some(*scope), copy(extent(&self.information.scopes[*scope])));
        }
        for (row, addresses) in self.rows(start..end) {
            if is_of_system(&row.path) {
                continue;
            }
            let starts = row.is_statement.then(|| word(row.addresses.start));
            for (scope, words) in runs(&innermost, word(addresses.start)..word(addresses.end)) {
                // Words outside of all scopes belong to the function itself.
                let scope = scope.or(root);
                if let Some(copy) = copies.get_mut(&scope) {
                    let units = LineUnits {
                        is_statement: starts == Some(words.start),
                        units: words,
                    };
                    copy.lines.push(((Arc::clone(&row.path), row.line), units));
                }
            }
        }
        for scope in &order[order.len().min(1)..] {
            let Scope { parent, call, .. } = &self.information.scopes[*scope];
            let Some((path, line)) = call.as_ref().filter(|(path, _)| !is_of_system(path)) else {
                continue;
            };
            let inlined = extent(&self.information.scopes[*scope]);
            if let Some(caller) = copies.get_mut(parent) {
                caller.calls.push(((Arc::clone(path), *line), inlined));
            }
        }
        let has_lines = copies.get(&root).is_some_and(|copy| !copy.lines.is_empty());
        for (scope, copy) in copies {
            if copy.lines.is_empty() && copy.calls.is_empty() {
                continue;
            }
            let own = (scope == root).then_some(function.name);
            self.keep(scope, own, copy);
        }
        Ok(has_lines)
    }

    /// Keeps a copy of the function that `scope` is of. The symbol of an out-of-line copy is the function's name.
    fn keep(&mut self, scope: Option<usize>, symbol: Option<&str>, copy: DraftCopy) {
        let number = scope.map(|scope| self.information.scopes[scope].function);
        let declared = number.map(|number| &self.information.declared[number]);
        let place = declared.and_then(|declared| Some((declared.path.clone()?, declared.line?)));
        if place.as_ref().is_some_and(|(path, _)| is_of_system(path)) {
            return;
        }
        let name = match symbol {
            Some(symbol) => Some(symbol.into()),
            None => declared.and_then(|declared| declared.name.clone()),
        };
        let Some(name) = name else {
            return;
        };
        let (path, line) = place.unzip();
        let draft = Draft {
            name: Arc::clone(&name),
            path,
            line,
            copies: Vec::new(),
        };
        let draft = match number {
            Some(number) => self.declared.entry(number).or_insert(draft),
            None => self.others.push_mut(draft),
        };
        if symbol.is_some() {
            draft.name = name;
        }
        draft.copies.push(copy);
    }

    /// The rows that have some of these addresses, and the addresses that no row before them has.
    fn rows(&self, addresses: Range<u64>) -> impl Iterator<Item = (&'a Row, Range<u64>)> + use<'a> {
        let rows = &self.information.rows;
        let first = rows.partition_point(|row| row.addresses.start <= addresses.start);
        let rows = rows[first.saturating_sub(1)..].iter();
        let end = addresses.end;
        let rows = rows.take_while(move |row| row.addresses.start < end);
        let mut from = addresses.start;
        rows.filter_map(move |row| {
            let covered = row.addresses.start.max(from)..row.addresses.end.min(end);
            (covered.start < covered.end).then(|| {
                from = covered.end;
                (row, covered)
            })
        })
    }

    fn finish(self) -> Vec<Draft> {
        self.declared.into_values().chain(self.others).collect()
    }
}

/// The parts of `words` that are of one scope each.
fn runs(innermost: &[Option<usize>], words: Range<u32>) -> Vec<(Option<usize>, Range<u32>)> {
    let mut runs: Vec<(Option<usize>, Range<u32>)> = Vec::new();
    for word in words {
        let scope = innermost.get(word as usize).copied().flatten();
        match runs.last_mut() {
            Some((last, run)) if *last == scope => run.end = word + 1,
            _ => runs.push((scope, word..word + 1)),
        }
    }
    runs
}

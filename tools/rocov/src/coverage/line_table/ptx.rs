//! The functions of PTX with the lines of their basic blocks, from `.loc`. Its units are blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::format::blocks::Kind;
use rocov::format::blocks::trace::is_helper;
use rocov::format::ptx::{Function, Module, Place, Position, modules, noted_sources};

use super::super::ran_lines::RanLines;
use super::{
    Draft, DraftCopy, Extent, LineUnits, Listed, ListedFunction, SourceLine, UnitCounters,
    WithoutLines,
};

/// Reads the functions of PTX. `identity` is that of its code object.
///
/// # Errors
///
/// Fails if rocov does not support the text.
pub(crate) fn read(contents: &[u8], identity: &str) -> Result<Listed> {
    let text = str::from_utf8(contents).context("not UTF-8")?;
    let mut drafts: BTreeMap<(Arc<str>, Option<Arc<str>>), Draft> = BTreeMap::new();
    let mut without_lines = WithoutLines::default();
    for text in modules(text) {
        let module = Module::parse(text)?;
        let files = module.files.iter();
        let files: BTreeMap<u64, Arc<str>> = files
            .map(|(file, path)| (*file, path.as_str().into()))
            .collect();
        let of_program = module.functions.iter();
        for function in of_program.filter(|function| !is_helper(function.symbol)) {
            let copies = copies(function, &files);
            if copies.is_empty() {
                let blocks = u32::try_from(function.blocks.len())?;
                without_lines.add(function.symbol, counters(function), blocks);
            }
            for (name, copy) in copies {
                let path = copy.lines.first().map(|((path, _), _)| Arc::clone(path));
                let draft = drafts
                    .entry((Arc::clone(&name), path))
                    .or_insert_with(|| Draft {
                        name,
                        path: None,
                        line: None,
                        copies: Vec::new(),
                    });
                draft.copies.push(copy);
            }
        }
    }
    let mut listed = Listed {
        functions: ListedFunction::from_drafts(Kind::Ptx, drafts.into_values().collect()),
        ran_lines: RanLines::from_notes(noted_sources(text)),
        ..Listed::default()
    };
    without_lines.finish(Kind::Ptx, identity, &mut listed);
    Ok(listed)
}

fn counters(function: &Function<'_>) -> UnitCounters {
    UnitCounters {
        key: function.key(),
        lanes: 0,
    }
}

/// The places of the calls that lead to a copy of a function, from the outermost on. A function that was not
/// inlined has none.
type Way = Vec<Place>;

/// A copy of a function in the text of another, or the other.
struct Inlined {
    name: Arc<str>,
    lines: Vec<(SourceLine, u32)>,
    /// The blocks that it has instructions in, by rising number.
    blocks: Vec<u32>,
}

/// The copies of functions in the text of `function`, each with its name. There are none if the text has no lines.
fn copies(function: &Function<'_>, files: &BTreeMap<u64, Arc<str>>) -> Vec<(Arc<str>, DraftCopy)> {
    let mut copies: BTreeMap<Way, Inlined> = BTreeMap::new();
    let line = |place: &Place| Some((Arc::clone(files.get(&place.file)?), place.line));
    for (block, number) in function.blocks.iter().zip(0_u32..) {
        for position in &block.positions {
            let mut way = Way::new();
            let mut name: Arc<str> = function.symbol.into();
            for (call, callee) in calls(position) {
                visit(&mut copies, &way, &name, number);
                way.push(call);
                // The text need not contain the name of an inlined function.
                name = callee.map_or(name, Arc::from);
            }
            let innermost = visit(&mut copies, &way, &name, number);
            innermost
                .lines
                .extend(line(&position.place).map(|line| (line, number)));
        }
    }
    let extent = |inlined: &Inlined| Extent {
        entry: inlined.blocks.first().copied().unwrap_or_default(),
        units: inlined
            .blocks
            .iter()
            .map(|block| *block..block + 1)
            .collect(),
    };
    let copy = |(way, inlined): (&Way, &Inlined)| {
        let called = copies
            .iter()
            .filter(|(inner, _)| inner.starts_with(way) && inner.len() == way.len() + 1);
        let calls =
            called.filter_map(|(inner, called)| Some((line(inner.last()?)?, extent(called))));
        let copy = DraftCopy {
            counters: counters(function),
            extent: extent(inlined),
            lines: inlined
                .lines
                .iter()
                .map(|(line, block)| {
                    let units = LineUnits {
                        units: *block..block + 1,
                        is_statement: true,
                    };
                    (line.clone(), units)
                })
                .collect(),
            calls: calls.collect(),
        };
        (Arc::clone(&inlined.name), copy)
    };
    copies.iter().map(copy).collect()
}

/// The calls that lead to a position, from the outermost on, each with the name of the function that it calls.
fn calls(position: &Position) -> impl Iterator<Item = (Place, Option<&str>)> {
    let inner = position.inlined_at.iter().map(|call| &call.function);
    let callees = [&position.function].into_iter().chain(inner);
    let calls = position.inlined_at.iter().zip(callees);
    let calls: Vec<_> = calls
        .map(|(call, callee)| (call.place, callee.as_deref()))
        .collect();
    calls.into_iter().rev()
}

/// The copy that `way` leads to, which has instructions in a block.
fn visit<'a>(
    copies: &'a mut BTreeMap<Way, Inlined>,
    way: &Way,
    name: &Arc<str>,
    block: u32,
) -> &'a mut Inlined {
    let copy = copies.entry(way.clone()).or_insert_with(|| Inlined {
        name: Arc::clone(name),
        lines: Vec::new(),
        blocks: Vec::new(),
    });
    if copy.blocks.last() != Some(&block) {
        copy.blocks.push(block);
    }
    copy
}

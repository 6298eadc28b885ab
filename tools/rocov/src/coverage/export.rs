//! Reads the output of `llvm-cov export`: the functions, one by one, so that a large export is never in
//! memory as a whole.
//!
//! The format is llvm.coverage.json.export, of version 2 (LLVM 12) and later. The figures of files there
//! follow from the functions, so rocov skips them.

use std::fmt;
use std::io::{BufReader, Read};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::function::{
    Branch, Counts, Decision, DecisionOutcome, Function, Kind, Location, Place, Region, Span,
    Vector,
};
use super::model::Record;

/// A function as it is in an export.
#[derive(Debug, Deserialize)]
struct Exported {
    name: String,
    count: u64,
    filenames: Vec<String>,
    regions: Vec<ExportedRegion>,
    #[serde(default)]
    branches: Vec<ExportedBranch>,
    #[serde(default)]
    mcdc_records: Vec<ExportedDecision>,
}

/// Lines and columns of start and end, count, file, expanded file, kind.
type ExportedRegion = (u32, u32, u32, u32, u64, u32, u32, u8);
/// A region with a second count, for false.
type ExportedBranch = (u32, u32, u32, u32, u64, u64, u32, u32, u8);

/// A decision: first the fields of a branch, then the conditions, and from LLVM 22 on the values seen.
#[derive(Debug)]
struct ExportedDecision {
    branch: ExportedBranch,
    covered: Vec<bool>,
    vectors: Option<Vec<Vector>>,
}

impl<'de> Deserialize<'de> for ExportedDecision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = ExportedDecision;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an MC/DC record of 10 or 11 elements")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
                    seq: &mut A,
                ) -> Result<T, A::Error> {
                    let missing = || serde::de::Error::custom("an MC/DC record is too short");
                    seq.next_element()?.ok_or_else(missing)
                }
                Ok(ExportedDecision {
                    branch: (
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                        next(&mut seq)?,
                    ),
                    covered: next(&mut seq)?,
                    vectors: seq.next_element()?,
                })
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

/// The parts of an export that are used.
#[derive(Debug, Default)]
pub(crate) struct Export {
    pub(crate) records: Vec<Record>,
    /// The number of branches, each side by itself, as llvm-cov counts them.
    pub(crate) branches: u64,
}

/// Reads an export.
///
/// # Errors
///
/// Fails if it cannot be read or is not such an export.
pub(crate) fn read(text: impl Read) -> serde_json::Result<Export> {
    Ok(read_all(text)?.pop().unwrap_or_default())
}

/// Reads several exports that are one.
///
/// # Errors
///
/// Fails if the text cannot be read or is not such an export.
pub(crate) fn read_all(text: impl Read) -> serde_json::Result<Vec<Export>> {
    let mut exports = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(text));
    let walk = Walk {
        level: Level::Root,
        exports: &mut exports,
    };
    walk.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(exports)
}

#[derive(Deserialize)]
struct Totals {
    branches: Total,
}

#[derive(Deserialize)]
struct Total {
    count: u64,
}

/// The way to the functions: `{"data": [{"functions": [...], "totals": {...}}]}`.
#[derive(Clone, Copy)]
enum Level {
    Root,
    Data,
    Export,
    Functions,
}

struct Walk<'a> {
    level: Level,
    /// The last is the one that is being read.
    exports: &'a mut Vec<Export>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.level {
            Level::Root | Level::Export => deserializer.deserialize_map(self),
            Level::Data | Level::Functions => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Root => "an export of llvm-cov",
            Level::Data => "a list of exports",
            Level::Export => "an export",
            Level::Functions => "a list of functions",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Level::Export = self.level {
            self.exports.push(Export::default());
        }
        while let Some(key) = map.next_key::<String>()? {
            let level = match (self.level, key.as_str()) {
                (Level::Root, "data") => Level::Data,
                (Level::Export, "functions") => Level::Functions,
                (Level::Export, "totals") => {
                    let totals: Totals = map.next_value()?;
                    if let Some(export) = self.exports.last_mut() {
                        export.branches = totals.branches.count;
                    }
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let exports = &mut *self.exports;
            map.next_value_seed(Walk { level, exports })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Level::Data = self.level {
            let mut more = Some(());
            while more.is_some() {
                let (level, exports) = (Level::Export, &mut *self.exports);
                more = seq.next_element_seed(Walk { level, exports })?;
            }
            return Ok(());
        }
        while let Some(exported) = seq.next_element::<Exported>()? {
            let record = convert(exported).map_err(serde::de::Error::custom)?;
            if let Some(export) = self.exports.last_mut() {
                export.records.push(record);
            }
        }
        Ok(())
    }
}

fn convert(exported: Exported) -> Result<Record, String> {
    let mut counts = Counts {
        calls: exported.count,
        ..Counts::default()
    };
    let mut function = Function {
        name: exported.name.into(),
        filenames: exported.filenames.into_iter().map(Arc::from).collect(),
        regions: Vec::with_capacity(exported.regions.len()),
        branches: Vec::with_capacity(exported.branches.len()),
        ..Function::default()
    };
    let files = function.filenames.len();
    let location = |lines: (u32, u32, u32, u32), file: u32, expanded: u32| {
        if file as usize >= files || expanded as usize >= files {
            return Err(format!("file {} of {files}", file.max(expanded)));
        }
        let place = |line, column| Place { line, column };
        let span = Span {
            start: place(lines.0, lines.1),
            end: place(lines.2, lines.3),
        };
        Ok(Location {
            span,
            file,
            expanded,
        })
    };
    for (line, column, end_line, end_column, count, file, expanded, kind) in exported.regions {
        function.regions.push(Region {
            location: location((line, column, end_line, end_column), file, expanded)?,
            kind: region_kind(kind)?,
        });
        counts.regions.push(count);
    }
    let branch = |branch: ExportedBranch| {
        let location = location((branch.0, branch.1, branch.2, branch.3), branch.6, branch.7)?;
        Ok::<_, String>((location, branch.8, [branch.4, branch.5]))
    };
    for exported in exported.branches {
        let (location, kind, count) = branch(exported)?;
        function.branches.push(Branch {
            location,
            kind,
            folded: [false; 2],
        });
        counts.branches.push(count);
    }
    for exported in exported.mcdc_records {
        let (location, kind, count) = branch(exported.branch)?;
        function.decisions.push(Decision { location, kind });
        counts.decisions.push(DecisionOutcome {
            branch: count,
            covered: exported.covered,
            vectors: exported.vectors,
        });
    }
    let function = Arc::new(function);
    Ok(Record::new(function, counts))
}

fn region_kind(number: u8) -> Result<Kind, String> {
    match number {
        0 => Ok(Kind::Code),
        1 => Ok(Kind::Expansion),
        2 => Ok(Kind::Skipped),
        3 => Ok(Kind::Gap),
        other => Err(format!("a region of kind {other}, expected 0 to 3")),
    }
}

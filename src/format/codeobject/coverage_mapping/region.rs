//! The regions of a function's source, and the counters that they refer to.

use crate::format::codeobject::coverage_mapping::error::CoverageError;
use crate::format::codeobject::coverage_mapping::reader::Reader;
use crate::format::codeobject::coverage_mapping::source_place::SourcePlace;

/// The bits of an encoded counter that hold its kind.
const TAG_BITS: u32 = 2;
/// The bit of a region's encoded kind that marks an expansion. The bits above are the number of a file or a
/// kind.
const EXPANSION: u32 = 1 << TAG_BITS;
/// The bit of the last column that marks a gap.
const GAP: u32 = 1 << 31;
/// The limit of lines. Reports have memory for each line of a region, and no compiler gets through so many.
const MAX_LINE: u32 = 1 << 22;
/// The limit of numbers that concern the conditions of a decision.
const MAX_CONDITION: u64 = i16::MAX as u64;

/// A count in terms of the counters of its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Code that, according to the compiler, never runs, and everything without a count.
    #[default]
    Zero,
    /// A counter, by its number in the function.
    Value(u32),
    /// The sum of the two sides of an expression, by the expression's number in the function.
    Sum(u32),
    /// The left side of an expression minus the right side.
    Difference(u32),
}

/// The two sides of an expression, left and right.
pub type Expression = [Counter; 2];

/// A region of a function's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedRegion {
    /// The number of the file in [`MappedFunction::files`](super::MappedFunction::files).
    pub file: u32,
    /// The first byte.
    pub start: SourcePlace,
    /// The byte after the last.
    pub end: SourcePlace,
    /// The kind with its counters.
    pub kind: RegionKind,
}

/// The kind of a region with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// Code that is counted.
    Code(Counter),
    /// A macro or an included file that is expanded here.
    Expansion {
        /// The number of the file that has the regions of the expansion.
        file: u32,
        /// The counter of the first of these regions.
        counter: Counter,
    },
    /// Left out by the preprocessor.
    Skipped,
    /// The space between two statements.
    Gap(Counter),
    /// A condition that decides the flow of control: its counters for true and false.
    Branch([Counter; 2]),
    /// A decision that MC/DC looks at.
    Decision {
        /// The place of the decision in the function's bitmap: the bit after its last one, or, in raw
        /// profiles of version 9, the byte of its first one.
        bitmap: u32,
        /// The number of its conditions.
        conditions: u16,
    },
    /// A condition of a decision.
    Condition {
        /// Its counters for true and false.
        sides: [Counter; 2],
        /// Its number in the decision, from 0. The decision starts with number 0.
        number: u16,
        /// The number of the condition that is looked at after this, if this is false and if it is true.
        /// `None` if the decision ends.
        next: [Option<u16>; 2],
    },
}

/// Returns whether a region of this encoded kind has no counter.
pub(super) fn is_uncounted(encoded: u32) -> bool {
    encoded & ((1 << TAG_BITS) - 1) == 0
}

/// The reader of the regions of a function.
pub(super) struct Regions<'a, 'r> {
    pub(super) reader: &'r mut Reader<'a>,
    /// The number of expressions of the function.
    pub(super) expressions: usize,
    /// The number of files of the function.
    pub(super) files: usize,
}

impl Regions<'_, '_> {
    /// Reads a counter.
    pub(super) fn counter(&mut self) -> Result<Counter, CoverageError> {
        let encoded = self.reader.word("an encoded counter")?;
        self.decoded(encoded)
    }

    /// Decodes a counter.
    fn decoded(&self, encoded: u32) -> Result<Counter, CoverageError> {
        let number = encoded >> TAG_BITS;
        let expression = |counter: Counter| {
            let (found, limit) = (number.into(), self.expressions as u64);
            let what = "the number of an expression";
            match found < limit {
                true => Ok(counter),
                false => Err(CoverageError::Limit { what, found, limit }),
            }
        };
        match encoded & ((1 << TAG_BITS) - 1) {
            0 => Ok(Counter::Zero),
            1 => Ok(Counter::Value(number)),
            2 => expression(Counter::Difference(number)),
            _ => expression(Counter::Sum(number)),
        }
    }

    /// Reads the regions of one of the function's files.
    pub(super) fn file_regions(
        &mut self,
        file: u32,
        regions: &mut Vec<MappedRegion>,
    ) -> Result<(), CoverageError> {
        let number = self.reader.size()?;
        let mut line = 0;
        for _ in 0..number {
            let kind = self.kind()?;
            let region = self.region(file, kind, line)?;
            line = region.start.line;
            regions.push(region);
        }
        Ok(())
    }

    /// Reads the kind of a region, and its counters.
    fn kind(&mut self) -> Result<RegionKind, CoverageError> {
        let encoded = self.reader.word("the encoded kind of a region")?;
        let counter = self.decoded(encoded)?;
        if counter != Counter::Zero {
            return Ok(RegionKind::Code(counter));
        }
        let number = encoded >> (TAG_BITS + 1);
        if encoded & EXPANSION != 0 {
            let (found, limit) = (number.into(), self.files as u64);
            let what = "the number of an expanded file";
            return match found < limit {
                true => Ok(RegionKind::Expansion {
                    file: number,
                    counter,
                }),
                false => Err(CoverageError::Limit { what, found, limit }),
            };
        }
        match number {
            0 => Ok(RegionKind::Code(counter)),
            2 => Ok(RegionKind::Skipped),
            4 => Ok(RegionKind::Branch([self.counter()?, self.counter()?])),
            5 => Ok(RegionKind::Decision {
                bitmap: self.reader.word("the bitmap of a decision")?,
                conditions: self.condition()?,
            }),
            6 => self.condition_kind(),
            found => Err(CoverageError::Kind { found }),
        }
    }

    fn condition_kind(&mut self) -> Result<RegionKind, CoverageError> {
        let sides = [self.counter()?, self.counter()?];
        // Numbers count from 1 here.
        let number = self.condition()?.checked_sub(1);
        let if_true = self.condition()?.checked_sub(1);
        let if_false = self.condition()?.checked_sub(1);
        Ok(RegionKind::Condition {
            sides,
            number: number.ok_or(CoverageError::Condition)?,
            next: [if_false, if_true],
        })
    }

    /// Reads the number of a condition or of conditions.
    fn condition(&mut self) -> Result<u16, CoverageError> {
        let number = self.reader.below(MAX_CONDITION, "a number of conditions")?;
        Ok(number as u16)
    }

    /// Reads a number of lines.
    fn line(&mut self) -> Result<u32, CoverageError> {
        let line = self.reader.below(MAX_LINE.into(), "a line")?;
        Ok(line as u32)
    }

    /// Reads the place of a region that starts `line` lines after the region before.
    fn region(
        &mut self,
        file: u32,
        kind: RegionKind,
        line_before: u32,
    ) -> Result<MappedRegion, CoverageError> {
        let after = self.line()?;
        let column = self.reader.below(1 << 32, "a column")? as u32;
        let (lines, end_column) = (self.line()?, self.reader.word("a column")?);
        let line = checked_line(line_before, after)?;
        let end_line = checked_line(line, lines)?;
        let is_gap = end_column & GAP != 0;
        let [column, end_column] = match [column, end_column & !GAP] {
            // Whole lines, in few bytes.
            [0, 0] => [1, u32::MAX],
            columns => columns,
        };
        let place = |line, column| SourcePlace { line, column };
        let (start, end) = (place(line, column), place(end_line, end_column));
        if start > end {
            return Err(CoverageError::Backwards { start, end });
        }
        let kind = match kind {
            RegionKind::Code(counter) if is_gap => RegionKind::Gap(counter),
            _ if is_gap => RegionKind::Gap(Counter::Zero),
            kind => kind,
        };
        Ok(MappedRegion {
            file,
            start,
            end,
            kind,
        })
    }
}

/// The line `more` lines after `line`. Both are below the limit.
fn checked_line(line: u32, more: u32) -> Result<u32, CoverageError> {
    match line + more {
        line if line < MAX_LINE => Ok(line),
        found => Err(CoverageError::Limit {
            what: "a line",
            found: found.into(),
            limit: MAX_LINE.into(),
        }),
    }
}

//! `__llvm_covfun`: a record for each function.

use byteorder::{ByteOrder, LittleEndian};

use crate::format::codeobject::coverage_mapping::error::CoverageError;
use crate::format::codeobject::coverage_mapping::reader::Reader;

/// The section's name in messages.
pub(super) const COVFUN: &str = "__llvm_covfun";
/// The size of a record's header: hash of the name (u64), size of the mapping in bytes (u32), hash of the
/// function (u64), hash of the file list (u64). The header is packed.
const HEADER: usize = 28;

/// The records of the section, in order.
pub(super) struct FunctionRecords<'a>(Reader<'a>);

/// A function of a translation unit. Other units may have records of the function, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionRecord<'a> {
    /// The hash of the name.
    pub(super) name: u64,
    /// The hash of the function's structure. It is 0 if the unit does not use the function.
    pub(super) hash: u64,
    /// The hash of the file list.
    pub(super) list: u64,
    /// Files, expressions and regions.
    pub(super) mapping: &'a [u8],
}

impl<'a> FunctionRecords<'a> {
    pub(super) fn new(section: &'a [u8]) -> Self {
        Self(Reader::new(COVFUN, section))
    }

    fn read(&mut self) -> Result<FunctionRecord<'a>, CoverageError> {
        let header = self.0.take(HEADER as u64)?;
        let mapping = self.0.take(LittleEndian::read_u32(&header[8..]).into())?;
        self.0.align();
        Ok(FunctionRecord {
            name: LittleEndian::read_u64(header),
            hash: LittleEndian::read_u64(&header[12..]),
            list: LittleEndian::read_u64(&header[20..]),
            mapping,
        })
    }
}

impl<'a> Iterator for FunctionRecords<'a> {
    type Item = Result<FunctionRecord<'a>, CoverageError>;

    fn next(&mut self) -> Option<Self::Item> {
        // After the last record there may be padding, shorter than a header.
        (self.0.rest().len() >= HEADER).then(|| self.read())
    }
}

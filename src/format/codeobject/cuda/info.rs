//! The attributes of a cubin's kernels: sections `.nv.info`, `.nv.info.KERNEL` and `.nv.compat`.
//!
//! A section is a list of records: one byte with the format, one with the attribute, and two bytes. In format 4 these
//! are the size of the value, which follows; in the others they are the value itself. nvdisasm names the formats
//! (EIFMT_NVAL, BVAL, HVAL, SVAL) and attributes (EIATTR_REGCOUNT and others).

use byteorder::{ByteOrder, LittleEndian};

use crate::format::codeobject::cuda::CubinError;

/// The size of a record without a value that follows.
const HEAD: usize = 4;
/// The formats: no value, a byte, a half-word, and a number of bytes.
const FORMATS: std::ops::RangeInclusive<u8> = 1..=4;
/// The format of a value that follows its size.
const SIZED: u8 = 4;

/// `EIATTR_MAX_THREADS`: the most threads in a block, in three dimensions (`__launch_bounds__`).
pub(super) const MAX_THREADS: u8 = 0x05;
/// `EIATTR_FRAME_SIZE`: a function's number, and the bytes of its stack frame.
pub(super) const FRAME_SIZE: u8 = 0x11;
/// `EIATTR_MIN_STACK_SIZE`: a function's number, and the bytes of its stack with the functions that it calls.
pub(super) const MIN_STACK_SIZE: u8 = 0x12;
/// `EIATTR_CBANK_PARAM_SIZE`: the bytes of a kernel's arguments.
pub(super) const PARAM_SIZE: u8 = 0x19;
/// `EIATTR_REGCOUNT`: a function's number, and its registers.
pub(super) const REGISTERS: u8 = 0x2f;
/// `EIATTR_ANNOTATIONS`: pairs of a kind and the place of an instruction. Those of kind 1 store or load a register that
/// is spilled (seen: as many as nvdisasm shows STL and LDL, in kernels without arrays of their own).
pub(super) const ANNOTATIONS: u8 = 0x55;
/// The kind of annotation of a spill.
pub(super) const SPILL: u32 = 1;
/// The attribute of `.nv.compat` that is 1 in code for one architecture alone, such as sm_90a (seen in cubins of
/// ptxas 13.5, which does not say it in `e_flags`).
pub(super) const ONE_ARCHITECTURE: u8 = 0x09;

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribute<'data> {
    pub(super) kind: u8,
    pub(super) value: &'data [u8],
}

impl Attribute<'_> {
    /// Its value in words of 4 bytes.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        let words = self.value.chunks_exact(4);
        words.map(LittleEndian::read_u32)
    }

    /// Its value as one number of up to 2 bytes.
    pub(super) fn number(&self) -> u32 {
        let [low, high] = [0, 1].map(|at| self.value.get(at).copied().unwrap_or(0));
        u32::from(u16::from_le_bytes([low, high]))
    }
}

/// The attributes in a section.
///
/// # Errors
/// Fails if a record is of an unknown format, or the last one is cut short.
pub(super) fn attributes<'data>(
    section: &str,
    data: &'data [u8],
) -> Result<Vec<Attribute<'data>>, CubinError> {
    let mut attributes = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let cut = |needed: usize| CubinError::Attribute {
            section: section.to_owned(),
            at,
            needed,
            available: data.len() - at,
        };
        let [format, kind, low, high] =
            *data[at..].first_chunk::<HEAD>().ok_or_else(|| cut(HEAD))?;
        if !FORMATS.contains(&format) {
            return Err(CubinError::Format {
                section: section.to_owned(),
                at,
                found: format,
            });
        }
        let size = match format {
            SIZED => usize::from(u16::from_le_bytes([low, high])),
            _ => 0,
        };
        let end = at + HEAD + size;
        let value = match format {
            SIZED => data.get(at + HEAD..end).ok_or_else(|| cut(HEAD + size))?,
            _ => &data[at + 2..end],
        };
        attributes.push(Attribute { kind, value });
        at = end;
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of `.nv.info` and of a kernel's own, as ptxas 12.9 writes them.
    #[test]
    fn attributes_have_values_of_all_formats() {
        let data = [
            &[4, REGISTERS, 8, 0, 22, 0, 0, 0, 16, 0, 0, 0][..],
            &[3, PARAM_SIZE, 0x18, 0, 2, ONE_ARCHITECTURE, 1, 0],
        ]
        .concat();
        let found = attributes(".nv.info", &data).unwrap();
        let kinds: Vec<_> = found.iter().map(|attribute| attribute.kind).collect();
        assert_eq!(kinds, [REGISTERS, PARAM_SIZE, ONE_ARCHITECTURE]);
        assert_eq!(found[0].words().collect::<Vec<_>>(), [22, 16]);
        assert_eq!([found[1].number(), found[2].number()], [24, 1]);
    }

    #[test]
    fn damaged_attributes_are_named() {
        let message = |data| attributes(".nv.info", data).unwrap_err().to_string();
        let whole = [4, REGISTERS, 8, 0, 22, 0, 0, 0, 16, 0, 0, 0];
        assert_eq!(
            message(&whole[..11]),
            ".nv.info is cut short: the attribute at byte 0 has 12 bytes, 11 are left"
        );
        assert_eq!(
            message(&whole[..3]),
            ".nv.info is cut short: the attribute at byte 0 has 4 bytes, 3 are left"
        );
        assert_eq!(
            message(&[9, 0, 0, 0]),
            ".nv.info has an attribute of format 9 at byte 0, expected 1 to 4"
        );
    }
}

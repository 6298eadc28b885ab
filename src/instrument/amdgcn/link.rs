//! The instrumented code object: what is loaded of the original, the new text and counters, and what is not loaded.
//!
//! The program headers move into the new segment, at an offset in the file that is their address, too: some readers look for
//! them in the loaded image. The section headers come last: ROCr takes the end of their table for the end of the file.

use byteorder::{ByteOrder, LittleEndian as Bytes};
use object::LittleEndian;
use object::elf::{
    PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_NULL,
    SHT_PROGBITS,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use super::error::Refusal;
use super::map::{self, MapParts};
use super::object::Object;
use super::text::Text;

/// The size of a page, in which segments are loaded.
const PAGE: u64 = 0x1000;
/// The bytes that the file may grow by, so that offsets in the new segment are addresses.
const GROWTH_MAX: u64 = 64 << 20;
/// The bytes after the text that the hardware may fetch ahead.
const FETCHED_AHEAD: usize = 256;
/// The sizes of headers, and the offsets of their fields in a 64-bit ELF (System V ABI, "ELF Header", "Sections", "Program Header").
const PROGRAM_HEADER_BYTES: u64 = 56;
const SECTION_HEADER_BYTES: usize = 64;
const PROGRAM_HEADERS: usize = 32;
const SECTION_HEADERS: usize = 40;
const PROGRAM_HEADER_COUNT: usize = 56;
const SECTION_HEADER_COUNT: usize = 60;
const SECTION_OFFSET: usize = 24;
const SECTION_SIZE: usize = 32;
/// The places of new parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The end of what is loaded of the original, in the file.
    end: u64,
    /// The first address and offset of the new segment.
    start: u64,
    /// The address of the text, and its offset in the file.
    pub(super) text: u64,
}

/// The places of the text and of the counters.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    text_bytes: u64,
    /// The address of the counters.
    counters: u64,
    counter_bytes: u64,
}

impl Layout {
    pub(super) fn new(object: &Object<'_>) -> Result<Self, Refusal> {
        let (top, end) = object.ends()?;
        if end > object.bytes.len() as u64 {
            return Err(Refusal::Damaged("it is cut".to_owned()));
        }
        let start = top.max(end).next_multiple_of(PAGE);
        if start - end > GROWTH_MAX {
            return Err(Refusal::Variables {
                bytes: start - end,
                max: GROWTH_MAX,
            });
        }
        let headers = PROGRAM_HEADER_BYTES * (object.segments.len() as u64 + 2);
        Ok(Self {
            end,
            start,
            text: (start + headers).next_multiple_of(256),
        })
    }

    /// The bytes before the text: what is loaded of the original, and room for the program headers.
    pub(super) fn before_text(&self, object: &Object<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text as usize + object.bytes.len());
        bytes.extend_from_slice(&object.bytes[..self.end as usize]);
        bytes.resize(self.text as usize, 0);
        bytes
    }

    /// The new program headers: both new segments come after the last one that is loaded.
    fn program_headers(&self, object: &Object<'_>, sizes: Sizes) -> Vec<u8> {
        let endian = LittleEndian;
        let mut bytes = Vec::new();
        let last = object
            .segments
            .iter()
            .rposition(|segment| segment.p_type(endian) == PT_LOAD);
        let mut push = |kind: u32, flags: u32, fields: [u64; 6]| {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        };
        for (index, segment) in object.segments.iter().enumerate() {
            if segment.p_type(endian) != PT_PHDR {
                push(
                    segment.p_type(endian).0,
                    segment.p_flags(endian).0,
                    [
                        segment.p_offset(endian),
                        segment.p_vaddr(endian),
                        segment.p_paddr(endian),
                        segment.p_filesz(endian),
                        segment.p_memsz(endian),
                        segment.p_align(endian),
                    ],
                );
            }
            if Some(index) == last {
                let size = self.text + sizes.text_bytes - self.start;
                let start = self.start;
                push(
                    PT_LOAD.0,
                    PF_R.0 | PF_X.0,
                    [start, start, start, size, size, PAGE],
                );
                let counters = sizes.counters;
                push(
                    PT_LOAD.0,
                    PF_R.0 | PF_W.0,
                    [start, counters, counters, 0, sizes.counter_bytes, PAGE],
                );
            }
        }
        bytes
    }

    /// Writes the code object with so many counters. The text comes after [`Self::before_text`]. `patch` changes the loaded
    /// bytes of the original: it gets them by offset in the file.
    pub(super) fn link(
        &self,
        object: &Object<'_>,
        text: Text,
        counters: u64,
        map: MapParts,
        patch: impl FnOnce(&mut [u8]),
    ) -> Result<Vec<u8>, Refusal> {
        /// More than headers, alignment and names take.
        const REST: usize = 1 << 20;
        let endian = LittleEndian;
        let original = object.bytes;
        let text_bytes = 4 * text.len() as u64 + FETCHED_AHEAD as u64;
        let sizes = Sizes {
            text_bytes,
            counters: (self.text + text_bytes).next_multiple_of(PAGE),
            counter_bytes: 8 * counters,
        };
        let mut out = text.into_bytes(self.text, sizes.counters);
        // A vector that grows would take twice the memory.
        out.reserve_exact(map.len() + 2 * original.len() - self.end as usize + REST);
        patch(&mut out);
        let headers = self.program_headers(object, sizes);
        let header_count = headers.len() as u64 / PROGRAM_HEADER_BYTES;
        let start = self.start as usize;
        out[start..start + headers.len()].copy_from_slice(&headers);
        out.resize(out.len() + FETCHED_AHEAD, 0);
        out.resize(out.len().next_multiple_of(64), 0);
        // The rest, which is not loaded, moves after it.
        let shift = out.len() as u64 - self.end;
        let in_file = object
            .sections
            .iter()
            .filter(|section| ![SHT_NULL, SHT_NOBITS].contains(&section.sh_type(endian)));
        let ends = in_file.map(|section| {
            section
                .sh_offset(endian)
                .saturating_add(section.sh_size(endian))
        });
        let rest = ends.fold(self.end, u64::max);
        let rest = original
            .get(self.end as usize..rest as usize)
            .ok_or_else(|| Refusal::Damaged("a section is past its end".to_owned()))?;
        out.extend_from_slice(rest);
        let mut table = Vec::new();
        let names = usize::from(object.header.e_shstrndx(endian).0);
        let strings = object.sections.get(names).map(|names| {
            let start = names.sh_offset(endian) as usize;
            original.get(start..start.saturating_add(names.sh_size(endian) as usize))
        });
        let mut strings = strings
            .flatten()
            .ok_or_else(|| Refusal::Damaged("it has no names of sections".to_owned()))?
            .to_vec();
        // New names come after: an old section must not get one of these.
        if strings.last() != Some(&0) {
            strings.push(0);
        }
        let mut names_of_sections = object
            .sections
            .iter()
            .map(|section| section.sh_name(endian));
        if names_of_sections.any(|name| name as usize >= strings.len()) {
            let text = "the name of a section is past the table of names";
            return Err(Refusal::Damaged(text.to_owned()));
        }
        for section in object.sections {
            let mut bytes = object::bytes_of(section).to_vec();
            let offset = section.sh_offset(endian);
            if !section.sh_flags(endian).contains(SHF_ALLOC) && offset >= self.end {
                Bytes::write_u64(&mut bytes[SECTION_OFFSET..], offset + shift);
            }
            table.push(bytes);
        }
        let map_at = out.len() as u64;
        map.write(&mut out, sizes.counters, counters);
        let original_at = out.len() as u64;
        out.extend_from_slice(original);
        let new: [(&str, u32, u64, u64, u64, u64); 4] = [
            (
                map::TEXT_SECTION,
                SHT_PROGBITS.0,
                SHF_ALLOC.0 | SHF_EXECINSTR.0,
                self.text,
                self.text,
                sizes.text_bytes,
            ),
            (
                map::COUNTERS_SECTION,
                SHT_NOBITS.0,
                SHF_ALLOC.0 | SHF_WRITE.0,
                sizes.counters,
                self.text,
                sizes.counter_bytes,
            ),
            (
                map::MAP_SECTION,
                SHT_PROGBITS.0,
                0,
                0,
                map_at,
                original_at - map_at,
            ),
            (
                map::ORIGINAL_SECTION,
                SHT_PROGBITS.0,
                0,
                0,
                original_at,
                original.len() as u64,
            ),
        ];
        for (name, kind, flags, address, offset, size) in new {
            let mut bytes = Vec::with_capacity(SECTION_HEADER_BYTES);
            bytes.extend((strings.len() as u32).to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            for field in [flags, address, offset, size, 0, 8, 0] {
                bytes.extend(field.to_le_bytes());
            }
            table.push(bytes);
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
        }
        let named = &mut table[names];
        Bytes::write_u64(&mut named[SECTION_OFFSET..], out.len() as u64);
        Bytes::write_u64(&mut named[SECTION_SIZE..], strings.len() as u64);
        out.extend(strings);
        out.resize(out.len().next_multiple_of(8), 0);
        let section_headers = out.len() as u64;
        let count = u16::try_from(table.len());
        let count = count.map_err(|_| Refusal::Damaged("it has too many sections".to_owned()))?;
        out.extend(table.into_iter().flatten());
        Bytes::write_u64(&mut out[PROGRAM_HEADERS..], self.start);
        Bytes::write_u16(&mut out[PROGRAM_HEADER_COUNT..], header_count as u16);
        Bytes::write_u64(&mut out[SECTION_HEADERS..], section_headers);
        Bytes::write_u16(&mut out[SECTION_HEADER_COUNT..], count);
        Ok(out)
    }
}

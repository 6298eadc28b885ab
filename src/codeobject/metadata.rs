//! The AMDGPU metadata note: what a compiler says of its kernels to runtimes.
//!
//! MessagePack: a map with a list of kernels, each a map (LLVM's AMDGPUUsage, "Code Object V3
//! Metadata" to "V6"). Every field is taken as whatever it is, so that a wrong one is an error that
//! says whose it is; nothing is believed of lengths and numbers before the bytes are there.

use std::{fmt, io};

use object::elf::NoteType;
use object::read::ReadRef;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use thiserror::Error;

use super::elf::{CodeObject, CodeObjectError};

/// Owner of the note.
const OWNER: &[u8] = b"AMDGPU";
/// `NT_AMDGPU_METADATA`.
const TYPE: NoteType = NoteType(32);
/// The major version that is read. Code object versions 3 to 6 are 1.0 to 1.2.
const MAJOR: u64 = 1;

/// What is wrong with the metadata of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// There is none, or it is of code object version 2.
    #[error("no AMDGPU metadata: expected a note `AMDGPU` of type 32")]
    Absent,
    /// The note is no metadata at all.
    #[error("damaged AMDGPU metadata in a note of {len} bytes: {reason}")]
    Malformed {
        /// Bytes of the note.
        len: usize,
        /// What the decoder says.
        reason: String,
    },
    /// Metadata of another major version.
    #[error("AMDGPU metadata of version {found}, expected {MAJOR}")]
    Version {
        /// The major version as found.
        found: String,
    },
    /// A field that every code object has is not there, or wrong.
    #[error("{of} in the AMDGPU metadata: {key} is {found}, expected {expected}")]
    Field {
        /// Which kernel, or the code object.
        of: String,
        /// Such as `.sgpr_count`.
        key: &'static str,
        /// The value as found.
        found: String,
        /// What may be there.
        expected: &'static str,
    },
}

/// The metadata of a code object: one note, or several where objects were linked without LTO.
pub(super) struct Metadata<'data> {
    notes: Vec<&'data [u8]>,
}

impl<'data> Metadata<'data> {
    pub(super) fn of<R: ReadRef<'data>>(
        code_object: &CodeObject<'data, R>,
    ) -> Result<Self, CodeObjectError> {
        let notes = code_object.notes(OWNER, TYPE)?;
        Ok(Metadata { notes })
    }

    /// The target of the first note that names one, such as `amdgcn-amd-amdhsa--gfx90a:xnack-`.
    /// Code object version 3 does not.
    pub(super) fn target(&self) -> Option<&'data str> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, rename = "amdhsa.target")]
            target: Option<Field<'a>>,
        }
        self.notes.iter().find_map(|note| {
            match rmp_serde::from_slice::<Head>(note).ok()?.target? {
                Field::Text(target) => Some(target),
                _ => None,
            }
        })
    }

    /// All kernels.
    pub(super) fn kernels(&self) -> Result<Vec<KernelNote<'data>>, MetadataError> {
        #[derive(Deserialize)]
        struct Root<'a> {
            #[serde(rename = "amdhsa.version")]
            version: Option<Vec<u64>>,
            #[serde(borrow, rename = "amdhsa.kernels")]
            kernels: Vec<RawKernel<'a>>,
        }
        let mut kernels = Vec::new();
        for note in &self.notes {
            let root: Root =
                rmp_serde::from_slice(note).map_err(|error| MetadataError::Malformed {
                    len: note.len(),
                    reason: reason(&error),
                })?;
            if let Some(version) = root.version
                && version.first() != Some(&MAJOR)
            {
                let numbers: Vec<_> = version.iter().map(u64::to_string).collect();
                let found = numbers.join(".");
                return Err(MetadataError::Version { found });
            }
            for raw in root.kernels {
                kernels.push(raw.check(kernels.len())?);
            }
        }
        match self.notes.is_empty() {
            true => Err(MetadataError::Absent),
            false => Ok(kernels),
        }
    }
}

fn reason(error: &rmp_serde::decode::Error) -> String {
    use rmp_serde::decode::Error::{InvalidDataRead, InvalidMarkerRead};
    match error {
        InvalidMarkerRead(error) | InvalidDataRead(error)
            if error.kind() == io::ErrorKind::UnexpectedEof =>
        {
            "it is cut short".into()
        }
        error => error.to_string(),
    }
}

/// A kernel, by its metadata. The fields are those of [`super::Kernel`].
pub(super) struct KernelNote<'data> {
    pub(super) name: &'data str,
    /// The symbol of its descriptor.
    pub(super) symbol: &'data str,
    pub(super) kernarg_size: u32,
    pub(super) kernarg_align: u32,
    pub(super) group_size: u32,
    pub(super) private_size: u32,
    pub(super) sgprs: u32,
    pub(super) vgprs: u32,
    pub(super) agprs: u32,
    pub(super) sgpr_spills: u32,
    pub(super) vgpr_spills: u32,
    pub(super) wavefront_size: u32,
    pub(super) max_workgroup_size: u32,
}

/// The same as it is in the note.
#[derive(Deserialize)]
struct RawKernel<'a> {
    #[serde(borrow, rename = ".name")]
    name: Option<Field<'a>>,
    #[serde(rename = ".symbol")]
    symbol: Option<Field<'a>>,
    #[serde(rename = ".kernarg_segment_size")]
    kernarg_size: Option<Field<'a>>,
    #[serde(rename = ".kernarg_segment_align")]
    kernarg_align: Option<Field<'a>>,
    #[serde(rename = ".group_segment_fixed_size")]
    group_size: Option<Field<'a>>,
    #[serde(rename = ".private_segment_fixed_size")]
    private_size: Option<Field<'a>>,
    #[serde(rename = ".sgpr_count")]
    sgprs: Option<Field<'a>>,
    #[serde(rename = ".vgpr_count")]
    vgprs: Option<Field<'a>>,
    #[serde(rename = ".agpr_count")]
    agprs: Option<Field<'a>>,
    #[serde(rename = ".sgpr_spill_count")]
    sgpr_spills: Option<Field<'a>>,
    #[serde(rename = ".vgpr_spill_count")]
    vgpr_spills: Option<Field<'a>>,
    #[serde(rename = ".wavefront_size")]
    wavefront_size: Option<Field<'a>>,
    #[serde(rename = ".max_flat_workgroup_size")]
    max_workgroup_size: Option<Field<'a>>,
}

impl<'a> RawKernel<'a> {
    fn check(self, index: usize) -> Result<KernelNote<'a>, MetadataError> {
        let wrong = |of: String, key, found: Option<&Field>, expected| MetadataError::Field {
            of,
            key,
            found: found.map_or("missing".into(), Field::to_string),
            expected,
        };
        let text = |key, field: Option<Field<'a>>| match field {
            Some(Field::Text(text)) => Ok(text),
            other => {
                let of = format!("kernel {index}");
                Err(wrong(of, key, other.as_ref(), "a name in UTF-8"))
            }
        };
        let name = text(".name", self.name)?;
        let symbol = text(".symbol", self.symbol)?;
        let number = |key, field: Option<Field<'a>>| match field {
            Some(Field::Number(number)) if u32::try_from(number).is_ok() => Ok(number as u32),
            other => {
                let of = format!("kernel {name}");
                Err(wrong(
                    of,
                    key,
                    other.as_ref(),
                    "a number from 0 to 4294967295",
                ))
            }
        };
        let or_none = |field: Option<Field<'a>>| field.or(Some(Field::Number(0)));
        Ok(KernelNote {
            name,
            symbol,
            kernarg_size: number(".kernarg_segment_size", self.kernarg_size)?,
            kernarg_align: number(".kernarg_segment_align", self.kernarg_align)?,
            group_size: number(".group_segment_fixed_size", self.group_size)?,
            private_size: number(".private_segment_fixed_size", self.private_size)?,
            sgprs: number(".sgpr_count", self.sgprs)?,
            vgprs: number(".vgpr_count", self.vgprs)?,
            // Only targets that have them.
            agprs: number(".agpr_count", or_none(self.agprs))?,
            // Optional by the format.
            sgpr_spills: number(".sgpr_spill_count", or_none(self.sgpr_spills))?,
            vgpr_spills: number(".vgpr_spill_count", or_none(self.vgpr_spills))?,
            wavefront_size: number(".wavefront_size", self.wavefront_size)?,
            max_workgroup_size: number(".max_flat_workgroup_size", self.max_workgroup_size)?,
        })
    }
}

/// A value of whatever type.
enum Field<'a> {
    Number(u64),
    Text(&'a str),
    /// Neither, described.
    Other(String),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => number.fmt(f),
            Field::Text(text) => write!(f, "{text:?}"),
            Field::Other(what) => f.write_str(what),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Field::Number(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        // A writer may choose a signed type for any number.
        Ok(match u64::try_from(number) {
            Ok(number) => Field::Number(number),
            Err(_) => Field::Other(number.to_string()),
        })
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Field::Other(format!("{number:?}")))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Field::Other(value.to_string()))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(text))
    }

    /// Also text that is not UTF-8.
    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Field::Other(format!("bytes \"{}\"", bytes.escape_ascii())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Field::Other("nil".into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other("a list".into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other("a map".into()))
    }
}

//! The AMDGPU metadata note, in which a compiler describes its kernels to runtimes.
//!
//! It is MessagePack: a map with a list of kernels, each a map (LLVM's AMDGPUUsage, "Code Object V3 Metadata"
//! to "V6"). rocov trusts no length or count before it has the bytes.

use object::elf::NoteType;
use object::read::ReadRef;

use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::{CodeObjectError, MetadataError};
use crate::format::codeobject::msgpack::{Fault, Reader, Value};

/// The owner of the note.
const OWNER: &[u8] = b"AMDGPU";
/// `NT_AMDGPU_METADATA`.
const TYPE: NoteType = NoteType(32);
/// The major version that rocov reads. Code object versions 3 to 6 have 1.0 to 1.2.
const MAJOR: u64 = 1;

/// The metadata of a code object: one note, or several if objects were linked without LTO.
pub(super) struct Metadata<'data> {
    notes: Vec<&'data [u8]>,
}

impl<'data> Metadata<'data> {
    pub(super) fn parse<R: ReadRef<'data>>(
        code_object: &CodeObject<'data, R>,
    ) -> Result<Self, CodeObjectError> {
        let notes = code_object.notes(OWNER, TYPE)?;
        Ok(Metadata { notes })
    }

    /// The target of the first note that names one, such as `amdgcn-amd-amdhsa--gfx90a:xnack-`. Notes of code
    /// object version 3 name none.
    pub(super) fn target(&self) -> Option<&'data str> {
        self.notes.iter().find_map(|note| {
            let mut note = Note::new(note);
            for _ in 0..note.entries().ok()? {
                let entry = (note.value().ok()?, note.value().ok()?);
                if let (Value::Text(b"amdhsa.target"), Value::Text(target)) = entry {
                    return str::from_utf8(target).ok();
                }
            }
            None
        })
    }

    /// All kernels.
    pub(super) fn kernels(&self) -> Result<Vec<KernelNote<'data>>, MetadataError> {
        if self.notes.is_empty() {
            return Err(MetadataError::Absent);
        }
        let mut kernels = Vec::new();
        for note in &self.notes {
            Note::new(note).read(&mut kernels)?;
        }
        Ok(kernels)
    }
}

/// A note, read forward.
struct Note<'a> {
    len: usize,
    reader: Reader<'a>,
}

impl<'a> Note<'a> {
    fn new(note: &'a [u8]) -> Self {
        Note {
            len: note.len(),
            reader: Reader::new(note),
        }
    }

    /// Adds the note's kernels.
    fn read(mut self, kernels: &mut Vec<KernelNote<'a>>) -> Result<(), MetadataError> {
        const KERNELS: &str = "amdhsa.kernels";
        let mut is_listed = false;
        for _ in 0..self.entries()? {
            match self.value()? {
                Value::Text(b"amdhsa.version") => self.version()?,
                Value::Text(key) if key == KERNELS.as_bytes() => {
                    is_listed = true;
                    match self.start()? {
                        Value::List(count) => {
                            for _ in 0..count {
                                kernels.push(self.kernel(kernels.len())?);
                            }
                        }
                        found => return Err(wrong_object(KERNELS, Some(found), "a list")),
                    }
                }
                _ => _ = self.value()?,
            }
        }
        match is_listed {
            true => Ok(()),
            false => Err(wrong_object(KERNELS, None, "a list")),
        }
    }

    /// Starts the note's map and returns its number of entries.
    fn entries(&mut self) -> Result<u32, MetadataError> {
        match self.start()? {
            Value::Map(count) => Ok(count),
            found => Err(wrong_object("all of it", Some(found), "a map")),
        }
    }

    /// Skips the version. Fails if the major version is not [`MAJOR`].
    fn version(&mut self) -> Result<(), MetadataError> {
        const KEY: &str = "amdhsa.version";
        match self.start()? {
            Value::List(count @ 1..) => match self.start()? {
                Value::Number(MAJOR) => self.finish(Value::List(count - 1)),
                found => Err(wrong_object(KEY, Some(found), "1 as the first number")),
            },
            found => Err(wrong_object(KEY, Some(found), "a list of two numbers")),
        }
    }

    fn kernel(&mut self, index: usize) -> Result<KernelNote<'a>, MetadataError> {
        let entries = match self.start()? {
            Value::Map(count) => count,
            found => {
                return Err(wrong(
                    format!("kernel {index}"),
                    "all of it",
                    Some(found),
                    "a map",
                ));
            }
        };
        let mut fields = Fields::default();
        for _ in 0..entries {
            let key = self.value()?;
            // Most of a kernel is its arguments.
            let value = self.value()?;
            if let Value::Text(key) = key
                && let Some(at) = KEYS.iter().position(|known| known.as_bytes() == key)
            {
                fields.0[at] = Some(value);
            }
        }
        fields.kernel(index)
    }

    fn start(&mut self) -> Result<Value<'a>, MetadataError> {
        let start = self.reader.start();
        start.map_err(|fault| self.fault(fault))
    }

    fn value(&mut self) -> Result<Value<'a>, MetadataError> {
        let value = self.reader.value();
        value.map_err(|fault| self.fault(fault))
    }

    fn finish(&mut self, value: Value<'a>) -> Result<(), MetadataError> {
        let finished = self.reader.finish(value);
        finished.map_err(|fault| self.fault(fault))
    }

    fn fault(&self, fault: Fault) -> MetadataError {
        let len = self.len;
        match fault {
            Fault::Cut => MetadataError::Cut { len },
            Fault::NoValue(at) => MetadataError::NoValue { len, at },
        }
    }
}

fn wrong(
    of: String,
    key: &'static str,
    found: Option<Value>,
    expected: &'static str,
) -> MetadataError {
    MetadataError::Field {
        of,
        key,
        found: found.map_or("missing".into(), |value| value.to_string()),
        expected,
    }
}

fn wrong_object(key: &'static str, found: Option<Value>, expected: &'static str) -> MetadataError {
    wrong("the code object".into(), key, found, expected)
}

/// A kernel from its metadata. The fields are those of [`crate::format::codeobject::Kernel`].
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

/// The fields of a kernel that rocov reads.
const KEYS: [&str; 13] = [
    ".name",
    ".symbol",
    ".kernarg_segment_size",
    ".kernarg_segment_align",
    ".group_segment_fixed_size",
    ".private_segment_fixed_size",
    ".sgpr_count",
    ".vgpr_count",
    ".wavefront_size",
    ".max_flat_workgroup_size",
    // Only on targets that have them.
    ".agpr_count",
    // Optional in the format.
    ".sgpr_spill_count",
    ".vgpr_spill_count",
];
/// The first field that may be missing. A missing field is 0.
const OPTIONAL: usize = 10;

/// The values of [`KEYS`] as the note has them.
#[derive(Default)]
struct Fields<'a>([Option<Value<'a>>; KEYS.len()]);

impl<'a> Fields<'a> {
    fn kernel(&self, index: usize) -> Result<KernelNote<'a>, MetadataError> {
        let name = self.text(0, index)?;
        let symbol = self.text(1, index)?;
        let mut numbers = [0; KEYS.len()];
        for (at, number) in numbers.iter_mut().enumerate().skip(2) {
            *number = self.number(at, name)?;
        }
        let [
            _,
            _,
            kernarg_size,
            kernarg_align,
            group_size,
            private_size,
            sgprs,
            vgprs,
            wavefront_size,
            max_workgroup_size,
            agprs,
            sgpr_spills,
            vgpr_spills,
        ] = numbers;
        Ok(KernelNote {
            name,
            symbol,
            kernarg_size,
            kernarg_align,
            group_size,
            private_size,
            sgprs,
            vgprs,
            agprs,
            sgpr_spills,
            vgpr_spills,
            wavefront_size,
            max_workgroup_size,
        })
    }

    fn text(&self, at: usize, index: usize) -> Result<&'a str, MetadataError> {
        let found = self.0[at];
        if let Some(Value::Text(text)) = found
            && let Ok(text) = str::from_utf8(text)
        {
            return Ok(text);
        }
        let of = format!("kernel {index}");
        Err(wrong(of, KEYS[at], found, "a name in UTF-8"))
    }

    fn number(&self, at: usize, name: &str) -> Result<u32, MetadataError> {
        let found = self.0[at];
        match found {
            Some(Value::Number(number)) if number <= u32::MAX.into() => Ok(number as u32),
            None if at >= OPTIONAL => Ok(0),
            _ => {
                let of = format!("kernel {name}");
                Err(wrong(of, KEYS[at], found, "a number from 0 to 4294967295"))
            }
        }
    }
}

//! LLVM's own drain for HIP, if the compiler has linked it into the program.
//!
//! Both drains would write every count, into files of different names, and a merge would double them. So each code
//! object is left to one of them.
#![expect(unsafe_code, reason = "makes a function of an address")]

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use object::elf::{FileHeader64, SHN_UNDEF, SHT_SYMTAB};
use object::{LittleEndian, pod};
use rocov::settings::Drainer;
use rocov::support::diagnostic::diagnostic;

use crate::guest::elf_objects::{self, Object};
use crate::guest::journal::{self, Note};
use crate::guest::{log, settings};

/// The entry point of clang_rt.profile_rocm, which tells it from the rest of LLVM's runtime. Copies of
/// librocov have it too.
const ENTRY: &CStr = c"__llvm_profile_hip_collect_device_data";
/// A symbol of every clang_rt.profile_rocm, but of no copy of librocov.
const LLVM_ONLY: &CStr = c"__llvm_profile_offload_unregister_dynamic_module";
/// A symbol of every copy of librocov.
const COPY: &CStr = c"rocov_roles_v1";

/// Functions that the released drain (clang 23) exports, to come before HIP's.
const INTERCEPTORS: [&CStr; 3] = [
    c"hipModuleLoadData",
    c"hipModuleUnload",
    c"hipGraphLaunch_spt",
];
/// A section header of an ELF file.
type SectionHeader = object::elf::SectionHeader64<LittleEndian>;
/// A symbol of an ELF file.
type Symbol = object::elf::Sym64<LittleEndian>;
/// The size of a section header in bytes.
const SECTION: usize = size_of::<SectionHeader>();
/// The most bytes that are read at once: a number of section headers, and a number of symbols.
const PIECE: usize = 320 * 3 * SECTION;

/// A function that only the HIP runtime exports.
const HIP_ONLY: &CStr = c"hipInit";

/// rocov's behaviour towards LLVM's drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// There is no other drain.
    Alone,
    /// LLVM's drain writes the profiles of code objects without copies of their counters, which it does not know of.
    /// rocov drains the others, and LLVM's drain finds nothing of them, because rocov has blanked their tables.
    StandDown,
    /// rocov drains. LLVM's drain finds nothing, because rocov has blanked its tables.
    TakeOver,
}

/// The search for LLVM's drain, which a library that is loaded later may bring.
#[derive(Debug)]
pub(crate) struct LlvmDrain {
    stance: Stance,
    searched: HashSet<PathBuf>,
    /// The number of objects that were ever loaded, at the last search.
    opened: u64,
}

impl LlvmDrain {
    /// Starts a search. `ROCOV_DRAIN=llvm` decides in LLVM's favour, whatever the search finds.
    pub(crate) fn new() -> Self {
        let stance = match settings::drainer() {
            Some(Drainer::Llvm) => {
                journal::note(Note::Neighbour);
                Stance::StandDown
            }
            Some(Drainer::Rocov) | None => Stance::Alone,
        };
        Self {
            stance,
            searched: HashSet::new(),
            opened: 0,
        }
    }

    /// Returns the present stance.
    pub(crate) fn stance(&self) -> Stance {
        self.stance
    }

    /// Searches the objects that were loaded since the last search, and returns the new stance.
    pub(crate) fn look(&mut self) -> Stance {
        if self.stance != Stance::Alone {
            return self.stance;
        }
        let opened = elf_objects::opened();
        if opened != 0 && opened == self.opened {
            return self.stance;
        }
        self.opened = opened;
        let takes_over = settings::drainer() == Some(Drainer::Rocov);
        let found = elf_objects::all().into_iter().find(|object| {
            self.searched.insert(object.path())
                && (holds_llvms_drain(object) || (takes_over && exports_interceptors(object)))
        });
        let Some(found) = found else {
            return self.stance;
        };
        let file = found.mapped_file();
        self.stance = if takes_over {
            log::verbose(format_args!(
                "taking over from LLVM's own drain for HIP in {}",
                file.display()
            ));
            Stance::TakeOver
        } else {
            journal::note(Note::Neighbour);
            log::warn(diagnostic!(
                "LLVM's own drain for HIP (clang_rt.profile_rocm) is in {} and writes the device profiles",
                file.display();
                "set ROCOV_DRAIN=rocov to have rocov write them"
            ));
            Stance::StandDown
        };
        self.stance
    }
}

/// Returns LLVM's entry point, unless rocov drains in its stead.
///
/// A library may export it, although LLVM's headers do not ask for that. When such a library calls its
/// own, it gets the first one in the process: ours.
pub(crate) fn exported_entry() -> Option<unsafe extern "C" fn() -> c_int> {
    if settings::drainer() == Some(Drainer::Rocov) {
        return None;
    }
    let entry = elf_objects::all().iter().find_map(|object| {
        let entry = object.defines(ENTRY)?;
        let is_llvms = object.defines(LLVM_ONLY).is_some() || object.defines(COPY).is_none();
        is_llvms.then_some(entry)
    })?;
    // SAFETY: LLVM declares the function with this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(entry) })
}

/// Returns whether LLVM's drain is in an object. Its functions are hidden: only the full symbol table of the file has
/// them, and a stripped file shows none. A stand-alone drain may export them.
fn holds_llvms_drain(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    if exports(ENTRY) && (exports(LLVM_ONLY) || !exports(COPY)) {
        return true;
    }
    // A program that was deleted or replaced can still be read as /proc/self/exe, unless it was started
    // by naming the dynamic linker.
    [object.readable_file(), object.path()]
        .into_iter()
        .filter_map(|file| defines_llvms_drain(object, &file))
        .next()
        .unwrap_or(false)
}

/// Returns whether an object seems to contain the released drain, by symbols that even a stripped object
/// exports. Another tool may export such functions, so rocov does not leave counts to it.
fn exports_interceptors(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    INTERCEPTORS.into_iter().all(exports) && !exports(HIP_ONLY)
}

/// Returns whether the full symbol table of the file of `object` at `path` has LLVM's drain. `None` if the file
/// cannot be read: it was deleted, or is the kernel's own.
fn defines_llvms_drain(object: &Object, path: &Path) -> Option<bool> {
    let file = File::open(path).ok()?;
    // Most libraries are stripped, and a HIP program has dozens of them.
    let Some(table) = FullTable::find(&file).ok()? else {
        return Some(false);
    };
    let entry = table.places(ENTRY).ok()?;
    if entry.is_empty() {
        return Some(false);
    }
    let llvm_only = table.places(LLVM_ONLY).ok()?;
    // A copy of librocov without LLVM's drain, such as this library.
    if llvm_only.is_empty() && object.defines(COPY).is_some() {
        return Some(false);
    }
    let copy = table.places(COPY).ok()?;
    let [entry, llvm_only, copy] = table.defined([&entry, &llvm_only, &copy]).ok()?;
    Some(entry && (llvm_only || !copy))
}

/// The full symbol table of an ELF file. That of a large program has many megabytes, so it is read in pieces into one
/// buffer, the names first: new memory for all of it would take longer than the search.
struct FullTable<'a> {
    file: &'a File,
    symbols: Range<u64>,
    names: Range<u64>,
}

impl<'a> FullTable<'a> {
    /// Finds the table by the headers of the file. `None` if there is none.
    fn find(file: &'a File) -> io::Result<Option<Self>> {
        let mut header = [0; size_of::<FileHeader64<LittleEndian>>()];
        file.read_exact_at(&mut header, 0)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (header, _) = pod::from_bytes::<FileHeader64<LittleEndian>>(&header)
            .map_err(|()| io::ErrorKind::InvalidData)?;
        let start = header.e_shoff.get(LittleEndian);
        if start == 0 {
            return Ok(None);
        }
        if usize::from(header.e_shentsize.get(LittleEndian)) != SECTION {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut count = u64::from(header.e_shnum.get(LittleEndian));
        if count == 0 {
            // The field has no room for the number, which is in the first section header.
            count = section(file, start)?.sh_size.get(LittleEndian);
        }
        let place = |number: u64| start.saturating_add(number.saturating_mul(SECTION as u64));
        let mut found = None;
        each_piece(file, start..place(count), 0, |_, piece| {
            let mut sections = entries::<SectionHeader>(piece).iter();
            let symbols = sections.find(|section| section.sh_type.get(LittleEndian) == SHT_SYMTAB);
            found = found
                .take()
                .or(symbols.map(|section| (contents(section), section.sh_link.get(LittleEndian))));
        })?;
        let Some((symbols, names)) = found else {
            return Ok(None);
        };
        let names = contents(&section(file, place(names.into()))?);
        Ok(Some(Self {
            file,
            symbols,
            names,
        }))
    }

    /// Returns the places of a name among the names of symbols, in ascending order. Some linkers store a name as the end
    /// of another.
    fn places(&self, name: &CStr) -> io::Result<Vec<u64>> {
        let name = name.to_bytes_with_nul();
        let mut places = Vec::new();
        each_piece(
            self.file,
            self.names.clone(),
            name.len() - 1,
            |at, piece| {
                places.extend(memmem::find_iter(piece, name).map(|place| at + place as u64));
            },
        )?;
        Ok(places)
    }

    /// Returns for each of three ascending lists of places whether the file defines a symbol with its name there. A mere
    /// reference has a name, too.
    fn defined(&self, names: [&[u64]; 3]) -> io::Result<[bool; 3]> {
        let mut found = [false; 3];
        each_piece(self.file, self.symbols.clone(), 0, |_, piece| {
            for symbol in entries::<Symbol>(piece) {
                let name = u64::from(symbol.st_name.get(LittleEndian));
                if symbol.st_shndx.get(LittleEndian) != SHN_UNDEF {
                    (found.iter_mut().zip(names))
                        .for_each(|(found, places)| *found |= places.binary_search(&name).is_ok());
                }
            }
        })?;
        Ok(found)
    }
}

/// Hands a part of a file to `take`, piece by piece, each with its place in the part. A piece begins with the last
/// `overlap` bytes of the one before.
fn each_piece(
    file: &File,
    part: Range<u64>,
    overlap: usize,
    mut take: impl FnMut(u64, &[u8]),
) -> io::Result<()> {
    let mut at = part.start;
    let left =
        |at| usize::try_from(part.end.saturating_sub(at)).map_or(PIECE, |left| left.min(PIECE));
    let mut room = vec![0; left(at)];
    while left(at) > overlap {
        let piece = &mut room[..left(at)];
        file.read_exact_at(piece, at)?;
        take(at - part.start, piece);
        at += (piece.len() - overlap) as u64;
    }
    Ok(())
}

/// Returns the complete entries of a table in a piece of it.
fn entries<T: pod::Pod>(piece: &[u8]) -> &[T] {
    let entries = pod::slice_from_bytes(piece, piece.len() / size_of::<T>());
    entries.map_or(&[], |(entries, _)| entries)
}

/// Reads the section header at a place in the file.
fn section(file: &File, place: u64) -> io::Result<SectionHeader> {
    let mut bytes = [0; SECTION];
    file.read_exact_at(&mut bytes, place)?;
    let section = pod::from_bytes(&bytes).map_err(|()| io::ErrorKind::InvalidData)?;
    Ok(*section.0)
}

/// Returns the place of the contents of a section in the file.
fn contents(section: &SectionHeader) -> Range<u64> {
    let start = section.sh_offset.get(LittleEndian);
    start..start.saturating_add(section.sh_size.get(LittleEndian))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use object::elf::{PF_W, ProgramHeader64};

    use super::*;

    /// Makes an object file from assembly, whose string table starts with many other names.
    fn object(assembly: &str) -> File {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join("names.s");
        let others = (0..4_000).map(|number| format!("a_symbol_of_some_length_{number}: nop\n"));
        let text: String = others.chain([assembly.to_owned()]).collect();
        std::fs::write(&source, text).expect("a file can be written");
        let object = directory.path().join("names.o");
        let made = Command::new("cc")
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        assert!(made.expect("a C compiler").success());
        File::open(object).expect("an object")
    }

    fn defined(file: &File, names: [&CStr; 3]) -> [bool; 3] {
        let table = FullTable::find(file).expect("an ELF").expect("a table");
        let places = names.map(|name| table.places(name).expect("names"));
        let places = places.each_ref().map(Vec::as_slice);
        table.defined(places).expect("symbols")
    }

    #[test]
    fn a_table_of_many_pieces_has_the_definitions_that_nm_lists() {
        let file = object("first: .quad second\n.globl third\nnot_third: nop\n");
        let names = [c"first", c"second", c"third"];
        assert_eq!(defined(&file, names), [true, false, false]);
        // All names, some of which lie across two pieces.
        for number in (0..4_000).step_by(7) {
            let name = std::ffi::CString::new(format!("a_symbol_of_some_length_{number}"));
            let name = name.expect("no NUL");
            assert_eq!(
                defined(&file, [&name, c"symbol_of", c"a"]),
                [true, false, false]
            );
        }
    }

    #[test]
    fn a_file_without_a_table_and_a_damaged_one_have_no_definitions() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = directory.path().join("library.so");
        let link = ["-shared", "-s", "-x", "c", "/dev/null", "-o"];
        let made = Command::new("cc").args(link).arg(&place).status();
        assert!(made.expect("a C compiler").success());
        let file = File::open(&place).expect("a library");
        assert!(FullTable::find(&file).expect("an ELF").is_none());
        let bytes = std::fs::read(&place).expect("bytes");
        for len in (0..bytes.len()).step_by(61) {
            std::fs::write(&place, &bytes[..len]).expect("a file can be written");
            let file = File::open(&place).expect("a file");
            assert!(FullTable::find(&file).is_err(), "{len}");
        }
        let changed = |change: fn(&mut FileHeader64<LittleEndian>)| {
            let mut bytes = bytes.clone();
            let (header, rest) = pod::from_bytes_mut(&mut bytes).expect("a header");
            change(header);
            // This program header looks like a symbol table if section headers are read at the start of the file.
            let (segment, _) = pod::from_bytes_mut::<ProgramHeader64<LittleEndian>>(rest)
                .expect("program headers");
            segment.p_flags.set(LittleEndian, PF_W);
            std::fs::write(&place, bytes).expect("a file can be written");
            let file = File::open(&place).expect("a file");
            FullTable::find(&file).map(|table| table.is_some())
        };
        let damages: [fn(&mut FileHeader64<LittleEndian>); 3] = [
            |header| header.e_shentsize.set(LittleEndian, 128),
            |header| header.e_shentsize.set(LittleEndian, 0),
            |header| header.e_shoff.set(LittleEndian, 1 << 40),
        ];
        for damage in damages {
            changed(damage).expect_err("no section headers");
        }
        let without = |header: &mut FileHeader64<_>| header.e_shoff.set(LittleEndian, 0);
        assert!(!changed(without).expect("an ELF"));
    }
}

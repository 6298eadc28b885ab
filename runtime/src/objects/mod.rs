//! The executable and the shared objects of the process, as the dynamic linker lists them.
//!
//! Asking for an address by name (`dlsym`, or a plain reference to an exported function of ours)
//! finds the first definition in a search order, whoever's it is: another copy's, or ROCr's own.
//! What one object defines itself has to be asked of that object.

pub(crate) mod fat_binary;
mod symbols;

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rocov::host::build_id_in;

use symbols::Symbols;

use crate::caller;

/// An object that was loaded when the list was made.
#[derive(Debug)]
pub(crate) struct Object {
    /// As the dynamic linker has it; `None` for the executable.
    name: Option<CString>,
    /// The addresses of its segments.
    segments: Vec<Range<usize>>,
    load_bias: usize,
    /// The address of its dynamic section.
    dynamic: Option<usize>,
}

/// All objects, in the order of loading: the executable first, later ones at the end.
pub(crate) fn all() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: the callback matches the interface and gets the address of `objects`.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut objects).cast()) };
    objects
}

/// How many objects were ever loaded, those that are gone included.
pub(crate) fn opened() -> u64 {
    unsafe extern "C" fn count(
        object: *mut libc::dl_phdr_info,
        size: usize,
        opened: *mut c_void,
    ) -> c_int {
        let has_count = std::mem::offset_of!(libc::dl_phdr_info, dlpi_adds) + size_of::<u64>();
        if size >= has_count {
            // SAFETY: a valid object, with this field, and the variable below.
            unsafe { *opened.cast::<u64>() = (*object).dlpi_adds };
        }
        1
    }
    let mut opened = 0_u64;
    // SAFETY: the callback matches the interface and gets the address of `opened`.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut opened).cast()) };
    opened
}

/// The object that `address` lies in.
pub(crate) fn containing(address: *const c_void) -> Option<Object> {
    all().into_iter().find(|object| object.contains(address))
}

/// Where the segment ends that `address` lies in.
pub(crate) fn segment_end(address: usize) -> Option<usize> {
    let mut place = (address, None);
    // SAFETY: the callback matches the interface and gets the address of `place`.
    unsafe { libc::dl_iterate_phdr(Some(find_segment), (&raw mut place).cast()) };
    place.1
}

/// Looks for the segment of an address in one object, without taking memory.
unsafe extern "C" fn find_segment(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    place: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object, `segment_end` its variable.
    let (object, (address, end)) =
        unsafe { (&*object, &mut *place.cast::<(usize, Option<usize>)>()) };
    // SAFETY: as `program_headers` wants it.
    for header in unsafe { program_headers(object) } {
        let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        let segment = start..start.saturating_add(header.p_memsz as usize);
        if header.p_type == libc::PT_LOAD && segment.contains(address) {
            *end = Some(segment.end);
            return 1;
        }
    }
    0
}

/// The program headers of an object.
///
/// # Safety
/// The dynamic linker has passed it to a callback, which has not returned.
unsafe fn program_headers(object: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if object.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the object has this many program headers there.
    unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) }
}

/// The file of the program, as it is mapped: if that was started by naming the dynamic linker,
/// `/proc/self/exe` is that.
pub(crate) fn executable_file() -> Option<PathBuf> {
    all().first().map(Object::mapped_file)
}

/// The GNU build id of the object that `address` lies in, as it is in memory.
pub(crate) fn build_id_at(address: usize) -> Option<String> {
    let mut sought = (address, None);
    // SAFETY: the callback matches the interface and gets the address of `sought`.
    unsafe { libc::dl_iterate_phdr(Some(find_build_id), (&raw mut sought).cast()) };
    sought.1
}

/// Looks for the build id of the object of an address. The object cannot go meanwhile, as the dynamic
/// linker holds its lock.
unsafe extern "C" fn find_build_id(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    sought: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object, `build_id_at` its variable.
    let (object, (address, id)) =
        unsafe { (&*object, &mut *sought.cast::<(usize, Option<String>)>()) };
    // SAFETY: as `program_headers` wants it.
    let headers = unsafe { program_headers(object) };
    let range = |header: &libc::Elf64_Phdr| {
        let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        start..start.saturating_add(header.p_memsz as usize)
    };
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let readable = || of_type(libc::PT_LOAD).filter(|it| it.p_flags & libc::PF_R != 0);
    if !of_type(libc::PT_LOAD).any(|header| range(header).contains(address)) {
        return 0;
    }
    *id = of_type(libc::PT_NOTE).find_map(|header| {
        let notes = range(header);
        let holds =
            |segment: Range<usize>| segment.start <= notes.start && notes.end <= segment.end;
        if !readable().map(range).any(holds) {
            return None;
        }
        // SAFETY: a segment that is mapped and can be read has them.
        let bytes = unsafe { std::slice::from_raw_parts(notes.start as *const u8, notes.len()) };
        build_id_in(bytes, header.p_align)
    });
    1
}

/// Whether two addresses lie in one object.
pub(crate) fn are_together(one: *const c_void, other: *const c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: an all-zero Dl_info is valid, and dladdr fills it for any address of an object.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let found = unsafe { libc::dladdr(address, &raw mut info) } != 0;
        found.then_some(info.dli_fbase)
    };
    base(one).is_some_and(|it| base(other) == Some(it))
}

/// Nothing else is done here: the dynamic linker holds a lock that opening an object would take
/// in another order.
unsafe extern "C" fn collect(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object.
    let object = unsafe { &*object };
    // SAFETY: this is such a callback.
    let headers = unsafe { program_headers(object) };
    let load_bias = object.dlpi_addr as usize;
    // The difference of two addresses, modulo 2^64: an object may be linked above where it is.
    let start = |header: &libc::Elf64_Phdr| load_bias.wrapping_add(header.p_vaddr as usize);
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let name = (!object.dlpi_name.is_null())
        // SAFETY: a name that is not null is NUL terminated.
        .then(|| unsafe { CStr::from_ptr(object.dlpi_name) }.to_owned())
        // The executable's is empty.
        .filter(|name| !name.is_empty());
    // SAFETY: `objects` is the variable of `all`.
    let objects = unsafe { &mut *objects.cast::<Vec<Object>>() };
    objects.push(Object {
        name,
        segments: of_type(libc::PT_LOAD)
            .map(|header| {
                let start = start(header);
                start..start.saturating_add(header.p_memsz as usize)
            })
            .collect(),
        load_bias,
        dynamic: of_type(libc::PT_DYNAMIC).map(start).next(),
    });
    0
}

impl Object {
    /// Whether `address` lies in this object.
    pub(crate) fn contains(&self, address: *const c_void) -> bool {
        let address = address as usize;
        self.segments
            .iter()
            .any(|segment| segment.contains(&address))
    }

    /// Whether this is the executable.
    pub(crate) fn is_executable(&self) -> bool {
        self.name.is_none()
    }

    /// The file that it was loaded from.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => Path::new(OsStr::from_bytes(name.to_bytes())).to_owned(),
            None => PathBuf::from("/proc/self/exe"),
        }
    }

    /// The file that it was loaded from, as it is mapped: where a program is started by naming the
    /// dynamic linker, `/proc/self/exe` is that.
    pub(crate) fn mapped_file(&self) -> PathBuf {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let start = self.segments.first().map(|segment| segment.start);
        let file = start.and_then(|start| caller::file_at(start, &maps));
        file.unwrap_or_else(|| self.path())
    }

    /// The bytes of a section that lies in its memory, by its place in the file.
    pub(crate) fn memory(&self, address: u64, size: u64) -> Option<&'static [u8]> {
        let start = self.load_bias.wrapping_add(usize::try_from(address).ok()?);
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        let holds = |segment: &Range<usize>| segment.start <= start && end <= segment.end;
        // SAFETY: the segment is mapped. Objects stay while the process ends.
        let bytes = || unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
        self.segments.iter().any(holds).then(bytes)
    }

    /// The address of what this object itself exports as `name`.
    pub(crate) fn defines(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the dynamic linker's own account of an object; those that are unloaded while the
        // program has its calls in them are unloaded under the program too.
        let symbols = unsafe { Symbols::of(self) }?;
        let address = symbols.find(name)? as *mut c_void;
        self.contains(address).then_some(address)
    }

    /// Keeps the object in the process to its end, which has not come yet (see [`symbols`]).
    pub(crate) fn keep(&self) {
        // The executable stays anyway.
        let Some(name) = &self.name else { return };
        let flags = libc::RTLD_NODELETE | libc::RTLD_NOLOAD | libc::RTLD_LAZY;
        // SAFETY: NOLOAD runs no initialiser now; the name is NUL terminated.
        unsafe { libc::dlopen(name.as_ptr(), flags) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// glibc maps an object where there is room, wherever it is linked to be: the difference is
    /// negative then, or more than half of all addresses.
    #[test]
    fn an_object_may_be_linked_above_where_it_is() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for link_address in ["0xffffffffff700000", "0x7ffffffff0000000", "0"] {
            let source = directory.path().join("high.c");
            let library = directory.path().join(format!("libhigh{link_address}.so"));
            fs::write(&source, "int high(void) { return 42; }\n").expect("a file can be written");
            let linked = Command::new("cc")
                .args(["-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu"])
                .arg(format!("-Wl,-Ttext-segment={link_address}"))
                .arg(&source)
                .arg("-o")
                .arg(&library)
                .status();
            assert!(linked.expect("a C compiler").success());
            // SAFETY: the library has no initialisers.
            let opened = unsafe { libloading::Library::new(&library) }.expect("a library");
            // SAFETY: only its address is looked at.
            let high = unsafe { opened.get::<*mut c_void>(c"high") }.expect("its function");
            // SAFETY: as above.
            let address = unsafe { high.try_as_raw_ptr() }.expect("an address");
            let object = containing(address).expect("a loaded object");
            assert_eq!(object.path(), library);
            assert_eq!(object.mapped_file(), library);
            assert_eq!(object.defines(c"high"), Some(address), "{link_address}");
            assert_eq!(object.defines(c"low"), None);
            // Another test may be looking at all objects.
            std::mem::forget(opened);
        }
    }
}

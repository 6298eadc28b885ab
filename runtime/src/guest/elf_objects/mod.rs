//! The executable and the shared objects of the process, as the dynamic linker lists them.
//!
//! `dlsym`, or a plain reference to an exported function of ours, finds the first definition in a
//! search order: it may be another copy's, or ROCr's own. This module asks one object for its own
//! definition.
#![expect(
    unsafe_code,
    reason = "walks the dynamic linker's list and the memory of objects"
)]

pub(crate) mod device_code;
pub(crate) mod maps;
mod symbols;

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use memchr::memmem;
use rocov::discover::host_files::build_id_in;

use maps::Maps;
use symbols::Symbols;

/// An object that was loaded when the list was made.
#[derive(Debug)]
pub(crate) struct Object {
    /// Its name in the dynamic linker's list; `None` for the executable.
    name: Option<CString>,
    /// The addresses of its segments.
    segments: Vec<Range<usize>>,
    /// The offset of each segment in the file.
    offsets: Vec<u64>,
    load_bias: usize,
    /// The address of its dynamic section.
    dynamic: Option<usize>,
}

/// Returns all objects in the order of loading: the executable first, later ones at the end.
pub(crate) fn all() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: the callback matches the interface and gets the address of `objects`.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut objects).cast()) };
    objects
}

/// Returns the executable, the first of [`all`] objects.
fn executable() -> Option<Object> {
    unsafe extern "C" fn collect_first(
        object: *mut libc::dl_phdr_info,
        size: usize,
        objects: *mut c_void,
    ) -> c_int {
        // SAFETY: the arguments of this callback, passed on.
        unsafe { collect(object, size, objects) };
        1
    }
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: the callback matches the interface and gets the address of `objects`.
    unsafe { libc::dl_iterate_phdr(Some(collect_first), (&raw mut objects).cast()) };
    objects.pop()
}

/// Returns the number of objects that were ever loaded, those included that are gone.
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

/// Returns the object that contains `address`.
pub(crate) fn containing(address: *const c_void) -> Option<Object> {
    all().into_iter().find(|object| object.contains(address))
}

/// Returns the file of the object that contains `address`, and the offset of what is there in the file.
pub(crate) fn part_at(address: usize) -> Option<(PathBuf, u64)> {
    let object = containing(address as *const c_void)?;
    let mut segments = object.segments.iter().zip(&object.offsets);
    let (segment, offset) = segments.find(|(segment, _)| segment.contains(&address))?;
    let file = files().at(address, |_| false)?.to_owned();
    Some((file, offset + (address - segment.start) as u64))
}

/// The files of objects that were asked for, as long as the dynamic linker loads no other object.
#[derive(Debug)]
pub(crate) struct Files {
    /// The number of objects that were ever loaded, when `known` was empty.
    opened: u64,
    known: Vec<KnownObject>,
}

/// An object that was asked for.
#[derive(Debug)]
struct KnownObject {
    object: Object,
    /// Its name, which may be that of a link, if it goes down only.
    name: Option<PathBuf>,
    /// The file that is mapped, if a caller has needed it.
    file: Option<PathBuf>,
}

/// Returns the files of objects. Each load of a code object asks for the callers, and the kernel takes long to list all
/// mappings, of which each load adds some: so this reads them once for each object.
pub(crate) fn files() -> MutexGuard<'static, Files> {
    static FILES: Mutex<Files> = Mutex::new(Files {
        opened: 0,
        known: Vec::new(),
    });
    let opened = opened();
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.opened != opened {
        *files = Files {
            opened,
            known: Vec::new(),
        };
    }
    files
}

impl Files {
    /// Returns the file of the object that contains `address`, as it is mapped, or the name of the object if that
    /// `suffices`: the kernel takes long to list mappings.
    pub(crate) fn at(&mut self, address: usize, suffices: fn(&Path) -> bool) -> Option<&Path> {
        let address = address as *const c_void;
        let known = (self.known.iter()).position(|known| known.object.contains(address));
        let place = match known {
            Some(place) => place,
            None => {
                let object = containing(address)?;
                self.known.push(KnownObject {
                    name: Some(object.path()).filter(|name| is_plain(name)),
                    file: None,
                    object,
                });
                self.known.len() - 1
            }
        };
        let KnownObject { object, name, file } = &mut self.known[place];
        if let Some(name) = name.as_deref().filter(|name| suffices(name)) {
            return Some(name);
        }
        Some(file.get_or_insert_with(|| object.mapped_file()))
    }
}

/// An object that holds an address of interest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    /// Its name in the dynamic linker's list; `None` for the executable.
    pub(crate) name: Option<CString>,
    /// Its GNU build id, from memory.
    pub(crate) build: Option<String>,
}

/// The search for the objects of many addresses.
struct Search<'a> {
    /// In ascending order.
    addresses: &'a [usize],
    found: Vec<Option<Arc<Holder>>>,
}

/// Returns the object that holds each of `addresses`, which are in ascending order; `None` for an address in
/// no object. Looks at each object once.
pub(crate) fn holders(addresses: &[usize]) -> Vec<Option<Arc<Holder>>> {
    let mut search = Search {
        addresses,
        found: vec![None; addresses.len()],
    };
    // SAFETY: the callback matches the interface and gets the address of `search`.
    unsafe { libc::dl_iterate_phdr(Some(find_holders), (&raw mut search).cast()) };
    search.found
}

/// Looks for the addresses of a search in one object. The object cannot go meanwhile: the dynamic linker holds
/// its lock.
unsafe extern "C" fn find_holders(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object, `holders` its variable.
    let (object, search) = unsafe { (&*object, &mut *search.cast::<Search<'_>>()) };
    // SAFETY: the dynamic linker has passed the object to this callback.
    let headers = unsafe { program_headers(object) };
    let mut holder = None;
    for header in headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD)
    {
        let segment = range_of(object, header);
        let place = |address| search.addresses.partition_point(|known| *known < address);
        let (first, last) = (place(segment.start), place(segment.end));
        for found in &mut search.found[first..last] {
            let holder = holder.get_or_insert_with(|| {
                // SAFETY: the dynamic linker has passed the object to this callback.
                let (name, build) = unsafe { (name_of(object), build_id_of(object)) };
                Arc::new(Holder { name, build })
            });
            *found = Some(holder.clone());
        }
    }
    0
}

/// Returns the name of an object; `None` for the executable, whose name is empty.
///
/// # Safety
/// The dynamic linker has passed the object to a callback, which has not returned.
unsafe fn name_of(object: &libc::dl_phdr_info) -> Option<CString> {
    if object.dlpi_name.is_null() {
        return None;
    }
    // SAFETY: a name that is not null is NUL terminated.
    let name = unsafe { CStr::from_ptr(object.dlpi_name) }.to_owned();
    Some(name).filter(|name| !name.is_empty())
}

/// Returns the GNU build id of an object, from its memory.
///
/// # Safety
/// The dynamic linker has passed the object to a callback, which has not returned.
unsafe fn build_id_of(object: &libc::dl_phdr_info) -> Option<String> {
    // SAFETY: the dynamic linker has passed the object to this callback.
    let headers = unsafe { program_headers(object) };
    let range = |header: &libc::Elf64_Phdr| range_of(object, header);
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let readable = || of_type(libc::PT_LOAD).filter(|header| header.p_flags & libc::PF_R != 0);
    of_type(libc::PT_NOTE).find_map(|header| {
        let notes = range(header);
        let holds =
            |segment: Range<usize>| segment.start <= notes.start && notes.end <= segment.end;
        if !readable().map(range).any(holds) {
            return None;
        }
        // SAFETY: a mapped and readable segment contains them.
        let bytes = unsafe { std::slice::from_raw_parts(notes.start as *const u8, notes.len()) };
        build_id_in(bytes, header.p_align)
    })
}

/// Returns the program headers of an object.
///
/// # Safety
/// The dynamic linker has passed the object to a callback, which has not returned.
unsafe fn program_headers(object: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if object.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the object has this number of program headers there.
    unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) }
}

/// Returns the addresses of a program header. Adds modulo 2^64: an object may be linked for an address
/// above its own.
fn range_of(object: &libc::dl_phdr_info, header: &libc::Elf64_Phdr) -> Range<usize> {
    let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
    start..start.saturating_add(header.p_memsz as usize)
}

/// Returns the file of the program as it is mapped, under its first name. `/proc/self/exe` is the dynamic
/// linker if the program was started by naming that.
pub(crate) fn executable_file() -> Option<PathBuf> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    // Every load of a code object asks for it, and the kernel takes long for all mappings.
    let file = FILE.get_or_init(|| executable().map(|executable| executable.find_file()));
    file.clone()
}

/// Returns the GNU build id of the program, from its memory.
pub(crate) fn executable_build() -> Option<String> {
    build_id_at(executable()?.start()?)
}

/// Returns the GNU build id of the object that contains `address`, from its memory.
pub(crate) fn build_id_at(address: usize) -> Option<String> {
    let holder = holders(&[address]).pop().flatten()?;
    holder.build.clone()
}

/// Returns whether two addresses lie in one object.
pub(crate) fn are_together(one: *const c_void, other: *const c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: an all-zero Dl_info is valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr accepts any address, and fills `info`.
        let found = unsafe { libc::dladdr(address, &raw mut info) } != 0;
        found.then_some(info.dli_fbase)
    };
    base(one).is_some_and(|one| base(other) == Some(one))
}

/// Collects one object and does nothing else: the dynamic linker holds a lock that opening an object
/// would take in another order.
unsafe extern "C" fn collect(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object.
    let object = unsafe { &*object };
    // SAFETY: the dynamic linker has passed the object to this callback.
    let headers = unsafe { program_headers(object) };
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let range = |header: &libc::Elf64_Phdr| range_of(object, header);
    // SAFETY: the dynamic linker has passed the object to this callback.
    let name = unsafe { name_of(object) };
    // SAFETY: `objects` is the variable of `all`.
    let objects = unsafe { &mut *objects.cast::<Vec<Object>>() };
    objects.push(Object {
        name,
        segments: of_type(libc::PT_LOAD).map(range).collect(),
        offsets: of_type(libc::PT_LOAD)
            .map(|header| header.p_offset)
            .collect(),
        load_bias: object.dlpi_addr as usize,
        dynamic: of_type(libc::PT_DYNAMIC)
            .map(|header| range(header).start)
            .next(),
    });
    0
}

/// Returns whether a path is absolute and goes down only, as most names of libraries do.
pub(crate) fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    path.is_absolute() && memmem::find(bytes, b"/../").is_none()
}

/// Returns whether a name of an object has no directory, as only that of the kernel's own object, which has no file.
fn is_kernels(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&b'/')
}

impl Object {
    /// Returns whether this object contains `address`.
    pub(crate) fn contains(&self, address: *const c_void) -> bool {
        let address = address as usize;
        self.segments
            .iter()
            .any(|segment| segment.contains(&address))
    }

    /// Returns whether this is the executable.
    pub(crate) fn is_executable(&self) -> bool {
        self.name.is_none()
    }

    /// Returns the file from which it was loaded.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => Path::new(OsStr::from_bytes(name.to_bytes())).to_owned(),
            None => PathBuf::from("/proc/self/exe"),
        }
    }

    /// Returns the file from which it was loaded, as it is mapped: not a link to it. `/proc/self/exe` is the dynamic
    /// linker if the program was started by naming that.
    pub(crate) fn mapped_file(&self) -> PathBuf {
        let program = self.is_executable().then(executable_file).flatten();
        program.unwrap_or_else(|| self.find_file())
    }

    fn find_file(&self) -> PathBuf {
        let file = self.start().and_then(Maps::find_file_at);
        file.unwrap_or_else(|| self.path())
    }

    /// Returns a path to read its file from: that of a link, if the dynamic linker has opened one. Most libraries have a
    /// plain name, for which the kernel need not list all mappings, which takes long.
    pub(crate) fn readable_file(&self) -> PathBuf {
        let path = self.path();
        if !self.is_executable() && (is_plain(&path) || is_kernels(&path)) {
            return path;
        }
        self.mapped_file()
    }

    /// Returns its first address; `None` for an object without segments.
    pub(crate) fn start(&self) -> Option<usize> {
        self.segments.first().map(|segment| segment.start)
    }

    /// Returns the address of this object's own exported definition of `name`.
    pub(crate) fn defines(&self, name: &CStr) -> Option<*mut c_void> {
        let address = self.symbols()?.find(name)? as *mut c_void;
        self.contains(address).then_some(address)
    }

    /// Returns whether this object calls a function `name` of another object; `None` if its tables do not
    /// tell. Reads memory only.
    pub(crate) fn calls(&self, name: &CStr) -> Option<bool> {
        self.symbols()?.imports(name)
    }

    fn symbols(&self) -> Option<Symbols> {
        // SAFETY: these are the dynamic linker's own data of an object. Nobody may unload an object
        // while the program calls librocov from it: the program would lose it too.
        unsafe { Symbols::new(self.dynamic?, self.load_bias, &self.segments) }
    }

    /// Keeps the object in the process to its end. Not for use while the process exits (see
    /// [`symbols`]).
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
    use std::fs;
    use std::process::Command;

    use super::*;

    /// glibc maps an object at a free address, whatever address it is linked for. The difference may be
    /// negative, or more than half of all addresses.
    #[test]
    fn an_object_may_be_linked_for_an_address_above_its_own() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for link_address in ["0xffffffffff700000", "0x7ffffffff0000000", "0"] {
            let source = directory.path().join("high.c");
            let library = directory.path().join(format!("libhigh{link_address}.so"));
            let code = "void other(void);\nint high(void) { other(); return 42; }\n";
            fs::write(&source, code).expect("a file can be written");
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
            // SAFETY: the test only reads its address.
            let high = unsafe { opened.get::<*mut c_void>(c"high") }.expect("its function");
            // SAFETY: the test only reads its address.
            let address = unsafe { high.try_as_raw_ptr() }.expect("an address");
            let object = containing(address).expect("a loaded object");
            assert_eq!(object.path(), library);
            assert_eq!(object.mapped_file(), library);
            assert_eq!(object.readable_file(), library);
            assert_eq!(object.defines(c"high"), Some(address), "{link_address}");
            assert_eq!(object.defines(c"low"), None);
            let names = [c"other", c"high", c"low"];
            let calls = names.map(|name| object.calls(name));
            assert_eq!(calls, [true, false, false].map(Some));
            // Another test may be reading the list of objects.
            std::mem::forget(opened);
        }
    }

    /// A caller that needs the file gets it, although another was content with the name, and the other way round.
    #[test]
    fn the_file_of_a_link_does_not_depend_on_earlier_questions() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directory = directory.path().canonicalize().expect("a directory");
        let [library, link] = ["libmapped.so", "liblink.so"].map(|name| directory.join(name));
        let linked = Command::new("cc")
            .args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"])
            .arg(&library)
            .status();
        assert!(linked.expect("a C compiler").success());
        std::os::unix::fs::symlink(&library, &link).expect("a link can be made");
        // SAFETY: the library has no initialisers.
        let opened = unsafe { libloading::Library::new(&link) }.expect("a library");
        let object = all().into_iter().find(|object| object.path() == link);
        let address = object.and_then(|object| object.start()).expect("an object");
        {
            let mut files = files();
            let mut file = |suffices| files.at(address, suffices).map(Path::to_owned);
            for _ in 0..2 {
                assert_eq!(file(|_| true).as_ref(), Some(&link));
                assert_eq!(file(|_| false).as_ref(), Some(&library));
            }
        }
        assert_eq!(part_at(address), Some((library, 0)));
        // Another test may be reading the list of objects.
        std::mem::forget(opened);
    }
}

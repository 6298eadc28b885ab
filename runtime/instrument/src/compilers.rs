//! The libraries that compile CUDA code at run time, NVRTC and nvJitLink: rocov keeps the PTX of the cubins that they make.
//!
//! A program that loads such a cubin has no PTX of it. But these libraries have: NVRTC keeps the PTX of each program, and
//! nvJitLink prints that of code which it has optimized. So `exchange` finds the PTX of a cubin in the cache when the
//! program, or a later one, loads the cubin. The cubin itself is the compiler's own.
//!
//! Python's frameworks open the libraries and ask `dlsym` for their functions. `rocov run --instrument` preloads this library
//! for that: its `dlsym` is the one of the C library, but for eight functions of the two libraries.
#![expect(
    unsafe_code,
    reason = "stands in for dlsym, and calls functions of NVRTC and nvJitLink"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rocov::device::cuda::exchange::joined;
use rocov::format::codeobject::cuda::{ELF_HEADER, file_size};

use crate::cache::Cache;

/// The most copies of each library in a process: PyTorch brings its own, and the toolkit another.
const SLOTS: usize = 4;
/// `nvJitLinkInputType`.
const CUBIN: c_int = 1;
const PTX: c_int = 2;
const LTO_IR: c_int = 3;
/// NVIDIA's library for kernels that launch kernels, which has no code of a program.
const DEVICE_RUNTIME: &str = "cudadevrt";
/// `NVRTC_ERROR_INTERNAL_ERROR`, and an error of nvJitLink.
const FAILED: c_int = 11;
/// The most bytes of PTX, and of an input of a link.
const MAX: usize = 1 << 30;

type FindFn = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type CompileFn = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
type SizeFn = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type ReadFn = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
type CreateFn = unsafe extern "C" fn(*mut *mut c_void, u32, *const *const c_char) -> c_int;
type AddFn = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, *const c_char) -> c_int;
type AddFileFn = unsafe extern "C" fn(*mut c_void, c_int, *const c_char) -> c_int;
type CompleteFn = unsafe extern "C" fn(*mut c_void) -> c_int;
type DestroyFn = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

/// The functions of a copy of NVRTC.
struct Nvrtc {
    compile: CompileFn,
    destroy: DestroyFn,
    cubin_size: SizeFn,
    cubin: ReadFn,
    ptx_size: SizeFn,
    ptx: ReadFn,
}

/// The functions of a copy of nvJitLink.
struct NvJitLink {
    create: CreateFn,
    add: AddFn,
    add_file: AddFileFn,
    complete: CompleteFn,
    destroy: DestroyFn,
    cubin_size: SizeFn,
    cubin: ReadFn,
    ptx_size: SizeFn,
    ptx: ReadFn,
}

/// The copies of a library, each with the address at which it is loaded.
type Copies<T> = [OnceLock<(usize, Option<T>)>; SLOTS];

static NVRTC: Copies<Nvrtc> = [const { OnceLock::new() }; SLOTS];
static NVJITLINK: Copies<NvJitLink> = [const { OnceLock::new() }; SLOTS];

/// The `dlsym` of the program: continues in that of the C library, which takes the place of the call from its return address.
/// That is why this function leaves no trace on the stack.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "mov rdi, rsi",
        "call {next}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        next = sym next,
    )
}

/// The function that answers a call of `dlsym`.
///
/// # Safety
/// `name` is a text with a zero at its end, as for `dlsym`.
#[cfg_attr(
    test,
    expect(dead_code, reason = "the test's dlsym is that of the C library")
)]
unsafe extern "C" fn next(name: *const c_char) -> FindFn {
    if !name.is_null() {
        // SAFETY: as the caller promises.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        if hooked(name).is_some() {
            return find_hooked;
        }
    }
    find()
}

/// The `dlsym` behind this library.
fn find() -> FindFn {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut found = FOUND.load(Ordering::Relaxed);
    if found.is_null() {
        // Each glibc for x86-64 has this version of it.
        // SAFETY: both texts end with a zero.
        found =
            unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), c"GLIBC_2.2.5".as_ptr()) };
        FOUND.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        return find_nothing;
    }
    // SAFETY: it is dlsym, of this type.
    unsafe { transmute_copy::<*mut c_void, FindFn>(&found) }
}

unsafe extern "C" fn find_nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
    std::ptr::null_mut()
}

/// Finds one of the functions that have a stand-in here, and answers with that.
unsafe extern "C" fn find_hooked(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's arguments, passed on.
    let found = unsafe { find()(handle, name) };
    if found.is_null() {
        return found;
    }
    // SAFETY: `next` has read the name.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let stand_in = catch_unwind(|| stand_in(hooked(name)?, found));
    stand_in.ok().flatten().unwrap_or(found)
}

/// A function that has a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hooked {
    Compile,
    DestroyProgram,
    Cubin,
    Create,
    Add,
    AddFile,
    Destroy,
    LinkedCubin,
}

/// The function with this name. Headers of nvJitLink call its functions by names with a version: `__nvJitLinkCreate_13_0`.
fn hooked(name: &[u8]) -> Option<Hooked> {
    if !name.starts_with(b"nv") && !name.starts_with(b"__nv") {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    let plain = match name.strip_prefix("__") {
        Some(versioned) => {
            versioned.trim_end_matches(|end: char| end.is_ascii_digit() || end == '_')
        }
        None => name,
    };
    Some(match plain {
        "nvrtcCompileProgram" => Hooked::Compile,
        "nvrtcDestroyProgram" => Hooked::DestroyProgram,
        "nvrtcGetCUBIN" => Hooked::Cubin,
        "nvJitLinkCreate" => Hooked::Create,
        "nvJitLinkAddData" => Hooked::Add,
        "nvJitLinkAddFile" => Hooked::AddFile,
        "nvJitLinkDestroy" => Hooked::Destroy,
        "nvJitLinkGetLinkedCubin" => Hooked::LinkedCubin,
        _ => return None,
    })
}

/// The stand-ins of all copies of a library for one of its functions.
macro_rules! stand_ins {
    ($function:ident: $type:ty) => {{
        const ALL: [$type; SLOTS] = [
            $function::<0>,
            $function::<1>,
            $function::<2>,
            $function::<3>,
        ];
        |slot: usize| ALL[slot] as *mut c_void
    }};
}

/// The stand-in for a function that was found. `None` if its library lacks another one, or if there are too many copies.
fn stand_in(function: Hooked, found: *mut c_void) -> Option<*mut c_void> {
    let library = Library::from_address(found)?;
    let nvrtc = || slot(&NVRTC, &library, Nvrtc::find);
    let nvjitlink = || slot(&NVJITLINK, &library, NvJitLink::find);
    Some(match function {
        Hooked::Compile => stand_ins!(compile: CompileFn)(nvrtc()?),
        Hooked::DestroyProgram => stand_ins!(destroy_program: DestroyFn)(nvrtc()?),
        Hooked::Cubin => stand_ins!(cubin: ReadFn)(nvrtc()?),
        Hooked::Create => stand_ins!(create: CreateFn)(nvjitlink()?),
        Hooked::Add => stand_ins!(add: AddFn)(nvjitlink()?),
        Hooked::AddFile => stand_ins!(add_file: AddFileFn)(nvjitlink()?),
        Hooked::Destroy => stand_ins!(destroy: DestroyFn)(nvjitlink()?),
        Hooked::LinkedCubin => stand_ins!(linked_cubin: ReadFn)(nvjitlink()?),
    })
}

/// The place of a copy of a library.
fn slot<T>(
    copies: &Copies<T>,
    library: &Library,
    functions: impl Fn(&Library) -> Option<T>,
) -> Option<usize> {
    copies.iter().position(|copy| {
        let (start, found) = copy.get_or_init(|| (library.start, functions(library)));
        *start == library.start && found.is_some()
    })
}

fn copy<T>(copies: &Copies<T>, slot: usize) -> Option<&T> {
    copies.get(slot)?.get()?.1.as_ref()
}

/// A library that is loaded.
struct Library {
    start: usize,
    handle: *mut c_void,
}

impl Library {
    /// The library that has an address. It stays loaded.
    fn from_address(address: *const c_void) -> Option<Self> {
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: the call writes the structure.
        let is_found = unsafe { libc::dladdr(address, &raw mut info) } != 0;
        if !is_found || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the name of a loaded library is a text, and NOLOAD only takes a reference.
        let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Self {
            start: info.dli_fbase.addr(),
            handle,
        })
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `T` is the type of a pointer to the function of this name.
    unsafe fn function<T: Copy>(&self, name: &CStr) -> Option<T> {
        // SAFETY: the handle is that of a library that stays.
        let found = unsafe { find()(self.handle, name.as_ptr()) };
        // SAFETY: as the caller promises.
        (!found.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, T>(&found) })
    }
}

impl Nvrtc {
    fn find(library: &Library) -> Option<Self> {
        // SAFETY: the types are those that nvrtc.h declares for the names.
        unsafe {
            Some(Self {
                compile: library.function(c"nvrtcCompileProgram")?,
                destroy: library.function(c"nvrtcDestroyProgram")?,
                cubin_size: library.function(c"nvrtcGetCUBINSize")?,
                cubin: library.function(c"nvrtcGetCUBIN")?,
                ptx_size: library.function(c"nvrtcGetPTXSize")?,
                ptx: library.function(c"nvrtcGetPTX")?,
            })
        }
    }
}

impl NvJitLink {
    fn find(library: &Library) -> Option<Self> {
        // SAFETY: the types are those that nvJitLink.h declares for the names.
        unsafe {
            Some(Self {
                create: library.function(c"nvJitLinkCreate")?,
                add: library.function(c"nvJitLinkAddData")?,
                add_file: library.function(c"nvJitLinkAddFile")?,
                complete: library.function(c"nvJitLinkComplete")?,
                destroy: library.function(c"nvJitLinkDestroy")?,
                cubin_size: library.function(c"nvJitLinkGetLinkedCubinSize")?,
                cubin: library.function(c"nvJitLinkGetLinkedCubin")?,
                ptx_size: library.function(c"nvJitLinkGetLinkedPtxSize")?,
                ptx: library.function(c"nvJitLinkGetLinkedPtx")?,
            })
        }
    }
}

/// The result that a function writes, whose size another function returns. `None` if there is no such result.
///
/// # Safety
/// `owner` is a program or a link of the library of these functions.
unsafe fn result(owner: *mut c_void, size: SizeFn, read: ReadFn) -> Option<Vec<u8>> {
    let mut length = 0;
    // SAFETY: the call writes a number.
    let status = unsafe { size(owner, &raw mut length) };
    // A result that is not there has one byte, the zero at the end.
    if status != 0 || !(2..=MAX).contains(&length) {
        return None;
    }
    let mut bytes = vec![0_u8; length];
    // SAFETY: there is room for as many bytes as the library has reported.
    let status = unsafe { read(owner, bytes.as_mut_ptr().cast()) };
    (status == 0).then_some(bytes)
}

/// Keeps the PTX of a cubin, if the cache can be written. Otherwise the cubin is named when it is loaded.
fn keep(cubin: &[u8], ptx: &str) {
    let size = cubin.first_chunk::<ELF_HEADER>().map_or(0, file_size);
    let text = ptx.trim_end_matches('\0');
    if let Some(cache) = Cache::for_user()
        && text.contains(".entry")
    {
        cache.keep_source(&cubin[..size.min(cubin.len())], text);
    }
}

/// The bytes of a cubin that the library has written.
///
/// # Safety
/// `size` is the number of bytes that the library has written to `start`.
unsafe fn written<'a>(owner: *mut c_void, size: SizeFn, start: *const c_char) -> Option<&'a [u8]> {
    let mut length = 0;
    // SAFETY: the call writes a number.
    let status = unsafe { size(owner, &raw mut length) };
    if status != 0 || start.is_null() || length > MAX {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
}

/// The texts of an array.
///
/// # Safety
/// The array has `count` texts with a zero at the end.
unsafe fn texts(count: usize, start: *const *const c_char) -> Vec<CString> {
    if start.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    let all = unsafe { std::slice::from_raw_parts(start, count) };
    let all = all.iter().filter(|text| !text.is_null());
    // SAFETY: as the caller promises.
    all.map(|text| unsafe { CStr::from_ptr(*text) }.to_owned())
        .collect()
}

/// The limit of registers among options of a compiler, in the words of nvcc.
fn register_limit(options: &[CString]) -> Option<String> {
    let mut options = options.iter().map(|option| option.to_string_lossy());
    let found = options.find(|option| option.contains("maxrregcount"))?;
    let number = match found.split_once('=') {
        Some((_, number)) => number.to_owned(),
        None => options.next()?.into_owned(),
    };
    Some(format!("-maxrregcount={}", number.trim()))
}

/// The limits of registers of programs of NVRTC.
fn limits() -> MutexGuard<'static, BTreeMap<usize, String>> {
    static LIMITS: Mutex<BTreeMap<usize, String>> = Mutex::new(BTreeMap::new());
    LIMITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// PTX with the options for its compilation, as [`options_in`] finds them.
fn with_options(text: &str, options: Option<&str>) -> String {
    match options {
        Some(options) => format!("{}\n{OPTIONS}{options}\n", text.trim_end_matches('\0')),
        None => text.to_owned(),
    }
}

/// The start of a line after PTX with options for its compilation.
const OPTIONS: &str = "// rocov: ";

/// The options that are kept with PTX.
pub(crate) fn options_in(text: &str) -> &str {
    let last = text.trim_end().lines().next_back();
    last.and_then(|line| line.strip_prefix(OPTIONS))
        .unwrap_or_default()
}

/// Options that have NVRTC write line numbers, in addition to a program's own. `None` if these do.
fn with_lines(options: &[CString]) -> Option<Vec<&CStr>> {
    const LINES: [&CStr; 4] = [
        c"-lineinfo",
        c"--generate-line-info",
        c"-G",
        c"--device-debug",
    ];
    let mut all: Vec<&CStr> = options.iter().map(CString::as_c_str).collect();
    if all.iter().any(|option| LINES.contains(option)) {
        return None;
    }
    all.push(LINES[0]);
    Some(all)
}

/// Compiles with line numbers.
///
/// # Safety
/// As for NVRTC's function.
unsafe extern "C" fn compile<const SLOT: usize>(
    program: *mut c_void,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let Some(library) = copy(&NVRTC, SLOT) else {
        return FAILED;
    };
    let all = catch_unwind(|| {
        // SAFETY: NVRTC reads as many options.
        let own = unsafe { texts(usize::try_from(count).unwrap_or_default(), options) };
        match register_limit(&own) {
            Some(limit) => limits().insert(program.addr(), limit),
            None => limits().remove(&program.addr()),
        };
        own
    })
    .unwrap_or_default();
    let Some(all) = with_lines(&all).filter(|_| count >= 0) else {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { (library.compile)(program, count, options) };
    };
    let all: Vec<*const c_char> = all.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the texts live longer than the call.
    unsafe { (library.compile)(program, all.len() as c_int, all.as_ptr()) }
}

/// # Safety
/// As for NVRTC's function.
unsafe extern "C" fn destroy_program<const SLOT: usize>(program: *mut *mut c_void) -> c_int {
    let Some(library) = copy(&NVRTC, SLOT) else {
        return FAILED;
    };
    // SAFETY: NVRTC reads the handle.
    if let Some(program) = unsafe { program.as_ref() } {
        limits().remove(&program.addr());
    }
    // SAFETY: the caller's argument, passed on.
    unsafe { (library.destroy)(program) }
}

/// Hands over a cubin, and keeps its PTX.
///
/// # Safety
/// As for NVRTC's function.
unsafe extern "C" fn cubin<const SLOT: usize>(program: *mut c_void, start: *mut c_char) -> c_int {
    let Some(library) = copy(&NVRTC, SLOT) else {
        return FAILED;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (library.cubin)(program, start) };
    if status == 0 {
        let _ = catch_unwind(|| {
            // SAFETY: NVRTC has written the cubin.
            let cubin = unsafe { written(program, library.cubin_size, start) };
            // SAFETY: the program is NVRTC's.
            let ptx = unsafe { result(program, library.ptx_size, library.ptx) };
            if let (Some(cubin), Some(ptx)) = (cubin, ptx) {
                let limit = limits().get(&program.addr()).cloned();
                let text = with_options(&String::from_utf8_lossy(&ptx), limit.as_deref());
                keep(cubin, &text);
            }
        });
    }
    status
}

/// A link that a program has begun.
#[derive(Default)]
struct Link {
    options: Vec<CString>,
    inputs: Vec<Input>,
    /// True if there is an input whose code rocov cannot read.
    has_others: bool,
}

struct Input {
    kind: c_int,
    bytes: Vec<u8>,
    name: CString,
}

/// All links, by the place of their library and their handles.
fn links() -> MutexGuard<'static, BTreeMap<(usize, usize), Link>> {
    static LINKS: Mutex<BTreeMap<(usize, usize), Link>> = Mutex::new(BTreeMap::new());
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// As for nvJitLink's function.
unsafe extern "C" fn create<const SLOT: usize>(
    link: *mut *mut c_void,
    count: u32,
    options: *const *const c_char,
) -> c_int {
    let Some(library) = copy(&NVJITLINK, SLOT) else {
        return FAILED;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (library.create)(link, count, options) };
    // SAFETY: without an error, nvJitLink has written the handle.
    let link = (status == 0).then_some(unsafe { link.as_ref() });
    if let Some(Some(link)) = link {
        let _ = catch_unwind(|| {
            let begun = Link {
                // SAFETY: nvJitLink has read as many options.
                options: unsafe { texts(count as usize, options) },
                ..Link::default()
            };
            links().insert((SLOT, link.addr()), begun);
        });
    }
    status
}

/// # Safety
/// As for nvJitLink's function.
unsafe extern "C" fn add<const SLOT: usize>(
    link: *mut c_void,
    kind: c_int,
    data: *const c_void,
    size: usize,
    name: *const c_char,
) -> c_int {
    let Some(library) = copy(&NVJITLINK, SLOT) else {
        return FAILED;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (library.add)(link, kind, data, size, name) };
    if status == 0 && !data.is_null() && size <= MAX {
        let _ = catch_unwind(|| {
            // SAFETY: nvJitLink has read as many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
            let name = match name.is_null() {
                true => CString::default(),
                // SAFETY: nvJitLink takes a text there, or null.
                false => unsafe { CStr::from_ptr(name) }.to_owned(),
            };
            added((SLOT, link.addr()), kind, bytes, name);
        });
    }
    status
}

/// # Safety
/// As for nvJitLink's function.
unsafe extern "C" fn add_file<const SLOT: usize>(
    link: *mut c_void,
    kind: c_int,
    path: *const c_char,
) -> c_int {
    let Some(library) = copy(&NVJITLINK, SLOT) else {
        return FAILED;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (library.add_file)(link, kind, path) };
    if status == 0 && !path.is_null() {
        let _ = catch_unwind(|| {
            // SAFETY: nvJitLink has read the path.
            let path = unsafe { CStr::from_ptr(path) };
            added((SLOT, link.addr()), kind, &[], path.to_owned());
        });
    }
    status
}

/// Notes an input of a link. One of a file has no bytes.
fn added(key: (usize, usize), kind: c_int, bytes: &[u8], name: CString) {
    if name.to_string_lossy().contains(DEVICE_RUNTIME) {
        return;
    }
    let mut links = links();
    let Some(link) = links.get_mut(&key) else {
        return;
    };
    // NVRTC has made the cubin, and rocov has kept its PTX.
    let source = || Cache::for_user()?.source(bytes);
    let (kind, bytes) = match kind {
        PTX | LTO_IR if !bytes.is_empty() => (kind, bytes.to_vec()),
        CUBIN => match source() {
            Some(text) => (PTX, text.into_bytes()),
            None => (kind, Vec::new()),
        },
        _ => (kind, Vec::new()),
    };
    match bytes.is_empty() {
        true => link.has_others = true,
        false => link.inputs.push(Input { kind, bytes, name }),
    }
}

/// # Safety
/// As for nvJitLink's function.
unsafe extern "C" fn destroy<const SLOT: usize>(link: *mut *mut c_void) -> c_int {
    let Some(library) = copy(&NVJITLINK, SLOT) else {
        return FAILED;
    };
    // SAFETY: nvJitLink reads the handle.
    if let Some(link) = unsafe { link.as_ref() } {
        links().remove(&(SLOT, link.addr()));
    }
    // SAFETY: the caller's argument, passed on.
    unsafe { (library.destroy)(link) }
}

/// Hands over a linked cubin, and keeps its PTX.
///
/// # Safety
/// As for nvJitLink's function.
unsafe extern "C" fn linked_cubin<const SLOT: usize>(
    link: *mut c_void,
    start: *mut c_char,
) -> c_int {
    let Some(library) = copy(&NVJITLINK, SLOT) else {
        return FAILED;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (library.cubin)(link, start) };
    if status == 0 {
        let _ = catch_unwind(|| {
            let begun = links().remove(&(SLOT, link.addr()));
            // SAFETY: nvJitLink has written the cubin.
            let cubin = unsafe { written(link, library.cubin_size, start) };
            if let (Some(begun), Some(cubin)) = (begun, cubin)
                && let Some(text) = begun.ptx(library)
            {
                let limit = register_limit(&begun.options);
                keep(cubin, &with_options(&text, limit.as_deref()));
            }
        });
    }
    status
}

impl Link {
    /// The PTX of all inputs together. `None` if rocov cannot have it.
    fn ptx(&self, library: &NvJitLink) -> Option<String> {
        if self.has_others {
            return None;
        }
        if self.inputs.iter().all(|input| input.kind == PTX) {
            let texts = self.inputs.iter().map(|input| {
                let text = String::from_utf8_lossy(&input.bytes);
                text.trim_end_matches('\0').to_owned()
            });
            let texts: Vec<String> = texts.collect();
            return Some(joined(texts.iter().map(String::as_str)));
        }
        let mut options: Vec<*const c_char> =
            self.options.iter().map(|option| option.as_ptr()).collect();
        options.push(c"-ptx".as_ptr());
        let mut link = std::ptr::null_mut();
        // SAFETY: the options live longer than the call, which writes a handle.
        let status =
            unsafe { (library.create)(&raw mut link, options.len() as u32, options.as_ptr()) };
        if status != 0 {
            return None;
        }
        // SAFETY: the link was made.
        let text = unsafe { self.linked(library, link) };
        // SAFETY: the link was made, and nobody uses it any more.
        unsafe { (library.destroy)(&raw mut link) };
        Some(String::from_utf8_lossy(&text?).into_owned())
    }

    /// # Safety
    /// The link is the library's.
    unsafe fn linked(&self, library: &NvJitLink, link: *mut c_void) -> Option<Vec<u8>> {
        for input in &self.inputs {
            let (start, size) = (input.bytes.as_ptr().cast(), input.bytes.len());
            // SAFETY: the input lives longer than the link.
            let status =
                unsafe { (library.add)(link, input.kind, start, size, input.name.as_ptr()) };
            if status != 0 {
                return None;
            }
        }
        // SAFETY: as the caller promises.
        let status = unsafe { (library.complete)(link) };
        // SAFETY: as the caller promises.
        (status == 0).then(|| unsafe { result(link, library.ptx_size, library.ptx) })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_all_their_names() {
        for (name, expected) in [
            ("nvrtcGetCUBIN", Some(Hooked::Cubin)),
            ("nvJitLinkCreate", Some(Hooked::Create)),
            ("__nvJitLinkCreate_13_0", Some(Hooked::Create)),
            ("__nvJitLinkGetLinkedCubin_12_10", Some(Hooked::LinkedCubin)),
            ("nvrtcGetCUBINSize", None),
            ("nvJitLinkCreate_13_0", None),
            ("nvtxRangePush", None),
            ("cuInit", None),
            ("", None),
        ] {
            assert_eq!(hooked(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn options_of_a_compiler_get_line_numbers_once() {
        let options = |all: &[&str]| {
            let all = all.iter().map(|text| CString::new(*text).unwrap());
            all.collect::<Vec<_>>()
        };
        let own = options(&["-arch=sm_90", "-lineinfo"]);
        assert_eq!(with_lines(&own), None);
        let own = options(&["-arch=sm_90"]);
        assert_eq!(with_lines(&own).unwrap(), [c"-arch=sm_90", c"-lineinfo"]);
    }

    #[test]
    fn the_limit_of_registers_stays_with_ptx() {
        for (options, expected) in [
            (&["--maxrregcount=40", "-G"][..], "-maxrregcount=40"),
            (&["-maxrregcount", "32"], "-maxrregcount=32"),
            (&["-G"], ""),
        ] {
            let options = options.iter().map(|text| CString::new(*text).unwrap());
            let limit = register_limit(&options.collect::<Vec<_>>());
            let text = with_options(".version 9.0\n\0", limit.as_deref());
            assert_eq!(options_in(&text), expected);
        }
    }
}

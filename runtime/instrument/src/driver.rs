//! The CUDA driver of the process: its GPUs, and its compiler of PTX.
#![expect(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute_copy;

use libloading::os::unix::{Library, RTLD_LAZY};
use rocov::device::cuda::CUDA_LIBRARY;
use thiserror::Error;

/// The compute capability of a GPU, such as 9 and 0.
pub(crate) type Capability = (i32, i32);

/// `RTLD_NOLOAD` of glibc and musl: opens a library only if it is loaded.
const RTLD_NOLOAD: c_int = 4;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_int = 1;
/// The bytes for the compiler's messages.
const LOG: usize = 8192;

/// `CUjit_option` of cuda.h: the options that change code, and those of the compiler's messages.
mod option {
    use std::ffi::c_int;

    /// `CU_JIT_MAX_REGISTERS`: an unsigned int.
    pub(super) const MAX_REGISTERS: c_int = 0;
    /// `CU_JIT_ERROR_LOG_BUFFER`: an address.
    pub(super) const ERRORS: c_int = 5;
    /// `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`: an unsigned int.
    pub(super) const ERRORS_SIZE: c_int = 6;
    /// `CU_JIT_OPTIMIZATION_LEVEL`: an unsigned int.
    pub(super) const OPTIMIZATION_LEVEL: c_int = 7;
    /// `CU_JIT_TARGET`: a number of `CUjit_target`, such as 90.
    pub(super) const TARGET: c_int = 9;
}

type GetFn = unsafe extern "C" fn(*mut c_int) -> c_int;
type DeviceGetFn = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type AttributeFn = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type ContextFn = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type PushFn = unsafe extern "C" fn(*mut c_void) -> c_int;
type RetainFn = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type ReleaseFn = unsafe extern "C" fn(c_int) -> c_int;
type LinkCreateFn =
    unsafe extern "C" fn(c_uint, *const c_int, *const *mut c_void, *mut *mut c_void) -> c_int;
type LinkAddFn = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_void,
    usize,
    *const c_char,
    c_uint,
    *const c_int,
    *const *mut c_void,
) -> c_int;
type LinkCompleteFn = unsafe extern "C" fn(*mut c_void, *mut *const c_void, *mut usize) -> c_int;
type LinkDestroyFn = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The functions of the driver that this library calls.
pub(crate) struct Driver {
    version: GetFn,
    current_device: GetFn,
    device_count: GetFn,
    device_get: DeviceGetFn,
    attribute: AttributeFn,
    current_context: ContextFn,
    push: PushFn,
    pop: ContextFn,
    retain: RetainFn,
    release: ReleaseFn,
    link_create: LinkCreateFn,
    link_add: LinkAddFn,
    link_complete: LinkCompleteFn,
    link_destroy: LinkDestroyFn,
    /// Keeps the driver mapped while its functions can be called.
    _library: Library,
}

/// The options of a compilation that change its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The most registers of a thread.
    pub(crate) max_registers: Option<u32>,
    /// The level of optimization, 0 to 4.
    pub(crate) level: Option<u32>,
    /// The architecture, such as 90. `None` for that of the current context.
    pub(crate) target: Option<u32>,
}

impl Options {
    /// Those among the options of a program, and among the options of nvcc in a fat binary.
    pub(crate) fn new(of_program: &[(c_int, *mut c_void)], of_nvcc: &str) -> Self {
        let number = |wanted: c_int| {
            let found = of_program.iter().find(|(name, _)| *name == wanted);
            // The driver takes a number instead of the address.
            found.map(|(_, value)| value.addr() as u32)
        };
        Self {
            max_registers: number(option::MAX_REGISTERS).or_else(|| max_registers(of_nvcc)),
            level: number(option::OPTIMIZATION_LEVEL),
            target: None,
        }
    }
}

/// The number of `-maxrregcount 32` among options of nvcc.
fn max_registers(options: &str) -> Option<u32> {
    let (_, rest) = options.split_once("maxrregcount")?;
    let number = rest.trim_start_matches(['=', ' ']);
    let end = number.find(|character: char| !character.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// `CUDA_ERROR_INVALID_PTX`.
const INVALID_PTX: c_int = 218;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
const UNSUPPORTED_VERSION: c_int = 222;

/// The reason why the driver has not compiled PTX.
#[derive(Debug, Error)]
#[error("{}", message.clone().unwrap_or_else(|| format!("{call}: CUDA error {status}")))]
pub(crate) struct Refusal {
    call: &'static str,
    status: c_int,
    /// The first line of the compiler's messages that reports an error.
    message: Option<String>,
}

impl Refusal {
    /// Returns whether this driver will never compile the PTX. Other calls fail for reasons that pass, such as memory.
    pub(crate) fn is_lasting(&self) -> bool {
        [INVALID_PTX, UNSUPPORTED_VERSION].contains(&self.status)
    }
}

/// Reads the driver's function `name`.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Option<T> {
    // SAFETY: `get` only reads an address, whatever is there.
    let address = unsafe { library.get::<*mut c_void>(name) }.ok()?;
    // SAFETY: as the caller promises.
    Some(unsafe { transmute_copy::<*mut c_void, T>(&*address) })
}

impl Driver {
    /// The driver of the process. `None` if none is loaded, or one that lacks a function.
    pub(crate) fn find() -> Option<Self> {
        // SAFETY: NOLOAD runs no initialiser and only takes a reference.
        let library = unsafe { Library::open(Some(CUDA_LIBRARY), RTLD_NOLOAD | RTLD_LAZY) };
        let library = library.ok()?;
        // SAFETY: the types are those that cuda.h declares for the names.
        unsafe {
            Some(Self {
                version: function(&library, "cuDriverGetVersion")?,
                current_device: function(&library, "cuCtxGetDevice")?,
                device_count: function(&library, "cuDeviceGetCount")?,
                device_get: function(&library, "cuDeviceGet")?,
                attribute: function(&library, "cuDeviceGetAttribute")?,
                current_context: function(&library, "cuCtxGetCurrent")?,
                push: function(&library, "cuCtxPushCurrent_v2")?,
                pop: function(&library, "cuCtxPopCurrent_v2")?,
                retain: function(&library, "cuDevicePrimaryCtxRetain")?,
                release: function(&library, "cuDevicePrimaryCtxRelease_v2")?,
                link_create: function(&library, "cuLinkCreate_v2")?,
                link_add: function(&library, "cuLinkAddData_v2")?,
                link_complete: function(&library, "cuLinkComplete")?,
                link_destroy: function(&library, "cuLinkDestroy")?,
                _library: library,
            })
        }
    }

    /// The version of CUDA that the driver is for, such as 13000. 0 if it does not say.
    pub(crate) fn version(&self) -> c_int {
        got(self.version).unwrap_or_default()
    }

    /// The compute capabilities of the GPUs that code is for: of that of the current context, or of all GPUs, each once.
    pub(crate) fn capabilities(&self, is_for_all: bool) -> Vec<Capability> {
        if let Some(device) = got(self.current_device).filter(|_| !is_for_all) {
            return self.capability(device).into_iter().collect();
        }
        let count = got(self.device_count).unwrap_or_default();
        let mut found: Vec<_> = (0..count)
            .filter_map(|ordinal| self.capability(self.device(ordinal)?))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn device(&self, ordinal: c_int) -> Option<c_int> {
        let mut device = 0;
        // SAFETY: the call writes an int.
        let status = unsafe { (self.device_get)(&raw mut device, ordinal) };
        (status == 0).then_some(device)
    }

    fn capability(&self, device: c_int) -> Option<Capability> {
        let [major, minor] = CAPABILITY.map(|attribute| {
            let mut value = 0;
            // SAFETY: the call writes an int.
            let status = unsafe { (self.attribute)(&raw mut value, attribute, device) };
            (status == 0).then_some(value)
        });
        Some((major?, minor?))
    }

    /// Compiles PTX for the GPU of the current context. If there is none, for the first GPU, in its primary context.
    ///
    /// # Errors
    /// Fails if the driver does not compile it.
    pub(crate) fn compile(&self, texts: &[String], options: Options) -> Result<Vec<u8>, Refusal> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        let status = unsafe { (self.current_context)(&raw mut context) };
        if status == 0 && !context.is_null() {
            return self.link(texts, options);
        }
        // A program with CUDA_MODULE_LOADING=EAGER loads its code before it makes a context.
        let device = self.device(0).ok_or(Refusal {
            call: "cuDeviceGet",
            status: 0,
            message: None,
        })?;
        // SAFETY: the call writes a handle.
        check("cuDevicePrimaryCtxRetain", unsafe {
            (self.retain)(&raw mut context, device)
        })?;
        // SAFETY: the context was made.
        let pushed = check("cuCtxPushCurrent", unsafe { (self.push)(context) });
        let linked = pushed.and_then(|()| {
            let linked = self.link(texts, options);
            // SAFETY: the call writes a handle.
            unsafe { (self.pop)(&raw mut context) };
            linked
        });
        // SAFETY: the context was retained, and is not current any more.
        unsafe { (self.release)(device) };
        linked
    }

    fn link(&self, texts: &[String], options: Options) -> Result<Vec<u8>, Refusal> {
        let mut log = vec![0_u8; LOG];
        let mut names = vec![option::ERRORS, option::ERRORS_SIZE];
        let number = |value: u32| std::ptr::without_provenance_mut::<c_void>(value as usize);
        let mut values = vec![log.as_mut_ptr().cast::<c_void>(), number(LOG as u32)];
        for (name, value) in [
            (option::MAX_REGISTERS, options.max_registers),
            (option::OPTIMIZATION_LEVEL, options.level),
            (option::TARGET, options.target),
        ] {
            if let Some(value) = value {
                names.push(name);
                values.push(number(value));
            }
        }
        let mut state = std::ptr::null_mut();
        // SAFETY: each array has the number of elements that the call gets, and the log lives longer than the state.
        check("cuLinkCreate", unsafe {
            (self.link_create)(
                names.len() as c_uint,
                names.as_ptr(),
                values.as_ptr(),
                &raw mut state,
            )
        })?;
        let result = self.complete(state, texts);
        // SAFETY: the state was made, and its cubin copied.
        unsafe { (self.link_destroy)(state) };
        result.map_err(|refusal| Refusal {
            message: message(&log),
            ..refusal
        })
    }

    fn complete(&self, state: *mut c_void, texts: &[String]) -> Result<Vec<u8>, Refusal> {
        for text in texts {
            // The driver wants a zero at the end, and counts it.
            let text = [text.as_bytes(), b"\0"].concat();
            // SAFETY: the text is whole, and the driver reads it in this call.
            check("cuLinkAddData", unsafe {
                (self.link_add)(
                    state,
                    INPUT_PTX,
                    text.as_ptr().cast(),
                    text.len(),
                    c"rocov".as_ptr(),
                    0,
                    std::ptr::null(),
                    std::ptr::null(),
                )
            })?;
        }
        let (mut cubin, mut size) = (std::ptr::null(), 0);
        // SAFETY: the call writes the address and the size of memory that the state owns.
        check("cuLinkComplete", unsafe {
            (self.link_complete)(state, &raw mut cubin, &raw mut size)
        })?;
        // SAFETY: the driver has returned the address and the size.
        Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
    }
}

/// The int that a call writes. `None` if it fails.
fn got(call: GetFn) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: the call writes an int.
    let status = unsafe { call(&raw mut value) };
    (status == 0).then_some(value)
}

fn check(call: &'static str, status: c_int) -> Result<(), Refusal> {
    match status {
        0 => Ok(()),
        status => Err(Refusal {
            call,
            status,
            message: None,
        }),
    }
}

/// The first line of the compiler's messages that reports an error.
fn message(log: &[u8]) -> Option<String> {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).into_owned();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    let found = lines.find(|line| line.contains("error")).or(first)?;
    // Before the number of the line is the compiler's name for the text.
    let start = found.find("line ").unwrap_or_default();
    Some(found[start..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_nvcc_limit_registers() {
        for (options, expected) in [
            ("-maxrregcount=32 ", Some(32)),
            ("--maxrregcount 64 -g", Some(64)),
            ("-g", None),
            ("-maxrregcount", None),
            ("", None),
        ] {
            let found = Options::new(&[], options).max_registers;
            assert_eq!(found, expected, "{options}");
        }
        let given = [(0, std::ptr::without_provenance_mut(40))];
        assert_eq!(
            Options::new(&given, "-maxrregcount=32").max_registers,
            Some(40)
        );
    }

    #[test]
    fn the_message_is_the_first_error() {
        let log = b"info    : 0 bytes gmem\nptxas application ptx input, line 4; error : Parsing error\n\0rest";
        let found = message(log).unwrap();
        assert_eq!(found, "line 4; error : Parsing error");
        assert_eq!(message(b"\0"), None);
    }
}

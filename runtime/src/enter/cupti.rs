//! CUPTI, NVIDIA's interface for tools: the types and constants that rocov uses (cupti_callbacks.h and
//! cupti_driver_cbid.h, CUDA 11.1 to 13.0), and the search for its library.
#![expect(unsafe_code, reason = "opens a library and calls its functions")]

use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use rocov::device::cuda::cupti_files::{self, BESIDE_RUNTIME, NAMES};
use rocov::settings::variables;

use crate::guest::{elf_objects, environment};
use crate::serve::modules;

/// `CUPTI_SUCCESS`.
pub(super) const SUCCESS: c_int = 0;
/// `CUPTI_ERROR_INVALID_PARAMETER`.
const INVALID_PARAMETER: c_int = 1;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED` and `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another tool has subscribed.
pub(super) const TAKEN: [c_int; 2] = [12, 39];

/// `CUPTI_CB_DOMAIN_DRIVER_API`.
pub(super) const DRIVER_API: c_int = 1;
/// `CUPTI_CB_DOMAIN_RESOURCE`.
pub(super) const RESOURCE: c_int = 3;
/// `CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING`.
pub(super) const CONTEXT_GOES: u32 = 2;
/// `CUPTI_CBID_RESOURCE_MODULE_LOADED`.
pub(super) const MODULE_LOADED: u32 = 6;
/// `CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING`.
pub(super) const MODULE_GOES: u32 = 7;
/// `CUPTI_API_ENTER`.
pub(super) const ENTER: c_int = 0;

/// The calls of the driver that load and unload code, by their numbers (`CUPTI_DRIVER_TRACE_CBID_*`).
pub(super) mod calls {
    /// `cuModuleLoad`, `cuModuleLoadData`, `cuModuleLoadDataEx` and `cuModuleLoadFatBinary`.
    pub(crate) const MODULE_LOAD: [u32; 4] = [18, 19, 20, 21];
    /// `cuModuleLoadDataEx`, which takes options.
    pub(crate) const MODULE_LOAD_EX: u32 = 20;
    /// `cuModuleLoad`, whose second argument is a path.
    pub(crate) const MODULE_LOAD_FILE: u32 = 18;
    /// `cuModuleUnload`.
    pub(crate) const MODULE_UNLOAD: u32 = 22;
    /// `cuLibraryLoadData`.
    pub(crate) const LIBRARY_LOAD: u32 = 678;
    /// `cuLibraryLoadFromFile`.
    pub(crate) const LIBRARY_LOAD_FILE: u32 = 679;
    /// `cuLibraryUnload`.
    pub(crate) const LIBRARY_UNLOAD: u32 = 680;
    /// `cuLibraryGetModule`.
    pub(crate) const LIBRARY_GET_MODULE: u32 = 682;
    /// `cuLinkAddData_v2`.
    pub(crate) const LINK_DATA: u32 = 382;
    /// `cuLinkAddFile_v2`.
    pub(crate) const LINK_FILE: u32 = 383;
    /// `cuLinkComplete`.
    pub(crate) const LINK_COMPLETE: u32 = 365;
    /// `cuLinkDestroy`.
    pub(crate) const LINK_DESTROY: u32 = 366;
    /// The calls that launch kernels: `cuLaunch`, `cuLaunchGrid`, `cuLaunchGridAsync`, `cuLaunchKernel`,
    /// `cuLaunchCooperativeKernel`, `cuLaunchCooperativeKernelMultiDevice`, `cuGraphLaunch` and `cuLaunchKernelEx`, with
    /// their variants for default streams of threads (`_ptsz`).
    pub(crate) const LAUNCHES: [u32; 12] =
        [115, 116, 117, 307, 442, 477, 478, 480, 514, 515, 652, 653];
    /// The calls that begin to capture a graph on a stream: `cuStreamBeginCapture` and its second version, and
    /// `cuStreamBeginCaptureToGraph`, with their variants for default streams of threads (`_ptsz`).
    pub(crate) const CAPTURE_BEGINS: [u32; 6] = [495, 496, 539, 540, 720, 721];
    /// The calls after which a stream captures no more: `cuStreamEndCapture`, its `_ptsz`, and both `cuStreamDestroy`.
    pub(crate) const CAPTURE_ENDS: [u32; 4] = [497, 498, 127, 326];
    /// The calls that may destroy a context: `cuCtxDestroy`, `cuCtxDestroy_v2`, `cuCtxDetach`,
    /// `cuDevicePrimaryCtxRelease`, `cuDevicePrimaryCtxRelease_v2`, `cuDevicePrimaryCtxReset`,
    /// `cuDevicePrimaryCtxReset_v2`, and `cuGreenCtxDestroy`, which releases the primary context.
    pub(crate) const CONTEXT_ENDS: [u32; 8] = [11, 322, 13, 387, 544, 389, 545, 744];
    /// Those that destroy the context that they are given, if they succeed.
    pub(crate) const CONTEXT_DESTROYS: [u32; 2] = [11, 322];
}

/// `CUpti_CallbackData`, as far as rocov reads it.
#[repr(C)]
pub(super) struct CallData {
    pub(super) site: c_int,
    _name: *const c_char,
    /// A structure with the arguments of the call.
    pub(super) parameters: *const c_void,
    /// The `CUresult`, after the call.
    pub(super) result: *const c_int,
}

/// `CUpti_ResourceData`.
#[repr(C)]
pub(super) struct ResourceData {
    pub(super) context: *const c_void,
    _handle: *const c_void,
    pub(super) descriptor: *const c_void,
}

/// `CUpti_ModuleResourceData`.
#[repr(C)]
pub(super) struct ModuleData {
    pub(super) id: u32,
    pub(super) len: usize,
    pub(super) cubin: *const u8,
}

/// `CUpti_CallbackFunc`.
pub(super) type CallbackFn =
    unsafe extern "C" fn(user: *mut c_void, domain: c_int, id: u32, data: *const c_void);
type SubscribeFn = unsafe extern "C" fn(*mut *mut c_void, CallbackFn, *mut c_void) -> c_int;
type EnableFn = unsafe extern "C" fn(u32, *mut c_void, c_int, u32) -> c_int;
type GetDeviceFn = unsafe extern "C" fn(*const c_void, *mut u32) -> c_int;
type ResultStringFn = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// The functions of CUPTI that rocov calls, and its subscriber.
pub(super) struct Cupti {
    subscriber: AtomicPtr<c_void>,
    subscribe: SubscribeFn,
    enable: EnableFn,
    get_device: GetDeviceFn,
    result_string: ResultStringFn,
}

/// The reason why CUPTI cannot be used.
pub(super) enum Failure {
    /// No library was found.
    Missing,
    /// A library lacks a function.
    TooOld(&'static str),
    /// Another tool has subscribed.
    Taken,
    /// A call failed.
    Call(&'static str, String),
}

impl Cupti {
    /// Opens CUPTI: the file that `ROCOV_CUPTI` names, or else the one that the dynamic linker finds, or that of the
    /// toolkit, or the one beside the program's CUDA runtime. The library stays open.
    pub(super) fn open() -> Result<Self, Failure> {
        let library = Self::library().ok_or(Failure::Missing)?;
        let found = Self {
            subscriber: AtomicPtr::default(),
            subscribe: function(&library, "cuptiSubscribe")?,
            enable: function(&library, "cuptiEnableCallback")?,
            get_device: function(&library, "cuptiGetDeviceId")?,
            result_string: function(&library, "cuptiGetResultString")?,
        };
        std::mem::forget(library);
        Ok(found)
    }

    fn library() -> Option<Library> {
        let open = |path: &OsStr| {
            // SAFETY: CUPTI's initialisers have no preconditions: programs link it.
            unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) }.ok()
        };
        if let Some(path) =
            environment::variable(variables::CUPTI.name).filter(|path| !path.is_empty())
        {
            return open(&path);
        }
        let by_name = NAMES.iter().find_map(|name| open(name.as_ref()));
        by_name.or_else(|| {
            let files = folders()
                .into_iter()
                .flat_map(|folder| NAMES.map(|name| folder.join(name)));
            files
                .filter(|file| file.exists())
                .find_map(|file| open(file.as_os_str()))
        })
    }

    /// Has CUPTI call `callback` for the calls that load and unload code, those that capture graphs and, if the code is to
    /// be exchanged, those that link code. Not for launches: those would become slower.
    pub(super) fn subscribe(&self, callback: CallbackFn, exchanges: bool) -> Result<(), Failure> {
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: the callback has the right type and lives as long as the process, and the call writes a handle.
        let status =
            unsafe { (self.subscribe)(&raw mut subscriber, callback, std::ptr::null_mut()) };
        if TAKEN.contains(&status) {
            return Err(Failure::Taken);
        }
        self.check("cuptiSubscribe", status)?;
        self.subscriber.store(subscriber, Ordering::Relaxed);
        let links = exchanges.then_some([
            calls::LINK_DATA,
            calls::LINK_FILE,
            calls::LINK_COMPLETE,
            calls::LINK_DESTROY,
        ]);
        let calls = [
            calls::MODULE_UNLOAD,
            calls::LIBRARY_LOAD,
            calls::LIBRARY_LOAD_FILE,
            calls::LIBRARY_UNLOAD,
            calls::LIBRARY_GET_MODULE,
        ];
        let calls = calls
            .into_iter()
            .chain(calls::MODULE_LOAD)
            .chain(calls::CONTEXT_ENDS)
            .chain(calls::CAPTURE_BEGINS)
            .chain(calls::CAPTURE_ENDS)
            .chain(links.into_iter().flatten());
        let resources = [CONTEXT_GOES, MODULE_LOADED, MODULE_GOES];
        let all = calls
            .map(|id| (DRIVER_API, id))
            .chain(resources.map(|id| (RESOURCE, id)));
        for (domain, id) in all {
            // SAFETY: the subscriber is the one from above.
            let status = unsafe { (self.enable)(1, subscriber, domain, id) };
            // An older CUPTI does not know later calls, such as those for the libraries of CUDA 12, and its driver does
            // not have them.
            if domain == RESOURCE || status != INVALID_PARAMETER {
                self.check("cuptiEnableCallback", status)?;
            }
        }
        Ok(())
    }

    /// Has CUPTI report launches too, from now on. Returns whether it does.
    pub(super) fn watch_launches(&self) -> bool {
        let subscriber = self.subscriber.load(Ordering::Relaxed);
        !subscriber.is_null()
            && calls::LAUNCHES.into_iter().all(|id| {
                // SAFETY: the subscriber is CUPTI's.
                let status = unsafe { (self.enable)(1, subscriber, DRIVER_API, id) };
                // An older CUPTI does not know later calls, and its driver does not have them.
                status == SUCCESS || status == INVALID_PARAMETER
            })
    }

    /// The number of the GPU of a context; 0 if CUPTI does not know it.
    pub(super) fn device_of(&self, context: *const c_void) -> u32 {
        let mut device = 0;
        // SAFETY: CUPTI has named the context, and the call writes a number.
        let status = unsafe { (self.get_device)(context, &raw mut device) };
        if status == SUCCESS { device } else { 0 }
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the call writes the address of a constant text.
        let known = unsafe { (self.result_string)(status, &raw mut text) };
        let reason = if known == SUCCESS && !text.is_null() {
            // SAFETY: as above.
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        } else {
            format!("status {status}")
        };
        Err(Failure::Call(call, reason))
    }
}

/// CUPTI's function `name`, for a field with the type that the headers declare for it.
fn function<T: Copy>(library: &Library, name: &'static str) -> Result<T, Failure> {
    // SAFETY: `get` only reads an address, whatever is there.
    let address = unsafe { library.get::<*mut c_void>(name) };
    let address = address.map_err(|_| Failure::TooOld(name))?;
    // SAFETY: the callers' types are those of CUPTI's headers.
    Ok(unsafe { transmute_copy::<*mut c_void, T>(&*address) })
}

/// The folders that may have CUPTI, beside those of the dynamic linker.
fn folders() -> Vec<PathBuf> {
    let mut folders = cupti_files::folders(|name| env::var_os(name));
    let is_runtime = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libcudart.so")
    };
    let objects = elf_objects::all();
    let paths = objects.iter().map(elf_objects::Object::path);
    for path in paths.filter(|path| is_runtime(path)) {
        let folder = path.parent().unwrap_or(Path::new("/"));
        folders.extend(BESIDE_RUNTIME.map(|beside| folder.join(beside)));
    }
    folders
}

pub(super) static CUPTI: OnceLock<Cupti> = OnceLock::new();

/// Has launches noted from now on, because the process ends. Before, each launch would become slower.
pub(super) fn watch_launches() {
    if CUPTI.get().is_some_and(Cupti::watch_launches) {
        modules::watch_launches();
    }
}

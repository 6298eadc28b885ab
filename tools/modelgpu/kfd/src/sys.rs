//! System calls without the C library's wrappers, which this library replaces.
//!
//! The interposed functions end here. Nothing in this module but [`open_of_process`] and [`readable_mappings`] allocates or takes a
//! lock, so it may run between fork and exec and before any constructor.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// An error number (`errno`) of the driver's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the C library returns the address of the thread's own variable.
    unsafe { *libc::__errno_location() = errno }
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: see `set_errno`.
    unsafe { *libc::__errno_location() }
}

/// The identity of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Raw `newfstatat`; -1 and `errno` on failure.
///
/// # Safety
/// `path` must be a C string and `stat` writable.
pub(crate) unsafe fn fstatat(
    dir: c_int,
    path: *const c_char,
    stat: *mut libc::stat,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_newfstatat, dir, path, stat, flags) as c_int }
}

/// Status of an open file; `None` if `fd` is not open. Keeps `errno`.
pub(crate) fn file_id(fd: RawFd) -> Option<FileId> {
    let saved = errno();
    // SAFETY: an all-zero `stat` is valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: an empty path with AT_EMPTY_PATH names `fd` itself; `stat` is writable.
    let result = unsafe { fstatat(fd, c"".as_ptr(), &mut stat, libc::AT_EMPTY_PATH) };
    set_errno(saved);
    (result == 0).then_some(FileId {
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Raw `openat`; -1 and `errno` on failure.
///
/// # Safety
/// `path` must be a C string.
pub(crate) unsafe fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_openat, dir, path, flags, mode) as c_int }
}

/// Opens `path` with raw system calls.
pub(crate) fn open(path: &CStr, flags: c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: `path` is a C string.
    let fd = unsafe { openat(libc::AT_FDCWD, path.as_ptr(), flags, 0o666) };
    if fd < 0 {
        return Err(Errno(errno()));
    }
    // SAFETY: `fd` was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens the file that another process has under `descriptor`.
///
/// # Errors
/// Fails if that process has ended, belongs to another user, or has no such file.
pub(crate) fn open_of_process(process: u32, descriptor: RawFd) -> Result<OwnedFd, Errno> {
    let path = CString::new(format!("/proc/{process}/fd/{descriptor}"));
    let path = path.map_err(|_| Errno(libc::EINVAL))?;
    open(&path, libc::O_RDWR | libc::O_CLOEXEC)
}

/// Creates a sparse anonymous file of `size` bytes, closed on exec. Its descriptor is at least
/// `lowest`, so that the program keeps the low numbers.
pub(crate) fn memfd(name: &CStr, size: u64, lowest: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: `name` is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Errno(errno()));
    }
    // SAFETY: `fd` was just created and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open.
    if unsafe { libc::ftruncate64(fd.as_raw_fd(), size as i64) } < 0 {
        return Err(Errno(errno()));
    }
    // SAFETY: the descriptor is open.
    let high = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
    if high < 0 {
        // The limit on open files is small: use the low number.
        return Ok(fd);
    }
    // SAFETY: `high` was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(high) })
}

/// Frees a range of an anonymous file, which then reads as zeros.
pub(crate) fn punch_hole(fd: RawFd, offset: u64, len: u64) -> Result<(), Errno> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain integers; a bad descriptor is an error.
    match unsafe { libc::fallocate64(fd, mode, offset as i64, len as i64) } {
        0 => Ok(()),
        _ => Err(Errno(errno())),
    }
}

/// The page size of GPU and host.
pub(crate) const PAGE: u64 = 4096;

/// Returns whether the process has mappings for all of these whole pages.
///
/// `msync` would show it, too, but Valgrind calls it an error to ask for memory that it knows to be freed.
pub(crate) fn is_mapped(start: u64, len: u64) -> bool {
    /// So many pages have the states that fit on the stack.
    const AT_ONCE: u64 = 4096;
    let Some(end) = start.checked_add(len) else {
        return false;
    };
    let saved = errno();
    let mut states = [0; AT_ONCE as usize];
    let mut starts = (start..end).step_by((AT_ONCE * PAGE) as usize);
    let is_mapped = starts.all(|at| {
        let part = (end - at).min(AT_ONCE * PAGE);
        // SAFETY: there is a byte for each page; an address without a mapping is an error.
        let result =
            unsafe { libc::mincore(at as *mut c_void, part as usize, states.as_mut_ptr()) };
        result == 0
    });
    set_errno(saved);
    is_mapped
}

/// The start and the end of each of the process's readable mappings. Leaves out the model's own files.
pub(crate) fn readable_mappings() -> Vec<(u64, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapping = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let is_own = ["/memfd:kfd", "/memfd:renderD"]
            .iter()
            .any(|flag| rest.contains(flag));
        (rest.starts_with('r') && !is_own).then_some((start, end))
    };
    maps.lines().filter_map(mapping).collect()
}

/// The readable mapping at `address`.
pub(crate) fn mapping_around(address: u64) -> Option<(u64, u64)> {
    let mappings = readable_mappings();
    let holds = |(start, end): &(u64, u64)| (*start..*end).contains(&address);
    mappings.into_iter().find(holds)
}

/// Writes `bytes` with one call, so that a log line stays whole. Keeps `errno` and ignores
/// failures.
pub(crate) fn write(fd: RawFd, bytes: &[u8]) {
    let saved = errno();
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) };
    set_errno(saved);
}

/// The calling thread's id.
pub(crate) fn thread_id() -> c_long {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Monotonic time in nanoseconds, from the clock that ROCr compares with GPU time.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A `sysconf` value; 1 if the system does not report it.
pub(crate) fn sysconf(name: c_int) -> u64 {
    // SAFETY: no pointers.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).unwrap_or(1).max(1)
}

/// The effective user, who owns the process's new files. A setuid program's starter may be another.
pub(crate) fn user_id() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

/// Ends the process at once, without exit handlers: those belong to libraries that may not be
/// initialised yet.
pub(crate) fn exit_now(status: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

//! Descriptors that remember their file. A program may close descriptors that it has not opened, as
//! daemons do; then another file may get the number.
#![expect(unsafe_code, reason = "calls fstat and close")]

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

/// A descriptor and its file. A pipe and a socket have inodes of their own; an eventfd has not.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnedFd {
    number: RawFd,
    file: (u64, u64),
}

impl OwnedFd {
    /// Remembers the file of a descriptor that was opened just now; `None` if it is not open.
    pub(super) fn new(number: RawFd) -> Option<Self> {
        file(number).map(|file| Self { number, file })
    }

    /// Returns the number if it still belongs to the file. Async-signal-safe.
    pub(super) fn get(self) -> Option<RawFd> {
        (file(self.number) == Some(self.file)).then_some(self.number)
    }

    /// Closes the descriptor if it still belongs to the file. Async-signal-safe.
    pub(super) fn close(self) {
        if let Some(number) = self.get() {
            // SAFETY: the descriptor is ours, and nothing uses it any more.
            unsafe { libc::close(number) };
        }
    }
}

/// Returns device and inode of a descriptor; `None` if it is not open.
pub(super) fn file(number: RawFd) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has the size, and a successful call has written it.
    unsafe {
        (libc::fstat(number, status.as_mut_ptr()) == 0).then(|| {
            let status = status.assume_init();
            (status.st_dev, status.st_ino)
        })
    }
}

/// An owner of a descriptor. If the number belongs to another file by now, the owner neither uses nor
/// closes it.
#[derive(Debug)]
pub(super) struct Owner<T: IntoRawFd> {
    fd: OwnedFd,
    /// Present until the owner is dropped.
    inner: Option<T>,
}

impl<T: AsRawFd + IntoRawFd> Owner<T> {
    /// Takes a descriptor that was opened just now; `None` if it is not open.
    pub(super) fn new(inner: T) -> Option<Self> {
        let fd = OwnedFd::new(inner.as_raw_fd())?;
        let inner = Some(inner);
        Some(Self { fd, inner })
    }

    /// Returns the number, whatever file it belongs to.
    pub(super) fn number(&self) -> RawFd {
        self.fd.number
    }

    /// Returns whether the number still belongs to the file.
    pub(super) fn is_ours(&self) -> bool {
        self.fd.get().is_some()
    }

    /// Returns the inner value if the number still belongs to the file.
    pub(super) fn get(&self) -> Option<&T> {
        self.inner.as_ref().filter(|_| self.is_ours())
    }
}

impl<T: IntoRawFd> Drop for Owner<T> {
    fn drop(&mut self) {
        if self.fd.get().is_none()
            && let Some(inner) = self.inner.take()
        {
            // Without closing it.
            let _ = inner.into_raw_fd();
        }
    }
}

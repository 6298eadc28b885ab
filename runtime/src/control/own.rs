//! Descriptors that a program may close, as daemons do with all that they have not opened, and whose numbers
//! are other files' then: whether they still are what we have opened.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

/// A descriptor and the file that it was opened for. A pipe and a socket have inodes of their own, an
/// eventfd has not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    number: RawFd,
    file: (u64, u64),
}

impl Own {
    /// One that was opened just now. `None` where it is not open.
    pub(super) fn new(number: RawFd) -> Option<Own> {
        file(number).map(|file| Own { number, file })
    }

    /// The number, if it is still that file's. Async-signal-safe.
    pub(super) fn get(self) -> Option<RawFd> {
        (file(self.number) == Some(self.file)).then_some(self.number)
    }

    /// Closes it, if it is. Async-signal-safe.
    pub(super) fn close(self) {
        if let Some(number) = self.get() {
            // SAFETY: a descriptor of ours, which nobody uses any more.
            unsafe { libc::close(number) };
        }
    }
}

/// Device and inode.
pub(super) fn file(number: RawFd) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has the room, and is written where the call succeeds.
    unsafe {
        (libc::fstat(number, status.as_mut_ptr()) == 0).then(|| {
            let status = status.assume_init();
            (status.st_dev, status.st_ino)
        })
    }
}

/// What owns a descriptor: where the number is another file's, that is neither used nor closed.
#[derive(Debug)]
pub(super) struct Owner<T: IntoRawFd> {
    own: Own,
    /// There until it is dropped.
    inner: Option<T>,
}

impl<T: AsRawFd + IntoRawFd> Owner<T> {
    pub(super) fn new(inner: T) -> Option<Owner<T>> {
        let own = Own::new(inner.as_raw_fd())?;
        let inner = Some(inner);
        Some(Owner { own, inner })
    }

    pub(super) fn number(&self) -> RawFd {
        self.own.number
    }

    pub(super) fn is_ours(&self) -> bool {
        self.own.get().is_some()
    }

    pub(super) fn get(&self) -> Option<&T> {
        self.inner.as_ref().filter(|_| self.is_ours())
    }
}

impl<T: IntoRawFd> Drop for Owner<T> {
    fn drop(&mut self) {
        if self.own.get().is_none()
            && let Some(inner) = self.inner.take()
        {
            // Not closed.
            let _ = inner.into_raw_fd();
        }
    }
}

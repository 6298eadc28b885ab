//! The memory that the process sees, read so that an address without memory is an error.
#![expect(unsafe_code, reason = "calls process_vm_writev")]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

/// Reads memory of this process at `address` into `into`, and returns the number of bytes. If the memory is gone, a plain
/// read would crash, but this returns an error, or less.
///
/// # Errors
/// Fails if there is no memory at `address` that can be read.
pub fn read_at(address: u64, into: &mut [u8]) -> io::Result<usize> {
    load(&[(address, into.len())], into).or_else(|error| match Errno::from_io_error(&error) {
        // A filter of a container may forbid the call, and a kernel may lack it.
        Some(Errno::PERM | Errno::NOSYS | Errno::ACCESS) => read_by_file(address, into),
        _ => Err(error),
    })
}

/// Reads several pieces of memory into `into`, one after the other, by loads of this processor: memory of devices too.
/// Each piece has an address and a length in bytes. Returns the number of bytes before the first that cannot be read.
/// It reads nothing that the program itself could not read, such as addresses that are only reserved.
///
/// # Errors
/// Fails if no byte can be read, if there are more than 1,024 pieces, or if the system forbids the call.
pub fn load(pieces: &[(u64, usize)], into: &mut [u8]) -> io::Result<usize> {
    // The kernel loads from the memory of the caller, and looks for the pages of the process to write to, which is the
    // caller too. It would find no pages of a device.
    let piece = |(address, len): &(u64, usize)| libc::iovec {
        iov_base: *address as *mut libc::c_void,
        iov_len: *len,
    };
    let from: Vec<_> = pieces.iter().map(piece).collect();
    let to = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: has no preconditions.
    let own = unsafe { libc::getpid() };
    let count = from.len() as libc::c_ulong;
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`, and checks the other addresses itself.
    let read = unsafe { libc::process_vm_writev(own, from.as_ptr(), count, &raw const to, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Does the work of [`read_at`] by the file that the kernel has for it: three system calls instead of one.
fn read_by_file(address: u64, into: &mut [u8]) -> io::Result<usize> {
    File::open("/proc/self/mem")?.read_at(into, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let data = *b"a code object, say";
        for read in [read_at, read_by_file] {
            let mut bytes = [0; 18];
            let count = read(data.as_ptr() as u64, &mut bytes).expect("own memory");
            assert_eq!((count, bytes), (data.len(), data));
            // The page at 0 is never mapped.
            read(8, &mut bytes).expect_err("no memory");
        }
    }

    #[test]
    fn pieces_are_read_up_to_the_first_that_is_not_there() {
        let data = *b"a code object, say";
        let start = data.as_ptr() as u64;
        let mut bytes = [0; 8];
        let read = load(&[(start + 15, 3), (start, 5)], &mut bytes).expect("own memory");
        assert_eq!(&bytes[..read], b"saya cod");
        let read = load(&[(start, 2), (8, 5)], &mut bytes).expect("a piece");
        assert_eq!(&bytes[..read], b"a ");
    }
}

//! The process on the other side of a Unix socket, from the kernel (`SO_PEERCRED`, unix(7)). This has the
//! only unsafe block of the library outside of [`crate::device::hsa`].

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// A process that has connected, or that was listening when another one connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id here. 0 if it has none in this PID namespace.
    pub pid: u32,
    /// Its effective user id at that time.
    pub user: u32,
}

/// The process at the other end.
///
/// # Errors
/// Fails if the kernel does not report it.
pub fn identify(stream: &UnixStream) -> io::Result<Peer> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: libc::uid_t::MAX,
        gid: libc::gid_t::MAX,
    };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `peer`, which has that size.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    match result {
        0 => Ok(Peer {
            pid: peer.pid.cast_unsigned(),
            user: peer.uid,
        }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn this_process_is_at_the_other_end() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let user = std::fs::metadata("/proc/self").unwrap().uid();
        let pid = std::process::id();
        assert_eq!(identify(&stream).unwrap(), Peer { pid, user });
    }
}

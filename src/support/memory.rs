//! Host memory of a size that a device or a file names. A wrong size, or a system without memory, must not
//! end the program.

/// The error for an allocation that the system has no memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory {
    /// The requested size in bytes.
    pub(crate) bytes: u64,
}

/// Returns an empty buffer with room for `len` bytes.
///
/// # Errors
/// Fails if the system has no memory for it.
pub(crate) fn room(len: u64) -> Result<Vec<u8>, NoMemory> {
    let no_memory = || NoMemory { bytes: len };
    let size = usize::try_from(len).map_err(|_| no_memory())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| no_memory())?;
    Ok(bytes)
}

/// Returns a buffer of `len` zeros.
///
/// # Errors
/// Fails if the system has no memory for it.
pub(crate) fn zeroed(len: u64) -> Result<Vec<u8>, NoMemory> {
    let mut bytes = room(len)?;
    bytes.resize(len as usize, 0);
    Ok(bytes)
}

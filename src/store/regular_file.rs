//! Opens files in places where others may have put a link or a pipe.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::store::OutputError;
use crate::store::interrupted::uninterrupted;

/// Makes `options` open only the file at the place: a link would lead elsewhere, and a pipe would block.
pub(super) fn itself(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed())
}

/// Opens the file at `path`. `None` if there is nothing.
///
/// # Errors
/// Fails if it cannot be opened, or is not a regular file.
pub(super) fn open_regular(
    path: &Path,
    options: &mut OpenOptions,
) -> Result<Option<File>, OutputError> {
    let opened = itself(options).open(path);
    let found = match &opened {
        Ok(file) => uninterrupted(|| file.metadata()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Links, directories and sockets cannot be opened this way.
        Err(_) => uninterrupted(|| fs::symlink_metadata(path)),
    };
    match found.map(|found| found.file_type()) {
        Ok(found) if !found.is_file() => Err(OutputError::NotRegular {
            path: path.to_owned(),
            found: kind(found),
        }),
        _ => opened.map(Some).map_err(OutputError::io("open", path)),
    }
}

/// The kind of a file that is not regular.
pub(super) fn kind(found: FileType) -> &'static str {
    match found {
        it if it.is_symlink() => "a symbolic link",
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    }
}

/// The contents of a file that was opened at `path`.
pub(crate) fn read(mut file: &File, path: &Path) -> Result<Vec<u8>, OutputError> {
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)
        .map_err(OutputError::io("read", path))?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size is more than any machine's memory, on a file system with files of 16 TiB at most.
    #[test]
    fn a_file_larger_than_memory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sparse");
        let file = File::create_new(&path).unwrap();
        file.set_len(15 << 40).unwrap();
        let file = File::open(&path).unwrap();
        let said = read(&file, &path).unwrap_err().to_string();
        let expected = format!("cannot read {}: ", path.display());
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.contains("memory"), "{said}");
    }
}

//! A file of a data set.

use std::io::Read;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// A file of a data set, to read parts of.
pub(crate) enum Content {
    File(std::fs::File),
    #[cfg(feature = "s3")]
    Bytes(Bytes),
}

impl Content {
    /// All of it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn bytes(self) -> std::io::Result<Bytes> {
        match self {
            Self::File(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(bytes.into())
            }
            #[cfg(feature = "s3")]
            Self::Bytes(bytes) => Ok(bytes),
        }
    }
}

impl Length for Content {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => Length::len(file),
            #[cfg(feature = "s3")]
            Self::Bytes(bytes) => Length::len(bytes),
        }
    }
}

impl ChunkReader for Content {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::File(file) => Box::new(file.get_read(start)?),
            #[cfg(feature = "s3")]
            Self::Bytes(bytes) => Box::new(bytes.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            Self::File(file) => file.get_bytes(start, length),
            #[cfg(feature = "s3")]
            Self::Bytes(bytes) => bytes.get_bytes(start, length),
        }
    }
}

//! File formats: bytes to values and back. Nothing here reads or writes a file, or depends on devices.

pub mod bitcode;
pub mod blocks;
pub mod bounds_table;
pub mod bundle;
pub mod codeobject;
pub mod copies_table;
pub(crate) mod decompress;
pub mod leb128;
mod lz4;
pub mod profraw;
pub mod ptx;
pub mod registry;
pub mod sections;

pub use decompress::unpack_whole;

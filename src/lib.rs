//! Coverage and PGO counters of GPU code: the files that carry them, and the drain that brings them home.
//!
//! A HIP program whose device code was built with `-fprofile-instr-generate -fcoverage-mapping` (or
//! `-fprofile-generate`) counts executions in GPU memory. This crate has two doors.
//!
//! # Read and write files
//!
//! [`mod@format`] turns bytes into values and back. It needs no GPU and no other station.
//!
//! The code objects in a program, a library, a bundle or an offload binary, and their kernels:
//!
//! ```
//! use rocov::format::{bundle, codeobject::CodeObject};
//!
//! fn kernels(file: &[u8]) -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let mut names = Vec::new();
//!     for image in bundle::images(file) {
//!         let image = image?;
//!         let kernels = CodeObject::parse(&*image.bytes)?.kernels()?;
//!         names.extend(kernels.into_iter().map(|kernel| kernel.name));
//!     }
//!     Ok(names)
//! }
//! # assert!(kernels(b"no file with GPU code").is_err());
//! ```
//!
//! The sum of raw profiles of one code object:
//!
//! ```
//! use rocov::format::profraw::{ProfileError, Sum};
//!
//! fn merged(first: &[u8], second: &[u8]) -> Result<Vec<u8>, ProfileError> {
//!     let mut sum = Sum::new(first)?;
//!     sum.add(second)?;
//!     Ok(sum.bytes().to_vec())
//! }
//! # assert!(matches!(merged(&[0; 16], b""), Err(ProfileError::WrongMagic { found: 0, .. })));
//! ```
//!
//! A kernel registry, and the kernel that an address meant:
//!
//! ```
//! use rocov::format::registry::{DocumentError, model::Document};
//!
//! fn kernel_at(registry: &[u8], address: u64, generation: u64) -> Result<Option<String>, DocumentError> {
//!     let document = Document::parse(registry)?;
//!     let loads = document.processes.iter().filter_map(|process| process.lookup(address, generation));
//!     let mut kernels = loads.filter_map(|load| load.kernel_at(address));
//!     Ok(kernels.next().map(|kernel| kernel.name.clone()))
//! }
//! # let empty = Document::default().to_json();
//! # assert_eq!(kernel_at(&empty, 0x7040, 1).unwrap(), None);
//! ```
//!
//! # Drain a process
//!
//! The feature `drain`, which is on by default, adds everything else. It is made for librocov; its interface may
//! change with any release. [`drain`] calls the other stations in a row: start reading there.
//!
//! # Stations
//!
//! The folders are stations. Data flows through them in one direction, and a file imports its own station and
//! earlier ones only. `tests/house/` checks that.
//!
//! 1. [`support`] and [`settings`]: tools, and the values of environment variables.
//! 2. [`mod@format`]: bytes to values and back; code objects, bundles, raw profiles, registries.
//! 3. [`instrument`]: counters for code that was compiled without them.
//! 4. [`device`]: the interface to whatever holds the counters; [`device::hsa`] implements it on ROCr.
//! 5. [`discover`]: from an executable to its loads.
//! 6. [`validate`]: the bounds, records and names that can be believed.
//! 7. [`read`]: from a load to its sections in host memory.
//! 8. [`store`]: names of files, and files that are whole or not there.
//! 9. [`drain`]: all of these in a row.
//! 10. [`control`]: requests to a running process, and its answers.
//!
//! The library has no process-wide state but what keeps its files apart, exports no C symbol and prints
//! nothing. The crate `rocov-runtime` hooks into programs, and the crate `rocov-cli` is the command.

#![cfg_attr(
    not(feature = "drain"),
    allow(dead_code, unused_imports, reason = "the drain uses them")
)]

#[cfg(feature = "drain")]
pub mod control;
#[cfg(feature = "drain")]
pub mod device;
#[cfg(feature = "drain")]
pub mod discover;
#[cfg(feature = "drain")]
pub mod drain;
pub mod format;
pub mod instrument;
#[cfg(feature = "drain")]
pub mod read;
#[cfg(feature = "drain")]
pub mod settings;
#[cfg(feature = "drain")]
pub mod store;
pub mod support;
#[cfg(feature = "drain")]
pub mod validate;

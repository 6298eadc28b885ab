//! The places of CUPTI's library, NVIDIA's interface for tools.

use std::ffi::OsString;
use std::path::PathBuf;

/// The names of the library. Newer ones first: they serve older drivers too.
pub const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];

/// Its folders in an installed toolkit.
const FOLDERS: [&str; 2] = ["extras/CUPTI/lib64", "lib64"];

/// Its folders next to that of the CUDA runtime in Python's packages.
pub const BESIDE_RUNTIME: [&str; 2] = [".", "../../cuda_cupti/lib"];

/// The folders of the library in the toolkits that the environment names, and in the usual one.
pub fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].map(variable);
    let toolkits = named.into_iter().flatten().map(PathBuf::from);
    toolkits
        .chain(["/usr/local/cuda".into()])
        .flat_map(|toolkit| FOLDERS.map(|folder| toolkit.join(folder)))
        .collect()
}

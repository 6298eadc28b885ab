//! The host files with device code that the process had, for the registry.
//!
//! HIP loads a code object when one of its kernels is first launched. An unused code object leaves no
//! profile, and a report does not know its functions. So librocov names the files that may have such code when
//! the process ends. It neither reads nor unpacks that code: `rocov run` or `rocov report` does, and finds
//! which code objects are instrumented and were not loaded. `ROCOV_ZERO=0` leaves the list out. The CUDA driver loads code
//! as late as HIP. Files with CUDA code are named if rocov makes it count. If rocov was
//! asked to put counters into code, or the device counts what it executes, code without counters is missed, too.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rocov::device::Agent;
use rocov::device::hsa::counts_executions;
use rocov::discover::CodeFile;

use super::fat_binaries;
use super::state::with_state;
use crate::elect::interposer::has_offload_runtime;
use crate::guest::elf_objects::maps::Maps;
use crate::guest::elf_objects::{self, Holder, Object, device_code};
use crate::guest::{environment, settings, topology};

/// Records the files when the process ends.
pub(super) fn record() {
    if !settings::zero() {
        return;
    }
    let mut files = files();
    with_state(|state| {
        let filter = state.session.filter();
        files.retain(|file| filter.is_open() || filter.admits(Some(&file.path)));
        // Loads and drains have searched for LLVM's runtime. Without any, it has counted nothing either, and a
        // search through all files takes long.
        if !files.is_empty() && !state.stands_down() {
            let is_traced = counts_executions() || settings::instrument().is_some();
            state.session.record_end(files, is_traced, agents);
        }
    });
}

/// Returns the files of fat binaries, and those with device code of OpenMP, or of CUDA if rocov makes that count. If librocov came in behind HIP or
/// later, it does not know the fat binaries. It then looks at the objects that are loaded now.
fn files() -> Vec<CodeFile> {
    let maps = OnceCell::new();
    let maps = || maps.get_or_init(Maps::read);
    let fat_binaries = fat_binaries::holders();
    let hip = fat_binaries.is_none().then_some(device_code::HIP);
    let openmp = has_offload_runtime().then_some(device_code::OPENMP);
    let cuda = settings::instrument().map(|_| device_code::CUDA);
    let kinds: Vec<_> = hip.into_iter().chain(openmp).chain(cuda).collect();
    let mut objects = match kinds.is_empty() {
        true => Vec::new(),
        false => elf_objects::all(),
    };
    let has_code = |object: &Object| kinds.iter().any(|kind| device_code::is_in(object, *kind));
    objects.retain(has_code);
    let mut starts: Vec<_> = objects.iter().filter_map(Object::start).collect();
    starts.sort_unstable();
    let others = starts.iter().zip(elf_objects::holders(&starts));
    let others = others.filter_map(|(start, holder)| Some((*start, holder?)));
    let holders = fat_binaries.into_iter().flatten().chain(others);
    holders
        .filter_map(|(address, holder)| file(&holder, || maps().file_at(address)))
        .collect()
}

/// Returns the file of an object. `mapped` finds it by the mappings of the process.
fn file(holder: &Holder, mapped: impl FnOnce() -> Option<PathBuf>) -> Option<CodeFile> {
    let path = match &holder.name {
        None => elf_objects::executable_file()?,
        Some(name) => {
            let name = Path::new(OsStr::from_bytes(name.to_bytes()));
            match elf_objects::is_plain(name) {
                true => name.to_owned(),
                // The library may be closed, or its directory not the working directory any more.
                false => mapped().or_else(|| fs::canonicalize(name).ok())?,
            }
        }
    };
    let build = holder.build.clone();
    let modified = match build {
        Some(_) => None,
        None => modified(&path),
    };
    Some(CodeFile {
        path,
        build,
        modified,
    })
}

/// Returns the time of a file's last change, in nanoseconds since 1970.
fn modified(path: &Path) -> Option<u64> {
    let data = fs::metadata(path).ok()?;
    let seconds = u64::try_from(data.mtime()).ok()?;
    let nanoseconds = u64::try_from(data.mtime_nsec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Returns the GPUs that HSA would show to a process that has loaded nothing.
fn agents() -> Vec<Agent> {
    let visible = environment::variable("ROCR_VISIBLE_DEVICES");
    let visible = visible.map(|visible| visible.to_string_lossy().into_owned());
    topology::agents(visible.as_deref())
}

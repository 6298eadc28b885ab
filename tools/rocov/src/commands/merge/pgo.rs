//! The flags that make clang optimize by indexed profiles, for each target and for the host.
//!
//! The driver takes a profile for only one target after `-Xarch_TARGET`. TARGET is the value of
//! `--offload-arch=`, with features. `-Xarch_host` is for the host. clang 19 drops those for GPU code
//! without a word, clang 22 takes them.
//!
//! The driver of each release keeps profiles from code for NVIDIA GPUs. After `-Xarch_`, it takes no `-Xclang`, but
//! `-Wp`, which hands its arguments to the front end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{self, Path};

use anyhow::{Context, Result};
use rocov::format::codeobject::CodeObject;
use rocov::support::diagnostic::fail;

use super::gathered::{Gathered, HOST};
use super::indexed::Indexed;
use crate::data::profile_header::Instrumentation;
use crate::llvm::CUDA_ARCH;
use crate::support::mmap;
use crate::term::shell_line::shell_line;

/// The flags, on one line.
///
/// # Errors
///
/// Fails if a profile is of no use for optimization, or a path cannot stand in $(rocov merge ...).
pub(super) fn flags(indexed: &[Indexed<'_>], gathered: &Gathered) -> Result<Vec<u8>> {
    let mut words: Vec<OsString> = Vec::new();
    for Indexed { arch, path, .. } in indexed {
        let instrumentation = Instrumentation::from_indexed(path)?;
        // The compiler may be started anywhere.
        let path = path::absolute(path).context("no working directory")?;
        let flag = flag(arch, instrumentation, &path)?;
        for target in targets(arch, gathered) {
            words.push(format!("-Xarch_{target}").into());
            words.push(flag.clone());
        }
    }
    shell_line(&words)
}

/// The flag after `-Xarch_TARGET` that has clang use the profile at `path`.
///
/// # Errors
///
/// Fails if the path cannot stand in the flag.
fn flag(arch: &str, instrumentation: Instrumentation, path: &Path) -> Result<OsString> {
    let is_cuda = arch.starts_with(CUDA_ARCH);
    if is_cuda && path.as_os_str().as_encoded_bytes().contains(&b',') {
        fail!(
            "`{}` contains a comma, at which clang splits the flag for NVIDIA GPUs",
            path.display();
            "choose a path without one"
        );
    }
    let option = match (is_cuda, instrumentation) {
        (false, Instrumentation::FrontEnd) => "-fprofile-instr-use=",
        (false, Instrumentation::Ir) => "-fprofile-use=",
        (true, Instrumentation::FrontEnd) => {
            "-Wp,-fprofile-instrument-use=clang,-fprofile-instrument-use-path="
        }
        (true, Instrumentation::Ir) => {
            "-Wp,-fprofile-instrument-use=llvm,-fprofile-instrument-use-path="
        }
    };
    let mut flag = OsString::from(option);
    flag.push(path);
    Ok(flag)
}

/// The targets after `-Xarch_` for the profiles of `arch`: those of their code objects, if device ELFs
/// were kept.
fn targets(arch: &str, gathered: &Gathered) -> BTreeSet<String> {
    if arch == HOST {
        return BTreeSet::from([HOST.to_owned()]);
    }
    let elfs = gathered.elfs();
    let kept = elfs
        .iter()
        .filter(|(code_object, _)| code_object.arch == arch)
        .filter_map(|(_, elf)| target(elf));
    let mut targets: BTreeSet<_> = kept.collect();
    if targets.is_empty() {
        targets.insert(arch.to_owned());
    }
    targets
}

/// The target of a device ELF. A damaged one has none: it is not needed here.
fn target(elf: &Path) -> Option<String> {
    let elf = mmap::map(elf).ok()?;
    CodeObject::parse(&elf[..]).ok()?.target().ok()
}

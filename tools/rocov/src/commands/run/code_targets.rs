//! The targets of the GPU code in a program, compared with those of the modelled GPUs.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rocov::format::bundle;
use rocov::format::codeobject::{CodeObject, is_generic};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use crate::cli::ModelGpus;
use crate::support::mmap;

/// The processors that AMD code in the file of `program` is for, such as `gfx906`. Empty if there is none, or if some
/// code cannot be read.
pub(crate) fn program_targets(program: &OsStr) -> BTreeSet<String> {
    let found = file_of(program).and_then(|path| mmap::map(&path).ok());
    let processors = found.and_then(|file| {
        let mut processors = BTreeSet::new();
        for container in bundle::containers(&file) {
            for image in container.ok()?.into_device_images() {
                let image = image.ok()?;
                let target = CodeObject::parse(&*image.bytes).ok()?.target().ok()?;
                let processor = target.split(':').next().unwrap_or_default();
                processors.insert(processor.to_owned());
            }
        }
        Some(processors)
    });
    processors.unwrap_or_default()
}

/// The line about `program`, whose code is for `processors`, if none of the modelled GPUs executes any of it.
pub(crate) fn misfit(
    program: &OsStr,
    processors: &BTreeSet<String>,
    gpus: &ModelGpus,
) -> Option<Diagnostic> {
    let modelled: BTreeSet<_> = gpus.targets().collect();
    let first = modelled.first()?;
    // Code for a generic target, such as gfx9-4-generic, is for several processors.
    let is_other = |target: &String| {
        target.starts_with("gfx") && !is_generic(target) && !modelled.contains(&**target)
    };
    if processors.is_empty() || !processors.iter().all(is_other) {
        return None;
    }
    let names: Vec<_> = processors.iter().map(String::as_str).collect();
    let other = names.iter().find(|target| ModelGpus::executes(target));
    let choose = other.map_or(String::new(), |target| {
        format!(", or choose --gpu model:{target}")
    });
    Some(diagnostic!(
        "`{}` contains code only for {}, but the modelled GPU is {}",
        program.display(),
        names.join(" and "),
        modelled.iter().copied().collect::<Vec<_>>().join(" and ");
        "compile with --offload-arch={first}{choose}"
    ))
}

/// The file that a program's name leads to, by `PATH` if it has no directory.
fn file_of(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let directories = env::var_os("PATH")?;
    let mut files = env::split_paths(&directories).map(|directory| directory.join(path));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_for_other_gpus_is_named() {
        let line = |processors: &[&str], gpus: &str| {
            let processors = processors
                .iter()
                .map(|processor| (*processor).to_owned())
                .collect();
            misfit(OsStr::new("./app"), &processors, &gpus.parse().unwrap())
        };
        let start = "`./app` contains code only for";
        for (processors, gpus, expected) in [
            (
                &["gfx900"][..],
                "model",
                "gfx900, but the modelled GPU is gfx90a: compile with --offload-arch=gfx90a",
            ),
            (
                &["gfx1100", "gfx900"],
                "model:gfx90a,gfx942",
                "gfx1100 and gfx900, but the modelled GPU is gfx90a and gfx942: compile with \
                 --offload-arch=gfx90a, or choose --gpu model:gfx1100",
            ),
        ] {
            let expected = format!("{start} {expected}");
            assert_eq!(
                line(processors, gpus).map(|line| line.to_string()),
                Some(expected)
            );
        }
        for (processors, gpus) in [
            (&[][..], "model"),
            (&["gfx900", "gfx90a"], "model"),
            (&["gfx9-generic"], "model"),
            (&["sm_90"], "model"),
            (&["gfx942"], "model:gfx90a,gfx942"),
        ] {
            assert_eq!(line(processors, gpus), None, "{processors:?}");
        }
    }
}

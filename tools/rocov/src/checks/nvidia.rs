//! NVIDIA's side of this machine: GPUs, the CUDA driver and CUPTI.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rocov::device::cuda::CUDA_LIBRARY;
use rocov::device::cuda::cupti_files::{NAMES, folders};
use rocov::settings::variables::CUPTI;

use super::finding::Finding;
use super::gpu::DEV;
use super::shared_library::{directories, find, version};

/// The GPUs that the kernel driver has.
const GPUS: &str = "/proc/driver/nvidia/gpus";
/// The file of the kernel driver.
const CONTROL: &str = "nvidiactl";
const DRIVER: &str = "libcuda.so";

/// The places to look in.
pub(crate) struct Places<'a> {
    /// The directory of devices.
    pub(crate) dev: &'a Path,
    /// The directory in which the kernel driver describes its GPUs.
    pub(crate) gpus: &'a Path,
}

impl Places<'_> {
    /// The places of this machine.
    pub(crate) fn usual() -> Self {
        Self {
            dev: Path::new(DEV),
            gpus: Path::new(GPUS),
        }
    }

    /// Returns whether the machine has NVIDIA's kernel driver.
    pub(crate) fn has_driver(&self) -> bool {
        self.dev.join(CONTROL).exists()
    }

    /// The GPUs, the CUDA driver and CUPTI. Nothing without the kernel driver.
    pub(crate) fn check(&self) -> Vec<Finding> {
        if !self.has_driver() {
            return Vec::new();
        }
        let mut findings: Vec<_> = self
            .models()
            .into_iter()
            .map(|model| Finding::ok("GPU", model))
            .collect();
        let directories = directories();
        findings.push(driver(&directories));
        findings.push(cupti(&directories, |name| env::var_os(name)));
        findings
    }

    /// The names of the GPUs.
    fn models(&self) -> Vec<String> {
        let entries = fs::read_dir(self.gpus).into_iter().flatten().flatten();
        let model = |gpu: &Path| {
            let text = fs::read_to_string(gpu.join("information")).ok()?;
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            let mut models = lines.filter(|(key, _)| *key == "Model");
            Some(models.next()?.1.trim().to_owned())
        };
        let mut models: Vec<_> = entries.filter_map(|entry| model(&entry.path())).collect();
        models.sort();
        models
    }
}

/// The CUDA driver, which programs load.
fn driver(directories: &[PathBuf]) -> Finding {
    let Some(path) = find(DRIVER, directories) else {
        return Finding::missing(
            "CUDA driver",
            format!("no {CUDA_LIBRARY}"),
            "install the driver's library for CUDA (on Debian libcuda1), or name its directory in LD_LIBRARY_PATH",
        );
    };
    let version = version(&path, DRIVER).map_or(String::new(), |version| format!("{version}, "));
    Finding::ok("CUDA driver", format!("{version}{}", path.display()))
}

/// CUPTI, which reports code to librocov.
fn cupti(directories: &[PathBuf], variable: impl Fn(&str) -> Option<OsString>) -> Finding {
    if let Some(named) = variable(CUPTI.name).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(named);
        return match path.exists() {
            true => Finding::ok("CUPTI", path.display()),
            false => Finding::missing(
                "CUPTI",
                format!("{CUPTI} names {}, which does not exist", path.display()),
                "name the library, or unset the variable",
            ),
        };
    }
    let all = directories.iter().cloned().chain(folders(variable));
    let mut files = all.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    match files.find(|file| file.exists()) {
        Some(file) => Finding::ok("CUPTI", file.display()),
        None => Finding::warning(
            "CUPTI",
            "not in the usual places",
            format!(
                "programs on NVIDIA GPUs need it, unless they contain it: install the CUPTI of the CUDA toolkit, or \
                 name its library in {CUPTI}"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::finding::State;

    #[test]
    fn gpus_are_named_by_the_driver() {
        let directory = tempfile::tempdir().unwrap();
        let gpus = directory.path().join("gpus");
        let places = Places {
            dev: directory.path(),
            gpus: &gpus,
        };
        assert_eq!(places.check(), []);
        fs::write(directory.path().join("nvidiactl"), "").unwrap();
        let gpu = gpus.join("0000:19:00.0");
        fs::create_dir_all(&gpu).unwrap();
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 18\n";
        fs::write(gpu.join("information"), text).unwrap();
        let found = places.check();
        assert_eq!(found[0], Finding::ok("GPU", "NVIDIA H200"));
        let subjects: Vec<_> = found
            .iter()
            .map(|finding| finding.subject.as_str())
            .collect();
        assert_eq!(subjects, ["GPU", "CUDA driver", "CUPTI"]);
    }

    #[test]
    fn the_driver_and_cupti_are_files() {
        let directory = tempfile::tempdir().unwrap();
        let here = [directory.path().canonicalize().unwrap()];
        let toolkit = directory.path().join("cuda");
        let variable = |name: &str| (name == "CUDA_HOME").then(|| toolkit.clone().into());
        assert_eq!(driver(&here).state, State::Missing);
        fs::write(here[0].join("libcuda.so.580.65.06"), "").unwrap();
        let found = driver(&here);
        assert!(found.found.starts_with("580.65.06, /"), "{found:?}");
        let folder = toolkit.join("extras/CUPTI/lib64");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(cupti(&here, variable).state, State::Warning);
        fs::write(folder.join("libcupti.so.12"), "").unwrap();
        assert_eq!(cupti(&here, variable).state, State::Ok);
        let named = |name: &str| (name == CUPTI.name).then(|| OsString::from("/nowhere/cupti"));
        assert_eq!(cupti(&here, named).state, State::Missing);
    }
}

//! The libraries that programs with GPU code run on.

use std::fs;
use std::path::PathBuf;

use super::finding::{Finding, State};
use super::shared_library::{directories, find, version};
use crate::llvm::rocm;

const HSA: &str = "libhsa-runtime64.so";
const HIP: &str = "libamdhip64.so";

/// HSA and HIP, and which ROCm they are of. A machine with an NVIDIA GPU may do without.
pub(crate) fn check(has_nvidia: bool) -> Vec<Finding> {
    let directories = directories();
    let all = [hsa(&directories), hip(&directories)];
    let is_needed = |finding: &Finding| !has_nvidia || finding.state == State::Ok;
    let mut findings: Vec<_> = all.into_iter().filter(is_needed).collect();
    let rocm = rocm();
    if let Ok(version) = fs::read_to_string(rocm.join(".info/version")) {
        let found = format!("{} in {}", version.trim(), rocm.display());
        findings.push(Finding::ok("ROCm", found));
    }
    findings
}

/// HSA, which all programs for AMD GPUs go through.
fn hsa(directories: &[PathBuf]) -> Finding {
    library("HSA runtime", HSA, directories).unwrap_or_else(|| {
        Finding::missing(
            "HSA runtime",
            format!("no {HSA}"),
            "install ROCm's runtime (on Debian libhsa-runtime64-1), or name its directory in \
             LD_LIBRARY_PATH",
        )
    })
}

/// HIP, which a program may do without.
fn hip(directories: &[PathBuf]) -> Finding {
    library("HIP runtime", HIP, directories).unwrap_or_else(|| {
        Finding::warning(
            "HIP runtime",
            format!("no {HIP}"),
            "HIP programs need it: install ROCm's (on Debian libamdhip64-5), or name its directory \
             in LD_LIBRARY_PATH; programs that use only HSA do not",
        )
    })
}

fn library(subject: &str, name: &str, directories: &[PathBuf]) -> Option<Finding> {
    let path = find(name, directories)?;
    let version = version(&path, name).map_or(String::new(), |version| format!("{version}, "));
    Some(Finding::ok(subject, format!("{version}{}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_need_hsa_and_may_do_without_hip() {
        let directory = tempfile::tempdir().unwrap();
        let directories = [directory.path().canonicalize().unwrap()];
        assert_eq!(hsa(&directories).state, State::Missing);
        assert_eq!(hip(&directories).state, State::Warning);
        fs::write(directories[0].join("libhsa-runtime64.so.1.5.0"), "").unwrap();
        let found = hsa(&directories);
        assert_eq!(found.state, State::Ok);
        assert!(found.found.starts_with("1.5.0, /"), "{}", found.found);
    }
}

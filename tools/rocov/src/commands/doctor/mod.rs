//! `rocov doctor`: checks this machine, and programs, for coverage of GPU code.
//!
//! Each check is a function that returns [`Finding`]s and prints nothing. [`runtime`] looks for the libraries
//! that programs run on, [`gpu`] and [`nvidia`] for GPUs, and [`compiler`] for compilers and LLVM's tools. [`environment`]
//! checks the variables that `rocov run` would pass on, and [`binary`] looks into programs. On a half
//! installed system these checks return findings, not errors.

mod binary;
mod compiled_later;
mod compiler;
mod environment;
mod finding;
mod gpu;
mod host_elf;
mod nvidia;
mod runtime;
mod shared_library;

use std::env;
use std::path::Path;

use serde::Serialize;

use crate::cli::DoctorArguments;
use crate::llvm::{Clang, LlvmTools};
use crate::system::installed;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::print;
use finding::{Finding, State};

/// The version of the output of `--json`. Fields may be added to it.
const SCHEMA: u32 = 1;

/// The directory of the kernel driver.
const DEV: &str = "/dev";
/// The GPUs that the kernel driver has, and CPUs.
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// NVIDIA's GPUs that the kernel driver has.
const NVIDIA_GPUS: &str = "/proc/driver/nvidia/gpus";

/// The output of `--json`.
#[derive(Serialize)]
struct Findings<'a> {
    rocov_doctor: u32,
    /// True if nothing is missing.
    complete: bool,
    findings: &'a [Finding],
}

/// Looks at everything; the status says whether something that coverage needs is missing.
pub(crate) fn doctor(arguments: &DoctorArguments) -> CommandResult {
    let compilers = Clang::all();
    let installed = LlvmTools::find(arguments.llvm_bin.as_deref());
    let has_model = installed::find(installed::MODEL_GPU).is_ok();
    let mut findings = libraries_of_rocov();
    let nvidia = nvidia::Places {
        dev: Path::new(DEV),
        gpus: Path::new(NVIDIA_GPUS),
    };
    findings.extend(runtime::check(nvidia.has_driver()));
    findings.extend(nvidia.check());
    let amd = gpu::check(Path::new(DEV), Path::new(NODES), has_model);
    // A machine needs the GPUs of one maker.
    let is_needed = |finding: &Finding| !nvidia.has_driver() || finding.state == State::Ok;
    findings.extend(amd.into_iter().filter(is_needed));
    findings.extend(compiler::check(&compilers));
    findings.extend(compiler::tools(&installed, arguments.llvm_bin.is_some()));
    findings.extend(environment::check(|name| env::var_os(name)));
    for path in &arguments.binaries {
        findings.extend(binary::check(path));
    }
    let complete = findings
        .iter()
        .all(|finding| finding.state != State::Missing);
    if arguments.json {
        print::json(&Findings {
            rocov_doctor: SCHEMA,
            complete,
            findings: &findings,
        })?;
    } else {
        let text: String = findings.iter().map(Finding::to_string).collect();
        print::text(text.as_bytes())?;
    }
    Ok(if complete { 0 } else { FAILED })
}

/// Checks the libraries that come with this command.
fn libraries_of_rocov() -> Vec<Finding> {
    let found = |subject, found: anyhow::Result<std::path::PathBuf>| match found {
        Ok(path) => Finding::ok(subject, path.display()),
        Err(error) => Finding::missing(subject, "not found", format!("{error:#}")),
    };
    vec![
        found("librocov", installed::find(installed::DRAIN)),
        found("device header", installed::find_header()),
    ]
}

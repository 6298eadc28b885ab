//! `rocov doctor`: checks this machine, and programs, for coverage of GPU code.

use std::env;
use std::path::Path;

use serde::Serialize;

use crate::checks::finding::{Finding, State};
use crate::checks::{binary, compiler, environment, gpu, nvidia, runtime};
use crate::cli::DoctorArguments;
use crate::llvm::{Clang, LlvmTools};
use crate::system::installed;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::print;

/// The version of the output of `--json`. Fields may be added to it.
const SCHEMA: u32 = 1;

/// The line about the next step on a machine that has what coverage needs.
const SELFTEST: &str = "\nnext: `rocov selftest` checks with a kernel of known counts that counts are right on \
    this machine\n";

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
    let nvidia = nvidia::Places::usual();
    findings.extend(runtime::check(nvidia.has_driver()));
    findings.extend(nvidia.check());
    let amd = gpu::check(Path::new(gpu::DEV), Path::new(gpu::NODES), has_model);
    // A machine needs the GPUs of one maker.
    let is_needed = |finding: &Finding| !nvidia.has_driver() || finding.state == State::Ok;
    findings.extend(amd.into_iter().filter(is_needed));
    findings.extend(compiler::check(&compilers));
    findings.extend(compiler::tools(&installed, arguments.llvm_bin.is_some()));
    findings.extend(environment::check(|name| env::var_os(name)));
    for path in &arguments.binaries {
        let checked = binary::check(path);
        findings.extend(checked.device.into_iter().chain(checked.host));
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
        let mut text: String = findings.iter().map(Finding::to_string).collect();
        if complete && arguments.binaries.is_empty() {
            text += SELFTEST;
        }
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

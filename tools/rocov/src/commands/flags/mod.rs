//! `rocov flags`: the compile flags that make GPU code drainable, for one clang or for hipRTC, and those that
//! link the drain itself.

mod clang_probe;
mod counting;
mod hiprtc;
mod word;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::support::diagnostic::fail;

use crate::cli::{Counters, FlagsArguments, Hiprtc};
use crate::llvm::{Clang, DeviceCompiler, Form, Language, for_device};
use crate::support::failure::failure;
use crate::system::installed;
use crate::term::exit_status::CommandResult;
use crate::term::print;
use crate::term::shell_line::shell_line;
use clang_probe::ClangProbe;
use counting::Counting;
use word::prefixed;

/// The first clang whose driver passes instrumentation on to the device code of OpenMP.
const OPENMP_SINCE: u32 = 20;

/// Prints the flags.
pub(crate) fn flags(arguments: &FlagsArguments) -> CommandResult {
    if arguments.link {
        print::text(&link_line(&installed::find_static()?)?)?;
        return Ok(0);
    }
    if arguments.hiprtc.is_some() {
        hiprtc::check(arguments.counters)?;
    }
    if arguments.hiprtc == Some(Hiprtc::Header) {
        print::text(&hiprtc::header()?)?;
        return Ok(0);
    }
    let clang = match &arguments.clang {
        Some(path) => Clang::at(path)?,
        None => Clang::newest()?,
    };
    if arguments.openmp && clang.llvm < OPENMP_SINCE {
        return Err(failure!(
            "{} is LLVM {}, which does not instrument OpenMP target regions",
            clang.path.display(), clang.llvm;
            "use clang {OPENMP_SINCE} or later"
        )
        .into());
    }
    if arguments.openmp && arguments.counters == Some(Counters::Reached) {
        return Err(failure!(
            "--counters=reached misses loops that were reached in OpenMP target regions";
            "use --counters=llvm, or leave it out"
        )
        .into());
    }
    let compiler = DeviceCompiler::new(&clang, &arguments.offload_arch)?;
    check_language(compiler.language, arguments)?;
    if compiler.form == Form::FrontEnd && clang.llvm <= 14 {
        // Its AMDGPU Attributor pass follows the data record's reference to itself (the relative
        // counter pointer) without end.
        return Err(failure!(
            "{} is LLVM {}, which crashes on instrumented GPU code",
            clang.path.display(), clang.llvm;
            "use clang 15 or later"
        )
        .into());
    }
    let probe = ClangProbe::run(&compiler)?;
    let header = installed::find_header()?;
    let wish = match arguments.hiprtc {
        Some(_) => Some(Counters::Llvm),
        None => arguments.counters,
    };
    let counting = Counting::choose(wish, arguments.uniformity, &compiler)?;
    if arguments.hiprtc.is_some() {
        let archs = &arguments.offload_arch;
        let options = hiprtc::options(compiler.form, archs, &probe, &counting, &header);
        print::text(&hiprtc::lines(&options)?)?;
        return Ok(0);
    }
    // PTX is not linked by lld.
    let is_hip = compiler.language == Language::Hip;
    let own = Own {
        header,
        host_headers: arguments
            .host
            .then(installed::find_host_headers)
            .transpose()?,
        linker: match arguments.openmp {
            true if probe.units_clash => Some(installed::find_openmp_linker()?),
            false if is_hip && (probe.units_clash || probe.lacks_runtime) => {
                Some(installed::find_linker()?)
            }
            _ => None,
        },
    };
    let line = line(
        compiler.form,
        compiler.language,
        arguments,
        &probe,
        &counting,
        &own,
    )?;
    print::text(&line)?;
    Ok(0)
}

/// Checks that CUDA code can be compiled with the other arguments.
fn check_language(language: Language, arguments: &FlagsArguments) -> Result<()> {
    if language == Language::Hip {
        if let Some(path) = &arguments.cuda_path {
            fail!(
                "--cuda-path={} is for NVIDIA GPUs", path.display();
                "also use --offload-arch=sm_90, or that of your GPU"
            );
        }
        return Ok(());
    }
    if arguments.openmp || arguments.hiprtc.is_some() {
        fail!(
            "--openmp and --hiprtc are for AMD GPUs";
            "leave out --offload-arch=sm_*, or use it alone"
        );
    }
    if arguments.uniformity {
        fail!(
            "clang counts only on AMD GPUs how often all lanes of a wave are active";
            "leave out --uniformity"
        );
    }
    Ok(())
}

/// The files of rocov that a compilation needs.
struct Own {
    /// The device header.
    header: PathBuf,
    /// The directory of the headers for host code, if that is instrumented.
    host_headers: Option<PathBuf>,
    /// The linker that fixes [`ClangProbe::units_clash`] and [`ClangProbe::lacks_runtime`].
    linker: Option<PathBuf>,
}

/// All flags on one line, separated by spaces.
fn line(
    form: Form,
    language: Language,
    arguments: &FlagsArguments,
    probe: &ClangProbe,
    counting: &Counting,
    own: &Own,
) -> Result<Vec<u8>> {
    let mut words: Vec<OsString> = form
        .instrumentation(arguments.host)
        .into_iter()
        .map(OsString::from)
        .collect();
    let mut device: Vec<OsString> = language
        .llvm_options()
        .iter()
        .flat_map(|option| for_device(format!("-mllvm={option}")))
        .collect();
    device.extend(probe.for_device());
    device.extend(counting.for_device());
    match form {
        // Such a clang warns of them if it links no device code.
        Form::FrontEnd => words.extend(quiet(device)),
        Form::Driver => words.extend(device),
    }
    words.extend(counting.for_all());
    words.push("-include".into());
    words.push(own.header.as_os_str().to_owned());
    words.extend(
        own.host_headers
            .iter()
            .map(|directory| prefixed("-I", directory)),
    );
    let directory = own.linker.as_deref().and_then(Path::parent);
    if arguments.openmp {
        words.extend(openmp_linking(probe, directory));
    } else if let Some(directory) = directory {
        // clang takes `lld` for device code from the directories of -B first. It takes the linker of host
        // code too, but none of its names is there.
        words.push(prefixed("-B", directory));
    }
    for arch in &arguments.offload_arch {
        words.push(format!("--offload-arch={arch}").into());
    }
    if let Some(path) = &arguments.cuda_path {
        words.push(prefixed("--cuda-path=", path));
    }
    shell_line(&words)
}

/// The flags that link the device code of OpenMP. clang-linker-wrapper calls a clang of its own for it, which
/// takes `ld.lld` from `linker`.
fn openmp_linking(probe: &ClangProbe, linker: Option<&Path>) -> Vec<OsString> {
    let mut words = probe.openmp_linking();
    words.extend(linker.map(|linker| prefixed("-Wl,--device-compiler=-B", linker)));
    quiet(words)
}

/// The words, of which clang does not warn if it does not use them.
fn quiet(words: Vec<OsString>) -> Vec<OsString> {
    if words.is_empty() {
        return words;
    }
    let start = ["--start-no-unused-arguments".into()].into_iter();
    let end = ["--end-no-unused-arguments".into()];
    start.chain(words).chain(end).collect()
}

/// The flags that link `library`, on one line.
///
/// Nothing in a program refers to the drain, so the flags make the linker want it. An executable exports no
/// symbol that its libraries do not ask for: not the hooks if HIP is loaded later, not the block by
/// which the copies in a process find each other.
fn link_line(library: &Path) -> Result<Vec<u8>> {
    const WANTED: &str = "rocov_roles_v1";
    const EXPORTED: [&str; 7] = [
        "hsa_init",
        "hsa_executable_freeze",
        "hsa_executable_destroy",
        "hsa_queue_create",
        "hsa_queue_destroy",
        "hsa_shut_down",
        WANTED,
    ];
    let mut words = vec![OsString::from(format!("-Wl,--undefined={WANTED}"))];
    words.extend(EXPORTED.map(|name| format!("-Wl,--export-dynamic-symbol={name}").into()));
    words.push(library.as_os_str().to_owned());
    shell_line(&words)
}

#[cfg(test)]
mod tests;

//! `rocov flags`: the compile flags that make GPU code drainable, for one clang, and those that link
//! the drain itself.

mod clang_probe;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use crate::cli::FlagsArguments;
use crate::llvm::Clang;
use crate::system::{command, installed};
use crate::term::exit_status::CommandResult;
use crate::term::print;
use crate::term::shell_line::shell_line;
use clang_probe::ClangProbe;

/// A target that every clang with an AMDGPU back end knows, to ask about its flags.
const ANY_ARCH: &str = "gfx90a";

/// The first clang whose driver passes instrumentation on to the device code of OpenMP.
const OPENMP_SINCE: u32 = 20;

/// The form of the flags by which a clang instruments device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The driver's flags reach the device compilation.
    Driver,
    /// The driver keeps them from it, so they go to the front end directly. `-Xarch_device` takes no
    /// option with an argument and refuses `-Xclang`, so the host's front end gets them, too.
    FrontEnd,
}

/// Prints the flags.
pub(crate) fn flags(arguments: &FlagsArguments) -> CommandResult {
    if arguments.link {
        print::text(&link_line(&installed::find_static()?)?)?;
        return Ok(0);
    }
    let clang = match &arguments.clang {
        Some(path) => Clang::at(path)?,
        None => Clang::newest()?,
    };
    if arguments.openmp && clang.llvm < OPENMP_SINCE {
        return Err(anyhow!(
            "{} is LLVM {}, which does not count in the target regions of OpenMP: give --clang {OPENMP_SINCE} \
             or later",
            clang.path.display(),
            clang.llvm
        )
        .into());
    }
    let form = Form::of(&clang, &arguments.offload_arch)?;
    if form == Form::FrontEnd && clang.llvm <= 14 {
        // Its AMDGPU Attributor pass follows the data record's reference to itself (the relative
        // counter pointer) without end.
        return Err(anyhow!(
            "{} is LLVM {}, which crashes on instrumented GPU code: give --clang 15 or later",
            clang.path.display(),
            clang.llvm
        )
        .into());
    }
    let probe = ClangProbe::of(&clang, form, &arguments.offload_arch)?;
    let own = Own {
        header: installed::find_header()?,
        linker: match arguments.openmp {
            true if probe.units_clash => Some(installed::find_openmp_linker()?),
            false if probe.units_clash || probe.lacks_runtime => Some(installed::find_linker()?),
            _ => None,
        },
    };
    let line = line(form, arguments, &probe, &own)?;
    print::text(&line)?;
    Ok(0)
}

impl Form {
    /// Asks `clang` whether it passes instrumentation on to a device compilation.
    fn of(clang: &Clang, archs: &[String]) -> Result<Self> {
        let mut command = Command::new(&clang.path);
        // -### prints the commands without running them.
        command.args([
            "-###",
            "-x",
            "hip",
            "--cuda-device-only",
            "-nogpuinc",
            "-nogpulib",
        ]);
        if archs.is_empty() {
            command.arg(format!("--offload-arch={ANY_ARCH}"));
        }
        command.args(archs.iter().map(|arch| format!("--offload-arch={arch}")));
        command.args(["-fprofile-instr-generate", "-S", "/dev/null"]);
        let output = command::ended(&mut command)?;
        if !output.status.success() {
            bail!(
                "{} says: {}",
                clang.path.display(),
                command::reason(&output)
            );
        }
        let commands = String::from_utf8_lossy(&output.stderr);
        Ok(if commands.contains("\"-fprofile-instrument=clang\"") {
            Self::Driver
        } else {
            Self::FrontEnd
        })
    }

    /// The flags that instrument device code, and host code too if the user wants it.
    fn instrumentation(self, host: bool) -> Vec<&'static str> {
        const DRIVER: [&str; 3] = [
            "-fprofile-instr-generate",
            "-fcoverage-mapping",
            // Without it counters are plain loads and stores, and lanes lose each other's updates.
            "-fprofile-update=atomic",
        ];
        const FRONT_END: [&str; 3] = [
            "-fprofile-instrument=clang",
            "-fcoverage-mapping",
            "-fprofile-update=atomic",
        ];
        match (self, host) {
            (Self::Driver, true) => DRIVER.to_vec(),
            (Self::Driver, false) => each_after("-Xarch_device", DRIVER),
            (Self::FrontEnd, host) => {
                let mut flags = each_after("-Xclang", FRONT_END);
                // Tells the device header that the code is instrumented: clang before 19 has no macro
                // for it.
                flags.push("-DROCOV_DEVICE_INSTRUMENTED");
                if host {
                    // Only these link LLVM's host runtime, which writes the host's profile.
                    flags.extend(["-fprofile-instr-generate", "-fcoverage-mapping"]);
                }
                flags
            }
        }
    }
}

fn each_after(prefix: &'static str, flags: [&'static str; 3]) -> Vec<&'static str> {
    flags.into_iter().flat_map(|flag| [prefix, flag]).collect()
}

/// The files of rocov that a compilation needs.
struct Own {
    /// The device header.
    header: PathBuf,
    /// The linker that mends [`ClangProbe::units_clash`] and [`ClangProbe::lacks_runtime`].
    linker: Option<PathBuf>,
}

/// All flags on one line, separated by spaces.
fn line(form: Form, arguments: &FlagsArguments, probe: &ClangProbe, own: &Own) -> Result<Vec<u8>> {
    let mut words: Vec<OsString> = form
        .instrumentation(arguments.host)
        .into_iter()
        .map(OsString::from)
        .collect();
    words.extend(probe.flags(form).into_iter().map(OsString::from));
    words.push("-include".into());
    words.push(own.header.as_os_str().to_owned());
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
    shell_line(&words)
}

/// The flags that link the device code of OpenMP. clang-linker-wrapper calls a clang of its own for it, which
/// takes `ld.lld` from `linker`.
fn openmp_linking(probe: &ClangProbe, linker: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--start-no-unused-arguments".into()];
    words.extend(probe.openmp_linking().into_iter().map(OsString::from));
    words.extend(linker.map(|linker| prefixed("-Wl,--device-compiler=-B", linker)));
    if words.len() == 1 {
        return Vec::new();
    }
    words.push("--end-no-unused-arguments".into());
    words
}

fn prefixed(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
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

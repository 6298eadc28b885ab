//! The way in which device code counts: the user's choice, or the best that this compiler has.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::Result;
use flate2::Crc;
use rocov::support::diagnostic::fail;

use crate::cli::Counters;
use crate::llvm::fast_counters::{OLDEST, plugin, plugin_flags};
use crate::llvm::{Clang, DeviceCompiler, Language};
use crate::support::paths::user_directory;
use crate::term::print;

/// The options of clang for counters of one byte, which a lane writes only if the byte does not say yet that
/// the block was reached.
///
/// clang's front end supports the first, and lld does not, so the driver must not pass it on to the linking of
/// device code.
const REACHED: [&str; 2] = [
    "-enable-single-byte-coverage",
    "-conditional-counter-update",
];

/// The macro that selects counters of one byte in the device header.
const REACHED_MACRO: &str = "-DROCOV_REACHED";

/// The macro that keeps the plugin from making copies of the counters, for NVIDIA's GPUs.
const NO_COPIES_MACRO: &str = "-DROCOV_LLVM_COUNTERS";

/// The macro that makes the plugin keep the uniform counters in code with a coverage mapping.
const UNIFORMITY_MACRO: &str = "-DROCOV_UNIFORMITY";

/// The oldest clang with uniform counters.
const UNIFORMITY_SINCE: u32 = 23;

/// The array of a kernel's counters in LLVM IR.
const COUNTERS: &str = "\n@__profc_";

/// A way of counting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counting {
    pub(super) way: Way,
    /// The plugin that only gives LLVM's own counters names that the CUDA driver accepts.
    pub(super) names: Option<PathBuf>,
    /// Set if the user wants uniform counters.
    pub(super) uniformity: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// By the plugin in this file.
    Fast(PathBuf),
    Llvm,
    Reached,
}

impl Counting {
    /// The way that the user wants. Without a wish, fast if possible, else LLVM's, with a line on standard error
    /// about fast counters, once for each compiler.
    ///
    /// # Errors
    ///
    /// Fails if the compiler does not have that way, or if `uniformity` asks for uniform counters and that way has none.
    pub(super) fn choose(
        wish: Option<Counters>,
        uniformity: bool,
        compiler: &DeviceCompiler<'_>,
    ) -> Result<Self> {
        let clang = compiler.clang;
        if uniformity && clang.llvm < UNIFORMITY_SINCE {
            fail!(
                "{} is LLVM {}, which does not count how often all lanes of a wave are active",
                clang.path.display(), clang.version();
                "use clang {UNIFORMITY_SINCE} or later, or leave out --uniformity"
            );
        }
        if uniformity && wish == Some(Counters::Reached) {
            fail!(
                "--counters=reached does not count how often all lanes of a wave are active";
                "use --counters=fast or --counters=llvm, or leave out --uniformity"
            );
        }
        let way = match wish {
            Some(Counters::Llvm) => Way::Llvm,
            Some(Counters::Reached) if counts_bytes(compiler)? => Way::Reached,
            Some(Counters::Reached) => {
                fail!(
                    "{} is LLVM {}, which cannot record only whether code was reached",
                    clang.path.display(), clang.version();
                    "use clang 20 or later, or --counters=llvm"
                )
            }
            Some(Counters::Fast) | None => match plugin(compiler)? {
                Some(plugin) => Way::Fast(plugin),
                None if wish.is_some() => {
                    fail!(
                        "no plugin for fast counters fits {} (LLVM {})",
                        clang.path.display(), clang.version();
                        "{}, or use --counters=llvm", remedy(clang)
                    )
                }
                None => {
                    say_once(clang);
                    Way::Llvm
                }
            },
        };
        let names = match (&way, compiler.language) {
            (Way::Llvm | Way::Reached, Language::Cuda) => names(compiler)?,
            _ => None,
        };
        Ok(Self {
            way,
            names,
            uniformity,
        })
    }

    /// The flags for the compilation of device code.
    pub(super) fn for_device(&self) -> Vec<OsString> {
        match &self.way {
            Way::Fast(plugin) => plugin_flags(plugin).to_vec(),
            Way::Llvm | Way::Reached => {
                let names = self.names.iter();
                names.flat_map(|plugin| plugin_flags(plugin)).collect()
            }
        }
    }

    /// The flags that host code gets too, without effect if it is not instrumented.
    pub(super) fn for_all(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if self.way == Way::Reached {
            words.extend(reached_options());
            words.push(REACHED_MACRO.into());
        }
        if self.names.is_some() {
            words.push(NO_COPIES_MACRO.into());
        }
        if self.uniformity && matches!(self.way, Way::Fast(_)) {
            words.push(UNIFORMITY_MACRO.into());
        }
        words
    }
}

/// The plugin that gives counters names that the CUDA driver accepts. Without one, a line on standard error says what
/// cannot be counted.
fn names(compiler: &DeviceCompiler<'_>) -> Result<Option<PathBuf>> {
    let plugin = plugin(compiler)?;
    if plugin.is_none() {
        print::message(format_args!(
            "without rocov's plugin, {} gives counters names that PTX or the CUDA driver does not accept, such as \
             those of static functions: {}, or name a clang that has a plugin in --clang",
            compiler.clang.path.display(),
            remedy(compiler.clang)
        ));
    }
    Ok(plugin)
}

/// Prints a line about fast counters, once for each compiler: a build asks for flags again and again. A file in the user's
/// cache remembers it.
fn say_once(clang: &Clang) {
    let path = clang
        .path
        .canonicalize()
        .unwrap_or_else(|_| clang.path.clone());
    let mut hash = Crc::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    let said = user_directory("XDG_CACHE_HOME", ".cache").map(|cache| {
        let name = format!("{}-{:08x}", clang.version(), hash.sum());
        cache.join("without-fast-counters").join(name)
    });
    let is_first = said.as_deref().is_none_or(|said| {
        let made = said.parent().map(fs::create_dir_all);
        made.is_some_and(|result| result.is_err()) || File::create_new(said).is_ok()
    });
    if is_first {
        print::message(format_args!(
            "kernels run slowly with LLVM's own counters, chosen because no plugin fits {} (LLVM {}): {} for fast ones \
             (chapter \"The compiler plugin\"); --counters=llvm silences this line, which is printed once for each compiler",
            clang.path.display(),
            clang.version(),
            remedy(clang)
        ));
    }
}

/// The next step to fast counters.
fn remedy(clang: &Clang) -> String {
    if clang.llvm < OLDEST {
        return format!("use clang {OLDEST} or later");
    }
    let path = clang.path.display();
    format!("run `rocov pass build --clang {path}`")
}

fn reached_options() -> impl Iterator<Item = OsString> {
    let words = |option| ["-Xclang", "-mllvm", "-Xclang", option];
    REACHED.into_iter().flat_map(words).map(OsString::from)
}

/// Returns whether this compiler can count in bytes. LLVM 15 and 16 support the first option for counters in IR
/// only.
fn counts_bytes(compiler: &DeviceCompiler<'_>) -> Result<bool> {
    let options: Vec<_> = reached_options().collect();
    let ir = compiler.ir(&options)?.unwrap_or_default();
    let counters = ir
        .split(COUNTERS)
        .nth(1)
        .and_then(|rest| rest.lines().next());
    Ok(counters.is_some_and(|line| line.contains(" x i8] ")))
}

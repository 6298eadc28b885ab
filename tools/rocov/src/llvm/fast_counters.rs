//! The means by which a clang counts fast, in copies of the counters: the compiler plugin `librocov_pass`, or
//! the device header for the calls by which clang counts from 23 on.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Clang, DeviceCompiler, for_device};
use crate::system::installed;

/// The oldest LLVM that the plugin can be made for.
pub(crate) const OLDEST: u32 = 19;

/// The start of the name in LLVM IR of the table of copies, which code that counts fast has.
const TABLE: &str = "\n@__rocov_copies_table";

/// The means of a clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FastCounters {
    /// The plugin in this file.
    Plugin(PathBuf),
    /// The device header.
    Header,
}

impl FastCounters {
    /// The means of this compiler: a plugin if one fits, because it also keeps counts in registers, else the
    /// device header at `header`. `None` if it has none.
    ///
    /// # Errors
    ///
    /// Fails if clang cannot be run.
    pub(crate) fn of(compiler: &DeviceCompiler<'_>, header: &Path) -> Result<Option<Self>> {
        if let Some(plugin) = plugin(compiler)? {
            return Ok(Some(Self::Plugin(plugin)));
        }
        Ok(header_counts(compiler, header)?.then_some(Self::Header))
    }
}

impl fmt::Display for FastCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(file) => file.display().fmt(f),
            Self::Header => f.write_str("the device header"),
        }
    }
}

/// Returns whether the device header at `header` makes optimised code of this compiler count in copies.
///
/// # Errors
///
/// Fails if clang cannot be run.
pub(crate) fn header_counts(compiler: &DeviceCompiler<'_>, header: &Path) -> Result<bool> {
    has_table(compiler, &["-O1".into(), "-include".into(), header.into()])
}

/// The installed plugin that fits this compiler, if there is one.
///
/// # Errors
///
/// Fails if clang cannot be run.
pub(crate) fn plugin(compiler: &DeviceCompiler<'_>) -> Result<Option<PathBuf>> {
    let names = [
        plugin_name(compiler.clang),
        format!("librocov_pass-{}.so", compiler.clang.llvm),
    ];
    for directory in installed::plugin_directories()? {
        for file in names.each_ref().map(|name| directory.join(name)) {
            if file.is_file() && fits(compiler, &file)? {
                return Ok(Some(file));
            }
        }
    }
    Ok(None)
}

/// The file name of a plugin that is made for this clang only.
pub(crate) fn plugin_name(clang: &Clang) -> String {
    format!("librocov_pass-{}.so", clang.version())
}

/// Returns whether this compiler takes the plugin at `plugin`, and device code then counts in copies.
///
/// # Errors
///
/// Fails if clang cannot be run.
pub(crate) fn fits(compiler: &DeviceCompiler<'_>, plugin: &Path) -> Result<bool> {
    let mut options: Vec<OsString> = vec!["-O1".into()];
    options.extend(plugin_flags(plugin));
    has_table(compiler, &options)
}

/// The flags that have the plugin at `plugin` change device code.
pub(crate) fn plugin_flags(plugin: &Path) -> [OsString; 2] {
    let mut flag = OsString::from("-fpass-plugin=");
    flag.push(plugin);
    for_device(flag)
}

fn has_table(compiler: &DeviceCompiler<'_>, options: &[OsString]) -> Result<bool> {
    Ok(compiler.ir(options)?.is_some_and(|ir| ir.contains(TABLE)))
}

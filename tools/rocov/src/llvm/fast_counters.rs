//! The means by which a clang counts fast, in registers and in copies of the counters: the compiler plugin
//! `librocov_pass`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Clang, DeviceCompiler, for_device};
use crate::system::installed;

/// The oldest LLVM that the plugin can be made for.
pub(crate) const OLDEST: u32 = 19;

/// The start of the name in LLVM IR of the table of copies, which code that counts fast has.
const TABLE: &str = "\n@__rocov_copies_table";

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
    Ok(compiler.ir(&options)?.is_some_and(|ir| ir.contains(TABLE)))
}

/// The flags that have the plugin at `plugin` change device code.
pub(crate) fn plugin_flags(plugin: &Path) -> [OsString; 2] {
    let mut flag = OsString::from("-fpass-plugin=");
    flag.push(plugin);
    for_device(flag)
}

//! `rocov extract`: writes the device ELFs in a file to files of their own.

use std::collections::BTreeSet;

use anyhow::anyhow;
use rocov::format::bundle;
use rocov::format::bundle::{BundleError, DeviceImage};
use rocov::store::layout::device_elf_name;
use rocov::store::write_if_changed;

use crate::cli::ExtractArguments;
use crate::support::mmap;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::print;

/// Writes each device ELF of the file to a file of its own, or lists them.
///
/// # Errors
///
/// Fails if the file cannot be opened, has no device ELF of the chosen targets, or one cannot be
/// written. Faults in parts of the file go to standard error and into the status.
pub(crate) fn extract(arguments: &ExtractArguments) -> CommandResult {
    let path = &arguments.file;
    let file = mmap::map(path)?;
    let mut status = 0;
    let mut done = BTreeSet::new();
    let mut other_targets = BTreeSet::new();
    for image in bundle::images(&file) {
        let image = match image {
            Ok(image) => image,
            Err(error) => {
                let remedy = match error {
                    BundleError::HostFile(_) => {
                        ": give a program, a library, an object file or a bundle"
                    }
                    _ => "",
                };
                print::message(format_args!("{}: {error}{remedy}", path.display()));
                status = FAILED;
                continue;
            }
        };
        let target = target(&image);
        if !arguments
            .target
            .as_ref()
            .is_none_or(|glob| glob.matches(target))
        {
            other_targets.insert(target.to_owned());
        } else if done.insert(device_elf_name(target, &image.identity)) {
            // Several files or translation units can bring the same one.
            take_out(&image, arguments)?;
        }
    }
    if let (true, Some(glob)) = (done.is_empty(), &arguments.target)
        && !other_targets.is_empty()
    {
        let targets: Vec<_> = other_targets.iter().map(String::as_str).collect();
        return Err(anyhow!(
            "no device ELF for {glob} in {}: give --target one of those that it has: {}",
            path.display(),
            targets.join(", ")
        )
        .into());
    }
    if done.is_empty() && status == 0 {
        return Err(anyhow!(
            "no device ELF in {}: give a program or library with kernels",
            path.display()
        )
        .into());
    }
    Ok(status)
}

/// Prints one line for `image`, which is written before unless it is only to be listed.
fn take_out(image: &DeviceImage<'_>, arguments: &ExtractArguments) -> anyhow::Result<()> {
    let target = target(image);
    let line = if arguments.list {
        format!(
            "{target:<24} {} {:>10} bytes\n",
            image.identity,
            image.bytes.len(),
        )
    } else {
        let path = arguments
            .output
            .join(device_elf_name(target, &image.identity));
        write_if_changed(&path, &image.bytes)?;
        format!("{}\n", path.display())
    };
    print::text(line.as_bytes())
}

fn target<'a>(image: &'a DeviceImage<'_>) -> &'a str {
    image.target.as_deref().unwrap_or("unknown")
}

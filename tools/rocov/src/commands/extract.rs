//! `rocov extract`: writes the device ELFs and the PTX in a file to files of their own.

use std::collections::BTreeSet;

use anyhow::Result;
use rocov::format::bundle;
use rocov::format::bundle::{BundleError, Container, DeviceImage};
use rocov::format::codeobject::{Identity, sanitize_target};
use rocov::store::layout::device_elf_name;
use rocov::store::write_if_changed;
use rocov::support::diagnostic::Remedy;

use crate::cli::ExtractArguments;
use crate::data::ptx::Ptx;
use crate::support::failure::failure;
use crate::support::mmap;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::print;

/// A device ELF or PTX that can be written.
struct Extract {
    target: String,
    identity: Identity,
    bytes: Vec<u8>,
    /// The name of its file.
    name: String,
}

impl Extract {
    fn from_elf(image: &DeviceImage<'_>) -> Self {
        let target = image.target.as_deref().unwrap_or("unknown");
        Self {
            target: target.to_owned(),
            identity: image.identity.clone(),
            bytes: image.bytes.to_vec(),
            name: device_elf_name(target, &image.identity),
        }
    }

    fn from_ptx(ptx: &Ptx<'_>) -> Result<Self> {
        let identity = Identity::from_reader(ptx.text)?;
        Ok(Self {
            target: ptx.architecture.to_owned(),
            bytes: ptx.text.to_vec(),
            name: format!("{}.{identity}.ptx", sanitize_target(ptx.architecture)),
            identity,
        })
    }
}

/// All that can be written of a container, and its errors.
fn contents(
    container: Result<Container<'_>, BundleError>,
) -> Result<Vec<Result<Extract, BundleError>>> {
    let container = match container {
        Ok(container) => container,
        Err(error) => return Ok(vec![Err(error)]),
    };
    let mut contents = Vec::new();
    for ptx in container.images.iter().filter_map(Ptx::from_image) {
        contents.push(Ok(Extract::from_ptx(&ptx)?));
    }
    let elfs = container.into_device_images().into_iter();
    contents.extend(elfs.map(|elf| elf.map(|elf| Extract::from_elf(&elf))));
    Ok(contents)
}

/// Writes each device ELF and each PTX of the file to a file of its own, or lists them.
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
    for container in bundle::containers(&file) {
        for image in contents(container)? {
            let image = match image {
                Ok(image) => image,
                Err(error) => {
                    print::message(error.diagnostic().within(path.display()));
                    status = FAILED;
                    continue;
                }
            };
            let glob = arguments.target.as_ref();
            if !glob.is_none_or(|glob| glob.matches(&image.target)) {
                other_targets.insert(image.target);
            } else if done.insert(image.name.clone()) {
                // Several files or translation units can bring the same one.
                take_out(&image, arguments)?;
            }
        }
    }
    if let (true, Some(glob)) = (done.is_empty(), &arguments.target)
        && !other_targets.is_empty()
    {
        let targets: Vec<_> = other_targets.iter().map(String::as_str).collect();
        return Err(failure!(
            "no device ELF for {glob} in {}", path.display();
            "use --target with one of its targets: {}", targets.join(", ")
        )
        .into());
    }
    if done.is_empty() && status == 0 {
        return Err(failure!(
            "no device ELF in {}", path.display();
            "name a program or library with kernels"
        )
        .into());
    }
    Ok(status)
}

/// Prints one line for `image`, which is written before unless it is only to be listed.
fn take_out(image: &Extract, arguments: &ExtractArguments) -> Result<()> {
    if arguments.list {
        let (target, identity, size) = (&image.target, &image.identity, image.bytes.len());
        let line = format!("{target:<24} {identity} {size:>10} bytes");
        return print::lines(|out| out.line(line));
    }
    let path = arguments.output.join(&image.name);
    write_if_changed(&path, &image.bytes)?;
    print::text(format!("{}\n", path.display()).as_bytes())
}

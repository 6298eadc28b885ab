//! Containers of code objects: bundles, offload binaries, host files with these in them.

use rocov::format::bundle::{Container, Content, Image, Packing};
use rocov::format::{bundle, ptx};
use rocov::support::diagnostic::Remedy;

use super::code_object;
use super::description::Description;
use crate::term::plural::count;

pub(super) fn describe(file: &[u8]) -> Description {
    let mut description = Description::default();
    for container in bundle::containers(file) {
        match container {
            Ok(container) if container.packing == Packing::Alone => {
                for image in &container.images {
                    code_object::describe(&mut description, &image.bytes);
                }
            }
            Ok(container) => describe_container(&mut description, &container),
            Err(error) => description.damaged(error.diagnostic()),
        }
    }
    description
}

fn describe_container(description: &mut Description, container: &Container<'_>) {
    let packing = match container.packing {
        Packing::Alone | Packing::Bundle => String::new(),
        Packing::Compressed {
            version,
            method,
            unpacked,
        } => format!(", version {version}, unpacks to {unpacked} by {method}"),
        Packing::OffloadBinary { version, unpacked } => {
            let unpacked = unpacked.map(|size| format!(", unpacks to {size}"));
            format!(", version {version}{}", unpacked.unwrap_or_default())
        }
        Packing::FatBinary { unpacked: 0 } | Packing::Kpack { unpacked: None } => String::new(),
        Packing::Kpack {
            unpacked: Some(unpacked),
        } => format!(", unpacks to {unpacked} by zstd"),
        Packing::FatBinary { unpacked } => format!(", unpacks to {unpacked}"),
    };
    let section = container
        .section
        .as_ref()
        .map(|name| format!(" in {}", name));
    description.line(
        1,
        format_args!(
            "{} of {} at {:#x}{}{packing}",
            container.packing.name(),
            count(container.size, "byte"),
            container.offset,
            section.unwrap_or_default(),
        ),
    );
    for image in &container.images {
        describe_image(description, image);
    }
    for error in &container.damage {
        description.damaged(error.diagnostic());
    }
}

fn describe_image(description: &mut Description, image: &Image<'_>) {
    let id = &image.id;
    let content = match image.content() {
        Content::Empty => return description.line(2, format_args!("{id}: nothing")),
        Content::CodeObject => match code_object::summary(&image.bytes) {
            Ok(summary) => format!("code object {summary}"),
            Err(error) => {
                description.damaged(error.diagnostic().within(id));
                "damaged code object".to_owned()
            }
        },
        Content::Bitcode => "LLVM bitcode".to_owned(),
        Content::Relocatable => "part of a cubin, not linked yet".to_owned(),
        Content::Ptx if ptx::is_instrumented(&*image.bytes) => "PTX, instrumented".to_owned(),
        Content::Ptx => "PTX".to_owned(),
        Content::Container | Content::Other => "something else".to_owned(),
    };
    let size = count(image.bytes.len(), "byte");
    let offset = image.offset;
    description.line(2, format_args!("{id}: {size} at {offset:#x}, {content}"));
}

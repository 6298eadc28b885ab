//! Describes code objects: their targets, sections and kernels.

use rocov::format::codeobject::cuda::with_sections;
use rocov::format::codeobject::{CodeObject, CodeObjectError, Identity, Kernel};
use rocov::support::diagnostic::Remedy;

use super::description::Description;
use crate::support::demangle::demangle;
use crate::term::plural::count;

/// All of a code object that is a file.
pub(super) fn describe(description: &mut Description, elf: &[u8]) {
    let headline = |more: &str| format!("code object, {}{more}", count(elf.len(), "byte"));
    let code_object = match CodeObject::parse(elf) {
        Ok(code_object) => code_object,
        Err(error) => {
            description.line(1, headline(""));
            return description.damaged(error.diagnostic());
        }
    };
    let clang = code_object
        .clang_version()
        .map_or(String::new(), |version| format!(", clang {version}"));
    description.line(1, headline(&clang));
    fact(description, "target", code_object.target());
    fact(description, "identity", Identity::from_image(elf));
    fact(description, "build id", code_object.build_id().map(hex));
    let with_sections = with_sections(elf);
    let profiled = CodeObject::parse(&*with_sections).unwrap_or(code_object);
    description.line(
        1,
        format_args!(
            "{:<13} {}",
            "instrumented",
            yes_or_no(profiled.profile_sections().are_instrumented())
        ),
    );
    match CodeObject::parse(elf).and_then(|code_object| code_object.sections()) {
        Ok(sections) => {
            for section in sections.iter().filter(|section| section.size > 0) {
                let name = &section.name;
                description.line(
                    1,
                    format_args!(
                        "section {name:<24} {:>10} bytes at {:#x}",
                        section.size, section.address
                    ),
                );
            }
        }
        Err(error) => description.damaged(error.diagnostic()),
    }
    match profiled.kernels() {
        Ok(kernels) if profiled.is_cubin() => cuda_table(description, &kernels),
        Ok(kernels) => table(description, &kernels),
        Err(error) => description.damaged(error.diagnostic()),
    }
}

/// A code object in a container, on one line.
pub(super) fn summary(elf: &[u8]) -> Result<String, CodeObjectError> {
    let with_sections = with_sections(elf);
    let code_object = CodeObject::parse(&*with_sections)?;
    let kernels = code_object.kernels()?.len();
    let counted = match code_object.profile_sections().are_instrumented() {
        true => ", instrumented",
        false => "",
    };
    let identity = Identity::from_image(elf)?;
    Ok(format!("{identity}, {}{counted}", count(kernels, "kernel")))
}

fn fact<T: ToString>(description: &mut Description, name: &str, value: Result<T, CodeObjectError>) {
    match value {
        Ok(value) => description.line(1, format_args!("{name:<13} {}", value.to_string())),
        Err(error) => description.damaged(error.diagnostic().within(name)),
    }
}

fn hex(id: Option<&[u8]>) -> String {
    match id {
        Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => "none".to_owned(),
    }
}

fn yes_or_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

/// The kernels with their resources: registers, and bytes of LDS, scratch and arguments.
fn table(description: &mut Description, kernels: &[Kernel]) {
    if kernels.is_empty() {
        return description.line(1, "no kernels");
    }
    description.line(
        1,
        " VGPRs SGPRs AGPRs     LDS scratch kernarg counted  kernel",
    );
    for kernel in kernels {
        let name = demangle(&kernel.name).unwrap_or_else(|| kernel.name.clone());
        description.line(
            1,
            format_args!(
                "{:>6} {:>5} {:>5} {:>7} {:>7} {:>7} {:>7}  {}",
                kernel.vgprs,
                kernel.sgprs,
                kernel.agprs,
                kernel.group_size,
                kernel.private_size,
                kernel.kernarg_size,
                yes_or_no(kernel.instrumented),
                name
            ),
        );
    }
}

/// The kernels of a cubin with their resources: registers of a thread, bytes of shared, local and constant memory and of
/// arguments, and instructions that spill.
fn cuda_table(description: &mut Description, kernels: &[Kernel]) {
    if kernels.is_empty() {
        return description.line(1, "no kernels");
    }
    description.line(
        1,
        "registers  shared   local constant    args spills counted  kernel",
    );
    for kernel in kernels {
        let name = demangle(&kernel.name).unwrap_or_else(|| kernel.name.clone());
        description.line(
            1,
            format_args!(
                "{:>9} {:>7} {:>7} {:>8} {:>7} {:>6} {:>7}  {}",
                kernel.vgprs,
                kernel.group_size,
                kernel.private_size,
                kernel.constant_size,
                kernel.kernarg_size,
                kernel.vgpr_spills,
                yes_or_no(kernel.instrumented),
                name
            ),
        );
    }
}

//! The kernels in the AMDGPU metadata note (LLVM's AMDGPUUsage, "Code Object V3 Metadata" and
//! later). Without a runtime, the interpreter fills in the kernel arguments from this note.

use super::msgpack::Value;

/// A kernel in a code object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMetadata {
    /// Its mangled name.
    pub name: String,
    /// The symbol of its descriptor.
    pub symbol: String,
    /// Size of the kernel arguments in bytes, hidden ones included.
    pub kernarg_size: u64,
    /// LDS per workgroup in bytes, without dynamic LDS.
    pub group_segment_size: u64,
    /// Scratch per work-item in bytes.
    pub private_segment_size: u64,
    /// Its arguments, hidden ones included.
    pub parameters: Vec<Parameter>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Offset in the kernel arguments, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// The provider of its value.
    pub kind: ParameterKind,
}

/// The provider of an argument's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// The program.
    Explicit,
    /// The runtime. Holds the value kind without `hidden_`, such as `block_count_x`.
    Hidden(String),
}

/// The kernels in the metadata note; `None` if it is malformed.
pub(super) fn kernels(note: &[u8]) -> Option<Vec<KernelMetadata>> {
    let metadata = Value::decode(note)?;
    metadata
        .array("amdhsa.kernels")
        .iter()
        .map(kernel)
        .collect()
}

fn kernel(value: &Value) -> Option<KernelMetadata> {
    Some(KernelMetadata {
        name: value.string(".name")?.to_owned(),
        symbol: value.string(".symbol")?.to_owned(),
        kernarg_size: value.number(".kernarg_segment_size")?,
        group_segment_size: value.number(".group_segment_fixed_size")?,
        private_segment_size: value.number(".private_segment_fixed_size")?,
        parameters: value
            .array(".args")
            .iter()
            .map(parameter)
            .collect::<Option<_>>()?,
    })
}

fn parameter(value: &Value) -> Option<Parameter> {
    let kind = match value.string(".value_kind")?.strip_prefix("hidden_") {
        Some(hidden) => ParameterKind::Hidden(hidden.to_owned()),
        None => ParameterKind::Explicit,
    };
    Some(Parameter {
        offset: value.number(".offset")?,
        size: value.number(".size")?,
        kind,
    })
}

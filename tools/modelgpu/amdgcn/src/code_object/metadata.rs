//! The kernels in the AMDGPU metadata note (LLVM's AMDGPUUsage, "Code Object V3 Metadata" and
//! later). Without a runtime, the interpreter fills in the kernel arguments from this note.

use serde::Deserialize;

/// The parts of the note that the interpreter needs.
#[derive(Deserialize)]
struct Note {
    #[serde(rename = "amdhsa.kernels", default)]
    kernels: Vec<KernelMetadata>,
}

/// A kernel in a code object's metadata.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct KernelMetadata {
    /// Its mangled name.
    #[serde(rename = ".name")]
    pub name: String,
    /// The symbol of its descriptor.
    #[serde(rename = ".symbol")]
    pub symbol: String,
    /// Size of the kernel arguments in bytes, hidden ones included.
    #[serde(rename = ".kernarg_segment_size")]
    pub kernarg_size: u64,
    /// LDS per workgroup in bytes, without dynamic LDS.
    #[serde(rename = ".group_segment_fixed_size")]
    pub group_segment_size: u64,
    /// Scratch per work-item in bytes.
    #[serde(rename = ".private_segment_fixed_size")]
    pub private_segment_size: u64,
    /// Its arguments, hidden ones included.
    #[serde(rename = ".args", default)]
    pub parameters: Vec<Parameter>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Parameter {
    /// Offset in the kernel arguments, in bytes.
    #[serde(rename = ".offset")]
    pub offset: u64,
    /// Size in bytes.
    #[serde(rename = ".size")]
    pub size: u64,
    /// The provider of its value.
    #[serde(rename = ".value_kind")]
    pub kind: ParameterKind,
}

/// The provider of an argument's value.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub enum ParameterKind {
    /// The program.
    Explicit,
    /// The runtime. Holds the value kind without `hidden_`, such as `block_count_x`.
    Hidden(String),
}

impl From<String> for ParameterKind {
    fn from(kind: String) -> Self {
        match kind.strip_prefix("hidden_") {
            Some(hidden) => Self::Hidden(hidden.to_owned()),
            None => Self::Explicit,
        }
    }
}

/// The kernels in the metadata note; `None` if it is malformed.
pub(super) fn kernels(note: &[u8]) -> Option<Vec<KernelMetadata>> {
    rmp_serde::from_slice::<Note>(note)
        .ok()
        .map(|note| note.kernels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kernels_and_their_arguments_are_read() {
        let note = json!({
            "amdhsa.version": [1, 2],
            "amdhsa.kernels": [{
                ".name": "k",
                ".symbol": "k.kd",
                ".kernarg_segment_size": 70_000,
                ".group_segment_fixed_size": 0,
                ".private_segment_fixed_size": 200,
                ".uses_dynamic_stack": false,
                ".args": [
                    { ".offset": 0, ".size": 8, ".value_kind": "global_buffer", ".name": "to" },
                    { ".offset": 8, ".size": 4, ".value_kind": "hidden_block_count_x" },
                ],
            }],
        });
        let note = rmp_serde::to_vec(&note).unwrap();
        let argument = |offset, size, kind| Parameter { offset, size, kind };
        let kernel = KernelMetadata {
            name: "k".into(),
            symbol: "k.kd".into(),
            kernarg_size: 70_000,
            group_segment_size: 0,
            private_segment_size: 200,
            parameters: vec![
                argument(0, 8, ParameterKind::Explicit),
                argument(8, 4, ParameterKind::Hidden("block_count_x".into())),
            ],
        };
        assert_eq!(kernels(&note), Some(vec![kernel]));
        for length in 0..note.len() {
            assert_eq!(kernels(&note[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn damaged_notes_are_refused() {
        let no_kernels = rmp_serde::to_vec(&json!({ "amdhsa.version": [1, 2] })).unwrap();
        assert_eq!(kernels(&no_kernels), Some(Vec::new()));
        let incomplete = json!({ "amdhsa.kernels": [{ ".name": "k" }] });
        assert_eq!(kernels(&rmp_serde::to_vec(&incomplete).unwrap()), None);
        assert_eq!(kernels(&[0x91; 100_000]), None, "nested without end");
        assert_eq!(kernels(&[0xdd, 0xff, 0xff, 0xff, 0xff]), None);
    }
}

//! The device images of a container.

use std::ops::Range;

use object::elf::{ELFMAG, EM_AMDGPU, ET_REL};

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::formats::starts_container;
use crate::format::codeobject::cuda::EM_CUDA;
use crate::format::codeobject::{CodeObjectError, Identity};

/// A container's entry for one target.
#[derive(Clone, Debug)]
pub struct Image<'data> {
    /// The container's name for it: producer, triple and processor, such as
    /// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-` or `host-x86_64-unknown-linux-gnu-`.
    pub id: String,
    /// Processor and features if the image is for a GPU, such as `gfx90a:xnack-` or `sm_90`.
    pub target: Option<String>,
    /// Its offset in the file, or in the unpacked data.
    pub offset: usize,
    /// Its bytes.
    pub bytes: Bytes<'data>,
}

/// The kind of an image's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No bytes, as in the host's entry.
    Empty,
    /// An ELF for AMDGPU or CUDA.
    CodeObject,
    /// LLVM bitcode, which becomes a code object at link time (`-fgpu-rdc`).
    Bitcode,
    /// A part of a cubin, which becomes one at link time (`-fgpu-rdc`).
    Relocatable,
    /// PTX, which the CUDA driver compiles.
    Ptx,
    /// A container inside the container.
    Container,
    /// Something else.
    Other,
}

impl<'data> Image<'data> {
    /// An image by its id in a bundle: the bytes `place` of the container at `start` in `file`.
    pub(super) fn from_bundle(
        id: String,
        file: &Bytes<'data>,
        start: usize,
        place: Range<usize>,
    ) -> Self {
        let offset = start + place.start;
        Image {
            target: amdgcn_target(&id).or(cuda_target(&id)).map(str::to_owned),
            id,
            offset,
            bytes: file.get(offset..start + place.end).unwrap_or_default(),
        }
    }

    /// The image of a file that is one code object.
    pub(super) fn alone(bytes: Bytes<'data>) -> Self {
        Image {
            id: String::new(),
            target: None,
            offset: 0,
            bytes,
        }
    }

    /// The kind of its bytes.
    #[must_use]
    pub fn content(&self) -> Content {
        let bytes = &*self.bytes;
        if bytes.is_empty() {
            Content::Empty
        } else if is_relocatable(bytes) {
            Content::Relocatable
        } else if is_code_object(bytes) {
            Content::CodeObject
        } else if is_ptx(bytes) {
            Content::Ptx
        } else if bytes.starts_with(b"BC\xc0\xde") {
            Content::Bitcode
        } else if starts_container(bytes) {
            Content::Container
        } else {
            Content::Other
        }
    }

    /// The identity of its code object.
    ///
    /// # Errors
    /// Fails if the image is not a code object.
    pub fn identity(&self) -> Result<Identity, CodeObjectError> {
        Identity::from_image(&self.bytes)
    }
}

/// Returns whether `bytes` start with the header of an ELF for AMDGPU or CUDA.
pub(super) fn is_code_object(bytes: &[u8]) -> bool {
    let machine = elf_half(bytes, 18);
    machine == Some(EM_AMDGPU.0) || machine == Some(EM_CUDA)
}

/// Returns whether `bytes` start with the header of an ELF for CUDA that is not linked.
fn is_relocatable(bytes: &[u8]) -> bool {
    elf_half(bytes, 18) == Some(EM_CUDA) && elf_half(bytes, 16) == Some(ET_REL.0)
}

/// The half-word at `at` of an ELF's header.
fn elf_half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..)?.first_chunk()?;
    bytes
        .starts_with(&ELFMAG)
        .then(|| u16::from_le_bytes(*half))
}

/// Returns whether `bytes` are PTX: text with a directive for the version before all others (PTX ISA, "PTX Module
/// Directives").
fn is_ptx(bytes: &[u8]) -> bool {
    const START: usize = 4096;
    let start = &bytes[..bytes.len().min(START)];
    let mut lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let code = lines.find(|line| !line.is_empty() && !line.starts_with(b"//"));
    code.is_some_and(|line| line.starts_with(b".version"))
}

/// The processor of an id such as `cuda-nvptx64-nvidia-cuda--sm_90`.
fn cuda_target(id: &str) -> Option<&str> {
    let (_producer, triple_and_target) = id.split_once('-')?;
    let target = triple_and_target.strip_prefix("nvptx64-nvidia-cuda-")?;
    let target = target.strip_prefix('-').unwrap_or(target);
    (!target.is_empty()).then_some(target)
}

/// Processor and features of an id such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`. `None` for ids of the
/// host and of other devices.
fn amdgcn_target(id: &str) -> Option<&str> {
    let (_producer, triple_and_target) = id.split_once('-')?;
    let target = triple_and_target.strip_prefix("amdgcn-amd-amdhsa-")?;
    // The environment part of the triple is empty, hence another dash. clang before 13 left it out.
    let target = target.strip_prefix('-').unwrap_or(target);
    (!target.is_empty()).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_that_of_amdgcn_entries_alone() {
        for (id, target) in [
            ("hip-amdgcn-amd-amdhsa--gfx942", Some("gfx942")),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
                Some("gfx90a:xnack-"),
            ),
            ("openmp-amdgcn-amd-amdhsa--gfx90a", Some("gfx90a")),
            ("hip-amdgcn-amd-amdhsa-gfx906", Some("gfx906")),
            ("hip-amdgcn-amd-amdhsa--", None),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", None),
            ("openmp-nvptx64-nvidia-cuda--sm_70", None),
            ("host-x86_64-unknown-linux--", None),
            ("", None),
        ] {
            assert_eq!(amdgcn_target(id), target, "{id}");
        }
        for (id, target) in [
            ("openmp-nvptx64-nvidia-cuda--sm_70", Some("sm_70")),
            ("cuda-nvptx64-nvidia-cuda-sm_90a", Some("sm_90a")),
            ("cuda-nvptx64-nvidia-cuda--", None),
            ("hip-amdgcn-amd-amdhsa--gfx942", None),
        ] {
            assert_eq!(cuda_target(id), target, "{id}");
        }
    }

    #[test]
    fn ptx_begins_with_its_version() {
        let text = b"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 8.8\n.target sm_90\n";
        assert!(is_ptx(text));
        assert!(!is_ptx(b"// .version 8.8\n"));
        assert!(!is_ptx(b""));
    }
}

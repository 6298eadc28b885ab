//! The device images of a container, and the checks of a list of images.

use std::collections::BTreeSet;
use std::ops::Range;

use object::elf::{ELFMAG, EM_AMDGPU, ET_REL};

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::{Container, Packing, starts_container};
use crate::format::codeobject::cuda::EM_CUDA;
use crate::format::codeobject::{CodeObjectError, Identity};

/// The most bytes of a target id: triple, processor and features take a hundred.
const MAX_ID: usize = 1024;

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
    pub(super) fn of_bundle(
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
        Identity::of(&self.bytes)
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

/// The entries of one container, while they are read.
pub(super) struct Entries<'data> {
    what: &'static str,
    start: usize,
    images: Vec<Image<'data>>,
    damage: Vec<BundleError>,
}

impl<'data> Entries<'data> {
    /// Makes an empty list for the container `what` at `start`.
    pub(super) fn new(what: &'static str, start: usize) -> Self {
        Entries {
            what,
            start,
            images: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// A target id as text. All entries may have their id in the same bytes, so the limit holds for each.
    pub(super) fn id(&self, id: &[u8]) -> Result<String, BundleError> {
        const SHOWN: usize = 64;
        if id.len() > MAX_ID {
            return Err(BundleError::LongId {
                what: self.what,
                offset: self.start,
                found: id.len(),
                limit: MAX_ID,
            });
        }
        str::from_utf8(id)
            .map(str::to_owned)
            .map_err(|_| BundleError::TargetId {
                what: self.what,
                offset: self.start,
                found: id[..id.len().min(SHOWN)].to_vec(),
            })
    }

    /// Adds an image, or its error.
    pub(super) fn push(&mut self, image: Result<Image<'data>, BundleError>) {
        match image {
            Ok(image) => self.images.push(image),
            Err(error) => self.damage.push(error),
        }
    }

    /// The container of these entries. It ends with the last image, and has at least `header_bytes`. Leaves
    /// out images that are not what they claim to be, and adds each to the damage.
    pub(super) fn into_container(
        mut self,
        header_bytes: usize,
        packing: Packing,
    ) -> Container<'data> {
        self.leave_out_overlapping();
        self.leave_out_duplicates();
        self.leave_out_foreign();
        let ends = self
            .images
            .iter()
            .map(|image| image.offset + image.bytes.len());
        let end = ends.max().unwrap_or(0).max(self.start + header_bytes);
        Container {
            section: None,
            offset: self.start,
            size: end - self.start,
            packing,
            images: self.images,
            damage: self.damage,
        }
    }

    /// Images that share bytes could turn a small file into many large images.
    fn leave_out_overlapping(&mut self) {
        let (what, offset) = (self.what, self.start);
        self.images.sort_by_key(|image| image.offset);
        let mut last: Option<(String, usize)> = None;
        let damage = &mut self.damage;
        self.images.retain(|image| {
            if image.bytes.is_empty() {
                return true;
            }
            match &last {
                Some((other, end)) if *end > image.offset => {
                    damage.push(BundleError::Overlap {
                        id: image.id.clone(),
                        what,
                        offset,
                        start: image.offset,
                        other: other.clone(),
                        end: *end,
                    });
                    false
                }
                _ => {
                    last = Some((image.id.clone(), image.offset + image.bytes.len()));
                    true
                }
            }
        });
    }

    fn leave_out_duplicates(&mut self) {
        let (what, offset) = (self.what, self.start);
        let mut ids = BTreeSet::new();
        let damage = &mut self.damage;
        self.images.retain(|image| {
            let is_first = image.bytes.is_empty() || ids.insert(image.id.clone());
            if !is_first {
                damage.push(BundleError::Duplicate {
                    id: image.id.clone(),
                    what,
                    offset,
                });
            }
            is_first
        });
    }

    /// Leaves out images for GPUs that are neither code objects nor what becomes one.
    fn leave_out_foreign(&mut self) {
        let (what, offset) = (self.what, self.start);
        let damage = &mut self.damage;
        self.images.retain(|image| {
            let found = match image.content() {
                _ if image.target.is_none() => return true,
                Content::Empty
                | Content::CodeObject
                | Content::Bitcode
                | Content::Relocatable
                | Content::Ptx => return true,
                Content::Container => "a bundle itself".to_owned(),
                Content::Other => {
                    let bytes = &image.bytes[..image.bytes.len().min(8)];
                    format!("{bytes:02x?}")
                }
            };
            damage.push(BundleError::NotCodeObject {
                id: image.id.clone(),
                what,
                offset,
                found,
            });
            false
        });
    }
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

//! The entries of a container, and the checks of a list of images.

use std::collections::BTreeSet;

use crate::format::bundle::container::{Container, Packing};
use crate::format::bundle::error::BundleError;
use crate::format::bundle::image::{Content, Image};

/// The most bytes of a target id: triple, processor and features take a hundred.
const MAX_ID: usize = 1024;

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

//! PTX, the code that the CUDA driver compiles as a program runs.

use rocov::format::bundle::{Content, Image};

/// The PTX of an image.
#[derive(Debug)]
pub(crate) struct Ptx<'a> {
    /// Its virtual architecture, such as `compute_90`.
    pub(crate) architecture: &'a str,
    pub(crate) text: &'a [u8],
}

impl<'a> Ptx<'a> {
    /// `None` if the image is something else.
    pub(crate) fn from_image(image: &'a Image<'_>) -> Option<Self> {
        let architecture = image.id.rsplit_once("--").map_or("", |(_, last)| last);
        (image.content() == Content::Ptx).then_some(Self {
            architecture,
            text: &image.bytes,
        })
    }
}

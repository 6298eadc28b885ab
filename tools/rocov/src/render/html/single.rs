//! A report in a single file: its first page, with all other pages compressed in it, which its script shows.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::assets::{SCRIPT, STYLE};
use super::folder::{Folder, INDEX};
use crate::term::print;

/// The endings of a file; the path of a folder has another one.
const ENDINGS: [&str; 2] = ["html", "htm"];

/// The place that the pages of a report are written to.
pub(super) enum Site {
    Folder(Folder),
    File(SingleFile),
}

impl Site {
    /// Makes the place at `path`: a file if it ends in `.html` and is no folder, else a folder.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default();
        if ENDINGS.iter().any(|known| ending == *known) && !path.is_dir() {
            return Ok(Self::File(SingleFile::new(path)));
        }
        Ok(Self::Folder(Folder::new(path)?))
    }

    /// Makes the page `name` with the bytes that `write` writes.
    ///
    /// # Errors
    ///
    /// Fails if it fails, or the page cannot be made.
    pub(super) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Folder(folder) => folder.write(name, write),
            Self::File(file) => file.write(name, write),
        }
    }

    /// Puts the report in the place of the one before it. Returns the path of its first page.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, removed or moved.
    pub(super) fn publish(self) -> Result<PathBuf> {
        match self {
            Self::Folder(folder) => folder.publish(),
            Self::File(file) => file.publish(),
        }
    }
}

/// A file with a report in the making.
pub(super) struct SingleFile {
    path: PathBuf,
    parts: RefCell<Parts>,
}

/// The parts of the file.
#[derive(Default)]
struct Parts {
    /// The first page.
    index: Vec<u8>,
    /// The names of all pages and their bytes, compressed, as base64.
    pages: Vec<(String, String)>,
}

impl SingleFile {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            parts: RefCell::default(),
        }
    }

    fn write(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let compressed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        let compressed = compressed.with_context(|| format!("cannot compress {name}"))?;
        let mut parts = self.parts.borrow_mut();
        let page = (name.to_owned(), STANDARD.encode(compressed));
        parts.pages.push(page);
        if name == INDEX {
            parts.index = bytes;
        }
        Ok(())
    }

    fn publish(self) -> Result<PathBuf> {
        let Parts { index, pages } = self.parts.into_inner();
        let index = String::from_utf8(index).context("the first page is no text")?;
        let index = index
            .replacen(
                r#"<link rel="stylesheet" href="assets/report.css">"#,
                &format!("<style>\n{STYLE}</style>"),
                1,
            )
            .replacen(
                r#"<script src="assets/report.js"></script>"#,
                &format!("<script>\n{SCRIPT}</script>"),
                1,
            );
        let (start, end) = index
            .rsplit_once("</body>")
            .context("the first page has no end")?;
        let parent = self.path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot write to {}", parent.display()))?;
        print::to_file_or_stdout(Some(&self.path), |out| {
            out.write_all(start.as_bytes())?;
            for (name, page) in &pages {
                // Names have plain characters only.
                writeln!(
                    out,
                    r#"<script type="application/octet-stream" data-page="{name}">{page}</script>"#
                )?;
            }
            Ok(write!(out, "</body>{end}")?)
        })?;
        Ok(self.path)
    }
}

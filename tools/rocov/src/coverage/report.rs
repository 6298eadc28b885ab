//! A report from the profiles and device ELFs of each arch: what is read for it, and what becomes of
//! it.

use super::collect::{Input, collect};
use super::model::Side;
use super::options::Options;
use super::output;
use super::view::View;
use crate::files::replace;
use crate::llvm_tools::Installed;
use crate::{child, profdata};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The arch of a column of host code.
const HOST: &str = "host";

/// A device ELF and its raw profiles.
pub(crate) struct CodeObject<'a> {
    /// The file that the user knows.
    pub(crate) binary: PathBuf,
    pub(crate) elf: PathBuf,
    pub(crate) profiles: Vec<&'a Path>,
}

/// What is to be reported.
#[derive(Default)]
pub(crate) struct Report {
    inputs: Vec<Input>,
    /// Indexed profiles of single code objects.
    parts: Option<TempDir>,
    /// What a text says of an arch before its table.
    about: BTreeMap<String, String>,
}

impl Report {
    /// Adds an arch: its code objects, the indexed profile `merged` of all of them, and what a text
    /// says of it.
    ///
    /// # Errors
    ///
    /// When profiles cannot be merged.
    pub(crate) fn add_arch(
        &mut self,
        arch: &str,
        objects: Vec<CodeObject<'_>>,
        merged: &Path,
        about: String,
        installed: &Installed,
    ) -> Result<()> {
        let is_alone = objects.len() == 1;
        for object in objects {
            // Two code objects can have the same function: only by itself each has its own counts.
            let profile = if is_alone {
                merged.to_path_buf()
            } else {
                let part = self.part()?;
                profdata::merge(&object.profiles, &part, installed, &[])?;
                part
            };
            self.inputs.push(Input {
                side: Side::Device,
                arch: arch.to_owned(),
                binary: object.binary,
                objects: vec![object.elf],
                profile,
            });
        }
        self.about.insert(arch.to_owned(), about);
        Ok(())
    }

    /// Adds the host: `binaries`, and the indexed profile `merged` of all of them.
    pub(crate) fn add_host(&mut self, binaries: &[PathBuf], merged: &Path, about: String) {
        self.inputs.push(Input {
            side: Side::Host,
            arch: HOST.to_owned(),
            binary: binaries[0].clone(),
            objects: binaries.to_vec(),
            profile: merged.to_path_buf(),
        });
        self.about.insert(HOST.to_owned(), about);
    }

    /// Writes the report, and returns what it does not reach of what it must. With anything to reach,
    /// what is `missing` from the report is that too, and what llvm-cov warns of.
    ///
    /// # Errors
    ///
    /// When a tool fails or the report cannot be written.
    pub(crate) fn write(
        self,
        options: &Options,
        installed: &Installed,
        missing: Vec<String>,
    ) -> Result<Vec<String>> {
        let selection = options.selection()?;
        let place = |path: &str| selection.place(path);
        let collected = collect(&self.inputs, installed.newest(), place)?;
        child::say(&collected.warnings);
        let view = View::new(&collected.model, options.by, |path| selection.admits(path));
        let format = options.format();
        match &options.output_path {
            Some(path) => replace(path, |file| {
                let file = File::create(file).context("cannot open a temporary file")?;
                output::write(&view, format, &self.about, &mut BufWriter::new(file))
            })?,
            None => {
                let mut out = BufWriter::new(child::Stdout);
                output::write(&view, format, &self.about, &mut out)
                    .context("cannot write to standard output")?;
            }
        }
        let mut broken = options.gates.broken(&view);
        if options.gates.are_set() {
            broken.extend(missing);
            broken.extend(collected.warnings);
        }
        Ok(broken)
    }

    /// A path for the indexed profile of one more code object.
    fn part(&mut self) -> Result<PathBuf> {
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => TempDir::new().context("cannot make a temporary directory")?,
        };
        let path = parts.path().join(format!("{}.profdata", self.inputs.len()));
        self.parts = Some(parts);
        Ok(path)
    }
}

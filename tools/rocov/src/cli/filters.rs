//! The options that select sources, which several subcommands have.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use regex::Regex;
use rocov::support::diagnostic::Diagnostic;

use super::exclusions::ExclusionArguments;
use crate::coverage::{
    Exclusions, PathMap, PathMaps, Rules, Selection, SourceTexts, View, ViewInput,
};
use crate::data::labels::LabelPattern;

/// The options that select the contents of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Contents")]
pub(crate) struct Filters {
    /// Report only this arch; can be repeated
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Vec<String>,

    /// Report only sources whose name, absolute path or relative path matches; can be repeated
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Leave out sources whose name, absolute path or relative path matches; can be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Leave out sources if any part of their path matches, as llvm-cov does; can be repeated
    #[arg(long, value_name = "REGEX")]
    ignore_filename_regex: Vec<Regex>,

    #[command(flatten)]
    exclusions: ExclusionArguments,

    #[command(flatten)]
    moved: MovedSources,

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,
}

impl Filters {
    /// The selection of sources that these options make.
    ///
    /// # Errors
    ///
    /// Fails if a glob is not valid.
    pub(crate) fn selection(&self) -> Result<Selection> {
        Selection::new(
            self.moved.maps(),
            &self.include,
            &self.exclude,
            &self.ignore_filename_regex,
        )
    }

    /// The view of data directories, or of a report in JSON, under these options: the counts of these labels, or all if
    /// there are none. Returns also a line for each pattern that matches nothing.
    ///
    /// # Errors
    ///
    /// Fails if it has nothing to report, or cannot be read.
    pub(crate) fn view(
        &self,
        paths: &[&Path],
        labels: &[LabelPattern],
        objects: &[PathBuf],
        llvm_bin: Option<&Path>,
    ) -> Result<(View, Vec<Diagnostic>)> {
        let input = ViewInput {
            paths,
            labels,
            selection: &self.selection()?,
            archs: &self.arch,
            objects,
            all_builds: self.all_builds,
            exclusions: self.exclusions(SourceTexts::default()),
            rules: Rules::Own,
            llvm_bin,
        };
        input.view()
    }

    /// The exclusions, with those of comments in these texts.
    pub(crate) fn exclusions(&self, texts: SourceTexts) -> Exclusions {
        self.exclusions.exclusions(texts)
    }
}

/// The options that give the places of sources.
#[derive(Debug, Args)]
pub(crate) struct MovedSources {
    /// Look in TO for sources that were compiled in FROM; can be repeated
    #[arg(long, value_name = "FROM=TO")]
    path_map: Vec<PathMap>,

    /// Report sources with the same path below several of these directories as one source. Name each checkout that code
    /// was compiled in. Reports show the path in the first one that contains the source
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    source_root: Vec<PathBuf>,
}

impl MovedSources {
    /// The places that these options give.
    pub(crate) fn maps(&self) -> PathMaps {
        PathMaps {
            maps: self.path_map.clone(),
            roots: self.source_root.clone(),
        }
    }
}

/// The absolute path of a directory, which need not exist.
fn absolute(text: &str) -> Result<PathBuf> {
    Ok(std::path::absolute(text)?)
}

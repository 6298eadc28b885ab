//! A report from the profiles and device ELFs of each arch: what is read for it, and what becomes of
//! it.

use super::changed::Change;
use super::collect::{Collected, Input, collect};
use super::fit::{self, Misfit};
use super::model::Side;
use super::options::Options;
use super::output;
use super::parts::{Part, Tests};
use super::select::Selection;
use super::texts::Texts;
use super::view::{By, View};
use crate::child;
use crate::files::replace;
use crate::llvm_tools::Installed;
use crate::merged::{Arch, Object};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The arch of a column of host code.
const HOST: &str = "host";

/// What is to be reported.
#[derive(Default)]
pub(crate) struct Report {
    inputs: Vec<Input>,
    /// What a text says of an arch before its table.
    about: BTreeMap<String, String>,
    components: Vec<Component>,
    tests: Vec<Test>,
}

/// A component of its own in the report: what users know it by, and the identities of its code objects.
struct Component {
    name: String,
    identities: BTreeSet<String>,
}

/// A test and what it counted.
struct Test {
    name: String,
    /// The tests that some of it may be of.
    shared_with: Vec<String>,
    inputs: Vec<Input>,
}

impl Report {
    /// Adds an arch and what a text says of it. `binary` is the file that the user knows a code
    /// object by.
    pub(crate) fn add_arch(
        &mut self,
        arch: &Arch<'_>,
        binary: impl Fn(&Object<'_>) -> PathBuf,
        about: String,
    ) {
        self.inputs.extend(inputs(arch, binary));
        self.about.insert(arch.name.to_owned(), about);
    }

    /// Has the figures of a component told apart: those of code objects with these identities.
    pub(crate) fn add_component(&mut self, name: String, identities: BTreeSet<String>) {
        self.components.push(Component { name, identities });
    }

    /// Has the figures of a test told apart, and what it covers alone; some of it may be of others.
    pub(crate) fn add_test(&mut self, name: String, shared_with: Vec<String>, archs: &[Arch<'_>]) {
        let inputs = archs
            .iter()
            .flat_map(|arch| inputs(arch, |it| it.elf.clone()));
        let inputs = inputs.collect();
        self.tests.push(Test {
            name,
            shared_with,
            inputs,
        });
    }

    /// Adds the host: `binaries`, and the indexed profile `merged` of all of them.
    pub(crate) fn add_host(&mut self, binaries: &[PathBuf], merged: &Path, about: String) {
        self.inputs.push(Input {
            side: Side::Host,
            arch: HOST.to_owned(),
            identity: String::new(),
            binary: binaries[0].clone(),
            objects: binaries.to_vec(),
            profile: merged.to_path_buf(),
        });
        self.about.insert(HOST.to_owned(), about);
    }

    /// What llvm-cov says of each code object, and what it warns of.
    ///
    /// # Errors
    ///
    /// When a tool fails.
    pub(crate) fn collected(
        &self,
        selection: &Selection,
        installed: &Installed,
    ) -> Result<Collected> {
        let place = |path: &str| selection.place(path);
        collect(&self.inputs, installed.newest(), place)
    }

    /// What is reported, as it is shown, and what llvm-cov warns of.
    ///
    /// # Errors
    ///
    /// When a tool fails.
    pub(crate) fn view(
        &self,
        selection: &Selection,
        by: By,
        installed: &Installed,
    ) -> Result<(View, Vec<String>)> {
        let place = |path: &str| selection.place(path);
        let is_wanted = |path: &str| selection.admits(path);
        let tools = installed.newest();
        let collected = self.collected(selection, installed)?;
        let components = self.components.iter().map(|component| {
            let sources = collected.sources.iter();
            let of = sources.filter(|source| component.identities.contains(&source.identity));
            let view = View::new(of.cloned().collect(), by, is_wanted);
            Part::of(component.name.clone(), &view)
        });
        let components = components.collect();
        let mut tests = Tests::default();
        for test in &self.tests {
            let sources = collect(&test.inputs, tools, place)?.sources;
            let view = View::new(sources, By::Arch, is_wanted);
            tests.add(test.name.clone(), test.shared_with.clone(), &view);
        }
        let mut view = View::new(collected.sources, by, is_wanted);
        view.components = components;
        view.tests = tests.finish();
        Ok((view, collected.warnings))
    }

    /// One line for each of `sources` that is not what was compiled, by the texts that are there.
    ///
    /// # Errors
    ///
    /// When a tool fails.
    pub(crate) fn stale(
        &self,
        sources: &BTreeSet<&Path>,
        options: &Options,
        texts: &Texts,
        installed: &Installed,
    ) -> Result<Vec<String>> {
        let selection = options.filters.selection()?;
        // What llvm-cov warns of, it says as it shows them.
        let (view, _) = self.view(&selection, options.by, installed)?;
        let shown = view.paths.iter();
        let shown = shown.filter(|path| sources.contains(Path::new(&***path)));
        let misfits = shown.filter_map(|path| {
            let misfit = fit::misfit(&view, path, texts)?;
            misfit.stale().is_some().then(|| misfit.about(path))
        });
        Ok(misfits.collect())
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
        change: Option<&Change>,
        texts: Texts,
        installed: &Installed,
        missing: Vec<String>,
    ) -> Result<Vec<String>> {
        let selection = options.filters.selection()?;
        let (mut view, warnings) = self.view(&selection, options.by, installed)?;
        child::say(&warnings);
        let reported = view.everything().into_iter().map(PathBuf::from);
        let changed = change.into_iter().flat_map(Change::places);
        child::say(&selection.idle(&reported.chain(changed).collect::<Vec<_>>()));
        view.texts = texts;
        view.changed = change.map(|change| change.covered(&view, &selection));
        if let Some(changed) = &view.changed {
            child::say(&changed.doubts);
            child::say(&changed.left_out);
        }
        if options.html.is_some() || options.gates.are_set() {
            view.misfits = fit::misfits(&view);
        }
        // A gate names it among what it misses, and a change may well leave GPU code alone.
        let is_judged = options.gates.are_set() || change.is_some();
        if view.paths.is_empty() && (options.html.is_some() || !is_judged) {
            bail!("no source file is left to report: nothing was written");
        }
        if let Some(directory) = &options.html {
            let misfits = untold(&view).map(|(path, misfit)| misfit.about(path));
            child::say(&misfits.collect::<Vec<_>>());
            let page = output::write_html(&view, directory)?;
            child::print(format!("{}\n", page.display()).as_bytes())?;
        } else {
            write_to(options.output_path.as_deref(), |out| {
                output::write(&view, options.format(), &self.about, out)
            })?;
        }
        let mut broken = options.gates.broken(&view);
        if options.gates.are_set() {
            broken.extend(missing);
            broken.extend(warnings);
            let stale = untold(&view).filter(|(_, misfit)| misfit.stale().is_some());
            broken.extend(stale.map(|(path, misfit)| misfit.about(path)));
            broken.extend(view.changed.into_iter().flat_map(|it| it.left_out));
        }
        Ok(broken)
    }
}

/// The misfits that are not told with a change.
fn untold(view: &View) -> impl Iterator<Item = (&str, &Misfit)> {
    let is_told = |path: &str| {
        let mut changed = view.changed.iter();
        changed.any(|changed| changed.stale.contains(path))
    };
    let misfits = view.misfits.iter().map(|(path, misfit)| (&**path, misfit));
    misfits.filter(move |(path, _)| !is_told(path))
}

/// Has `write` write to the file at `path`, which it replaces at once, or else to standard output.
///
/// # Errors
///
/// When it cannot be written.
pub(super) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match path {
        Some(path) => replace(path, |file| {
            let file = File::create(file).context("cannot open a temporary file")?;
            write(&mut BufWriter::new(file))
        }),
        None => {
            let mut out = BufWriter::new(child::Stdout);
            write(&mut out).context("cannot write to standard output")
        }
    }
}

/// What llvm-cov is asked about an arch. `binary` is the file that the user knows a code object by.
fn inputs<'a>(
    arch: &'a Arch<'_>,
    binary: impl Fn(&Object<'_>) -> PathBuf + 'a,
) -> impl Iterator<Item = Input> + 'a {
    arch.objects.iter().map(move |object| Input {
        side: Side::Device,
        arch: arch.name.to_owned(),
        identity: object.identity.to_owned(),
        binary: binary(object),
        objects: vec![object.elf.clone()],
        profile: object.profile.clone(),
    })
}

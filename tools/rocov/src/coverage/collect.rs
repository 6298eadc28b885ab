//! Asks llvm-cov for the coverage of every code object.

use super::export::{self, Export};
use super::folded::{Folded, with_everything_run};
use super::model::{Model, Record, Side, Source};
use super::tool::llvm_cov;
use super::view::{By, View};
use crate::llvm_tools::Tools;
use crate::{child, mapped};
use anyhow::{Context, Result};
use rocov::codeobject::CodeObject;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tempfile::NamedTempFile;

/// A code object, or a program on the host, and the profile of it alone.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) side: Side,
    /// `host` on the host.
    pub(crate) arch: String,
    /// The file that the user knows.
    pub(crate) binary: PathBuf,
    /// What llvm-cov reads: a device ELF, or programs and libraries of the host.
    pub(crate) objects: Vec<PathBuf>,
    /// Indexed.
    pub(crate) profile: PathBuf,
}

/// Everything that was counted, and what llvm-cov warned of.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) model: Model,
    pub(crate) warnings: Vec<String>,
}

/// Reads the coverage of all of `inputs`, several at a time. `place` says where a source file is
/// now.
///
/// # Errors
///
/// When one of them cannot be read.
pub(crate) fn collect(
    inputs: &[Input],
    tools: &Tools,
    place: impl Fn(&str) -> String + Sync,
) -> Result<Collected> {
    let next = AtomicUsize::new(0);
    let collected = Mutex::new((Collected::default(), Vec::new()));
    let work = || {
        while let Some((index, input)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            inputs.get(index).map(|input| (index, input))
        } {
            let (source, warnings) = read(input, tools)?;
            let mut guard = collected.lock().unwrap_or_else(PoisonError::into_inner);
            let (collected, order) = &mut *guard;
            collected.model.add(source, &place);
            collected.warnings.extend(warnings);
            order.push(index);
        }
        Ok::<_, anyhow::Error>(())
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(inputs.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All are waited for, and the first error is kept.
        ended.fold(Ok(()), Result::and)
    })?;
    let (mut collected, order) = collected
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    // The same from one time to the next, whichever was read first.
    let mut sources: Vec<_> = order.into_iter().zip(collected.model.sources).collect();
    sources.sort_by_key(|(index, _)| *index);
    collected.model.sources = sources.into_iter().map(|(_, source)| source).collect();
    collected.warnings.sort();
    Ok(collected)
}

fn read(input: &Input, tools: &Tools) -> Result<(Source, Vec<String>)> {
    let (export, warnings) = run(input, &input.profile, tools)?;
    let mut source = Source {
        side: input.side,
        arch: input.arch.clone(),
        binary: input.binary.clone(),
        kernels: Vec::new(),
        records: export.records,
    };
    if number_of_branches(&mut source) != export.branches {
        let folded = folded(input, tools)?;
        for record in &mut source.records {
            folded.mark(record);
        }
    }
    let warnings = warnings
        .lines()
        .map(|it| it.trim_start_matches("warning: "));
    let mut warnings: Vec<_> = warnings.map(str::to_owned).collect();
    if let Side::Device = input.side {
        match kernels(&input.objects) {
            Ok(kernels) => source.kernels = kernels,
            Err(error) => warnings.push(format!("its kernels are not known: {error:#}")),
        }
    }
    let binary = input.binary.display();
    let warnings = warnings.iter().map(|it| format!("{binary}: {it}"));
    Ok((source, warnings.collect()))
}

/// Runs `llvm-cov export`; what it warned of comes with the export.
fn run(input: &Input, profile: &Path, tools: &Tools) -> Result<(Export, String)> {
    let mut command = llvm_cov(tools, "export", &input.objects, profile);
    child::read(command.arg("-skip-expansions"), |text| {
        export::read(text).with_context(|| {
            let binary = input.binary.display();
            format!("cannot read what llvm-cov exported of {binary}")
        })
    })
}

/// The number of branches as the model counts them.
fn number_of_branches(source: &mut Source) -> u64 {
    let records = std::mem::take(&mut source.records);
    let mut model = Model::default();
    model.sources.push(Source {
        records,
        ..source.clone()
    });
    let view = View::new(&model, By::Arch, |_| true);
    let total = view.table().total.all.branches.total;
    source.records = model.sources.swap_remove(0).records;
    total
}

/// Which sides of branches are folded: those that do not run when everything does.
fn folded(input: &Input, tools: &Tools) -> Result<Folded> {
    let file = || NamedTempFile::new().context("cannot make a temporary file");
    let merge = |from: &Path, options: &[&str], to: &Path| {
        let mut merge = Command::new(&tools.profdata);
        merge.arg("merge").args(options).arg(from).arg("-o").arg(to);
        child::output(&mut merge)
    };
    let (text, profile) = (file()?, file()?);
    merge(&input.profile, &["-text"], text.path())?;
    let failed = || format!("cannot use {}", text.path().display());
    let counted = fs::read_to_string(text.path()).with_context(failed)?;
    fs::write(text.path(), with_everything_run(&counted)).with_context(failed)?;
    merge(text.path(), &[], profile.path())?;
    let (export, _) = run(input, profile.path(), tools)?;
    let mut folded = Folded::default();
    for Record { function, counts } in &export.records {
        folded.remember(function, &counts.branches);
    }
    Ok(folded)
}

/// The names of the kernels in device ELFs.
fn kernels(elfs: &[PathBuf]) -> Result<Vec<String>> {
    let mut kernels = Vec::new();
    for elf in elfs {
        let contents = mapped::map(elf)?;
        let found = CodeObject::parse(&*contents).and_then(|it| it.kernels());
        kernels.extend(found?.into_iter().map(|kernel| kernel.name));
    }
    Ok(kernels)
}

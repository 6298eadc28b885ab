//! The coverage of every code object: rocov evaluates it. llvm-cov does that for host code, and for profiles
//! that rocov cannot add up.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use rocov::format::codeobject::CodeObject;
use rocov::format::ptx::{Module, modules};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::activity::{self, Activities};
use super::checkouts::Checkouts;
use super::evaluate::{ObjectIndex, Unmapped};
use super::folded::{Folded, with_everything_run};
use super::hiprtc::Texts;
use super::llvm_cov::export;
use super::model::{Record, SharedFunctions, Side, Source, move_all};
use super::ran_lines::RanLines;
use super::uniformity;
use crate::llvm::{LlvmTools, Tools};
use crate::profdata::kinds::is_elf;
use crate::profdata::uniformity::UniformityProfiles;
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts, ProgramSizes};
use crate::support::demangle::first_shown;
use crate::support::{mmap, parallel, temporary};
use crate::system::command;
use crate::term::plural::count;
use crate::term::progress;
use crate::term::remedy::explained;

/// A code object, or a program on the host, and its own profile.
#[derive(Debug)]
pub(crate) struct CountedBinary {
    pub(crate) side: Side,
    /// `host` on the host.
    pub(crate) arch: String,
    /// The identity of the code object; empty on the host.
    pub(crate) identity: String,
    /// The file by which the user knows it.
    pub(crate) binary: PathBuf,
    /// The files with the coverage mapping: a device ELF, or programs and libraries of the host.
    pub(crate) objects: Vec<PathBuf>,
    pub(crate) counts: BinaryCounts,
    /// The kinds of counts that are reported.
    pub(crate) kinds: CountKinds,
    /// The threads of its programs, if its counts are of programs.
    pub(crate) sizes: Arc<ProgramSizes>,
    /// The profiles of its uniformity, if the report has it.
    pub(crate) uniformity: Option<Arc<UniformityProfiles>>,
}

/// All counts, and warnings.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The sources of counts, in the order of the inputs.
    pub(crate) sources: Vec<Source>,
    /// The sources that have paths in several checkouts.
    pub(crate) checkouts: Checkouts,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Reads the coverage of all of `inputs`, several at a time. `place` gives the present path of a source
/// file.
///
/// # Errors
///
/// Fails if one of them cannot be read.
pub(crate) fn collect(
    inputs: &[CountedBinary],
    installed: &LlvmTools,
    place: impl Fn(&str) -> String + Sync,
) -> Result<Collected> {
    let shared = Mutex::new(SharedFunctions::default());
    let read = |input: &CountedBinary| {
        let (mut source, warnings) = read(input, installed)?;
        activity::move_all(&mut source.activities, &place);
        source.ran_lines.move_all(&place);
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = source.records.iter_mut().map(|record| &mut record.function);
        shared.share(functions, &place);
        Ok((source, warnings))
    };
    let read = progress::counted(inputs.len(), "code object", |done| {
        parallel::map(inputs, |input| {
            let read = read(input);
            done.fetch_add(1, Ordering::Relaxed);
            read
        })
    })?;
    let (mut sources, warnings): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    let checkouts = joined(&mut sources);
    let mut warnings = warnings.concat();
    warnings.sort();
    Ok(Collected {
        sources,
        checkouts,
        warnings,
    })
}

/// Gives each source one path, and returns the sources that had several.
fn joined(sources: &mut [Source]) -> Checkouts {
    let records = sources.iter().flat_map(|source| &source.records);
    let checkouts = Checkouts::find(records.map(|record| &record.function));
    if !checkouts.is_empty() {
        move_all(sources, |path| checkouts.place(path));
        for source in sources {
            activity::move_all(&mut source.activities, |path| checkouts.place(path));
            source.ran_lines.move_all(|path| checkouts.place(path));
        }
    }
    checkouts
}

fn read(input: &CountedBinary, installed: &LlvmTools) -> Result<(Source, Vec<Diagnostic>)> {
    let uniformity = input.uniformity.as_deref();
    let read = read_objects(
        &input.objects,
        &input.kinds,
        &input.counts,
        uniformity,
        installed,
    );
    let ObjectCoverage {
        records,
        texts,
        ran_lines,
        activities,
        mut warnings,
    } = read.map_err(|error| match error.downcast_ref::<Unmapped>() {
        Some(unmapped) if input.side == Side::Host => unmapped.host_error(),
        _ => error,
    })?;
    let mut source = Source {
        side: input.side,
        arch: input.arch.clone(),
        identity: input.identity.clone(),
        binary: input.binary.clone(),
        kernels: Vec::new(),
        compiler: None,
        records,
        texts,
        ran_lines,
        activities,
        kinds: input.kinds.clone(),
        unit: input.sizes.unit(&input.kinds, &input.counts),
    };
    if let Side::Device = input.side {
        match described(&input.objects) {
            Ok((kernels, compiler)) => (source.kernels, source.compiler) = (kernels, compiler),
            Err(error) => warnings.push(diagnostic!(
                "its kernels are not known: {}", explained(&error).what();
                "build it again"
            )),
        }
    }
    let binary = input.binary.display();
    let warnings = warnings.into_iter().map(|warning| warning.within(&binary));
    Ok((source, warnings.collect()))
}

/// The coverage of the objects of one binary.
pub(super) struct ObjectCoverage {
    pub(super) records: Vec<Record>,
    /// The texts of the sources that hipRTC compiled.
    pub(super) texts: Texts,
    ran_lines: RanLines,
    activities: Activities,
    warnings: Vec<Diagnostic>,
}

/// The coverage of objects, with the uniformity of their records if its profiles are given.
///
/// # Errors
///
/// Fails if an object or its counts cannot be read, or if llvm-cov fails.
pub(super) fn read_objects(
    objects: &[PathBuf],
    kinds: &CountKinds,
    counts: &BinaryCounts,
    uniformity: Option<&UniformityProfiles>,
    installed: &LlvmTools,
) -> Result<ObjectCoverage> {
    let counts = match counts {
        BinaryCounts::Summed(counts) => counts,
        BinaryCounts::Indexed(profile) => {
            let (records, warnings) = exported(objects, profile, installed.newest()?)?;
            return Ok(ObjectCoverage {
                records,
                texts: Texts::new(),
                ran_lines: RanLines::default(),
                activities: Activities::new(),
                warnings,
            });
        }
    };
    let index = ObjectIndex::read(objects, kinds)?;
    let (mut records, warnings) = evaluated(&index, counts)?;
    if let Some(profiles) = uniformity {
        uniformity::add(&mut records, profiles, &index)?;
    }
    let activities = index.activities(counts);
    let (texts, ran_lines) = index.into_texts();
    Ok(ObjectCoverage {
        records,
        activities,
        texts,
        ran_lines,
        warnings,
    })
}

/// The records of objects as rocov evaluates them, and warnings.
fn evaluated(
    index: &ObjectIndex,
    counts: &ProfileCounts,
) -> Result<(Vec<Record>, Vec<Diagnostic>)> {
    let evaluated = index.evaluate(counts)?;
    let mut warnings = index.left_out();
    warnings.extend(left_out(
        &evaluated.mismatched,
        "the profile contains the counts of another definition",
        "translation units define functions of the same name in different ways",
        "give them different names",
    ));
    warnings.extend(left_out(
        &evaluated.short,
        "the profile has fewer counters than the code",
        "the profile is damaged",
        "run the program again",
    ));
    Ok((evaluated.records, warnings))
}

/// The warning that functions are left out, if there are any.
fn left_out(
    functions: &[Arc<str>],
    fact: &str,
    reason: &str,
    next: &'static str,
) -> Option<Diagnostic> {
    let names = first_shown(functions);
    let functions = count(functions.len(), "function");
    (!names.is_empty()).then(|| {
        Diagnostic::new(
            format!("left out: {functions} ({names}), because {fact}: {reason}"),
            next,
        )
    })
}

/// The records of objects as llvm-cov exports them, and its warnings.
///
/// # Errors
///
/// Fails if llvm-cov fails.
pub(super) fn exported(
    objects: &[PathBuf],
    profile: &Path,
    tools: &Tools,
) -> Result<(Vec<Record>, Vec<Diagnostic>)> {
    let (export, warnings) = export(tools, objects, profile)?;
    let mut records = export.records;
    if number_of_branches(&records) != export.branches {
        let folded = folded(objects, profile, tools)?;
        for record in &mut records {
            folded.mark(record);
        }
    }
    // Later compilers may write mappings that only llvm-cov reads.
    if let Ok(index) = ObjectIndex::read(objects, &CountKinds::from([CountKind::Mapping])) {
        mark(&mut records, &index);
    }
    Ok((records, warnings.lines().map(warning).collect()))
}

/// Gives records that were just read the marks of their functions in `index`.
fn mark(records: &mut [Record], index: &ObjectIndex) {
    let descriptions = index
        .descriptions()
        .map(|description| (description.key(), description));
    let descriptions: HashMap<_, _> = descriptions.collect();
    for record in records {
        let known = descriptions.get(&record.function.key());
        let (Some(known), Some(function)) = (known, Arc::get_mut(&mut record.function)) else {
            continue;
        };
        if known.regions == function.regions && known.decisions == function.decisions {
            function.marks = known.marks.clone();
        }
    }
}

/// The warning of rocov for a line of llvm-cov.
fn warning(line: &str) -> Diagnostic {
    let line = line.trim_start_matches("warning: ");
    let number = line.strip_suffix(" functions have mismatched data");
    match number.and_then(|rest| rest.parse().ok()) {
        Some(number) => {
            diagnostic!(
                "left out: {}, because the profiles contain counts of other code under these names: translation \
                 units define the functions in different ways, or the program was rebuilt",
                count(number, "function");
                "build and run it again, and give different functions different names"
            )
        }
        None => Diagnostic::without_step(format!("llvm-cov: {line}")),
    }
}

/// The number of branches, each side by itself, if none is folded: instances of a template count
/// once, as the one that has most.
fn number_of_branches(records: &[Record]) -> u64 {
    let mut most: HashMap<_, usize> = HashMap::new();
    for Record { function, .. } in records {
        let most = most.entry((function.main_path(), function.start()));
        let most = most.or_default();
        *most = function.branches.len().max(*most);
    }
    most.values().map(|branches| 2 * *branches as u64).sum()
}

/// Finds the folded sides of branches: those that do not run when everything does.
fn folded(objects: &[PathBuf], counted: &Path, tools: &Tools) -> Result<Folded> {
    let file = || temporary::file("rocov-");
    let merge = |from: &Path, options: &[&str], to: &Path| {
        let mut merge = Command::new(&tools.profdata);
        merge.arg("merge").args(options).arg(from).arg("-o").arg(to);
        command::output(&mut merge)
    };
    let (text, profile) = (file()?, file()?);
    merge(counted, &["-text"], text.path())?;
    let failed = || format!("cannot use {}", text.path().display());
    let counts = fs::read_to_string(text.path()).with_context(failed)?;
    fs::write(text.path(), with_everything_run(&counts)).with_context(failed)?;
    merge(text.path(), &[], profile.path())?;
    let (export, _) = export(tools, objects, profile.path())?;
    let mut folded = Folded::default();
    for Record {
        function, counts, ..
    } in &export.records
    {
        folded.remember(function, &counts.branches);
    }
    Ok(folded)
}

/// The names of the kernels in device ELFs, and the compiler of the first that has its name.
fn described(elfs: &[PathBuf]) -> Result<(Vec<String>, Option<String>)> {
    let (mut kernels, mut compiler) = (Vec::new(), None);
    for elf in elfs {
        let contents = mmap::map(elf)?;
        if !is_elf(&contents) {
            kernels.extend(kernels_of_ptx(&contents));
            continue;
        }
        let object = CodeObject::parse(&*contents)?;
        if object.is_object_file() {
            // The program has placed its sections, so the kernels' descriptors have no addresses in it.
            continue;
        }
        kernels.extend(object.kernels()?.into_iter().map(|kernel| kernel.name));
        compiler = compiler.or_else(|| object.compiler());
    }
    Ok((kernels, compiler))
}

/// The names of the kernels in PTX; none if rocov cannot read it.
fn kernels_of_ptx(text: &[u8]) -> Vec<String> {
    let texts = str::from_utf8(text).map(modules).unwrap_or_default();
    let all = texts
        .into_iter()
        .filter_map(|text| Module::parse(text).ok());
    let all: Vec<Module<'_>> = all.collect();
    let functions = all.iter().flat_map(|module| &module.functions);
    let kernels = functions.filter(|function| function.is_kernel);
    kernels.map(|kernel| kernel.symbol.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warning_of_llvm_cov_gets_a_reason_and_a_next_step() {
        let line = warning("warning: 2 functions have mismatched data").to_string();
        assert!(line.starts_with(
            "left out: 2 functions, because the profiles contain counts of other code"
        ));
        assert!(line.contains("build and run it again"));
        let other = warning("warning: anything else").to_string();
        assert_eq!(other, "llvm-cov: anything else");
    }
}

//! Raw profiles, device ELFs and a registry from a data set: a pooled directory, as `rocov merge --per-test --pooled`
//! makes it of the runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::format::profraw::{CountKind, RecordCount, Sum};
use rocov::store::Label;
use rocov::store::layout::PTX;
use rocov_fleet::{
    CODE_OBJECT, COUNTER, DataSet, PROFILE, PartFile, RunCondition, SelectedRuns, SharedBytes,
    TableFile, no_run,
};

use super::code::object_identity;
use crate::profdata::pooled::{CodeObjectKey, Pool, PooledProfile};
use crate::support::temporary;

/// Runs of a data set.
pub(crate) struct Taken {
    pub(crate) pool: Pool,
    /// The number of runs.
    pub(crate) runs: usize,
    /// The number of their profiles, before they were added up.
    pub(crate) profiles: usize,
}

/// The sum of the counts of a code object.
struct Summed {
    sum: Sum,
    is_of_zeros: bool,
}

/// Makes a pooled directory of the runs that meet all `conditions`: in the directory `place`, or a temporary one.
///
/// # Errors
///
/// Fails if there are none, or if a file of the data set is damaged.
pub(crate) fn pool(
    set: &DataSet,
    conditions: &[RunCondition],
    place: Option<&Path>,
) -> Result<Taken> {
    let runs = SelectedRuns::find(set, conditions)?;
    let [profile_files, counter_files] = runs.files(set, conditions)?;
    let mut keys: BTreeMap<CodeObjectKey, bool> = BTreeMap::new();
    let mut profiles = 0;
    for opened in set.files(&profile_files, &PROFILE) {
        let (part, file) = opened?;
        let columns = ["run", "identity", "build", "label", "zeros", "files"];
        file.read(&columns, |rows| {
            let (files, zeros) = (rows.ints(5), rows.flags(4));
            for row in 0..zeros.len() {
                if runs.has(&rows.bytes(0)[row]) {
                    let key = key(&part.arch, [1, 2, 3].map(|column| &rows.bytes(column)[row]));
                    *keys.entry(key).or_insert(true) &= zeros[row];
                    profiles += usize::try_from(files[row]).unwrap_or_default();
                }
            }
            Ok(())
        })?;
    }
    if keys.is_empty() {
        return Err(no_run(set, conditions)?.into());
    }
    let elfs = temporary::directory()?;
    let code = code(set, &keys, elfs.path())?;
    let mut sums = BTreeMap::new();
    for (key, is_of_zeros) in keys {
        let blank = code.get(&(key.arch.clone(), key.identity.clone())).with_context(|| {
            let (path, identity) = (set.path().display(), &key.identity);
            format!("{path} has counts of code object {identity}, but not the code object: import a run of it again")
        })?;
        let sum = blank.clone();
        sums.insert(key, Summed { sum, is_of_zeros });
    }
    for opened in set.files(&counter_files, &COUNTER) {
        let (part, file) = opened?;
        add_counts(set, (part, &file), &runs, &mut sums)?;
    }
    let sums: Vec<_> = (sums.into_iter())
        .map(|(key, summed)| {
            let identity = object_identity(&key.identity).to_owned();
            (CodeObjectKey { identity, ..key }, summed)
        })
        .collect();
    let pool = Pool::write(
        sums.iter().map(|(key, summed)| PooledProfile {
            key,
            is_of_zeros: summed.is_of_zeros,
            bytes: summed.sum.bytes(),
        }),
        place,
    )?;
    let mut kept = fs::read_dir(elfs.path())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    // It keeps the PTX next to each.
    kept.retain(|path| path.extension().is_none_or(|extension| extension != PTX));
    kept.sort();
    pool.keep(&runs.registry, kept.iter().map(PathBuf::as_path))?;
    Ok(Taken {
        pool,
        runs: runs.number(),
        profiles,
    })
}

/// The code object with an identity, a build and a label.
fn key(arch: &str, [identity, build, label]: [&SharedBytes; 3]) -> CodeObjectKey {
    let text = |bytes: &SharedBytes| String::from_utf8_lossy(bytes.data()).into_owned();
    let build = text(build);
    CodeObjectKey {
        arch: arch.to_owned(),
        identity: text(identity),
        build: Some(build).filter(|build| !build.is_empty()),
        label: Label::from_directory(Path::new(&text(label))),
    }
}

/// The profiles without counts of the code objects in `keys`, by arch and identity. Their device ELFs are written to
/// a directory.
fn code(
    set: &DataSet,
    keys: &BTreeMap<CodeObjectKey, bool>,
    directory: &Path,
) -> Result<HashMap<(String, String), Sum>> {
    let wanted: HashSet<_> = keys
        .keys()
        .map(|key| (key.arch.clone(), key.identity.clone()))
        .collect();
    let mut found = HashMap::new();
    for opened in set.files(&set.parts(&CODE_OBJECT, &[])?, &CODE_OBJECT) {
        let (part, file) = opened?;
        let columns = ["identity", "elf_name", "elf", "profile", "ptx"];
        let mut has_any = false;
        file.read(&["identity"], |rows| {
            let mut identities = rows.bytes(0).iter();
            has_any |=
                identities.any(|identity| wanted.contains(&(part.arch.clone(), text(identity))));
            Ok(())
        })?;
        if !has_any {
            continue;
        }
        file.read(&columns, |rows| {
            for row in 0..rows.bytes(0).len() {
                let [identity, name, elf, profile] =
                    [0, 1, 2, 3].map(|column| &rows.bytes(column)[row]);
                let key = (part.arch.clone(), text(identity));
                if !wanted.contains(&key) {
                    continue;
                }
                let sum = Sum::new(profile.data().to_vec()).with_context(|| {
                    format!(
                        "{}: the profile of code object {} is damaged",
                        set.name(part),
                        key.1
                    )
                })?;
                let path = directory.join(Path::new(&text(name)).file_name().unwrap_or_default());
                let write = |path: &Path, bytes: &[u8]| {
                    let written = fs::write(path, bytes);
                    written.with_context(|| format!("cannot write {}", path.display()))
                };
                write(&path, elf.data())?;
                let ptx = rows.bytes(4)[row].data();
                if !ptx.is_empty() {
                    write(&path.with_extension(PTX), ptx)?;
                }
                found.insert(key, sum);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn text(bytes: &SharedBytes) -> String {
    String::from_utf8_lossy(bytes.data()).into_owned()
}

/// Adds the counts in the file `file` of the partition `part`.
fn add_counts(
    set: &DataSet,
    (part, file): (&PartFile, &TableFile),
    runs: &SelectedRuns,
    sums: &mut BTreeMap<CodeObjectKey, Summed>,
) -> Result<()> {
    let columns = [
        "run", "identity", "build", "label", "kind", "function", "index", "count",
    ];
    let failed = || set.damaged(part);
    file.read(&columns, |rows| {
        let (functions, indices, counts) = (rows.ints(5), rows.ints(6), rows.longs(7));
        let keys_in = |row: usize| [1, 2, 3].map(|column| &rows.bytes(column)[row]);
        let mut start = 0;
        while start < counts.len() {
            let same = (start + 1..counts.len()).take_while(|row| keys_in(*row) == keys_in(start));
            let end = start + 1 + same.count();
            let key = key(&part.arch, keys_in(start));
            let mut summed = sums.get_mut(&key);
            for row in start..end {
                if !runs.has(&rows.bytes(0)[row]) {
                    continue;
                }
                let kind = rows.bytes(4)[row].data();
                let kind = CountKind::ALL
                    .into_iter()
                    .find(|known| known.name().as_bytes() == kind);
                let count = kind.and_then(|kind| {
                    Some(RecordCount {
                        record: functions[row].try_into().ok()?,
                        kind,
                        index: indices[row].try_into().ok()?,
                        count: counts[row].try_into().ok()?,
                    })
                });
                let count = count.with_context(failed)?;
                let Some(Summed { sum, .. }) = summed.as_deref_mut() else {
                    return Err(failed().into());
                };
                sum.add_count(&count).with_context(failed)?;
            }
            start = end;
        }
        Ok(())
    })
}

//! The indexed profiles that rocov makes itself, without a tool of LLVM.

use std::collections::BTreeSet;

use anyhow::Result;
use rocov::support::diagnostic::diagnostic;

use super::damaged::Damaged;
use super::gathered::{Gathered, HOST};
use crate::cli::MergeArguments;
use crate::profdata::host_counts::host_counts;
use crate::profdata::index_version::FIRST_CLANG_WITH_SHORT;
use crate::profdata::indexed_profile::IndexedProfile;
use crate::profdata::named_counts::{KnownNames, NamedCounts};
use crate::term::plural::count;
use crate::term::print;

/// Makes the indexed profiles of host code, and of all architectures if they are wanted. Takes damaged profiles of
/// host code out.
///
/// # Errors
///
/// Fails if profiles are of both kinds of instrumentation, or if a function has no name.
pub(super) fn all(gathered: &mut Gathered, arguments: &MergeArguments) -> Result<()> {
    let mut made = Vec::new();
    if arguments.indexed().is_some() {
        let archs: BTreeSet<_> = gathered
            .sums
            .code_objects
            .keys()
            .map(|key| &key.arch)
            .collect();
        for arch in archs {
            made.push((arch.clone(), arch_profile(arch, gathered)?));
        }
    }
    if !gathered.host.is_empty() {
        made.push((HOST.to_owned(), host_profile(gathered)?));
    }
    for (arch, profile) in made {
        let Some(profile) = profile else {
            gathered.unindexed.insert(arch);
            continue;
        };
        say_doubts(&arch, &profile);
        gathered
            .indexed
            .insert(arch, profile.bytes(arguments.sparse)?);
    }
    Ok(())
}

/// The profile of an architecture; `None` if only llvm-profdata merges it.
fn arch_profile(arch: &str, gathered: &Gathered) -> Result<Option<IndexedProfile>> {
    let mut profile = IndexedProfile::default();
    let of_arch = gathered.sums.code_objects.iter();
    for (code_object, summed) in of_arch.filter(|(code_object, _)| code_object.arch == arch) {
        let counts = NamedCounts::from_sum(&summed.sum, gathered.clang(code_object))?;
        let from = format_args!("code object {}", code_object.identity);
        if !profile.add(counts, from)? {
            return Ok(None);
        }
    }
    Ok(Some(profile))
}

/// The profile of host code; `None` if only llvm-profdata merges it. Its compiler is that of the device code if there
/// is some.
fn host_profile(gathered: &mut Gathered) -> Result<Option<IndexedProfile>> {
    let mut profile = IndexedProfile::default();
    let mut known = KnownNames::default();
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    let mut code_objects = gathered.sums.code_objects.keys();
    let clang = code_objects.find_map(|code_object| gathered.clang(code_object));
    for path in &gathered.host {
        match host_counts(path, clang.as_ref(), &mut known) {
            Ok(parts) => {
                for counts in parts {
                    if !profile.add(counts, path.display())? {
                        return Ok(None);
                    }
                }
                whole.push(path.clone());
            }
            Err(error) => damaged.push(Damaged {
                path: path.clone(),
                error: error.context(format!("cannot merge {}", path.display())),
            }),
        }
    }
    gathered.host = whole;
    gathered.damaged.extend(damaged);
    Ok(Some(profile))
}

/// Prints what an indexed profile lacks, and which clangs can optimize by it if not those of all its code can.
fn say_doubts(arch: &str, profile: &IndexedProfile) {
    let mut doubts = Vec::new();
    if let Some((number, name)) = profile.left_out() {
        let functions = count(number, "function");
        doubts.push(diagnostic!(
            "{arch}: left out counts of {functions} that another profile contains with different counters or values, \
             such as {name}";
            "compile all code with one set of flags"
        ));
    }
    let hashes = profile.hashes();
    if hashes.has_long && hashes.has_short {
        let first = FIRST_CLANG_WITH_SHORT;
        doubts.push(diagnostic!(
            "{arch}: clang {first} or later compiled some of this code, and an earlier clang the rest: only \
            -fprofile-instr-use of clang {first} and later can use the profile";
            "to use another clang, merge the profiles of each clang separately"
        ));
    }
    print::warn(&doubts);
}

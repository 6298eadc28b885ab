//! Counts of programs instead of threads.
//!
//! Triton calls a block of threads a program, or a cluster of blocks if it asks for several. The PTX of such a kernel
//! requires a number of threads, and blocks of PTX count threads. So a block of PTX that `threads` threads entered ran in at
//! least `threads / required threads` programs, rounded up: code that any thread ran has run at least once.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use rocov::format::blocks::Kind;
use rocov::format::codeobject::{CodeObject, name_ref};
use rocov::format::ptx::{Module, modules};

use super::kinds::{CountKind, CountKinds, CountUnit, is_elf};
use super::{BinaryCounts, ProfileCounts};
use crate::support::mmap;

/// The threads of one program of each function of a code object, as far as its code requires a number.
#[derive(Debug, Default)]
pub(crate) struct ProgramSizes {
    /// By the key of the function's record.
    threads: BTreeMap<(u64, u64), NonZeroU64>,
    /// The mangled names of the kernels that leave the number to the launch.
    without: BTreeSet<String>,
}

impl ProgramSizes {
    /// Reads them from the files of a code object: a device ELF, PTX or both. Damaged files have none.
    pub(super) fn read(files: &[PathBuf]) -> Self {
        let mut sizes = Self::default();
        let mut known = BTreeSet::new();
        for path in files {
            let Ok(contents) = mmap::map(path) else {
                continue;
            };
            if is_elf(&contents) {
                let object = CodeObject::parse(&contents[..]);
                let kernels = object.and_then(|object| object.kernels());
                let names = kernels.into_iter().flatten().map(|kernel| kernel.name);
                sizes.without.extend(names);
                continue;
            }
            let texts = str::from_utf8(&contents).map(modules).unwrap_or_default();
            let parsed = texts
                .into_iter()
                .filter_map(|text| Module::parse(text).ok());
            for module in parsed {
                sizes.add(&module, &mut known);
            }
        }
        sizes.without.retain(|name| !known.contains(name));
        sizes
    }

    /// Adds the functions of a module, and the names of its kernels whose size is known.
    fn add(&mut self, module: &Module<'_>, known: &mut BTreeSet<String>) {
        let kernels = module
            .functions
            .iter()
            .filter(|function| function.is_kernel);
        let all: BTreeSet<_> = kernels.map(|kernel| kernel.required_threads).collect();
        // Functions that kernels call: programs of different sizes may enter them.
        let common = match all.len() {
            1 => all.into_iter().next().flatten(),
            _ => None,
        };
        for function in &module.functions {
            let threads = match function.is_kernel {
                true => function.required_threads,
                false => common,
            };
            if let Some(threads) = threads {
                self.threads.insert(function.key(), threads);
            }
            if !function.is_kernel {
                continue;
            }
            let name = function.symbol.to_owned();
            match threads {
                Some(_) => _ = known.insert(name),
                None => _ = self.without.insert(name),
            }
        }
    }

    /// The unit that these have made that of `counts`, if a user can choose it: counts of blocks of PTX, unless they only
    /// record whether code ran.
    pub(crate) fn unit(&self, kinds: &CountKinds, counts: &BinaryCounts) -> Option<CountUnit> {
        let BinaryCounts::Summed(counts) = counts else {
            return None;
        };
        let is_chosen = kinds.contains(&CountKind::Ptx) && !counts.version.is_single_byte();
        is_chosen.then_some(match self.threads.is_empty() {
            true => CountUnit::Thread,
            false => CountUnit::Program,
        })
    }

    /// The counts in programs, as far as the size of one is known.
    pub(crate) fn apply(&self, counts: BinaryCounts) -> BinaryCounts {
        match counts {
            BinaryCounts::Summed(counts)
                if !self.threads.is_empty() && !counts.version.is_single_byte() =>
            {
                let per_program = counts.per_program(|key| self.threads.get(&key).copied());
                BinaryCounts::Summed(Arc::new(per_program))
            }
            counts => counts,
        }
    }

    /// The mangled names of the kernels that ran, and whose counts are of threads.
    pub(super) fn per_thread<'a>(
        &'a self,
        counts: &'a ProfileCounts,
    ) -> impl Iterator<Item = &'a str> {
        let ran = |name: &str| {
            let of_kinds = Kind::ALL.into_iter().map(|kind| kind.record_name(name));
            of_kinds.chain([name.to_owned()]).any(|record| {
                let name = name_ref(record.as_bytes());
                let mut found = counts.functions.range((name, 0)..=(name, u64::MAX));
                found.any(|(_, function)| !function.is_nothing())
            })
        };
        let names = self.without.iter().map(String::as_str);
        names.filter(move |name| ran(name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rocov::format::profraw::{CountsByFunction, FunctionCounts, Version};

    use super::*;

    const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";

    /// The key of a function in a text.
    fn key(text: &str, symbol: &str) -> (u64, u64) {
        let module = Module::parse(text).unwrap();
        module.function(symbol).unwrap().key()
    }

    fn counts(of: &[((u64, u64), &[u64])]) -> BinaryCounts {
        let functions = of.iter().map(|(key, counters)| {
            let function = FunctionCounts {
                counters: counters.to_vec(),
                ..FunctionCounts::default()
            };
            (*key, function)
        });
        BinaryCounts::Summed(Arc::new(ProfileCounts {
            version: Version::from_clang(22).unwrap(),
            functions: functions.collect::<CountsByFunction>(),
        }))
    }

    fn sizes(text: &str) -> ProgramSizes {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("kernels.ptx");
        fs::write(&path, text).unwrap();
        ProgramSizes::read(&[path])
    }

    /// The counters of a function.
    fn counters(counts: &BinaryCounts, key: (u64, u64)) -> &[u64] {
        match counts {
            BinaryCounts::Summed(counts) => &counts.functions[&key].counters,
            BinaryCounts::Indexed(_) => &[],
        }
    }

    #[test]
    fn counts_are_divided_by_the_threads_of_a_program_and_rounded_up() {
        let text =
            format!("{HEAD}.func f() {{ ret; }}\n.visible .entry k() .reqntid 128 {{ ret; }}\n");
        let keys = ["f", "k"].map(|symbol| key(&text, symbol));
        // Four programs, a half of one, one thread, two programs and a thread, none.
        let threads: &[u64] = &[512, 64, 1, 257, 0, u64::MAX];
        let found = sizes(&text).apply(counts(&keys.map(|key| (key, threads))));
        for key in keys {
            assert_eq!(counters(&found, key), [4, 1, 1, 3, 0, 1 << 57]);
        }
    }

    #[test]
    fn functions_of_kernels_with_different_sizes_stay_per_thread() {
        let kernels = [".reqntid 128", ".reqntid 64", ".maxntid 64"].map(|directive| {
            let name = directive.replace(['.', ' '], "_");
            format!(".visible .entry k{name}() {directive} {{ ret; }}\n")
        });
        let text = format!("{HEAD}.func f() {{ ret; }}\n{}", kernels.concat());
        let all = ["f", "k_reqntid_128", "k_reqntid_64", "k_maxntid_64"];
        let keys = all.map(|symbol| key(&text, symbol));
        let sizes = sizes(&text);
        let given = counts(&keys.map(|key| (key, &[256_u64] as &[u64])));
        let found = sizes.apply(given.clone());
        let found = keys.map(|key| counters(&found, key)[0]);
        assert_eq!(found, [256, 2, 4, 256]);
        let BinaryCounts::Summed(given) = &given else {
            unreachable!("they are summed");
        };
        let without: Vec<_> = sizes.per_thread(given).collect();
        assert_eq!(without, ["k_maxntid_64"]);
    }
}

//! The sources of the plugin, which this command contains, so that an installed rocov can compile them.

/// A source in `tools/pass`. The folder `repository` has links to it, which `cargo package` follows.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        [$(Source {
            name: $name,
            text: include_str!(concat!("../../../repository/tools/pass/", $name)),
        }),*]
    };
}

/// All of them.
pub(super) const SOURCES: &[Source] = &sources![
    "Accumulators.cpp",
    "Accumulators.h",
    "Breaks.cpp",
    "Breaks.h",
    "CalleeCounts.cpp",
    "CalleeCounts.h",
    "CopiesTable.cpp",
    "CopiesTable.h",
    "CounterUpdates.cpp",
    "CounterUpdates.h",
    "Cycles.h",
    "DriverNames.cpp",
    "DriverNames.h",
    "Flush.cpp",
    "Flush.h",
    "GpuTarget.cpp",
    "GpuTarget.h",
    "Plugin.cpp",
    "Returning.cpp",
    "Returning.h",
    "RuntimeCalls.cpp",
    "RuntimeCalls.h",
    "Votes.cpp",
    "Votes.h",
];

/// The flags of `tools/pass/CMakeLists.txt` and of its release builds.
pub(super) const FLAGS: [&str; 11] = [
    "-std=c++17",
    "-O3",
    "-DNDEBUG",
    "-fPIC",
    "-fno-rtti",
    "-fno-exceptions",
    "-fvisibility=hidden",
    // LLVM_DEFINITIONS of LLVM's package for CMake.
    "-D_GNU_SOURCE",
    "-D__STDC_CONSTANT_MACROS",
    "-D__STDC_FORMAT_MACROS",
    "-D__STDC_LIMIT_MACROS",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../pass")
    }

    #[test]
    fn the_command_contains_all_sources() {
        let there: BTreeSet<_> = fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".cpp") || name.ends_with(".h"))
            .collect();
        let contained = SOURCES.iter().map(|source| source.name.to_owned());
        assert_eq!(contained.collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn cmake_has_these_sources_and_flags() {
        let lists = fs::read_to_string(folder().join("CMakeLists.txt")).unwrap();
        let in_command = |command: &str| {
            let (_, rest) = lists.split_once(&format!("\n{command}(")).unwrap();
            let (words, _) = rest.split_once(')').unwrap();
            words.split_whitespace().collect::<Vec<_>>()
        };
        let units: BTreeSet<_> = SOURCES
            .iter()
            .map(|source| source.name)
            .filter(|name| name.ends_with(".cpp"))
            .collect();
        let of_cmake = in_command("add_library").into_iter();
        assert_eq!(of_cmake.skip(2).collect::<BTreeSet<_>>(), units);
        let options: BTreeSet<_> = in_command("target_compile_options")
            .iter()
            .filter(|word| word.starts_with("-f"))
            .copied()
            .collect();
        assert!(options.len() > 2, "{options:?}");
        assert!(
            options.is_subset(&FLAGS.into_iter().collect()),
            "{options:?}"
        );
        assert!(lists.contains("set(CMAKE_CXX_STANDARD 17)"));
    }
}

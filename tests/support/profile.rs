//! Profiles as llvm-profdata reads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocov::store::layout::PROFRAW;

use super::command::{limited, run};
use super::compilers::Compiler;

/// The llvm-profdata of the tests' compiler.
pub fn profdata() -> &'static str {
    Compiler::usual().tool("llvm-profdata")
}

/// The llvm-cov of the tests' compiler.
pub fn cov() -> &'static str {
    Compiler::usual().tool("llvm-cov")
}

/// The contents of one function in llvm-profdata's output.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Function {
    /// The hash of its structure.
    pub hash: String,
    /// The number of entries.
    pub calls: u64,
    /// The counts of its other counters.
    pub blocks: Vec<u64>,
}

/// Functions by their (mangled) names.
pub type Functions = BTreeMap<String, Function>;

/// The raw profiles of a data directory, or of a directory with profiles only, sorted by name. The
/// directory may be missing.
pub fn raw_profiles(directory: &Path) -> Vec<PathBuf> {
    let within = directory.join(PROFRAW);
    let directory = if within.is_dir() { &within } else { directory };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut profiles: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder that opens can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == PROFRAW)
        })
        .collect();
    profiles.sort();
    profiles
}

/// The llvm-profdata that reads this profile: that of the tests' compiler, or of its substitute for a
/// program that the substitute has compiled.
pub fn reader_of(profile: &Path) -> &'static str {
    let [usual, substitute] = [Compiler::usual(), Compiler::substitute()];
    let head = std::fs::read(profile).unwrap_or_default();
    let version = head.get(8..16).and_then(|bytes| bytes.try_into().ok());
    // The highest byte has the variants. An indexed profile has its own numbers.
    let version = version.map(|bytes| u64::from_le_bytes(bytes) & !(0xff << 56));
    let is_raw = profile
        .extension()
        .is_some_and(|extension| extension == PROFRAW);
    let reader = match version {
        Some(version) if is_raw && version != usual.raw_version() => substitute,
        _ => usual,
    };
    reader.tool("llvm-profdata")
}

/// Merges raw profiles of one compiler into `output`. Fails if llvm-profdata prints anything.
pub fn merge(profiles: &[PathBuf], output: &Path) {
    let first = profiles.first().map(PathBuf::as_path);
    merge_by(first.map_or(profdata(), reader_of), profiles, output);
}

/// Merges raw profiles of another compiler with its own llvm-profdata.
pub fn merge_by(profdata: &str, profiles: &[PathBuf], output: &Path) {
    assert!(
        !profiles.is_empty(),
        "no profile was written for {}",
        output.display()
    );
    let mut command = limited(profdata);
    command.arg("merge").args(profiles).arg("-o").arg(output);
    run(&mut command).success().silently();
}

/// The profiles of an arch in a data directory, merged into a file next to the directory.
pub fn merged_of_arch(data: &Path, arch: &str) -> PathBuf {
    let first = arch_profiles(data, arch).into_iter().next();
    let reader = first.as_deref().map_or(profdata(), reader_of);
    merged_of_arch_by(reader, data, arch)
}

fn arch_profiles(data: &Path, arch: &str) -> Vec<PathBuf> {
    let mut profiles = raw_profiles(data);
    profiles.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("{arch}."))
    });
    profiles
}

/// The profiles of an arch in a data directory, merged by this llvm-profdata into a file next to the
/// directory.
pub fn merged_of_arch_by(profdata: &str, data: &Path, arch: &str) -> PathBuf {
    let profiles = arch_profiles(data, arch);
    let merged = data.with_extension(format!("{arch}.profdata"));
    merge_by(profdata, &profiles, &merged);
    merged
}

/// The counts of an indexed or a raw profile.
pub fn functions(profile: &Path) -> Functions {
    functions_by(reader_of(profile), profile)
}

/// The counts of another compiler's profile, read with its own llvm-profdata.
pub fn functions_by(profdata: &str, profile: &Path) -> Functions {
    let mut command = limited(profdata);
    command
        .args(["show", "--all-functions", "--counts"])
        .arg(profile);
    parse(&run(&mut command).success().silently().stdout)
}

fn parse(shown: &str) -> Functions {
    let mut functions = Functions::new();
    let mut current: Option<&mut Function> = None;
    for line in shown.lines() {
        // Names are indented by two and end in a colon; the lines of a function are indented by
        // four.
        if let Some(name) = line
            .strip_prefix("  ")
            .and_then(|rest| rest.strip_suffix(':'))
            && !name.starts_with(' ')
        {
            current = Some(functions.entry(name.to_owned()).or_default());
            continue;
        }
        let (Some(function), Some((key, value))) = (&mut current, line.trim().split_once(": "))
        else {
            continue;
        };
        let number = |text: &str| -> u64 { text.parse().expect("counts are numbers") };
        match key {
            "Hash" => function.hash = value.to_owned(),
            "Function count" => function.calls = number(value),
            "Block counts" => {
                let list = value.trim_matches(['[', ']']);
                function.blocks = list
                    .split(", ")
                    .filter(|part| !part.is_empty())
                    .map(number)
                    .collect();
            }
            _ => {}
        }
    }
    functions
}

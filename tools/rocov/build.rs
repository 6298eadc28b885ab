//! Decides where the command finds its parts, such as librocov.so and the device header.
//!
//! `cargo install` installs programs only. So a command that is built alone contains its other parts, and unpacks
//! them when it needs one. `ROCOV_PARTS` says otherwise:
//!
//! | value | the parts are | set by |
//! |---|---|---|
//! | not set | in the command | |
//! | `source-tree` | next to the command, and in this source tree | `.cargo/config.toml` of a checkout |
//! | `installed` | around the command, as in `tree.txt` | `tools/dev/release` |

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The crates of the libraries, with their sources in a checkout. Cargo.toml names them for no target, so that the
/// lock file holds them and what they need.
const CRATES: [(&str, &str); 4] = [
    ("rocov-runtime", "runtime"),
    ("rocov-instrument", "runtime/instrument"),
    ("rocov-rocprofiler", "runtime/rocprofiler"),
    ("modelgpu-kfd", "tools/modelgpu/kfd"),
];

/// The folders of `tree.txt` that the command looks in.
const OF_COMMAND: [&str; 5] = [
    "lib/lib",
    "lib/rocov/",
    "include/",
    "libexec/",
    "share/rocov/",
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-env-changed=ROCOV_PARTS");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=tree.txt");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let parts = env::var("ROCOV_PARTS").unwrap_or_default();
    let files = match parts.as_str() {
        "source-tree" => {
            let tree = here.join("../..").canonicalize()?;
            println!("cargo::rustc-env=ROCOV_SOURCE_TREE={}", tree.display());
            Vec::new()
        }
        "installed" => Vec::new(),
        // docs.rs has no network, and no need of a complete command.
        "" if env::var_os("DOCS_RS").is_some() => Vec::new(),
        "" => files(&here)?,
        other => {
            return Err(format!(
                "ROCOV_PARTS is {other:?}; it can be source-tree, installed, or not set"
            )
            .into());
        }
    };
    write_table(&files)
}

/// A part, and the file with its content.
struct File {
    path: String,
    content: PathBuf,
}

/// Builds the libraries, and returns all files that the command contains.
fn files(here: &Path) -> Result<Vec<File>> {
    let build = libraries(here)?;
    let repository = here.join("repository");
    let mut files = Vec::new();
    for line in fs::read_to_string(here.join("tree.txt"))?.lines() {
        let mut words = line.split_whitespace();
        let (Some(path), Some(source)) = (words.next(), words.next()) else {
            continue;
        };
        if !OF_COMMAND.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        match source.strip_prefix("build/") {
            Some(built) => add(&mut files, path, build.join(built))?,
            None => add(&mut files, path, repository.join(source))?,
        }
    }
    Ok(files)
}

/// Adds a file, or the files in a folder.
fn add(files: &mut Vec<File>, path: &str, content: PathBuf) -> Result<()> {
    if !content.is_dir() {
        let path = path.to_owned();
        files.push(File { path, content });
        return Ok(());
    }
    println!("cargo::rerun-if-changed={}", content.display());
    let mut entries: Vec<PathBuf> = fs::read_dir(&content)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        add(files, &format!("{path}/{name}"), entry.clone())?;
    }
    Ok(())
}

/// Builds librocov.so, librocov.a and the modelled GPU by a cargo of their own, because cargo gives a program no way
/// to depend on shared libraries. Returns the directory with them.
fn libraries(here: &Path) -> Result<PathBuf> {
    let version = variable("CARGO_PKG_VERSION")?;
    let project = PathBuf::from(variable("OUT_DIR")?).join("libraries");
    fs::create_dir_all(&project)?;
    let mut manifest = String::from(
        "[package]\nname = \"libraries\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = \"lib.rs\"\n\n[workspace]\n\n\
         [profile.release]\noverflow-checks = true\npanic = \"unwind\"\nstrip = \"debuginfo\"\n\n\
         [profile.release.package.modelgpu-amdgcn]\noverflow-checks = false\n\n[dependencies]\n",
    );
    for (name, sources) in CRATES {
        let sources = here.join("../..").join(sources);
        let place = match sources.join("Cargo.toml").is_file() {
            true => format!("path = {:?}", sources.canonicalize()?),
            false => format!("version = {:?}", format!("={version}")),
        };
        writeln!(manifest, "{name} = {{ {place} }}")?;
    }
    fs::write(project.join("Cargo.toml"), manifest)?;
    fs::write(project.join("lib.rs"), "")?;
    // The versions that this package was tested with.
    let locks = [here.join("Cargo.lock"), here.join("../../Cargo.lock")];
    if let Some(lock) = locks.iter().find(|lock| lock.is_file()) {
        fs::copy(lock, project.join("Cargo.lock"))?;
    }
    let target = project.join("target");
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(&project)
        .args(["build", "--release", "--target-dir"])
        .arg(&target)
        .args(CRATES.iter().flat_map(|(name, _)| ["--package", name]))
        .env_remove("CARGO_BUILD_TARGET");
    run(&mut cargo)?;
    let build = target.join("release");
    for script in ["librocov-a", "librocov-so"] {
        run(Command::new("bash")
            .arg(here.join("repository/tools/dev").join(script))
            .arg(&build))?;
    }
    // It has a SONAME, by which linked programs look for it.
    fs::copy(build.join("shared/librocov.so"), build.join("librocov.so"))?;
    Ok(build)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(())
}

/// Writes the table that `src/system/contained.rs` includes.
fn write_table(files: &[File]) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    let mut table = String::from("const FILES: &[File] = &[\n");
    for File { path, content } in files {
        path.hash(&mut hasher);
        fs::read(content)?.hash(&mut hasher);
        let content = content.canonicalize()?;
        writeln!(
            table,
            "    File {{ path: {path:?}, bytes: include_bytes!({content:?}) }},"
        )?;
    }
    writeln!(table, "];\n\nconst HASH: u64 = {:#018x};", hasher.finish())?;
    fs::write(
        PathBuf::from(variable("OUT_DIR")?).join("contained.rs"),
        table,
    )?;
    Ok(())
}

fn variable(name: &str) -> Result<String> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}

//! Checks the device code of a program or library: its instrumentation, and whether rocov reads its profiles.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use rocov::format::bounds_table::{OWN_VERSION_SYMBOL, VERSION_SYMBOL};
use rocov::format::bundle;
use rocov::format::bundle::{BundleError, DeviceImage};
use rocov::format::codeobject::cuda::with_sections;
use rocov::format::codeobject::{CodeObject, CodeObjectError};
use rocov::format::copies_table::COPIES_SECTION;
use rocov::format::profraw::{ProfileError, Version};

use super::compiled_later::CompiledLater;
use super::finding::{Finding, compile_with};
use super::host_elf::Host;
use crate::data::profile_header::Instrumentation;
use crate::support::demangle::shown;
use crate::support::mmap;
use crate::support::paths::{below, here};
use crate::term::plural::count;
use crate::term::remedy::explained;

/// The start of the symbols of records.
const RECORD: &[u8] = b"__profd_";

/// The findings about a file.
pub(crate) struct Checked {
    /// Those about its device code, or about a file that cannot be read.
    pub(crate) device: Vec<Finding>,
    /// The obstacles to draining its host part.
    pub(crate) host: Vec<Finding>,
}

/// Looks at the host part of the file at `path`, if it has one, and at each code object in it.
pub(crate) fn check(path: &Path) -> Checked {
    let file = match mmap::map(path) {
        Ok(file) => file,
        Err(error) => {
            let message = explained(&error);
            let remedy = message.next_or("name a file that can be read");
            let finding = Finding::missing(path.display(), message.what(), remedy);
            return Checked {
                device: vec![finding],
                host: Vec::new(),
            };
        }
    };
    let mut variables = BTreeSet::new();
    let (mut code_objects, mut damage) = (Vec::new(), Vec::new());
    let mut compiled_later = None;
    for container in bundle::containers(&file) {
        let images = match container {
            Ok(container) => {
                let ptx = CompiledLater::from_container(&container);
                compiled_later = compiled_later.or(ptx);
                container.into_device_images()
            }
            Err(error) => vec![Err(error)],
        };
        for image in images {
            match Facts::from_image(image) {
                Ok(facts) => code_objects.push(facts),
                Err(error) => damage.push(format!("{error:#}")),
            }
        }
    }
    let mut findings = Vec::new();
    for facts in &code_objects {
        variables.extend(facts.records.iter().cloned());
        findings.push(facts.finding(path));
    }
    if let (true, Some(ptx)) = (code_objects.is_empty(), compiled_later) {
        findings.push(ptx.finding(path));
    } else if code_objects.is_empty() {
        let found = damage.pop().unwrap_or_else(|| "no device code".to_owned());
        let remedy = "name the program, or the library that its kernels are in";
        findings.push(Finding::missing(path.display(), found, remedy));
    } else if code_objects.iter().all(|facts| facts.word.is_none()) {
        findings.push(Finding::missing(
            path.display(),
            format!(
                "{}, none instrumented",
                count(code_objects.len(), "code object")
            ),
            all_compile_with(&code_objects),
        ));
    }
    findings.extend(damage.into_iter().map(|reason| {
        let remedy = "rocov neither drains nor reports damaged code: build it again";
        Finding::warning(path.display(), reason, remedy)
    }));
    let host = Host::parse(path, &file).map(|host| host.check(&variables));
    Checked {
        device: findings,
        host: host.unwrap_or_default(),
    }
}

/// The next step if none of these code objects counts.
fn all_compile_with(code_objects: &[Facts]) -> String {
    let mut targets = code_objects
        .iter()
        .map(|code_object| code_object.target.as_str());
    match targets.find(|target| target.starts_with("sm_")) {
        Some(target) => compile_with(target),
        None => "compile and link with the flags that `rocov flags` prints, or run it unchanged with `rocov run \
                 --instrument`"
            .to_owned(),
    }
}

/// The facts about a code object.
struct Facts {
    /// Its target, such as `gfx90a` or `sm_90`.
    target: String,
    /// Its target and identity, its kernels, and the file of the first.
    name: String,
    /// Its version word, if it counts.
    word: Option<u64>,
    /// Its counters, in words.
    counters: &'static str,
    has_mapping: bool,
    /// The number of functions that add to counters without atomic operations.
    non_atomic: usize,
    /// The symbols of its records.
    records: Vec<Vec<u8>>,
}

impl Facts {
    fn from_image(image: Result<DeviceImage<'_>, BundleError>) -> Result<Self> {
        let image = image?;
        let elf = with_sections(&image.bytes);
        let code_object = CodeObject::parse(&*elf)?;
        let sections = code_object.profile_sections();
        let word = match sections.are_instrumented() {
            true => Some(version_word(&code_object)?),
            false => None,
        };
        let sections = code_object.sections()?;
        let mut sections = sections.iter();
        let has_copies = sections.any(|section| section.name == COPIES_SECTION && section.size > 0);
        let target = code_object.target()?;
        Ok(Self {
            name: format!("{target} {}{}", image.identity, contents(&code_object)),
            target,
            word,
            counters: match word {
                _ if has_copies => "fast counters",
                Some(word) if Version::counts_bytes(word) => "counters of reached code only",
                _ => "LLVM's own counters",
            },
            has_mapping: code_object.is_mapped()?,
            non_atomic: code_object.non_atomic_functions()?.len(),
            records: records(&elf, code_object.is_cubin()),
        })
    }

    fn finding(&self, path: &Path) -> Finding {
        let Self { name, word, .. } = self;
        let subject = path.display();
        let Some(word) = word else {
            return Finding::warning(
                subject,
                format!("{name}: not instrumented"),
                format!("to instrument it, {}", compile_with(&self.target)),
            );
        };
        let kind = Instrumentation::from_word(*word);
        let (version, _) = Version::split(*word);
        let found = format!("{name}: {kind}, raw version {version}, {}", self.counters);
        if let Err(ProfileError::UnknownVersion { min, max, .. }) = Version::from_word(*word) {
            return Finding::missing(
                subject,
                found,
                format!(
                    "rocov reads raw versions {min} to {max}: compile with clang 15 or later, or use a newer rocov"
                ),
            );
        }
        if self.non_atomic > 0 {
            let functions = count(self.non_atomic, "function");
            return Finding::warning(
                subject,
                format!("{found}, the counters of {functions} are not atomic: counts are too low"),
                "code that ran may be reported as not run: also compile with -fprofile-update=atomic, which `rocov \
                flags` prints",
            );
        }
        match self.has_mapping {
            false => Finding::warning(
                subject,
                format!("{found}, no coverage mapping"),
                "its profiles are for optimization (`rocov merge --pgo`); for coverage, compile with the flags that \
                 `rocov flags` prints, and do not strip",
            ),
            true => Finding::ok(subject, format!("{found}, coverage mapping")),
        }
    }
}

/// The kernels of a code object as a user knows them, and the source of the first: ` (main.hip: scale and 2 more)`.
/// Nothing if they cannot be read, or there are none.
fn contents<'a>(code_object: &CodeObject<'a, &'a [u8]>) -> String {
    let kernels = code_object.kernels().unwrap_or_default();
    let Some(first) = kernels.first() else {
        return String::new();
    };
    let source = kernels
        .iter()
        .find_map(|kernel| kernel.source.as_deref())
        .map(|path| format!("{}: ", below(path, &here())));
    let more = match kernels.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let kernel = shown(&first.name);
    format!(" ({}{kernel}{more})", source.unwrap_or_default())
}

/// The version word of an instrumented code object: the compiler's, the device header's, or that of its
/// clang. 0, which no tool reads, if none of them has one.
fn version_word<'a>(code_object: &CodeObject<'a, &'a [u8]>) -> Result<u64, CodeObjectError> {
    for name in [VERSION_SYMBOL, OWN_VERSION_SYMBOL] {
        if let Some(range) = code_object.variable(name.as_bytes())? {
            let memory = code_object.memory()?;
            let start = range.address as usize;
            if let Some(word) = memory.get(start..).and_then(|bytes| bytes.first_chunk()) {
                return Ok(u64::from_le_bytes(*word));
            }
        }
    }
    let of_clang = code_object.clang_version().and_then(Version::from_clang);
    Ok(of_clang.map_or(0, |version| version.word()))
}

/// The symbols of profile records that the loader can find.
fn records(elf: &[u8], is_cubin: bool) -> Vec<Vec<u8>> {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(elf) else {
        return Vec::new();
    };
    // The CUDA driver resolves the symbols of the other table.
    let of_driver = elf.symbols().filter(|_| is_cubin);
    let symbols = elf.dynamic_symbols().chain(of_driver);
    let names = symbols.filter_map(|symbol| symbol.name_bytes().ok());
    let records = names.filter(|name| name.starts_with(RECORD));
    records.map(<[u8]>::to_vec).collect()
}

//! llvm-cov is the oracle: the records are those of its export, one by one, for every compiler.
//!
//! Profiles of random counts stand for runs, so no kernel runs here: every function has counts, and those
//! that no run could give, too.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::sync::Arc;

use byteorder::{ByteOrder, LittleEndian};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{LittleEndian as LittleEndianElf, Object, ObjectSection};
use rocov::format::profraw::{Parts, Version, encode};
use rocov::format::sections::{PerSection, Section};
use rocov_tests::artifacts::repository;
use rocov_tests::cli::data;
use rocov_tests::cli::random::Random;
use rocov_tests::cli::release::Release;
use tempfile::TempDir;

use super::ObjectIndex;
use crate::coverage::collect::{CountedBinary, collect};
use crate::coverage::function::Kind;
use crate::coverage::model::{Record, Side};
use crate::llvm::{LlvmTools, Tools};
use crate::profdata::{BinaryCounts, CountKind, CountKinds, ProfileCounts};
use crate::system::command;

/// The variant bit of counters of one byte.
const SINGLE_BYTE: u64 = 1 << 60;

/// The option of LLVM that leaves names of files and functions as they are.
const NO_COMPRESSION: &str = "-enable-name-compression=false";

/// The first release with `BUILTINS`, in words of sources.
const FIRST_WITH_BUILTINS: u32 = 19;
const BUILTINS: [&str; 2] = ["__MEMORY_SCOPE_", "ballot("];
const FIRST_WITH_SINGLE_BYTES: u32 = 19;
const FIRST_WITH_MCDC: u32 = 18;
/// The first release that folds the sides of a branch one by one.
const FIRST_WITH_SIDES: u32 = 21;
/// The first release that does not link the units of a device ELF if it compiles nothing for the host.
const FIRST_WITHOUT_LINK: u32 = 23;
/// The first release whose llvm-cov has decisions and conditions in the order of the source. Its export has
/// another form up to LLVM 21.
const FIRST_WITH_ORDER: u32 = 23;

/// The compilations of these tests.
trait Compilations {
    fn tools(&self) -> Tools;
    fn version(&self) -> Version;
    /// Compiles and links translation units into one device ELF.
    fn compile_units(&self, sources: &[PathBuf], elf: &Path);
    /// Compiles sources into one device ELF.
    fn compile(&self, sources: &[PathBuf], flags: &[&str], elf: &Path);
}

impl Compilations for Release {
    fn tools(&self) -> Tools {
        Tools {
            llvm: self.number,
            raw_version: Some(self.version().layout().version),
            profdata: self.program("llvm-profdata"),
            cov: self.program("llvm-cov"),
        }
    }

    fn version(&self) -> Version {
        Version::from_clang(self.number).unwrap()
    }

    fn compile_units(&self, sources: &[PathBuf], elf: &Path) {
        if self.number < FIRST_WITHOUT_LINK {
            return self.compile(sources, &["-fgpu-rdc"], elf);
        }
        let mut link = Command::new(self.program("clang++"));
        link.args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"]);
        for (number, source) in sources.iter().enumerate() {
            let unit = elf.with_extension(format!("{number}.bc"));
            self.compile(slice::from_ref(source), &["-fgpu-rdc", "-c"], &unit);
            link.arg(unit);
        }
        command::output(link.arg("-o").arg(elf)).unwrap();
    }

    fn compile(&self, sources: &[PathBuf], flags: &[&str], elf: &Path) {
        let device = repository("runtime/device");
        let mut clang = Command::new(self.program("clang++"));
        clang
            .args(["-x", "hip", "-std=c++17", "-nogpuinc", "-nogpulib", "-O1"])
            .args(["--cuda-device-only", "--offload-arch=gfx90a"])
            .args([
                "--no-gpu-bundle-output",
                "-w",
                "-DROCOV_DEVICE_INSTRUMENTED",
            ])
            .args(["-Xclang", "-fprofile-instrument=clang"])
            .args(["-Xclang", "-fcoverage-mapping"])
            .arg("-B")
            .arg(device.join("rdc"))
            .arg("-include")
            .arg(device.join("rocov_device.h"))
            .args(flags)
            .current_dir(data("evaluate"))
            .args(sources)
            .arg("-o")
            .arg(elf);
        command::output(&mut clang).unwrap();
    }
}

/// The raw profile of a device ELF with random counts.
pub(crate) fn profile(elf: &Path, version: Version, random: &mut Random) -> Vec<u8> {
    let bytes = fs::read(elf).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let contents = |section: Section| {
        let section = file.section_by_name(section.elf_name());
        section.map_or((0, &[][..]), |section| {
            (section.address(), section.data().unwrap())
        })
    };
    let layout = version.layout().record;
    let (start, records) = contents(Section::Data);
    let mut data = records.to_vec();
    let mut counters = 0;
    for (index, record) in data.chunks_exact_mut(layout.bytes as usize).enumerate() {
        let address = start + index as u64 * layout.bytes;
        let pointers = [
            (Section::Counters, Some(layout.counter_ptr)),
            (Section::Bitmap, layout.bitmap_ptr),
            (Section::Uniform, layout.uniform_ptr),
        ];
        for (section, at) in pointers {
            let (start, bytes) = contents(section);
            let Some(at) = at.filter(|_| !bytes.is_empty()) else {
                continue;
            };
            let place = LittleEndian::read_u64(&record[at..]).wrapping_add(address);
            // clang 15 leaves the pointer to a relocation. The counters have the order of the records.
            let place = match version.layout().version {
                8 => counters,
                _ => place.wrapping_sub(start),
            };
            LittleEndian::write_u64(&mut record[at..], place);
        }
        let number = LittleEndian::read_u32(&record[layout.num_counters..]);
        counters += u64::from(number) * version.counter_bytes();
        layout.clear_device_fields(record);
    }
    let counts = PerSection::from_fn(|section| {
        let (_, bytes) = contents(section);
        let mut bytes = bytes.to_vec();
        match section {
            Section::Counters if version.is_single_byte() => {
                bytes.fill_with(|| {
                    if random.word().is_multiple_of(2) {
                        0
                    } else {
                        0xff
                    }
                });
            }
            Section::Counters | Section::Uniform => {
                for word in bytes.chunks_exact_mut(8) {
                    LittleEndian::write_u64(word, random.count());
                }
            }
            Section::Bitmap => bytes.fill_with(|| (random.word() & random.word()) as u8),
            Section::Data => bytes.clone_from(&data),
            _ => {}
        }
        bytes
    });
    encode(&Parts {
        version,
        build_id: None,
        sections: PerSection::from_fn(|section| counts.get(section).as_slice()),
        names_address: 0,
    })
}

/// Compares the records of llvm-cov with ours, for a device ELF and profiles of it. Returns the last records.
fn compare(
    release: &Release,
    cov: &Release,
    elf: &Path,
    version: Version,
    directory: &Path,
) -> Vec<Record> {
    let tools = LlvmTools::only(Some(cov.tools()));
    let no_tools = LlvmTools::only(None);
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut records = Vec::new();
    for number in 1..=2 {
        let raw = ["one", "two"].map(|path| directory.join(path).with_extension("profraw"));
        for path in &raw {
            fs::write(path, profile(elf, version, &mut random)).unwrap();
        }
        let raw = &raw[..number];
        let indexed = directory.join("indexed.profdata");
        let mut merge = Command::new(release.program("llvm-profdata"));
        command::output(merge.arg("merge").args(raw).arg("-o").arg(&indexed)).unwrap();
        let collected = |counts, installed| {
            let input = CountedBinary {
                side: Side::Device,
                arch: "gfx90a".to_owned(),
                identity: String::new(),
                binary: elf.to_owned(),
                objects: vec![elf.to_owned()],
                counts,
                kinds: CountKinds::from([CountKind::Mapping]),
                sizes: Arc::default(),
                uniformity: None,
            };
            let mut collected = collect(&[input], installed, str::to_owned).unwrap();
            (collected.sources.remove(0).records, collected.warnings)
        };
        let (expected, _) = collected(BinaryCounts::Indexed(indexed), &tools);
        let raw: Vec<&Path> = raw.iter().map(PathBuf::as_path).collect();
        let counts = Arc::new(ProfileCounts::read(&raw).unwrap());
        let (found, warnings) = collected(BinaryCounts::Summed(counts), &no_tools);
        let what = format!("clang {}: {}", release.number, elf.display());
        assert_equal(&what, &found, &expected);
        assert_eq!(warnings, [], "{what}");
        records = found;
    }
    records
}

/// Compares records one by one, for a message that can be read.
fn assert_equal(what: &str, found: &[Record], expected: &[Record]) {
    let names = |records: &[Record]| -> Vec<_> {
        let names = records
            .iter()
            .map(|record| record.function.name.to_string());
        names.collect()
    };
    assert_eq!(names(found), names(expected), "{what}");
    assert!(!found.is_empty(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let what = format!("{what}: {}", found.function.name);
        let (function, expected_function) = (&found.function, &expected.function);
        assert_eq!(function.regions, expected_function.regions, "{what}");
        assert_eq!(function.branches, expected_function.branches, "{what}");
        assert_eq!(function.decisions, expected_function.decisions, "{what}");
        assert_eq!(function, expected_function, "{what}");
        assert_eq!(found.counts, expected.counts, "{what}");
    }
}

/// Returns whether a release takes the kernel with this number: every third, unless `ROCOV_TEST_LEVELS` is `all`.
/// Compilers take most of the time, and `evaluate/regions.hip` has all kinds of regions for each release. The releases
/// 19, 22 and 23, which CI has, take all kernels together.
fn takes(release: u32, kernel: usize) -> bool {
    let has_all = std::env::var("ROCOV_TEST_LEVELS").is_ok_and(|levels| levels == "all");
    has_all || kernel % 3 == release.div_ceil(2) as usize % 3
}

/// The sources of the modelled GPU's tests.
fn kernels() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository("testdata/kernels")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "hip");
    let mut sources: Vec<_> = paths.filter(is_source).collect();
    sources.sort();
    assert!(sources.len() > 10, "{sources:?}");
    sources
}

/// Compares the coverage of all sources by the clang of this release.
fn all_by(number: u32) {
    let Some(release) = Release::find(number, "coverage of code") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let version = release.version();
    let elf = directory.path().join("device.elf");
    let compared = |source: &Path, flags: &[&str], cov: &Release, version| {
        release.compile(&[source.to_owned()], flags, &elf);
        compare(&release, cov, &elf, version, directory.path())
    };
    let includes = format!("-I{}", repository("testdata/kernels").display());
    for (place, path) in kernels().into_iter().enumerate() {
        let text = fs::read_to_string(&path).unwrap();
        let has_builtins = BUILTINS.iter().any(|builtin| text.contains(builtin));
        if takes(number, place) && (number >= FIRST_WITH_BUILTINS || !has_builtins) {
            compared(&path, &[&includes], &release, version);
        }
    }
    let regions = data("evaluate/regions.hip");
    let units = [regions.clone(), data("evaluate/unit.hip")];
    let records = compared(&regions, &[], &release, version);
    has_every_kind(&records);
    let mut branches = records.iter().flat_map(|record| &record.function.branches);
    let is_folded = branches.any(|branch| branch.folded != [false; 2]);
    assert_eq!(is_folded, number >= FIRST_WITH_SIDES);
    release.compile_units(&units, &elf);
    compare(&release, &release, &elf, version, directory.path());
    let relative = Path::new("../evaluate/regions.hip");
    for directory in ["/a/./b/../c", "d/..", ""] {
        let directory = format!("-fcoverage-compilation-dir={directory}");
        let uncompressed = ["-Xclang", "-mllvm", "-Xclang", NO_COMPRESSION];
        for flags in [&[][..], &uncompressed] {
            let flags = [&[&*directory], flags].concat();
            compared(relative, &flags, &release, version);
        }
    }
    if number >= FIRST_WITH_SINGLE_BYTES {
        let version = Version::from_word(version.word() | SINGLE_BYTE).unwrap();
        let flags = [
            "-Xclang",
            "-mllvm",
            "-Xclang",
            "-enable-single-byte-coverage",
        ];
        compared(&regions, &flags, &release, version);
    }
    if number >= FIRST_WITH_MCDC {
        let Some(cov) = Release::find(number.max(FIRST_WITH_ORDER), "coverage of code") else {
            return;
        };
        let flags = ["-Xclang", "-fcoverage-mcdc"];
        compared(&data("decisions.hip"), &flags, &cov, version);
        let records = compared(&regions, &flags, &cov, version);
        let decisions = records.iter().flat_map(|record| &record.counts.decisions);
        let decisions: Vec<_> = decisions.collect();
        assert!(decisions.len() > 3, "{decisions:?}");
        for is_covered in [false, true] {
            let mut decisions = decisions.iter();
            assert!(decisions.any(|decision| decision.covered.contains(&is_covered)));
        }
    }
}

/// The records have all that is compared: kinds of regions, folded sides, and functions that no unit uses.
fn has_every_kind(records: &[Record]) {
    let functions = || records.iter().map(|record| &record.function);
    for kind in [Kind::Code, Kind::Expansion, Kind::Skipped, Kind::Gap] {
        let mut regions = functions().flat_map(|function| &function.regions);
        assert!(regions.any(|region| region.kind == kind), "{kind:?}");
    }
    assert!(functions().any(|function| function.filenames.len() > 5));
    let mut unused = records
        .iter()
        .filter(|record| *record.function.name == *"_ZL5neveri");
    assert!(unused.all(|record| record.counts.calls == 0));
}

macro_rules! releases {
    ($($test:ident: $number:literal;)*) => {$(
        #[test]
        fn $test() {
            all_by($number);
        }
    )*};
}

releases! {
    coverage_of_code_by_clang_15: 15;
    coverage_of_code_by_clang_16: 16;
    coverage_of_code_by_clang_17: 17;
    coverage_of_code_by_clang_18: 18;
    coverage_of_code_by_clang_19: 19;
    coverage_of_code_by_clang_21: 21;
    coverage_of_code_by_clang_22: 22;
    coverage_of_code_by_clang_23: 23;
    coverage_of_code_by_clang_24: 24;
}

/// A copy of a device ELF whose functions' coverage mappings take more than 2 GiB: zeros follow the first of
/// them, which end it. The file has holes, so it takes little room on the disk.
fn with_large_mapping(elf: &Path, directory: &Path) -> PathBuf {
    const LARGE: u32 = 0x8800_0000;
    /// The place of a record's length of data (`CovMapFunctionRecordV3`), and the size of what is before the data.
    const LENGTH: usize = 8;
    const HEAD: u64 = 28;
    let mut bytes = fs::read(elf).unwrap();
    let header = FileHeader64::<LittleEndianElf>::parse(&*bytes).unwrap();
    let sections = header.sections(LittleEndianElf, &*bytes).unwrap();
    let (index, section) = sections
        .section_by_name(LittleEndianElf, b"__llvm_covfun")
        .unwrap();
    let (start, size) = section.file_range(LittleEndianElf).unwrap();
    let header = header.e_shoff(LittleEndianElf) as usize + index.0 * size_of_val(section);
    let mut records = bytes[start as usize..(start + size) as usize].to_vec();
    let length = u64::from(LittleEndian::read_u32(&records[LENGTH..]));
    let rest = records.split_off((HEAD + length).next_multiple_of(8) as usize);
    assert!(!rest.is_empty(), "there is a record behind the large one");
    LittleEndian::write_u32(&mut records[LENGTH..], LARGE);
    let place = (bytes.len() as u64).next_multiple_of(8);
    let behind = (HEAD + u64::from(LARGE)).next_multiple_of(8);
    // `sh_offset` and `sh_size`.
    LittleEndian::write_u64(&mut bytes[header + 24..], place);
    LittleEndian::write_u64(&mut bytes[header + 32..], behind + rest.len() as u64);
    let path = directory.join("large.elf");
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    file.write_all_at(&records, place).unwrap();
    file.write_all_at(&rest, place + behind).unwrap();
    path
}

#[test]
fn coverage_mappings_above_2_gib() {
    let release = Release::find(22, "coverage of code").unwrap();
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    release.compile(&[data("evaluate/regions.hip")], &[], &elf);
    let version = release.version();
    let raw = directory.path().join("raw");
    fs::write(
        &raw,
        profile(&elf, version, &mut Random(0x1234_5678_9abc_def1)),
    )
    .unwrap();
    let counts = ProfileCounts::read(&[&raw]).unwrap();
    let records = |elf: PathBuf| {
        ObjectIndex::read(&[elf], &CountKinds::from([CountKind::Mapping]))
            .unwrap()
            .evaluate(&counts)
            .unwrap()
            .records
    };
    let expected = records(elf.clone());
    let large = with_large_mapping(&elf, directory.path());
    assert!(fs::metadata(&large).unwrap().len() > 2 << 30);
    assert_equal("more than 2 GiB", &records(large), &expected);
}

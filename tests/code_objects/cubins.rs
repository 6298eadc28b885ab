//! Cubins of clang and ptxas, compared with what ptxas, nvdisasm and LLVM's tools say of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::drain::ZeroWriter;
use rocov::format::codeobject::cuda::{LaidOut, laid_out};
use rocov::format::codeobject::{CodeObject, Kernel, name_ref};
use rocov::settings::Keeping;
use rocov::store::layout::DataLayout;
use tempfile::TempDir;

use crate::support::command::{limited, run};
use crate::support::cuda::{assembled, counting, to_ptx, toolkit};
use crate::support::profile::{functions, merge, raw_profiles};
use crate::{SOURCES, kernels, repository};

/// The assemblers: of CUDA 12, whose cubins have the first layout of flags, and of CUDA 13.
const ASSEMBLERS: [&str; 2] = ["ptxas", "ptxas-13"];

/// cuda.cu, in cubins of all assemblers.
struct Cubins {
    toolkit: PathBuf,
    directory: TempDir,
}

impl Cubins {
    /// `None` if CUDA is not unpacked.
    fn new() -> Option<Self> {
        Some(Self {
            toolkit: toolkit()?,
            directory: tempfile::tempdir().expect("a directory"),
        })
    }

    /// The cubin for `target`, and what its assembler says.
    fn assemble(
        &self,
        assembler: &str,
        target: &str,
        counts: bool,
        arguments: &[&str],
    ) -> (PathBuf, String) {
        let compilation = to_ptx(&self.toolkit, target, "-O1");
        let compilation = match counts {
            true => counting(compilation).arguments(["-Xclang", "-fcoverage-mcdc"]),
            false => compilation,
        };
        let source = repository(SOURCES).join("cuda.cu");
        let ptx = compilation.source(source).output(&format!("cuda.{target}"));
        let arch = format!("-arch={target}");
        let arguments = [&[arch.as_str()], arguments].concat();
        assembled(
            &self.toolkit,
            assembler,
            &ptx,
            &arguments,
            self.directory.path(),
        )
    }

    fn nvdisasm(&self, cubin: &Path) -> String {
        let mut nvdisasm = limited(self.toolkit.join("bin/nvdisasm"));
        run(nvdisasm.arg("-c").arg(cubin)).success().stdout
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}

/// The cubin in this file, laid out.
fn laid_out_of(cubin: &[u8]) -> LaidOut {
    let laid_out = laid_out(cubin).expect("a good cubin");
    laid_out.expect("a cubin that counts")
}

/// A file with the cubin laid out, next to it.
fn laid_out_file(cubin: &Path) -> PathBuf {
    let path = cubin.with_extension("laid_out");
    std::fs::write(&path, laid_out_of(&read(cubin)).elf).expect("a file can be written");
    path
}

/// The sizes of variables by name, as llvm-readelf prints them.
fn variables(cubin: &Path) -> BTreeMap<String, u64> {
    let symbols = run(limited("llvm-readelf-22")
        .args(["-W", "--symbols"])
        .arg(cubin))
    .success();
    let lines = symbols.stdout.lines();
    let symbol = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, _, size, "OBJECT", _, _, _, name] = fields[..] else {
            return None;
        };
        Some((name.to_owned(), size.parse().ok()?))
    };
    lines.filter_map(symbol).collect()
}

/// A data record of raw version 10 in a laid-out cubin.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    /// The hash of the function's name.
    name: u64,
    counters: u64,
    /// The variable at the start of its counters.
    variable: Option<String>,
}

/// The data records, as the format of raw profiles has them (LLVM's InstrProfData.inc): the hash of the name, the hash of
/// the function, and the distance to the counters, of 8 bytes each; the number of counters at byte 48 of 64.
fn records(laid_out: &LaidOut) -> Vec<Record> {
    let elf = ElfFile64::<LittleEndian>::parse(&*laid_out.elf).expect("an ELF");
    let data = elf.section_by_name("__llvm_prf_data").expect("records");
    let bytes = data.data().expect("contents");
    let records = bytes.chunks_exact(64).enumerate().map(|(index, record)| {
        let word = |at: usize| u64::from_le_bytes(*record[at..].first_chunk().expect("a word"));
        let address = data.address() + index as u64 * 64;
        let counters = address.wrapping_add(word(16));
        let mut counted = laid_out.counted.iter();
        Record {
            name: word(0),
            counters: word(48) & u64::from(u32::MAX),
            variable: counted
                .find(|variable| variable.address == counters)
                .map(|variable| variable.name.clone()),
        }
    });
    records.collect()
}

#[test]
fn targets_are_those_of_the_assembler() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        for target in [
            "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120",
        ] {
            let (cubin, _) = cubins.assemble(assembler, target, false, &[]);
            let elf = read(&cubin);
            let code_object = CodeObject::parse(elf.as_slice()).expect("a cubin");
            assert!(code_object.is_cubin());
            assert_eq!(
                code_object.target().expect("a target"),
                target,
                "{assembler}"
            );
            assert!(!code_object.profile_sections().are_instrumented());
            assert_eq!(code_object.is_mapped().ok(), Some(false));
        }
    }
}

#[test]
fn counted_variables_are_those_that_llvm_prints() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        let (cubin, _) = cubins.assemble(assembler, "sm_90", true, &[]);
        let laid_out = laid_out_of(&read(&cubin));
        let is_counted = |name: &str| name.starts_with("__profc_") || name.starts_with("__profbm_");
        let mut expected = variables(&cubin);
        expected.retain(|name, _| is_counted(name));
        let counted = laid_out.counted.iter();
        let found: BTreeMap<_, _> = counted
            .map(|variable| (variable.name.clone(), variable.size))
            .collect();
        assert_eq!(found, expected);
        let records = records(&laid_out);
        assert_eq!(records.len(), 5, "{records:?}");
        for record in records {
            let variable = record.variable.expect("a record has counters");
            assert_eq!(record.counters * 8, expected[&variable], "{variable}");
            let function = variable.trim_start_matches("__profc_");
            assert_eq!(record.name, name_ref(function.as_bytes()), "{function}");
        }
    }
}

#[test]
fn parts_of_cubins_are_laid_out_too() {
    let Some(cubins) = Cubins::new() else { return };
    let (part, _) = cubins.assemble("ptxas", "sm_90", true, &["-c"]);
    let records = records(&laid_out_of(&read(&part)));
    assert_eq!(records.len(), 5);
    assert!(
        records.iter().all(|record| record.variable.is_some()),
        "{records:?}"
    );
}

/// The number in `text` before `unit`.
fn before(text: &str, unit: &str) -> u32 {
    let Some((number, _)) = text.split_once(unit) else {
        return 0;
    };
    let digits = number.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().expect("a number")
}

/// The kernels as ptxas describes them: registers, bytes of stack and of shared memory.
fn described(said: &str) -> BTreeMap<String, (u32, u32, u32)> {
    let pieces = said.split("Compiling entry function '").skip(1);
    let kernels = pieces.map(|piece| {
        let (name, facts) = piece.split_once('\'').expect("a name");
        let facts = facts
            .lines()
            .find(|line| line.contains("Used "))
            .expect("a line with registers");
        let stack = before(facts, " bytes cumulative stack size");
        let sizes = (
            before(facts, " registers"),
            stack,
            before(facts, " bytes smem"),
        );
        (name.to_owned(), sizes)
    });
    kernels.collect()
}

/// The instructions of a kernel that store or load local memory.
fn local_memory_accesses(disassembly: &str, kernel: &str) -> usize {
    let start = format!(".text.{kernel}:");
    let (_, code) = disassembly.split_once(&start).expect("the kernel");
    let lines = code.lines().take_while(|line| !line.starts_with(".text."));
    lines
        .filter(|line| line.contains(" STL") || line.contains(" LDL"))
        .count()
}

#[test]
fn kernels_take_what_ptxas_says() {
    const SPILLING: &str = "_Z8spillingILi60EEvPfi";
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        for target in ["sm_75", "sm_90", "sm_100"] {
            let (cubin, said) = cubins.assemble(assembler, target, false, &["-maxrregcount=32"]);
            let found = kernels(&cubin);
            let expected = described(&said);
            assert_eq!(expected.len(), 3, "{said}");
            assert_eq!(found.len(), 3);
            for kernel in &found {
                let Kernel { name, .. } = kernel;
                let sizes = (kernel.vgprs, kernel.private_size, kernel.group_size);
                assert_eq!(
                    Some(&sizes),
                    expected.get(name),
                    "{name} {assembler} {target}"
                );
                let is_bounded = name == "_Z6memoryPfi";
                let block = if is_bounded { 128 } else { 1024 };
                assert_eq!(kernel.max_workgroup_size, block, "{name}");
                let arguments = if name == "_Z5plainPi" { 8 } else { 12 };
                assert_eq!(kernel.kernarg_size, arguments, "{name}");
                // The table, and the arguments.
                assert!(kernel.constant_size >= 80 + arguments, "{kernel:?}");
                assert_eq!((kernel.wavefront_size, kernel.instrumented), (32, false));
                // nvdisasm 13 tells spills from arrays no better: this kernel has no arrays in memory.
                let disassembly = cubins.nvdisasm(&cubin);
                match &**name {
                    SPILLING => {
                        let spills = local_memory_accesses(&disassembly, SPILLING);
                        assert!(spills > 0, "{target}");
                        assert_eq!(kernel.vgpr_spills as usize, spills, "{assembler} {target}");
                    }
                    _ => assert_eq!(kernel.vgpr_spills, 0, "{name}"),
                }
            }
        }
    }
}

#[test]
fn counting_kernels_have_their_source() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.assemble("ptxas-13", "sm_90", true, &[]);
    for kernel in kernels(&laid_out_file(&cubin)) {
        assert!(kernel.instrumented, "{}", kernel.name);
        let source = kernel.source.expect("a source");
        assert!(source.ends_with("cuda.cu"), "{source}");
    }
}

/// clang makes one coverage mapping for a source, whatever the GPU.
#[test]
fn coverage_mappings_are_those_of_other_gpus() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.assemble("ptxas", "sm_90", true, &[]);
    let other = crate::device_only("clang++-22", &["gfx90a"], 5)
        .arguments(["-x", "hip", "-O1", "-Xclang", "-fcoverage-mcdc"])
        .arguments(crate::FRONT_END)
        .source(repository(SOURCES).join("cuda.cu"))
        .output("cuda.gfx90a");
    let [mut ours, mut theirs] = [&laid_out_file(&cubin), &other].map(|path| {
        let elf = read(path);
        let code_object = CodeObject::parse(elf.as_slice()).expect("a code object");
        code_object.mapped_functions().expect("a mapping")
    });
    assert_eq!(ours.len(), 5);
    ours.sort_unstable_by_key(|function| function.name);
    theirs.sort_unstable_by_key(|function| function.name);
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[test]
fn llvm_reads_zeros_for_a_cubin_that_was_never_loaded() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        let (cubin, _) = cubins.assemble(assembler, "sm_90", true, &[]);
        let agent = Agent {
            handle: 0,
            index: 0,
            name: "sm_90".to_owned(),
            isa: None,
            uuid: None,
            node: None,
        };
        let device = AtRest::new(agent, "a cubin".to_owned(), read(&cubin)).expect("a cubin");
        let data = tempfile::tempdir().expect("a directory");
        let layout = DataLayout::from_data(data.path());
        let written = ZeroWriter::new(layout, Keeping::default(), 0).write(&device);
        assert!(
            written.outcome.losses.is_empty(),
            "{:?}",
            written.outcome.losses
        );
        let record = written.code_object.expect("a record");
        assert_eq!((&*record.target, record.instrumented), ("sm_90", true));
        let merged = data.path().join("merged.profdata");
        merge(&raw_profiles(data.path()), &merged);
        let counters = variables(&cubin).into_iter().filter_map(|(name, size)| {
            let function = name.strip_prefix("__profc_")?;
            Some((function.to_owned(), size / 8))
        });
        let expected: Vec<_> = counters.collect();
        let found = functions(&merged).into_iter().map(|(name, function)| {
            assert!(function.calls == 0 && function.blocks.iter().all(|block| *block == 0));
            (name, 1 + function.blocks.len() as u64)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{assembler}");
    }
}

/// The cubin with the first pointer to counters at `addend` in the section `name`, as linkers may write pointers to
/// local variables.
fn with_pointer_into(cubin: &[u8], name: &str, addend: u64) -> Vec<u8> {
    const GENERIC: u64 = 4;
    let elf = ElfFile64::<LittleEndian>::parse(cubin).expect("a cubin");
    let section = elf.section_by_name(name).expect("the section").index();
    let mut symbols = elf.symbols();
    let symbol = symbols.find(|symbol| {
        symbol.kind() == object::SymbolKind::Section && symbol.section_index() == Some(section)
    });
    let symbol = symbol.expect("a symbol of the section");
    let relocations = elf.section_by_name(".rela.nv.global.init");
    let (start, size) = relocations
        .and_then(|relocation| relocation.file_range())
        .expect("contents");
    let word = |at: usize| u64::from_le_bytes(*cubin[at..].first_chunk().expect("a word"));
    let is_of_counters = |at: &usize| {
        let target = object::SymbolIndex((word(at + 8) >> 32) as usize);
        let target = elf.symbol_by_index(target).expect("a symbol");
        target.name().is_ok_and(|name| name.starts_with("__profc_"))
    };
    let mut places = (start as usize..(start + size) as usize).step_by(24);
    let at = places.find(is_of_counters).expect("a pointer to counters");
    let words = [(symbol.index().0 as u64) << 32 | GENERIC, addend];
    let mut cubin = cubin.to_vec();
    cubin[at + 8..][..16].copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
    cubin
}

#[test]
fn pointers_may_name_a_section() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.assemble("ptxas", "sm_90", true, &[]);
    let cubin = read(&cubin);
    let elf = ElfFile64::<LittleEndian>::parse(&*cubin).expect("a cubin");
    let whole = records(&laid_out_of(&cubin));
    let changed = |section, addend| {
        let changed = with_pointer_into(&cubin, section, addend);
        let changed = records(&laid_out_of(&changed)).into_iter().zip(&whole);
        changed
            .filter(|(now, before)| now != *before)
            .map(|(now, _)| now.variable)
    };
    let symbols = elf.symbols();
    let counters =
        symbols.filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with("__profc_")));
    let mut others = 0;
    for symbol in counters {
        for now in changed(".nv.global", symbol.address()) {
            assert_eq!(now.as_deref(), symbol.name().ok());
            others += 1;
        }
    }
    assert_eq!(others, 4, "the record had one of the five before");
    // This section comes after the variables, and has none.
    let after = changed(".nv.constant0._Z5plainPi", 0);
    assert_eq!(after.collect::<Vec<_>>(), [None]);
}

/// Every cut and many changes of a cubin give values or errors.
#[test]
fn damaged_cubins_give_errors() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.assemble("ptxas-13", "sm_90", true, &[]);
    let whole = read(&cubin);
    let read_all = |elf: &[u8]| -> Result<usize, String> {
        let fail = |error: rocov::format::codeobject::CodeObjectError| error.to_string();
        CodeObject::parse(elf)
            .and_then(|code_object| code_object.kernels())
            .map_err(fail)?;
        let Some(laid_out) = laid_out(elf).map_err(fail)? else {
            return Ok(0);
        };
        let code_object = CodeObject::parse(&*laid_out.elf).map_err(fail)?;
        code_object.kernels().map_err(fail)?;
        code_object.mapped_functions().map_err(fail)?;
        code_object.memory().map_err(fail)?;
        Ok(laid_out.counted.len())
    };
    assert!(read_all(&whole).is_ok_and(|counted| counted >= 5));
    // Only the program headers of a cubin are after its section headers.
    let word = |at: usize| u64::from_le_bytes(*whole[at..].first_chunk().expect("a word"));
    let sections_end = word(40) as usize + 64 * usize::from(word(60) as u16);
    for len in (0..whole.len()).step_by(7) {
        let found = read_all(&whole[..len]);
        assert_eq!(found.is_err(), len < sections_end, "{len}: {found:?}");
    }
    let mut random = fastrand::Rng::with_seed(19);
    for _ in 0..20_000 {
        let mut elf = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..elf.len());
            elf[at] = random.u8(..);
        }
        drop(read_all(&elf));
    }
}

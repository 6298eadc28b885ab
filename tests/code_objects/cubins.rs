//! Cubins of clang and ptxas, compared with what ptxas, nvdisasm and LLVM's tools say of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::drain::ZeroWriter;
use rocov::format::codeobject::cuda::{Binding, CubinProfile};
use rocov::format::codeobject::{CodeObject, Kernel};
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
    fn of(
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

/// The symbols of variables as llvm-readelf prints them: value, size, binding and section by name.
fn variables(cubin: &Path) -> BTreeMap<String, (u64, u64, Binding, usize)> {
    let symbols = run(limited("llvm-readelf-22")
        .args(["-W", "--symbols"])
        .arg(cubin))
    .success();
    let lines = symbols.stdout.lines();
    let symbol = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, value, size, "OBJECT", binding, _, section, name] = fields[..] else {
            return None;
        };
        let binding = match binding {
            "GLOBAL" => Binding::Global,
            "WEAK" => Binding::Weak,
            _ => Binding::Local,
        };
        let value = u64::from_str_radix(value, 16).ok()?;
        let symbol = (value, size.parse().ok()?, binding, section.parse().ok()?);
        Some((name.to_owned(), symbol))
    };
    lines.filter_map(symbol).collect()
}

#[test]
fn targets_are_those_of_the_assembler() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        for target in [
            "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120",
        ] {
            let (cubin, _) = cubins.of(assembler, target, false, &[]);
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
fn profile_variables_are_those_that_llvm_prints() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        let (cubin, _) = cubins.of(assembler, "sm_90", true, &[]);
        let profile = CubinProfile::of(&read(&cubin)).expect("a cubin");
        let expected = variables(&cubin);
        let mut found = Vec::new();
        let records = profile.records.iter().map(|it| &it.variable);
        for variable in records.chain(&profile.counters).chain(&profile.bitmaps) {
            let (value, size, binding, _) = expected[&variable.name];
            assert_eq!(
                (variable.value, variable.size),
                (value, size),
                "{variable:?}"
            );
            assert_eq!(variable.binding, binding, "{variable:?}");
            found.push(variable.name.clone());
        }
        let prefixes = ["__profd_", "__profc_", "__profbm_"];
        let mut wanted: Vec<_> = expected.keys().cloned().collect();
        wanted.retain(|name| prefixes.iter().any(|it| name.starts_with(it)));
        found.sort_unstable();
        assert_eq!(found, wanted);
        assert_eq!(profile.records.len(), 5, "{found:?}");
        for record in &profile.records {
            let function = record.variable.name.trim_start_matches("__profd_");
            let counters = record.counters.as_ref().expect("counters");
            assert_eq!(counters.variable, format!("__profc_{function}"));
            // NumCounters of raw version 10.
            let number = u32::from_le_bytes(*record.bytes[48..].first_chunk().expect("a word"));
            let (_, size, ..) = expected[&counters.variable];
            assert_eq!(u64::from(number) * 8, size, "{function}");
        }
        assert!(profile.copies.is_empty());
    }
}

#[test]
fn parts_of_cubins_have_profile_variables_too() {
    let Some(cubins) = Cubins::new() else { return };
    let (part, _) = cubins.of("ptxas", "sm_90", true, &["-c"]);
    let profile = CubinProfile::of(&read(&part)).expect("a part of a cubin");
    assert_eq!(profile.records.len(), 5);
    assert!(profile.records.iter().all(|it| it.counters.is_some()));
}

/// The number in `text` before `unit`.
fn before(text: &str, unit: &str) -> u32 {
    let Some((number, _)) = text.split_once(unit) else {
        return 0;
    };
    let digits = number.rsplit(|it: char| !it.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().expect("a number")
}

/// The kernels as ptxas describes them: registers, bytes of stack and of shared memory.
fn described(said: &str) -> BTreeMap<String, (u32, u32, u32)> {
    let pieces = said.split("Compiling entry function '").skip(1);
    let kernels = pieces.map(|piece| {
        let (name, facts) = piece.split_once('\'').expect("a name");
        let facts = facts.lines().find(|line| line.contains("Used "));
        let facts = facts.expect("a line with registers");
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
fn of_local_memory(disassembly: &str, kernel: &str) -> usize {
    let start = format!(".text.{kernel}:");
    let (_, code) = disassembly.split_once(&start).expect("the kernel");
    let lines = code.lines().take_while(|line| !line.starts_with(".text."));
    lines
        .filter(|it| it.contains(" STL") || it.contains(" LDL"))
        .count()
}

#[test]
fn kernels_take_what_ptxas_says() {
    const SPILLING: &str = "_Z8spillingILi60EEvPfi";
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        for target in ["sm_75", "sm_90", "sm_100"] {
            let (cubin, said) = cubins.of(assembler, target, false, &["-maxrregcount=32"]);
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
                        let spills = of_local_memory(&disassembly, SPILLING);
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
    let (cubin, _) = cubins.of("ptxas-13", "sm_90", true, &[]);
    for kernel in kernels(&cubin) {
        assert!(kernel.instrumented, "{}", kernel.name);
        let source = kernel.source.expect("a source");
        assert!(source.ends_with("cuda.cu"), "{source}");
    }
}

/// clang makes one coverage mapping for a source, whatever the GPU.
#[test]
fn coverage_mappings_are_those_of_other_gpus() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.of("ptxas", "sm_90", true, &[]);
    let other = crate::device_only("clang++-22", &["gfx90a"], 5)
        .arguments(["-x", "hip", "-O1", "-Xclang", "-fcoverage-mcdc"])
        .arguments(crate::FRONT_END)
        .source(repository(SOURCES).join("cuda.cu"))
        .output("cuda.gfx90a");
    let [mut ours, mut theirs] = [&cubin, &other].map(|path| {
        let elf = read(path);
        let code_object = CodeObject::parse(elf.as_slice()).expect("a code object");
        code_object.mapped_functions().expect("a mapping")
    });
    assert_eq!(ours.len(), 5);
    ours.sort_unstable_by_key(|it| it.name);
    theirs.sort_unstable_by_key(|it| it.name);
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[test]
fn llvm_reads_zeros_for_a_cubin_that_was_never_loaded() {
    let Some(cubins) = Cubins::new() else { return };
    for assembler in ASSEMBLERS {
        let (cubin, _) = cubins.of(assembler, "sm_90", true, &[]);
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
        let layout = DataLayout::of_data(data.path());
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
        let profile = CubinProfile::of(&read(&cubin)).expect("a cubin");
        let mut expected: Vec<_> = profile
            .counters
            .iter()
            .map(|it| {
                (
                    it.name.trim_start_matches("__profc_").to_owned(),
                    it.size / 8,
                )
            })
            .collect();
        expected.sort_unstable();
        let found = functions(&merged).into_iter().map(|(name, function)| {
            assert!(function.calls == 0 && function.blocks.iter().all(|it| *it == 0));
            (name, 1 + function.blocks.len() as u64)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{assembler}");
    }
}

/// Every cut and many changes of a cubin give values or errors.
#[test]
fn damaged_cubins_give_errors() {
    let Some(cubins) = Cubins::new() else { return };
    let (cubin, _) = cubins.of("ptxas-13", "sm_90", true, &[]);
    let whole = read(&cubin);
    let read_all = |elf: &[u8]| -> Result<usize, String> {
        let fail = |error: rocov::format::codeobject::CodeObjectError| error.to_string();
        let code_object = CodeObject::parse(elf).map_err(fail)?;
        let profile = code_object.cubin_profile().map_err(fail)?;
        code_object.kernels().map_err(fail)?;
        code_object.mapped_functions().map_err(fail)?;
        code_object.memory().map_err(fail)?;
        Ok(profile.records.len())
    };
    assert_eq!(read_all(&whole), Ok(5));
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

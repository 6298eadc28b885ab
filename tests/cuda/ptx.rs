//! PTX that rocov has made count: NVIDIA's assembler and linker take it, its blocks are those of the compiler, and its
//! counts come home.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rocov::format::blocks::Kind;
use rocov::format::codeobject::CodeObject;
use rocov::format::codeobject::cuda::laid_out;
use rocov::format::profraw::Version;
use rocov::format::ptx::Module;
use rocov::instrument::ptx::{PtxOptions, instrument};
use rocov::settings::Counting;
use tempfile::TempDir;

use crate::setup::{Setup, counts_by, profiles, step};
use crate::support::artifacts::{files_with_extension, repository};
use crate::support::command::{limited, run};
use crate::support::compilers::Compiler;
use crate::support::profile::profdata;

/// Releases of clang, with an architecture and a level of optimization. sm_70 has no `redux.sync`.
const COMPILATIONS: [(u32, &str, &str); 4] = [
    (15, "sm_70", "-O2"),
    (19, "sm_90", "-O2"),
    (22, "sm_70", "-O0"),
    (22, "sm_90", "-O1"),
];
/// The first release here that marks each block by a comment or a label.
const FIRST_WITH_COMMENTS: u32 = 19;
/// Sources of testdata/kernels: branches, functions, recursion, pointers to functions, ends of threads, many blocks.
const KERNELS: [&str; 6] = ["branches", "callees", "calls", "ends", "indirect", "many"];

/// The PTX of a source in testdata/kernels.
pub(crate) fn compiled(
    setup: &Setup,
    compiler: &Compiler,
    name: &str,
    arch: &str,
    level: &str,
) -> String {
    let mut clang = limited(compiler.clang);
    clang.args(["-x", "cuda", "--cuda-device-only", "-S", "-std=c++17"]);
    clang.args(["-nocudainc", "-nocudalib", "-Wno-unknown-cuda-version"]);
    // clang takes the version of PTX from the toolkit.
    clang.arg(format!("--cuda-path={}", setup.toolkit().display()));
    clang.args([level, "-gline-tables-only", "-o", "-"]);
    clang.arg(format!("--cuda-gpu-arch={arch}"));
    clang.arg(
        repository("testdata/kernels")
            .join(name)
            .with_extension("hip"),
    );
    run(&mut clang).success().stdout
}

fn counting(text: &str) -> String {
    counting_by(text, Counting::Exact)
}

fn counting_by(text: &str, counting: Counting) -> String {
    let module = Module::parse(text).expect("a compiler has written it");
    let options = PtxOptions {
        counting,
        ..PtxOptions::default()
    };
    instrument(&module, &options).expect("it can count")
}

/// Writes the text, and has it assembled.
fn assembled(setup: &Setup, text: &str, flags: &[&str], cubin: &Path) {
    assembled_by(setup, "ptxas", text, flags, cubin);
}

/// Writes the text, and has it assembled by this tool.
fn assembled_by(setup: &Setup, tool: &str, text: &str, flags: &[&str], cubin: &Path) {
    let ptx = cubin.with_extension("ptx");
    fs::write(&ptx, text).expect("a file can be written");
    let mut ptxas = setup.tool(tool);
    ptxas.args(flags).arg(&ptx).arg("-o").arg(cubin);
    run(&mut ptxas).success();
}

/// The numbers of counters of the records in a cubin, by the hash of the name and the hash of the code.
fn records(cubin: &[u8]) -> BTreeMap<(u64, u64), u32> {
    let laid_out = laid_out(cubin).expect("a cubin").expect("it counts");
    let elf = CodeObject::parse(laid_out.elf.as_slice()).expect("an ELF");
    assert!(elf.copies_tables().damage.is_empty());
    let data = elf.profile_sections().data.expect("it has records");
    let layout = Version::from_word(10).expect("a known one").layout().record;
    let memory = &laid_out.memory[data.address as usize..][..data.size as usize];
    let word = |record: &[u8], at: usize| {
        u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"))
    };
    let records = memory.chunks_exact(layout.bytes as usize).map(|record| {
        let count = word(record, layout.num_counters) as u32;
        ((word(record, 0), word(record, 8)), count)
    });
    records.collect()
}

/// The blocks of each function as clang's comments tell. In rocov's blocks, no instruction is after `call`, `trap` and
/// `exit`.
fn blocks_of_clang(text: &str) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    let (mut current, mut ended) = ("", false);
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("-- Begin function ") {
            current = name;
        }
        let begins = line.starts_with("// %bb.") || line.starts_with("$L__BB");
        let instruction = line.trim_start();
        let is_one = instruction.starts_with(|first: char| first.is_ascii_lowercase());
        if begins || is_one && ended {
            *found.entry(current).or_default() += 1;
        }
        if begins || is_one {
            let ends = ["call", "trap;", "exit;"];
            ended = ends.iter().any(|opcode| instruction.starts_with(opcode));
        }
    }
    found
}

#[test]
fn counted_text_is_assembled_and_has_the_blocks_of_the_compiler() {
    let Some(setup) = Setup::get() else { return };
    let place = TempDir::new().expect("a directory can be made");
    for (release, arch, level) in COMPILATIONS {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        for name in KERNELS {
            let what = format!("{name} by clang {release} for {arch} with {level}");
            let text = compiled(setup, compiler, name, arch, level);
            let module = Module::parse(&text).expect(&what);
            if release >= FIRST_WITH_COMMENTS {
                let ours: BTreeMap<_, _> = module
                    .functions
                    .iter()
                    .map(|function| (function.symbol, function.blocks.len()))
                    .collect();
                assert_eq!(ours, blocks_of_clang(&text), "{what}");
            }
            let cubin = place.path().join("it.cubin");
            let flag = format!("-arch={arch}");
            let expected = module.functions.iter().map(|function| {
                let name = Kind::Ptx.record_name(function.symbol);
                let name = rocov::format::codeobject::name_ref(name.as_bytes());
                ((name, function.hash), function.blocks.len() as u32)
            });
            let expected: BTreeMap<_, _> = expected.collect();
            for way in [Counting::Exact, Counting::Reached] {
                assembled(setup, &counting_by(&text, way), &[&flag], &cubin);
                let bytes = fs::read(&cubin).expect("it was made");
                assert_eq!(records(&bytes), expected, "{what}, {way:?}");
            }
        }
    }
}

/// The first line of each text has the blocks of its functions, by the rules of `blocks.rs`.
#[test]
fn all_forms_of_statements_are_assembled_with_counters() {
    let Some(setup) = Setup::get() else { return };
    let place = TempDir::new().expect("a directory can be made");
    let cubin = place.path().join("it.cubin");
    let forms = files_with_extension("testdata/cuda/forms", "ptx");
    assert!(!forms.is_empty());
    for path in forms {
        let what = path.display().to_string();
        let text = fs::read_to_string(&path).expect(&what);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = module
            .functions
            .iter()
            .map(|function| format!("{} {}", function.symbol, function.blocks.len()));
        let found = format!("// blocks: {}", found.collect::<Vec<_>>().join(", "));
        assert_eq!(text.lines().next(), Some(found.as_str()), "{what}");
        // ptxas of CUDA 12 takes PTX before 9.0.
        let assemblers = match module.version.0 {
            9.. => &["ptxas-13"][..],
            _ => &["ptxas", "ptxas-13"],
        };
        let arch = format!("-arch={}", module.target);
        for assembler in assemblers {
            assembled_by(setup, assembler, &text, &[&arch], &cubin);
            for way in [Counting::Exact, Counting::Reached] {
                let text = counting_by(&text, way);
                assembled_by(setup, assembler, &text, &[&arch], &cubin);
                let blocks = records(&fs::read(&cubin).expect("it was made"));
                let blocks = blocks.values().sum::<u32>() as usize;
                let expected: usize = module
                    .functions
                    .iter()
                    .map(|function| function.blocks.len())
                    .sum();
                assert_eq!(blocks, expected, "{what} by {assembler}, {way:?}");
            }
        }
    }
}

#[test]
fn units_with_one_function_are_linked() {
    let Some(setup) = Setup::get() else { return };
    let place = TempDir::new().expect("a directory can be made");
    let head = ".version 7.8\n.target sm_90\n.address_size 64\n";
    let shared = ".weak .entry shared(.param .u64 p) { ret; }\n";
    let own =
        |name: &str| format!("{head}{shared}.visible .entry {name}(.param .u64 p) {{ ret; }}\n");
    // The last two have one text.
    let units = [
        own("one"),
        own("two"),
        format!("{head}{shared}"),
        format!("{head}{shared}"),
    ];
    let mut link = setup.tool("nvlink");
    for (number, text) in units.iter().enumerate() {
        let cubin = place.path().join(format!("{number}.cubin"));
        assembled(setup, &counting(text), &["-c", "-arch=sm_90"], &cubin);
        link.arg(cubin);
    }
    let linked = place.path().join("linked.cubin");
    run(link.arg("-arch=sm_90").arg("-o").arg(&linked)).success();
    let bytes = fs::read(&linked).expect("it was made");
    assert_eq!(records(&bytes).len(), 3);
    let laid_out = laid_out(&bytes).expect("a cubin").expect("it counts");
    let areas = laid_out
        .counted
        .iter()
        .filter(|area| area.name.starts_with("__rocov_copies_area"));
    assert_eq!(areas.count(), 3);
}

#[test]
fn counts_and_copies_are_drained() {
    let Some(setup) = Setup::get() else { return };
    let place = TempDir::new().expect("a directory can be made");
    let text = "\
.version 7.8
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 p)
{
\t.reg .pred %p<2>;
\t.reg .b32 %r<3>;
\tmov.u32 %r1, %tid.x;
\tsetp.gt.u32 %p1, %r1, 7;
\t@%p1 bra $L;
\tadd.u32 %r1, %r1, 1;
$L:
\tret;
}
.func helper()
{
\tret;
}
";
    let counted = counting(text);
    let area = counted
        .split_once("__rocov_copies_area_")
        .expect("it has copies")
        .1;
    let unit = &area[..area.find('[').expect("an array")];
    let cubin = place.path().join("it.cubin");
    assembled(setup, &counted, &["-arch=sm_90"], &cubin);
    // Two copies, 512 bytes apart. Each has the bit of the kernel's second block, and the calls of both functions.
    let mut words = vec!["0"; 67];
    (words[0], words[1], words[2]) = ("30", "40", "0");
    (words[64], words[65], words[66]) = ("1", "2", "9");
    let all = [
        step("load", &cubin),
        format!("plant:__rocov_copies_area_{unit}:{}", words.join(",")),
    ];
    let data: PathBuf = place.path().join("data");
    setup.run(&data, &all).success().silently();
    let found = counts_by(profdata(), &profiles(&data), place.path());
    let expected = [
        ("rocov-ptx;helper".to_owned(), vec![9]),
        ("rocov-ptx;kernel".to_owned(), vec![42, 31, 42]),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}

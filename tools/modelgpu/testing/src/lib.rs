//! The parts that tests of the modelled GPU share: LLVM's tools, and kernels in assembly.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use modelgpu_amdgcn::{Argument, Generation, Launch, Program, Target};

/// A path under the root of the workspace.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// Runs a tool, requires success and returns its output.
pub fn tool(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{name} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{name} {}: {}\n{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("LLVM's tools print UTF-8")
}

/// Compiles the device code of a HIP source for one processor, without HIP's headers and libraries, to `object`.
pub fn compile_hip(source: &Path, processor: &str, options: &[&str], object: &Path) -> Vec<u8> {
    compile_hip_by("clang++-22", source, processor, options, object)
}

/// As [`compile_hip`], by the clang++ with this name or path.
pub fn compile_hip_by(
    compiler: &str,
    source: &Path,
    processor: &str,
    options: &[&str],
    object: &Path,
) -> Vec<u8> {
    let arch = format!("--offload-arch={processor}");
    let how = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpuinc",
        "-nogpulib",
        &arch,
    ];
    let files = [text(source), "-o", text(object)];
    tool(compiler, &[&how[..], options, &files].concat());
    std::fs::read(object).expect("clang's output")
}

/// Arbitrary values of 64 bits, as many as `items`, which the seed determines (Knuth's MMIX generator).
pub fn arbitrary(seed: u64, items: usize) -> Vec<u64> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 32
    };
    std::iter::repeat_with(next).take(items).collect()
}

/// Runs a kernel, with a work-item for each value of the input, on the input and an output of zeros. Returns the output.
pub fn run(object: &[u8], kernel: &str, input: &[u64], workgroup: usize) -> Vec<u64> {
    let mut program = Program::load(object).expect("an object that was just linked");
    run_in(&mut program, kernel, input, workgroup)
}

/// As [`run`], for a program whose object is loaded.
pub fn run_in(program: &mut Program, kernel: &str, input: &[u64], workgroup: usize) -> Vec<u64> {
    let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    let from = program.arena_mut().allocate(&bytes);
    let to = program.arena_mut().allocate(&vec![0; bytes.len()]);
    let launch = Launch {
        kernel: kernel.into(),
        grid: [input.len() as u32, 1, 1],
        block: [workgroup as u32, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(from), Argument::Pointer(to)],
    };
    program
        .launch(&launch)
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let written = program.arena().read(to, bytes.len() as u64);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let written = written.expect("the output");
    written.chunks_exact(8).map(word).collect()
}

/// The targets before gfx942, which have GCN's instructions that it lacks.
pub const GCN: &[Target] = &[Target::Gfx906, Target::Gfx908, Target::Gfx90a];

/// The targets whose waves always have 64 work-items.
pub const GFX9: &[Target] = &[
    Target::Gfx906,
    Target::Gfx908,
    Target::Gfx90a,
    Target::Gfx942,
    Target::Gfx950,
];

/// The targets that tests compile for: those that differ much from all others, but gfx1250, which kernels in `testdata` and
/// a test of its own cover, or all if `ROCOV_TEST_LEVELS` is `all`.
pub fn compiled_targets() -> impl Iterator<Item = Target> {
    let has_all = has_all_levels();
    let is_own = |target: &Target| nearest(*target).is_none() && !target.has_wave32_only();
    let targets = Target::ALL.into_iter();
    targets.filter(move |target| has_all || is_own(target))
}

/// Those of a list that the variant with this number is compiled with: one of them, in turn, unless
/// `ROCOV_TEST_LEVELS` is `all`. Compilers take most of the time.
pub fn in_turn<T>(list: &[T], number: usize) -> &[T] {
    match has_all_levels() {
        true => list,
        false => std::slice::from_ref(&list[number % list.len()]),
    }
}

/// Returns whether tests run all that they can, and not a part in turn.
pub fn has_all_levels() -> bool {
    std::env::var("ROCOV_TEST_LEVELS").is_ok_and(|levels| levels == "all")
}

/// A target that has nearly all instructions of an older one, with the functions that these have there. By default,
/// tests run on the older one only those that differ.
pub fn nearest(target: Target) -> Option<Target> {
    match target {
        Target::Gfx906 => Some(Target::Gfx908),
        Target::Gfx908 => Some(Target::Gfx90a),
        Target::Gfx1030 => Some(Target::Gfx1100),
        _ => None,
    }
}

/// Returns whether `cargo xtask bless` runs the tests, so that they write their records.
pub fn is_blessed() -> bool {
    std::env::var_os("ROCOV_BLESS").is_some_and(|value| !value.is_empty())
}

/// Compares a text with the file that records it, by its path in the repository, as `rocov_tests::records` does. Writes it
/// if the tests write their records.
#[track_caller]
pub fn compare_record(path: &str, made: &str) {
    let file = repository(path);
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    if recorded == made {
        return;
    }
    let state = if is_blessed() { "written" } else { "stale" };
    // Around the capture of tests' output: `cargo xtask` lists these lines.
    let _ = writeln!(stderr(), "record {state}: {path}");
    if is_blessed() {
        std::fs::write(&file, made)
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
        return;
    }
    let [recorded, made]: [BTreeSet<&str>; 2] =
        [&recorded, made].map(|text| text.lines().collect());
    let changes = made.difference(&recorded).map(|line| format!("+{line}\n"));
    let changes = changes.chain(recorded.difference(&made).map(|line| format!("-{line}\n")));
    panic!(
        "{path} is out of date:\n{}Run `cargo xtask bless`, and look at the difference before you commit it.",
        changes.take(40).collect::<String>()
    );
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// A kernel in assembly with pointers as arguments.
#[derive(Debug)]
pub struct AssemblyKernel {
    /// Its symbol.
    pub name: String,
    /// Its instructions, one a line, without the one that ends it.
    pub body: String,
}

/// Bytes of LDS that an assembly kernel has.
pub const LDS_SIZE: usize = 8192;
/// Bytes of scratch that its work-items have.
pub const SCRATCH_SIZE: usize = 512;

/// Assembles and links kernels with `pointers` arguments each. The kernels find the address of the
/// arguments in `s[4:5]`. `more` holds further directives of the kernel descriptor, or other numbers of registers.
pub fn assemble(target: Target, kernels: &[AssemblyKernel], pointers: u64, more: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let (source, object, linked) = (path("kernels.s"), path("kernels.o"), path("kernels.co"));
    std::fs::write(&source, assembly(target, kernels, pointers, more)).expect("a writable file");
    let files = ["-filetype=obj", text(&source), "-o", text(&object)];
    tool("llvm-mc-22", &[&assembler(target)[..], &files].concat());
    tool(
        "ld.lld-22",
        &["-shared", text(&object), "-o", text(&linked)],
    );
    std::fs::read(&linked).expect("the linker's output")
}

const RDNA_FEATURES: &str = "-mattr=+wavefrontsize64,-wavefrontsize32,-real-true16";

/// The assembler's options for a target. RDNA's waves have 64 work-items here, and the names of
/// registers stand for their low halves in 16-bit instructions.
fn assembler(target: Target) -> Vec<&'static str> {
    let triple = "-triple=amdgcn-amd-amdhsa";
    match target {
        Target::Gfx906 => vec![triple, "-mcpu=gfx906"],
        Target::Gfx908 => vec![triple, "-mcpu=gfx908"],
        Target::Gfx90a => vec![triple, "-mcpu=gfx90a"],
        Target::Gfx942 => vec![triple, "-mcpu=gfx942"],
        Target::Gfx950 => vec![triple, "-mcpu=gfx950"],
        Target::Gfx1030 => vec![triple, "-mcpu=gfx1030", RDNA_FEATURES],
        Target::Gfx1100 => vec![triple, "-mcpu=gfx1100", RDNA_FEATURES],
        Target::Gfx1201 => vec![triple, "-mcpu=gfx1201", RDNA_FEATURES],
        Target::Gfx1250 => vec![triple, "-mcpu=gfx1250", "-mattr=-real-true16"],
    }
}

/// Returns whether a target's encodings are RDNA's.
pub fn is_rdna(target: Target) -> bool {
    target.generation() != Generation::Gfx9
}

fn is_gfx12(target: Target) -> bool {
    target.generation() == Generation::Gfx12
}

/// Returns for each body whether the assembler takes it.
pub fn can_be_assembled(target: Target, bodies: &[String]) -> Vec<bool> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("bodies.s");
    let mut lines = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        // A label of a body may be one of another, too.
        lines.extend(body.lines().map(|line| (number, line)));
    }
    let whole: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    std::fs::write(&source, whole.join("\n") + "\n").expect("a writable file");
    let output = Command::new("llvm-mc-22")
        .args(assembler(target))
        .args([text(&source), "-o", "/dev/null"])
        .output()
        .expect("llvm-mc-22 can be run");
    let mut takes = vec![true; bodies.len()];
    let prefix = format!("{}:", source.display());
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let place = line
            .strip_prefix(&prefix)
            .filter(|rest| rest.contains(": error: "));
        if let Some((number, _)) = place.and_then(|rest| rest.split_once(':')) {
            let number: usize = number.parse().expect("a line's number");
            takes[lines[number - 1].0] = false;
        }
    }
    takes
}

/// A body in CDNA's mnemonics, in those of a target of RDNA.
pub fn in_mnemonics_of(target: Target, body: &str) -> String {
    type Names = HashMap<String, &'static str>;
    static NAMES: OnceLock<Vec<(Target, Names)>> = OnceLock::new();
    let names_of = |target| -> Names {
        let opcodes = modelgpu_amdgcn::opcodes(target);
        let own: BTreeSet<&str> = opcodes.iter().map(|opcode| opcode.mnemonic).collect();
        let entries = opcodes
            .into_iter()
            .filter(|opcode| !own.contains(&*opcode.operation));
        entries
            .map(|opcode| (opcode.operation.into_owned(), opcode.mnemonic))
            .collect()
    };
    let all = NAMES.get_or_init(|| {
        let targets = Target::ALL.into_iter().filter(|target| is_rdna(*target));
        targets.map(|target| (target, names_of(target))).collect()
    });
    let Some((_, names)) = all.iter().find(|(owner, _)| *owner == target) else {
        return body.to_owned();
    };
    let translated = body.lines().map(|line| {
        let line = line.trim_start();
        let (first, rest) = line.split_at(line.find(' ').unwrap_or(line.len()));
        let suffix = ["_e32", "_e64", "_dpp", "_sdwa"]
            .into_iter()
            .find(|suffix| first.ends_with(suffix));
        let suffix = suffix.unwrap_or_default();
        let name = first.strip_suffix(suffix).unwrap_or(first);
        // The assembler writes the bit itself.
        let rest = rest.replace("bound_ctrl:0", "bound_ctrl:1");
        // RDNA 4 has no constant as a buffer's scalar offset.
        let rest = match is_gfx12(target) && first.contains("buffer_") {
            true => rest.replace("], 0 ", "], null "),
            false => rest,
        };
        if name == "s_barrier" && is_gfx12(target) {
            return "s_barrier_signal -1\ns_barrier_wait -1".to_owned();
        }
        match names.get(name) {
            Some(rdna) if name.starts_with("ds_cmpst_") => format!("{rdna}{}", exchanged(&rest)),
            Some(name) => format!("{name}{suffix}{rest}"),
            None => format!("{first}{rest}"),
        }
    });
    translated.collect::<Vec<_>>().join("\n")
}

/// Operands with the last two in the other order: RDNA compares with the last one and stores the other.
fn exchanged(operands: &str) -> String {
    let (operands, modifiers) = match operands.find(" offset") {
        Some(place) => operands.split_at(place),
        None => (operands, ""),
    };
    let mut operands: Vec<&str> = operands.split(", ").collect();
    let count = operands.len();
    operands.swap(count - 2, count - 1);
    format!("{}{modifiers}", operands.join(", "))
}

fn assembly(target: Target, kernels: &[AssemblyKernel], pointers: u64, more: &str) -> String {
    let mut source = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n");
    // gfx942 has no private segment buffer, so two pointers take its four SGPRs.
    let own = match target {
        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a | Target::Gfx1030 => {
            ".amdhsa_user_sgpr_private_segment_buffer 1
             .amdhsa_system_sgpr_private_segment_wavefront_offset 1"
        }
        _ => {
            ".amdhsa_user_sgpr_dispatch_ptr 1
             .amdhsa_user_sgpr_queue_ptr 1
             .amdhsa_enable_private_segment 1"
        }
    };
    let or_default = |directive: &str, value: u32| match more.contains(directive) {
        true => String::new(),
        false => format!("{directive} {value}"),
    };
    let registers = match is_rdna(target) {
        true if target.has_wave32_only() => String::new(),
        true => ".amdhsa_wavefront_size32 0".to_owned(),
        // The tests' other directives are those of gfx90a.
        false if !target.has_unified_registers() => String::new(),
        false => or_default(".amdhsa_accum_offset", 64),
    };
    let vectors = or_default(".amdhsa_next_free_vgpr", 128);
    let scalars = or_default(".amdhsa_next_free_sgpr", 96);
    for AssemblyKernel { name, body } in kernels {
        let body = in_mnemonics_of(target, body);
        write!(
            source,
            ".text
             .globl {name}
             .p2align 8
             .type {name},@function
             {name}:
             {body}
             s_endpgm
             .size {name}, .-{name}
             .rodata
             .p2align 6
             .amdhsa_kernel {name}
             .amdhsa_group_segment_fixed_size {LDS_SIZE}
             .amdhsa_private_segment_fixed_size {SCRATCH_SIZE}
             .amdhsa_kernarg_size {size}
             .amdhsa_user_sgpr_kernarg_segment_ptr 1
             .amdhsa_float_denorm_mode_32 3
             {vectors}
             {registers}
             {scalars}
             {own}
             {more}
             .end_amdhsa_kernel\n",
            size = 8 * pointers,
        )
        .expect("a string");
    }
    source
        + &metadata(
            kernels,
            pointers,
            if target.has_wave32_only() { 32 } else { 64 },
        )
}

fn metadata(kernels: &[AssemblyKernel], pointers: u64, wave: u32) -> String {
    let mut metadata = String::from(".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n");
    for AssemblyKernel { name, .. } in kernels {
        write!(
            metadata,
            "  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: {}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {LDS_SIZE}
    .private_segment_fixed_size: {SCRATCH_SIZE}
    .wavefront_size: {wave}
    .sgpr_count: 96
    .vgpr_count: 64
    .max_flat_workgroup_size: 1024
    .args:\n",
            8 * pointers,
        )
        .expect("a string");
        for pointer in 0..pointers {
            writeln!(
                metadata,
                "      - {{.offset: {}, .size: 8, .value_kind: global_buffer, \
                 .address_space: global}}",
                8 * pointer
            )
            .expect("a string");
        }
    }
    metadata + ".end_amdgpu_metadata\n"
}

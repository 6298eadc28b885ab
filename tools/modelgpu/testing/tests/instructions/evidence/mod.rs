//! The evidence for the behaviour of each executed opcode. `amdgcn/src/evidence.txt` records it.
//!
//! There are four kinds. An opcode may have several of the first three:
//!
//! - silicon: a test of tinygrad's authors, which they ran on a GPU of the target, executes the opcode and agrees
//!   (`silicon.txt`, which `tools/dev/silicon -e` writes)
//! - compiler: LLVM chose the opcode for an operation, and the results are those of LLVM's code for the host, or of
//!   LLVM's constant folding. If the opcode did nothing, at least one result would be another one.
//! - arithmetic: a case in this folder has expected values from IEEE 754 or integer arithmetic, computed in another way;
//!   or a matrix product is the plain product, if AMD's own matrix instruction calculator places the elements
//!   (`matrices.txt`, which `tools/dev/matrix -e` writes)
//! - reading: the cases rest on the same understanding of AMD's guides as the interpreter

mod kernels;
mod operations;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use modelgpu_amdgcn::{Evidence, Listed, Program, Standing, Target};
use modelgpu_testing::{compare_record, has_all_levels, is_blessed, repository};

use crate::harness::{Case, cases_on};
use crate::tests::cases_by_family;
use kernels::{Wanted, by_folding, compile, difference, on_host, results};
use operations::{Operation, operations};

/// Instructions that do nothing: four bytes of an `s_nop`.
const NOTHING: [u8; 4] = [0, 0, 0x80, 0xbf];
/// Kernels with an opcode that are tried without it.
const TRIES: usize = 12;
/// The record, in the repository.
const RECORD: &str = "tools/modelgpu/amdgcn/src/evidence.txt";
/// The target whose operations run if the record is only checked.
const CHECKED: Target = Target::Gfx942;

/// The families whose expected values are arithmetic.
const ARITHMETIC: &[&str] = &[
    "atomics",
    "compare",
    "convert",
    "dot",
    "eight",
    "float",
    "half",
    "half_functions",
    "integer",
    "memory",
    "packed",
    "rounding",
    "saturate",
    "scalar",
    "trigonometry",
];

/// The starts of names of other families whose expected values are arithmetic: copies and atomics of scalars, and the
/// comparisons that RDNA's tests hold against those that write a register.
const ARITHMETIC_PARTS: &[(&str, &str)] = &[
    ("control", "s_atomic_"),
    ("control", "s_buffer_atomic_"),
    ("control", "s_buffer_load_"),
    ("control", "s_buffer_store_"),
    ("control", "s_load_"),
    ("control", "s_store_"),
    ("rdna", "v_cmpx_"),
    ("rdna4", "s_buffer_load_"),
    ("rdna4", "s_load_"),
];

/// Parts of names whose meaning only AMD's guides define.
const ONLY_IN_GUIDES: &[&str] = &[
    "_addtid_",
    "_alignbyte_",
    "_append",
    "_bfm_",
    "_cls_",
    "_condxchg",
    "_consume",
    "_cube",
    "_div_",
    "_dot2_bf16",
    "_dot2_f",
    "_dot2acc",
    "_dot2c_f",
    "_dx9_",
    "_ffbh_i32",
    "_flbit_i32",
    "_format_",
    "_gws_",
    "_legacy_",
    "_lerp_",
    "_mbcnt_",
    "_msad_",
    "_mskor_",
    "_off_f32_i4",
    "_perm_",
    "_permute_",
    "_pk_u8_f32",
    "_pkaccum_",
    "_pknorm_",
    "_prng_",
    "_qsad_",
    "_quadmask_",
    "_replicate",
    "_sad_",
    "_sat_pk_",
    "_swizzle_",
    "_trig_preop_",
    "_wqm_",
    "_wrap_",
    "bitreplicate",
    "mqsad",
    "cvt_norm",
    "cvt_pk_norm",
];

/// Opcodes that change no result, so that no comparison can notice their absence: waits, hints and caches.
fn has_no_result(mnemonic: &str) -> bool {
    let names = [
        "s_nop",
        "s_sleep",
        "s_clause",
        "s_delay_alu",
        "s_setprio",
        "s_set_inst_prefetch_distance",
        "s_branch",
        "s_cbranch_execz",
        "s_cbranch_execnz",
    ];
    mnemonic.starts_with("s_wait") || names.contains(&mnemonic)
}

/// Returns whether LLVM has code for an operation on a target.
fn exists(operation: &Operation, target: Target) -> bool {
    let is_lacking = target == Target::Gfx1250
        && [
            "llvm.amdgcn.fdot2",
            "llvm.amdgcn.dot4.f32",
            "llvm.amdgcn.ballot.i64",
        ]
        .iter()
        .any(|name| operation.body.contains(name));
    !is_lacking
        && (!operation.body.contains("atomicrmw usub_cond")
            || target == Target::Gfx1201 && operation.body.contains("i32 %y "))
}

/// The kernels of a target, and what came of them.
struct Compared<'a> {
    object: Vec<u8>,
    operations: BTreeMap<usize, &'a Operation>,
    wanted: &'a BTreeMap<usize, Wanted>,
    executed: BTreeSet<&'static str>,
}

impl<'a> Compared<'a> {
    /// Compiles and runs the operations, and compares their results.
    fn new(
        target: Target,
        operations: &'a [Operation],
        wanted: &'a BTreeMap<usize, Wanted>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let own: Vec<(usize, &Operation)> = operations
            .iter()
            .enumerate()
            .filter(|(place, operation)| wanted.contains_key(place) && exists(operation, target))
            .collect();
        let object = compile(target, &own, directory.path());
        let mut program = Program::load(&object).expect("an object that was just linked");
        let mut failures = Vec::new();
        for (place, operation) in &own {
            for way in ["op", "uniform"] {
                // A scalar function of values that differ has the result of one of them.
                let is_scalar = operation.body.contains("llvm.amdgcn.s.");
                if way == "uniform" && !operation.is_uniform || way == "op" && is_scalar {
                    continue;
                }
                let found = results(&mut program, &format!("{way}{place}"), operation);
                let found = found
                    .unwrap_or_else(|error| panic!("{target} {way}: {error}\n{}", operation.body));
                if let Some(item) = difference(operation, &wanted[place], &found) {
                    failures.push(format!(
                        "{target} {way}, inputs {:x?}: {:x}, wanted {:x?}\n{}",
                        kernels::inputs_of(operation.inputs)[item],
                        found.0[item],
                        wanted[place].values[item],
                        operation.body
                    ));
                }
            }
        }
        assert!(
            failures.is_empty(),
            "{} differ:\n{}",
            failures.len(),
            failures.join("\n")
        );
        Self {
            executed: program.executed_mnemonics().clone(),
            object,
            operations: own.into_iter().collect(),
            wanted,
        }
    }

    /// The opcodes whose absence a comparison notices, and those that cannot have a result.
    fn noticed(&self) -> BTreeSet<&'static str> {
        let program = Program::load(&self.object).expect("an object that was just linked");
        let symbols = program.object().symbols.iter();
        let starts: BTreeMap<u64, &String> = symbols
            .filter(|(name, _)| !name.ends_with(".kd"))
            .map(|(name, symbol)| (symbol.address, name))
            .collect();
        let mut kernels: Vec<(&String, Vec<(u64, Listed)>)> = Vec::new();
        for (pc, listed) in program.disassemble() {
            if let Some(name) = starts.get(&pc) {
                kernels.push((name, Vec::new()));
            }
            if let (Some((_, body)), Ok(listed)) = (kernels.last_mut(), listed) {
                body.push((pc, listed));
            }
        }
        // A loop may not end without one of its instructions.
        let is_loop = |listed: &Listed| {
            let jumps = listed.mnemonic.starts_with("s_cbranch") || listed.mnemonic == "s_branch";
            jumps && listed.immediate < 0
        };
        kernels.retain(|(name, body)| {
            name.contains(char::is_numeric) && !body.iter().any(|(_, listed)| is_loop(listed))
        });
        kernels.sort_by_key(|(_, body)| body.len());
        let mut noticed = BTreeSet::new();
        for mnemonic in &self.executed {
            let is_it =
                |listed: &Listed| listed.mnemonic == *mnemonic || listed.second == Some(*mnemonic);
            let mut mutant = Program::load(&self.object).expect("an object that was just linked");
            let with_it = kernels
                .iter()
                .filter(|(_, body)| body.iter().any(|(_, listed)| is_it(listed)));
            let is_noticed = with_it.take(TRIES).any(|(name, body)| {
                for (pc, listed) in body.iter().filter(|(_, listed)| is_it(listed)) {
                    let nothing = NOTHING.repeat(usize::from(listed.size / 4));
                    mutant
                        .arena_mut()
                        .write(*pc, &nothing)
                        .expect("the kernel's code");
                }
                let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                let place: usize = digits.parse().expect("an operation's place");
                let operation = self.operations[&place];
                let found = results(&mut mutant, name, operation);
                found.map_or(true, |found| {
                    difference(operation, &self.wanted[&place], &found).is_some()
                })
            });
            if is_noticed || has_no_result(mnemonic) {
                noticed.insert(*mnemonic);
            }
        }
        noticed
    }
}

/// The opcodes that have cases with arithmetic, by target.
fn arithmetic() -> impl Fn(Target) -> BTreeSet<&'static str> {
    let families = cases_by_family().into_iter();
    let cases: Vec<Case> = families
        .flat_map(|(family, cases)| {
            let starts: Vec<&str> = ARITHMETIC_PARTS
                .iter()
                .filter(|(owner, _)| *owner == family)
                .map(|(_, start)| *start)
                .collect();
            let is_arithmetic = move |name: &str| {
                ARITHMETIC.contains(&family) || starts.iter().any(|start| name.starts_with(start))
            };
            cases
                .into_iter()
                .filter(move |case| is_arithmetic(case.mnemonic))
        })
        .collect();
    let on_others = move |target| -> BTreeSet<&'static str> {
        let cases = cases_on(target, &cases).into_iter();
        // One reading gave an operation its name on CDNA, and the other on RDNA.
        let named = cases.map(|(case, mnemonic)| (case.mnemonic, mnemonic));
        let plain = named.filter(|(name, mnemonic)| {
            let is_guide = |part: &&str| name.contains(*part) || mnemonic.contains(*part);
            !ONLY_IN_GUIDES.iter().any(is_guide)
        });
        plain.map(|(_, mnemonic)| mnemonic).collect()
    };
    move |target| {
        if Target::WAVE64.contains(&target) {
            return on_others(target);
        }
        // The cases need waves of 64. An opcode has the function of those with its operation on other targets.
        let shared: BTreeSet<String> = Target::WAVE64
            .iter()
            .flat_map(|other| {
                let arithmetic = on_others(*other);
                let opcodes = modelgpu_amdgcn::opcodes(*other).into_iter();
                opcodes
                    .filter(move |opcode| arithmetic.contains(opcode.mnemonic))
                    .map(|opcode| opcode.operation.into_owned())
            })
            .collect();
        modelgpu_amdgcn::opcodes(target)
            .into_iter()
            .filter(|opcode| opcode.standing == Standing::Executed)
            .filter(|opcode| shared.contains(&*opcode.operation))
            .map(|opcode| opcode.mnemonic)
            .collect()
    }
}

/// The opcodes of a target in `silicon.txt` or `matrices.txt`.
fn listed(file: &'static str, target: Target) -> BTreeSet<&'static str> {
    let lines = file.lines();
    let line = lines
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == target.name());
    line.map_or_else(BTreeSet::new, |(_, names)| names.split(' ').collect())
}

/// The opcodes that a target executes.
fn executed(target: Target) -> BTreeSet<&'static str> {
    modelgpu_amdgcn::opcodes(target)
        .into_iter()
        .filter(|opcode| opcode.standing == Standing::Executed)
        .map(|opcode| opcode.mnemonic)
        .collect()
}

/// The record's text.
fn written(evidence: &BTreeMap<&'static str, Vec<Option<Evidence>>>) -> String {
    let targets = Target::ALL.map(Target::name).join(" ");
    let mut text = format!(
        "# s: silicon, c: compiler, a: arithmetic, r: own reading of the guides only, -: not executed.\n\
         # `cargo xtask bless evidence` writes this file.\nopcode {targets}\n"
    );
    for (mnemonic, kinds) in evidence {
        let columns = kinds.iter().map(|kinds| match kinds {
            None => "-".to_owned(),
            Some(kinds) => kinds.to_string(),
        });
        let columns: Vec<String> = columns.collect();
        let _ = writeln!(text, "{mnemonic} {}", columns.join(" "));
    }
    text
}

/// Compares each operation on one target, or on all of them if the record is written or `ROCOV_TEST_LEVELS` is `all`.
#[test]
fn evidence_is_as_recorded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let operations = operations();
    let mut wanted = on_host(&operations, directory.path());
    wanted.extend(by_folding(&operations, directory.path()));
    let is_full = is_blessed() || has_all_levels();
    let arithmetic = arithmetic();
    let mut evidence: BTreeMap<&'static str, Vec<Option<Evidence>>> = BTreeMap::new();
    for (column, target) in Target::ALL.into_iter().enumerate() {
        let known = executed(target);
        let recorded = known.iter().copied().filter(|mnemonic| {
            Evidence::recorded(target, mnemonic).is_some_and(|kinds| kinds.compiler)
        });
        let mut compiler: BTreeSet<&str> = recorded.collect();
        if is_full || target == CHECKED {
            let compared = Compared::new(target, &operations, &wanted);
            if is_full {
                compiler = compared.noticed();
            } else {
                let missing: Vec<_> = compiler.difference(&compared.executed).collect();
                assert!(
                    missing.is_empty(),
                    "{target}: LLVM does not choose {missing:?}"
                );
            }
        }
        let silicon = listed(include_str!("silicon.txt"), target);
        let mut arithmetic = arithmetic(target);
        arithmetic.extend(listed(include_str!("matrices.txt"), target));
        for mnemonic in known {
            let kinds = Evidence {
                silicon: silicon.contains(mnemonic),
                compiler: compiler.contains(mnemonic),
                arithmetic: arithmetic.contains(mnemonic),
            };
            let row = evidence
                .entry(mnemonic)
                .or_insert_with(|| vec![None; Target::ALL.len()]);
            row[column] = Some(kinds);
        }
    }
    compare_record(RECORD, &written(&evidence));
    let book = repository("docs/src/internals/silicon.md");
    let book = std::fs::read_to_string(book).expect("the chapter");
    for (column, target) in Target::ALL.into_iter().enumerate() {
        let kinds: Vec<Evidence> = evidence.values().filter_map(|row| row[column]).collect();
        let count =
            |is_it: fn(&Evidence) -> bool| kinds.iter().filter(|kinds| is_it(kinds)).count();
        let own = count(|kinds| kinds.is_own_reading());
        let row = format!(
            "| {target} | {} | {} | {} | {} | {own} ({} %) |",
            kinds.len(),
            count(|kinds| kinds.silicon),
            count(|kinds| kinds.compiler),
            count(|kinds| kinds.arithmetic),
            (100 * own).div_ceil(kinds.len()),
        );
        let is_limited = matches!(target, Target::Gfx90a | Target::Gfx942 | Target::Gfx1100);
        assert!(
            !is_limited || 5 * own < kinds.len(),
            "{target}: too many opcodes rest on our reading: {row}"
        );
        assert!(
            book.contains(&row),
            "docs/src/internals/silicon.md lacks this row: {row}"
        );
    }
}

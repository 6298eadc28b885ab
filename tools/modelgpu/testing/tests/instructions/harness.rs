//! Runs short pieces of assembly on one wave and compares registers with expected values.
//!
//! A case's body finds the 64-bit inputs a to d of its lane in v[2:3], v[4:5], v[6:7] and v[8:9],
//! the lane's number in v0, and the address of 4096 bytes of its own memory in s[12:13]. It leaves
//! its results in v10 to v13. It may use v14 to v63, a0 to a63, s16 to s95 and VCC. `RETURN_OLD`
//! stands for the flag that makes an atomic return the old value.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use modelgpu_amdgcn::{Argument, Launch, Opcode, Program, Simd, Standing, Target};
use modelgpu_testing::{
    AssemblyKernel, assemble, can_be_assembled, has_all_levels, in_mnemonics_of, is_rdna, nearest,
};

use crate::inputs::integers;

pub(crate) use modelgpu_testing::{GCN, GFX9};

pub(crate) const LANES: usize = 64;

/// The inputs a to d of all lanes.
pub(crate) type Inputs = [[u64; 4]; LANES];

/// The words of v10 to v13 before a case.
pub(crate) const KEPT: u32 = 0x5a5a_5a5a;

/// The expected results of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// No expectation.
    Any,
    /// v10.
    Word(u32),
    /// v[10:11].
    Long(u64),
    /// v10 to v13.
    All([u32; 4]),
    /// v10 to v13 as numbers: any NaN matches a NaN.
    Singles([u32; 4]),
    /// v[10:11] and v[12:13] as numbers: any NaN matches a NaN.
    Doubles([u32; 4]),
    /// v10 as a number: any NaN matches a NaN.
    Single(f32),
    /// v[10:11] as a number: any NaN matches a NaN.
    Double(f64),
    /// v10, within a few units in the last place.
    NearSingle(f32),
    /// v[10:11], within a few units in the last place.
    NearDouble(f64),
    /// v10 as a half: any NaN matches a NaN.
    Half(u16),
    /// v10 as a half, within a unit in the last place; +0 matches -0.
    NearHalf(u16),
}

/// Maps all lanes' inputs and a lane's number to the lane's expected results.
pub(crate) type Expected = Box<dyn Fn(&Inputs, usize) -> Want>;

/// One piece of assembly.
pub(crate) struct Case {
    /// The instruction under test.
    pub(crate) mnemonic: &'static str,
    pub(crate) body: String,
    pub(crate) inputs: Inputs,
    pub(crate) expected: Expected,
    pub(crate) targets: &'static [Target],
}

impl Case {
    pub(crate) fn new(
        mnemonic: &'static str,
        body: impl Into<String>,
        inputs: Inputs,
        expected: impl Fn(&Inputs, usize) -> Want + 'static,
    ) -> Self {
        Self {
            mnemonic,
            body: body.into(),
            inputs,
            expected: Box::new(expected),
            targets: Target::WAVE64,
        }
    }

    /// The instruction's mnemonic on a target, if the target has it and the model executes it.
    fn mnemonic_on(&self, target: Target) -> Option<&'static str> {
        let found = executed(target).get(self.mnemonic).copied();
        found.filter(|_| self.targets.contains(&target))
    }

    pub(crate) fn only(self, targets: &'static [Target]) -> Self {
        Self { targets, ..self }
    }
}

/// The cases that run on a target, each with the mnemonic of its instruction there. RDNA and gfx908 lack forms that
/// gfx90a has: the assembler does not take a case with one.
pub(crate) fn cases_on(target: Target, cases: &[Case]) -> Vec<(&Case, &'static str)> {
    that_assemble(target, of_instructions_of(target, cases))
}

/// The cases whose instructions a target has and the model executes.
fn of_instructions_of(target: Target, cases: &[Case]) -> Vec<(&Case, &'static str)> {
    cases
        .iter()
        .filter_map(|case| Some((case, case.mnemonic_on(target)?)))
        .collect()
}

/// The cases among them that the assembler takes.
fn that_assemble<'a>(
    target: Target,
    cases: Vec<(&'a Case, &'static str)>,
) -> Vec<(&'a Case, &'static str)> {
    let has_all_forms = !is_rdna(target) && nearest(target).is_none();
    if cases.is_empty() || has_all_forms {
        return cases;
    }
    let bodies: Vec<String> = cases
        .iter()
        .map(|(case, _)| in_mnemonics_of(target, &with_flag(target, &case.body)))
        .collect();
    let takes = can_be_assembled(target, &bodies);
    let taken = cases.into_iter().zip(takes).filter(|(_, takes)| *takes);
    taken.map(|(case, _)| case).collect()
}

/// The cases among them whose instructions differ from those of the nearest target, or all if `ROCOV_TEST_LEVELS` is
/// `all`: another row of the tables, another function, or a form that RDNA has on gfx1030 alone.
fn that_differ<'a>(
    target: Target,
    cases: Vec<(&'a Case, &'static str)>,
) -> Vec<(&'a Case, &'static str)> {
    /// gfx908 has the results of matrix products in a file of their own.
    const OTHER_FUNCTIONS: [&str; 2] = ["v_mfma_", "v_accvgpr_"];
    let Some(near) = nearest(target).filter(|_| !has_all_levels()) else {
        return cases;
    };
    let rows = |target| -> BTreeSet<Cow<'static, str>> {
        let of_encoding = modelgpu_amdgcn::opcodes(target);
        let names = |opcode: Opcode| [opcode.mnemonic.into(), opcode.operation];
        of_encoding.into_iter().flat_map(names).collect()
    };
    let known = rows(near);
    cases
        .into_iter()
        .filter(|(case, mnemonic)| {
            let is_known = known.contains(*mnemonic) || known.contains(case.mnemonic);
            let is_form = target == Target::Gfx1030 && case.body.contains("_sdwa");
            !is_known
                || is_form
                || OTHER_FUNCTIONS
                    .iter()
                    .any(|family| mnemonic.starts_with(family))
        })
        .collect()
}

/// The cases of a code object. Loading one takes time for each of its kernels, and each case loads it.
const TOGETHER: usize = 100;

/// Runs the cases on each target and compares. Every case must execute the instruction that it
/// tests.
pub(crate) fn check(cases: &[Case]) {
    for &target in Target::WAVE64 {
        let cases = that_differ(target, of_instructions_of(target, cases));
        let cases = that_assemble(target, cases);
        let failures: Vec<String> = cases
            .chunks(TOGETHER)
            .flat_map(|cases| failures(target, cases))
            .collect();
        assert!(
            failures.is_empty(),
            "{} cases fail:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

/// Runs cases with all vector instructions of the host, and describes the ones that fail.
fn failures(target: Target, cases: &[(&Case, &str)]) -> Vec<String> {
    let kernels: Vec<AssemblyKernel> = cases
        .iter()
        .enumerate()
        .map(|(number, (case, _))| AssemblyKernel {
            name: format!("case_{number}"),
            body: wrap(target, &case.body),
        })
        .collect();
    let object = assemble(target, &kernels, 3, "");
    let mut failures = Vec::new();
    let simd = Simd::available();
    let runs = cases.iter().zip(&kernels);
    for (((case, mnemonic), kernel), (level, simd)) in
        runs.flat_map(|run| simd.iter().map(move |level| (run, *level)))
    {
        // A program for each case shows which instructions the case executes.
        let mut program = Program::load(&object).expect("an object that was just linked");
        program.set_simd(simd);
        let results = run(&mut program, &kernel.name, &case.inputs);
        let executed: &BTreeSet<&str> = program.executed_mnemonics();
        assert!(
            executed.contains(mnemonic),
            "{target} {mnemonic}: {}",
            case.body
        );
        for (lane, result) in results.into_iter().enumerate() {
            let want = (case.expected)(&case.inputs, lane);
            let accepts = match is_rdna(target) {
                true => want.accepts_on_rdna(&case.body, result),
                false => want.accepts(result),
            };
            if !accepts {
                failures.push(format!(
                    "{target} {level} {}\n  lane {lane}, inputs {:x?}\n  result {result:x?}, wanted {want:x?}",
                    case.body, case.inputs[lane]
                ));
                break;
            }
        }
    }
    failures
}

/// The operations of a target that the model executes, and their mnemonics there.
pub(crate) fn executed(target: Target) -> &'static BTreeMap<String, &'static str> {
    static EXECUTED: OnceLock<Vec<BTreeMap<String, &str>>> = OnceLock::new();
    let all = EXECUTED.get_or_init(|| {
        let of = |target| {
            let mut names = BTreeMap::new();
            for opcode in modelgpu_amdgcn::opcodes(target) {
                if opcode.standing == Standing::Executed {
                    names.insert(opcode.mnemonic.to_owned(), opcode.mnemonic);
                    names
                        .entry(opcode.operation.into_owned())
                        .or_insert(opcode.mnemonic);
                }
            }
            names
        };
        Target::ALL.into_iter().map(of).collect()
    });
    let place = Target::ALL.iter().position(|other| *other == target);
    &all[place.expect("one of the targets")]
}

fn run(program: &mut Program, kernel: &str, inputs: &Inputs) -> Vec<[u32; 4]> {
    let input: Vec<u8> = inputs
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let arena = program.arena_mut();
    let input = arena.allocate(&input);
    let output = arena.allocate(&[0; 16 * LANES]);
    let memory: Vec<u8> = (0..4096u32).map(memory_byte).collect();
    let memory = arena.allocate(&memory);
    let launch = Launch {
        kernel: kernel.to_owned(),
        grid: [LANES as u32, 1, 1],
        block: [LANES as u32, 1, 1],
        dynamic_lds: 0,
        arguments: [input, output, memory].map(Argument::Pointer).to_vec(),
    };
    program
        .launch(&launch)
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let bytes = program
        .arena()
        .read(output, 16 * LANES as u64)
        .expect("the output buffer");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes
        .chunks_exact(16)
        .map(|lane| std::array::from_fn(|place| word(&lane[4 * place..][..4])))
        .collect()
}

/// The initial contents of the case's memory.
pub(crate) fn memory_byte(offset: u32) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 21) as u8
}

fn with_flag(target: Target, body: &str) -> String {
    let flag = match target {
        Target::Gfx906 | Target::Gfx908 | Target::Gfx90a | Target::Gfx1030 | Target::Gfx1100 => {
            "glc"
        }
        Target::Gfx942 | Target::Gfx950 => "sc0",
        Target::Gfx1201 | Target::Gfx1250 => "th:TH_ATOMIC_RETURN",
    };
    body.replace("RETURN_OLD", flag)
}

fn wrap(target: Target, body: &str) -> String {
    let body = with_flag(target, body);
    format!(
        "s_load_dwordx4 s[8:11], s[4:5], 0x0
         s_load_dwordx2 s[12:13], s[4:5], 0x10
         v_lshlrev_b32 v1, 5, v0
         s_waitcnt lgkmcnt(0)
         global_load_dwordx4 v[2:5], v1, s[8:9]
         global_load_dwordx4 v[6:9], v1, s[8:9] offset:16
         v_mov_b32 v10, 0x5a5a5a5a
         v_mov_b32 v11, v10
         v_mov_b32 v12, v10
         v_mov_b32 v13, v10
         s_waitcnt vmcnt(0)
         {body}
         s_waitcnt vmcnt(0) lgkmcnt(0)
         s_mov_b64 exec, -1
         v_lshlrev_b32 v1, 4, v0
         global_store_dwordx4 v1, v[10:13], s[10:11]"
    )
}

/// The high half of v10 after a body.
#[derive(PartialEq)]
enum OtherHalf {
    /// The body's only result in v10 has 16 bits: what v10 had before.
    Kept,
    /// The old value of v10, unless a later instruction has replaced the whole register.
    KeptOrReplaced,
    /// A part of the result.
    Written,
}

impl OtherHalf {
    fn new(body: &str) -> Self {
        let writes = |line: &&str| line.split_whitespace().nth(1) == Some("v10,");
        let mut writers = body.lines().filter(writes);
        match (writers.next(), writers.next()) {
            (Some(first), None) if writes_low_half(first) => Self::Kept,
            (Some(first), Some(_)) if writes_low_half(first) => Self::KeptOrReplaced,
            _ => Self::Written,
        }
    }
}

/// Returns whether an instruction has a result of 16 bits in a low half.
fn writes_low_half(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    // The last bit of op_sel is the result's.
    let select = line.split_once("op_sel:[").map_or("", |(_, rest)| rest);
    let is_high = select
        .split(']')
        .next()
        .is_some_and(|bits| bits.ends_with('1'));
    // These have one result of two, a sum of 32 bits, or a high half.
    let others = [
        "_pk_", "pknorm", "pkrtz", "v_sad_", "v_msad_", "mixhi", "v_cmp",
    ];
    if name.starts_with("v_sat_pk_") {
        return true;
    }
    if !name.starts_with("v_") || is_high || others.iter().any(|part| name.contains(part)) {
        return false;
    }
    // The result's type comes before those of the sources.
    let result = name.split('_').find(|part| {
        let (kind, bits) = part.split_at(part.len().min(1));
        ["f", "i", "u", "b"].contains(&kind) && ["16", "32", "64"].contains(&bits)
    });
    result.is_some_and(|first| first.ends_with("16"))
}

impl Want {
    /// Checks the result of a body on RDNA, where a 16-bit result keeps the other half of its register
    /// (AMD's RDNA 3 instruction set guide, "16-bit Operations"): what v10 had before.
    fn accepts_on_rdna(self, body: &str, result: [u32; 4]) -> bool {
        let [r0, r1, r2, r3] = result;
        let is_half = match self {
            Self::Word(want) => want <= 0xffff,
            Self::Half(_) | Self::NearHalf(_) => true,
            _ => false,
        };
        let keeps = r0 >> 16 == 0x5a5a && self.accepts([r0 & 0xffff, r1, r2, r3]);
        match OtherHalf::new(body) {
            OtherHalf::Kept if is_half => keeps,
            OtherHalf::KeptOrReplaced if is_half => keeps || self.accepts(result),
            _ => self.accepts(result),
        }
    }

    fn accepts(self, [r0, r1, r2, r3]: [u32; 4]) -> bool {
        let long = u64::from(r0) | u64::from(r1) << 32;
        match self {
            Self::Any => true,
            Self::Word(want) => r0 == want,
            Self::Long(want) => long == want,
            Self::All(want) => [r0, r1, r2, r3] == want,
            Self::Singles(want) => [r0, r1, r2, r3].into_iter().zip(want).all(|(bits, want)| {
                bits == want || f32::from_bits(bits).is_nan() && f32::from_bits(want).is_nan()
            }),
            Self::Doubles(want) => {
                [[r0, r1], [r2, r3]]
                    .into_iter()
                    .zip([[0, 1], [2, 3]])
                    .all(|(words, places)| {
                        let double = |[low, high]: [u32; 2]| {
                            f64::from_bits(u64::from(low) | u64::from(high) << 32)
                        };
                        let want = double(places.map(|place| want[place]));
                        let found = double(words);
                        found.to_bits() == want.to_bits() || found.is_nan() && want.is_nan()
                    })
            }
            Self::Single(want) => {
                r0 == want.to_bits() || want.is_nan() && f32::from_bits(r0).is_nan()
            }
            Self::Double(want) => {
                long == want.to_bits() || want.is_nan() && f64::from_bits(long).is_nan()
            }
            Self::NearSingle(want) => {
                Self::Single(want).accepts([r0, r1, r2, r3])
                    || (i64::from(r0) - i64::from(want.to_bits())).abs() <= 2
            }
            Self::Half(want) => r0 == want.into() || is_nan(r0) && is_nan(want.into()),
            Self::NearHalf(want) => {
                // From the lowest number to the highest.
                let place = |bits: u32| match bits & 0x8000 {
                    0 => i64::from(bits),
                    _ => -i64::from(bits & 0x7fff),
                };
                let distance = place(r0) - place(want.into());
                is_nan(r0) && is_nan(want.into())
                    || r0 <= 0xffff && !is_nan(r0) && !is_nan(want.into()) && distance.abs() <= 1
            }
            Self::NearDouble(want) => {
                Self::Double(want).accepts([r0, r1, r2, r3])
                    || i128::from(long).abs_diff(i128::from(want.to_bits())) <= 2
            }
        }
    }
}

fn is_nan(half: u32) -> bool {
    half & 0x7fff > 0x7c00 && half <= 0xffff
}

/// Cases of instructions that change no register: a mnemonic, and the text of each.
pub(crate) fn without_effect(all: &[(&'static str, &str)]) -> Vec<Case> {
    let case = |(mnemonic, text): &(&'static str, &str)| {
        let body = format!("v_mov_b32 v11, v2\n{text}\nv_mov_b32 v10, v11");
        Case::new(mnemonic, body, integers(), |all, lane| {
            let a = all[lane][0] as u32;
            Want::All([a, a, KEPT, KEPT])
        })
    };
    all.iter().map(case).collect()
}

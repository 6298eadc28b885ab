//! Runs short pieces of assembly on one wave and compares registers with expected values.
//!
//! A case's body finds the 64-bit inputs a to d of its lane in v[2:3], v[4:5], v[6:7] and v[8:9],
//! the lane's number in v0, and the address of 4096 bytes of its own memory in s[12:13]. It leaves
//! its results in v10 to v13. It may use v14 to v63, a0 to a63, s16 to s95 and VCC. `RETURN_OLD`
//! stands for the flag that makes an atomic return the old value.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use modelgpu_amdgcn::{Argument, Launch, Program, Simd, Standing, Target};

use crate::common::{AssemblyKernel, assemble};

pub(crate) const LANES: usize = 64;

/// The inputs a to d of all lanes.
pub(crate) type Inputs = [[u64; 4]; LANES];

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
            targets: &Target::ALL,
        }
    }

    /// Returns whether the case runs on a target: it has the instruction, and the model executes it.
    pub(crate) fn runs_on(&self, target: Target) -> bool {
        self.targets.contains(&target) && executed(target).contains(self.mnemonic)
    }

    pub(crate) fn only(self, targets: &'static [Target]) -> Self {
        Self { targets, ..self }
    }
}

/// Runs the cases on each target and compares. Every case must execute the instruction that it
/// tests.
pub(crate) fn check(cases: &[Case]) {
    for target in Target::ALL {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.runs_on(target)).collect();
        if cases.is_empty() {
            continue;
        }
        let kernels: Vec<AssemblyKernel> = cases
            .iter()
            .enumerate()
            .map(|(number, case)| AssemblyKernel {
                name: format!("case_{number}"),
                body: wrap(target, &case.body),
            })
            .collect();
        let object = assemble(target, &kernels, 3, "");
        let mut failures = Vec::new();
        let simd = Simd::available();
        let runs = cases.iter().zip(&kernels);
        for ((case, kernel), (level, simd)) in
            runs.flat_map(|run| simd.iter().map(move |level| (run, *level)))
        {
            // A program for each case shows which instructions the case executes.
            let mut program = Program::load(&object).expect("an object that was just linked");
            program.set_simd(simd);
            let results = run(&mut program, &kernel.name, &case.inputs);
            let executed: &BTreeSet<&str> = program.executed_mnemonics();
            assert!(
                executed.contains(case.mnemonic),
                "{}: {}",
                case.mnemonic,
                case.body
            );
            for (lane, result) in results.into_iter().enumerate() {
                let want = (case.expected)(&case.inputs, lane);
                if !want.accepts(result) {
                    failures.push(format!(
                        "{target} {level} {}\n  lane {lane}, inputs {:x?}\n  result {result:x?}, wanted {want:x?}",
                        case.body, case.inputs[lane]
                    ));
                    break;
                }
            }
        }
        assert!(
            failures.is_empty(),
            "{} cases fail:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

/// The instructions of a target that the model executes.
pub(crate) fn executed(target: Target) -> &'static BTreeSet<&'static str> {
    static EXECUTED: OnceLock<Vec<BTreeSet<&str>>> = OnceLock::new();
    let all = EXECUTED.get_or_init(|| {
        let of = |target| {
            modelgpu_amdgcn::opcodes(target)
                .into_iter()
                .filter(|opcode| opcode.standing == Standing::Executed)
                .map(|opcode| opcode.mnemonic)
                .collect()
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

fn wrap(target: Target, body: &str) -> String {
    let flag = match target {
        Target::Gfx90a => "glc",
        Target::Gfx942 | Target::Gfx950 => "sc0",
    };
    let body = body.replace("RETURN_OLD", flag);
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

impl Want {
    fn accepts(self, [r0, r1, r2, r3]: [u32; 4]) -> bool {
        let long = u64::from(r0) | u64::from(r1) << 32;
        match self {
            Self::Any => true,
            Self::Word(want) => r0 == want,
            Self::Long(want) => long == want,
            Self::All(want) => [r0, r1, r2, r3] == want,
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

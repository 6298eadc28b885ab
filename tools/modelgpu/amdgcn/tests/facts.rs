//! Compares the registers that instructions read and write, as `modelgpu-isa` has them, with what the interpreter does.
//!
//! Every scalar instruction, and every vector instruction whose encoding can name scalar registers, runs on arbitrary scalar
//! registers, VCC, EXEC, M0 and SCC. It runs again after the registers that it does not read have changed: the results must be
//! the same, and all that it does not write must stay. One kernel for each target has all instructions, as machine words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use modelgpu_amdgcn::{Argument, Launch, Program, Standing, Target};
use modelgpu_isa::{AccessKind, File, Flow, Generation, Instruction, WaveSize};
use modelgpu_testing::{AssemblyKernel, arbitrary, assemble, has_all_levels, nearest};

/// The states that each instruction runs on, with a changed one for each.
const STATES: usize = 12;
const RUNS: usize = 2 * STATES;
/// The dwords of a state in memory.
const STATE: usize = 64;
/// The first scalar register of a state. Registers below belong to the harness.
const FIRST: usize = 16;
/// The scalar registers of a state.
const SCALARS: usize = 32;
/// VCC, EXEC, M0 and SCC follow them.
const VCC: usize = SCALARS;
const EXEC: usize = SCALARS + 2;
const M0: usize = SCALARS + 4;
const SCC: usize = SCALARS + 5;
/// Lanes of the vector result follow them in what an instruction leaves.
const LANES: usize = SCALARS + 6;
const LEFT: usize = LANES + 6;
/// The lanes whose results are compared.
const COMPARED: [usize; 3] = [3, 30, 41];

/// Registers of instructions: a result, and three sources.
const RESULT: u32 = 24;
const SOURCES: [u32; 3] = [16, 32, 40];

/// An instruction under test.
struct Sample {
    words: Vec<u32>,
    instruction: Instruction,
}

impl Sample {
    fn new(words: &[u32], target: Target) -> Option<Self> {
        let mut four = [0; 4];
        four[..words.len()].copy_from_slice(words);
        let instruction = modelgpu_isa::decode(four, target).ok()?;
        Some(Self {
            words: four[..usize::from(instruction.size / 4)].to_vec(),
            instruction,
        })
    }

    /// The dwords of a state that the instruction reads or writes.
    fn places(&self, kind: AccessKind) -> BTreeSet<usize> {
        let accesses = self.instruction.accesses(WaveSize::W64);
        let scalars = accesses.filter(|access| access.kind == kind && access.file == File::Scalar);
        let registers = scalars.flat_map(|access| {
            let first = usize::from(access.first);
            first..first + usize::from(access.count)
        });
        let mut places: BTreeSet<usize> = registers.filter_map(place).collect();
        let has_scc = match kind {
            AccessKind::Read => self.instruction.reads_scc(),
            AccessKind::Write => self.instruction.writes_scc(),
        };
        if has_scc {
            places.insert(SCC);
        }
        places
    }
}

/// The place of a scalar register in a state.
fn place(register: usize) -> Option<usize> {
    match register {
        FIRST..48 => Some(register - FIRST),
        106 | 107 => Some(VCC + register - 106),
        124 => Some(M0),
        126 | 127 => Some(EXEC + register - 126),
        _ => None,
    }
}

/// The name of a place in a state.
fn name(place: usize) -> String {
    match place {
        0..SCALARS => format!("s{}", FIRST + place),
        VCC..EXEC => format!("vcc {}", place - VCC),
        EXEC..M0 => format!("exec {}", place - EXEC),
        M0 => "m0".into(),
        SCC => "scc".into(),
        _ => format!(
            "v{}, a lane",
            RESULT as usize + (place - LANES) / COMPARED.len()
        ),
    }
}

/// The instructions that the test runs on a target.
fn samples(target: Target) -> Vec<Sample> {
    let executed: BTreeSet<&str> = modelgpu_amdgcn::opcodes(target)
        .into_iter()
        .filter(|opcode| opcode.standing == Standing::Executed)
        .map(|opcode| opcode.mnemonic)
        .collect();
    let mut samples = Vec::new();
    for (encoding, number, mnemonic) in modelgpu_isa::opcodes(target) {
        if !executed.contains(mnemonic) {
            continue;
        }
        let forms = forms(encoding, number.into(), mnemonic, target);
        samples.extend(forms.iter().filter_map(|words| {
            let sample = Sample::new(words, target)?;
            assert_eq!(sample.instruction.mnemonic, mnemonic, "{words:x?}");
            can_run(&sample.instruction).then_some(sample)
        }));
    }
    samples
}

/// Returns whether the harness gets back control, and finds the registers of the instruction.
fn can_run(instruction: &Instruction) -> bool {
    let goes_on = match instruction.flow() {
        Flow::Next | Flow::Branch { .. } | Flow::Call { .. } => true,
        Flow::Indirect | Flow::IndirectCall | Flow::End | Flow::Trap => false,
    };
    // Barriers and messages need partners. The model executes the others with all lanes, or without scalar operands, only.
    let others = [
        "s_barrier",
        "s_sendmsg",
        "s_set_gpr_idx",
        "s_wakeup",
        "v_permlane16_swap",
        "v_permlane32_swap",
        "v_dot",
    ];
    goes_on
        && !instruction.indexes_registers()
        && !others
            .iter()
            .any(|family| instruction.mnemonic.starts_with(family))
}

/// The words of an instruction with several choices of registers. Distances of branches are 0.
fn forms(encoding: &str, number: u32, mnemonic: &str, target: Target) -> Vec<Vec<u32>> {
    const EXEC: u32 = 126;
    const VCC: u32 = 106;
    const SCC: u32 = 253;
    let [first, second, third] = SOURCES;
    let is_gfx9 = target.generation() == Generation::Gfx9;
    let vop3 = if is_gfx9 { 0xd000_0000 } else { 0xd400_0000 } | number << 16;
    let of_vectors = |sources: [u32; 3]| sources[0] | sources[1] << 9 | sources[2] << 18;
    match encoding {
        "SOP2" => [
            [RESULT, first, second],
            [EXEC, VCC, second],
            [VCC, first, EXEC],
            [RESULT, SCC, second],
        ]
        .map(|[goal, a, b]| {
            vec![
                0x8000_0000 | number << 23 | goal << 16 | b << 8 | a,
                0x1234_5678,
            ]
        })
        .into(),
        "SOP1" => [
            [RESULT, first],
            [EXEC, first],
            [VCC, EXEC],
            [RESULT, VCC],
            [RESULT, SCC],
        ]
        .map(|[goal, a]| vec![0xbe80_0000 | goal << 16 | number << 8 | a])
        .into(),
        "SOPC" => [[first, second], [EXEC, second], [SCC, VCC]]
            .map(|[a, b]| vec![0xbf00_0000 | number << 16 | b << 8 | a])
            .into(),
        // The rest of its numbers are other encodings.
        "SOPK" if number >= 29 => Vec::new(),
        "SOPK" => [[RESULT, 0], [VCC, 1], [EXEC, 3]]
            .into_iter()
            .filter(|[goal, _]| {
                *goal == RESULT || !mnemonic.contains("reg") && mnemonic != "s_call_b64"
            })
            .map(|[goal, constant]| {
                let constant = match mnemonic {
                    // Rounding, in the register MODE.
                    mode if mode.contains("etreg_") => 3 << 11 | 1,
                    "s_call_b64" | "s_subvector_loop_begin" | "s_subvector_loop_end" => 0,
                    _ => constant,
                };
                vec![0xb000_0000 | number << 23 | goal << 16 | constant, 0]
            })
            .collect(),
        "SOPP" => vec![vec![0xbf80_0000 | number << 16]],
        "VOP3" => {
            // The second result of some is where others have modifiers.
            let has_scalar_result = mnemonic.contains("_co_")
                || ["v_div_scale", "v_mad_u64", "v_mad_i64"]
                    .iter()
                    .any(|family| mnemonic.starts_with(family));
            let results: &[u32] = if has_scalar_result { &[26, VCC] } else { &[0] };
            let vectors = [256 + 32, 256 + 40, 256 + 48];
            let mut forms = Vec::new();
            for result in results {
                let goals: &[u32] = match mnemonic.starts_with("v_cmp") {
                    true => &[RESULT, VCC, EXEC],
                    false => &[RESULT],
                };
                for goal in goals {
                    for sources in [
                        [vectors[0], second, third],
                        vectors,
                        [vectors[0], vectors[1], VCC],
                    ] {
                        let is_scalar = |number: usize| sources[number] < 256;
                        // Masks and numbers of lanes are in scalar registers, lanes in vectors.
                        let has_mask = mnemonic.starts_with("v_cndmask")
                            || [
                                "v_addc_",
                                "v_subb",
                                "v_add_co_ci",
                                "v_sub_co_ci",
                                "v_subrev_co_ci",
                            ]
                            .iter()
                            .any(|family| mnemonic.starts_with(family));
                        let of_lane = [
                            "v_readlane",
                            "v_writelane",
                            "v_permlane16_b32",
                            "v_permlanex16",
                        ]
                        .iter()
                        .any(|family| mnemonic.starts_with(family));
                        if has_mask && !is_scalar(2)
                            || of_lane
                                && (!is_scalar(1)
                                    || mnemonic.starts_with("v_writelane") == (sources[0] >= 256))
                        {
                            continue;
                        }
                        let scalar_result = result << 8;
                        let word = vop3 | goal | if has_scalar_result { scalar_result } else { 0 };
                        forms.push(vec![word, of_vectors(sources)]);
                    }
                }
            }
            forms
        }
        "VOPC" => [first, 256 + 32]
            .map(|a| vec![0x7c00_0000 | number << 17 | 40 << 9 | a])
            .into(),
        "VOP1" => [first, 256 + 32]
            .into_iter()
            .filter(|source| {
                *source >= 256 || !mnemonic.contains("lane") && !mnemonic.starts_with("v_swap")
            })
            .map(|a| vec![0x7e00_0000 | RESULT << 17 | number << 9 | a])
            .collect(),
        "VOP2" => [first, 256 + 32]
            .map(|a| vec![number << 25 | RESULT << 17 | 40 << 9 | a, 0x1234_5678])
            .into(),
        _ => Vec::new(),
    }
}

/// The routines that the code of all instructions calls. They return to s[2:3].
fn routines() -> String {
    let mut code = String::from(
        "s_branch 4f
         1:
         s_load_dwordx16 s[16:31], s[8:9], 0x0
         s_load_dwordx16 s[32:47], s[8:9], 0x40
         s_load_dwordx8 s[48:55], s[8:9], 0x80
         s_waitcnt lgkmcnt(0)
         s_mov_b64 exec, -1\n",
    );
    for vector in [24, 25, 26, 27] {
        writeln!(code, "v_mov_b32 v{vector}, 0x5a5a5a5a").expect("a string");
    }
    for (place, vector) in [32, 33, 40, 41, 48, 49].into_iter().enumerate() {
        writeln!(code, "v_mov_b32 v{vector}, v{}", 56 + place).expect("a string");
    }
    code += "s_mov_b64 vcc, s[48:49]
             s_mov_b64 exec, s[50:51]
             s_mov_b32 m0, s52
             s_cmp_lg_u32 s53, 0
             s_setpc_b64 s[2:3]
             2:
             s_cselect_b32 s85, 1, 0
             s_mov_b32 s84, m0
             s_mov_b64 s[82:83], exec
             s_mov_b64 s[80:81], vcc\n";
    let lanes = [24, 25]
        .into_iter()
        .flat_map(|vector| COMPARED.map(|lane| (vector, lane)));
    for (register, (vector, lane)) in (86..).zip(lanes) {
        writeln!(code, "v_readlane_b32 s{register}, v{vector}, {lane}").expect("a string");
    }
    code += "s_mov_b32 m0, s6\n";
    for place in 0..LEFT {
        let register = if place < SCALARS {
            FIRST + place
        } else {
            80 + place - SCALARS
        };
        writeln!(code, "v_writelane_b32 v{}, s{register}, m0", 70 + place).expect("a string");
    }
    write!(
        code,
        "s_add_u32 s8, s8, {}
         s_addc_u32 s9, s9, 0
         s_add_u32 s6, s6, 1
         s_cmp_lg_u32 s6, {RUNS}
         s_setpc_b64 s[2:3]
         3:
         s_mov_b64 exec, -1\n",
        4 * STATE,
    )
    .expect("a string");
    for place in 0..LEFT {
        writeln!(code, "global_store_dword v1, v{}, s[10:11]", 70 + place).expect("a string");
        code += "s_add_u32 s10, s10, 256\ns_addc_u32 s11, s11, 0\n";
    }
    code += "s_mov_b32 s6, 0
             s_setpc_b64 s[2:3]
             4:
             s_mov_b32 s6, 0\n";
    for (routine, pair) in [(1, 60), (2, 62), (3, 64)] {
        write!(
            code,
            "s_getpc_b64 s[{pair}:{high}]
             5:
             s_sub_u32 s{pair}, s{pair}, 5b-{routine}b
             s_subb_u32 s{high}, s{high}, 0\n",
            high = pair + 1
        )
        .expect("a string");
    }
    code
}

/// The code that runs an instruction on its states. s[8:9] has the address of the states, s[10:11] that of what they leave.
fn code(sample: &Sample) -> String {
    let words: Vec<String> = sample
        .words
        .iter()
        .map(|word| format!("{word:#x}"))
        .collect();
    format!(
        "6:
         s_swappc_b64 s[2:3], s[60:61]
         .long {}
         s_swappc_b64 s[2:3], s[62:63]
         s_cbranch_scc1 6b
         s_swappc_b64 s[2:3], s[64:65]\n",
        words.join(", ")
    )
}

/// The states of an instruction: each, and the same with changes of what the instruction does not read.
fn states(sample: &Sample, seed: u64) -> Vec<[u32; STATE]> {
    let read = sample.places(AccessKind::Read);
    let words = arbitrary(seed, 2 * STATES * STATE);
    // Vector instructions work in the active lanes.
    let is_vector = sample.instruction.mnemonic.starts_with("v_");
    let mut states = Vec::new();
    for (number, both) in words.chunks(2 * STATE).enumerate() {
        let mut state: [u32; STATE] = std::array::from_fn(|place| both[place] as u32);
        let mut other: [u32; STATE] = std::array::from_fn(|place| both[STATE + place] as u32);
        for state in [&mut state, &mut other] {
            state[SCC] &= 1;
            // The bits of small numbers, and of zeros, matter to some.
            match number % 4 {
                1 => state[..EXEC].iter_mut().for_each(|word| *word &= 31),
                2 => state[..EXEC]
                    .iter_mut()
                    .step_by(3)
                    .for_each(|word| *word = 0),
                _ => {}
            }
        }
        other[SCC] = 1 - state[SCC];
        for place in 0..LANES {
            if read.contains(&place) || is_vector && (EXEC..M0).contains(&place) {
                other[place] = state[place];
            }
        }
        states.extend([state, other]);
    }
    states
}

/// The mistakes in the facts of an instruction.
fn mistakes(sample: &Sample, before: &[[u32; STATE]], after: &[[u32; LEFT]]) -> BTreeSet<String> {
    let written = sample.places(AccessKind::Write);
    let mut mistakes = BTreeSet::new();
    for (before, after) in before.iter().zip(after) {
        for place in (0..LANES).filter(|place| !written.contains(place)) {
            if before[place] != after[place] {
                mistakes.insert(format!("writes {}", name(place)));
            }
        }
    }
    for [first, second] in after.as_chunks().0 {
        for place in (LANES..LEFT).chain(written.iter().copied()) {
            if first[place] != second[place] {
                mistakes.insert(format!("reads what {} depends on", name(place)));
            }
        }
    }
    let exec = after
        .iter()
        .zip(before)
        .any(|(after, before)| after[EXEC..M0] != before[EXEC..M0]);
    if exec && !sample.instruction.writes_exec() {
        mistakes.insert("writes EXEC".into());
    }
    mistakes
}

/// The words that each instruction leaves of each state.
fn run(target: Target, samples: &[Sample], states: &[Vec<[u32; STATE]>]) -> Vec<Vec<[u32; LEFT]>> {
    let mut body = String::from(
        "s_load_dwordx4 s[8:11], s[4:5], 0x0
         v_and_b32 v0, 0x3ff, v0
         v_lshlrev_b32 v1, 2, v0
         s_waitcnt lgkmcnt(0)\n",
    );
    for vector in 56..62 {
        let factor: u32 = 0x9e37_79b1_u32.wrapping_mul(2 * vector + 1);
        writeln!(
            body,
            "v_mov_b32 v{vector}, {factor:#x}\nv_mul_lo_u32 v{vector}, v{vector}, v0\nv_xor_b32 v{vector}, {factor:#x}, v{vector}"
        )
        .expect("a string");
    }
    body += &routines();
    for sample in samples {
        body += &code(sample);
    }
    let kernel = AssemblyKernel {
        name: "effects".into(),
        body,
    };
    // Samples name registers up to the last one.
    let registers = match target.generation() {
        Generation::Gfx9 if !target.has_unified_registers() => ".amdhsa_next_free_vgpr 256",
        Generation::Gfx9 => ".amdhsa_accum_offset 256\n.amdhsa_next_free_vgpr 512",
        _ => ".amdhsa_next_free_vgpr 256",
    };
    let object = assemble(target, &[kernel], 2, registers);
    let mut program = Program::load(&object).expect("an object that was just linked");
    let input: Vec<u8> = states
        .iter()
        .flatten()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let size = samples.len() * LEFT * 256;
    let input = program.arena_mut().allocate(&input);
    let output = program.arena_mut().allocate(&vec![0; size]);
    let launch = Launch {
        kernel: "effects".into(),
        grid: [64, 1, 1],
        block: [64, 1, 1],
        dynamic_lds: 0,
        arguments: [input, output].map(Argument::Pointer).to_vec(),
    };
    program
        .launch(&launch)
        .unwrap_or_else(|error| panic!("{target}: {error}"));
    let bytes = program
        .arena()
        .read(output, size as u64)
        .expect("the output");
    let words: Vec<u32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    let of_sample = |words: &[u32]| -> Vec<[u32; LEFT]> {
        (0..RUNS)
            .map(|run| std::array::from_fn(|place| words[64 * place + run]))
            .collect()
    };
    words.chunks(64 * LEFT).map(of_sample).collect()
}

fn check(target: Target) {
    let samples = samples(target);
    let states: Vec<_> = (0..)
        .zip(&samples)
        .map(|(seed, sample)| states(sample, seed))
        .collect();
    let left = run(target, &samples, &states);
    let mut wrong: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for ((sample, before), after) in samples.iter().zip(&states).zip(&left) {
        let mistakes = mistakes(sample, before, after);
        if !mistakes.is_empty() {
            let words = format!("{:08x?}", sample.words);
            let all = wrong.entry(sample.instruction.mnemonic).or_default();
            all.extend(
                mistakes
                    .into_iter()
                    .map(|mistake| format!("{words} {mistake}")),
            );
        }
    }
    let number = samples.len();
    assert!(number > 1000, "{target}: only {number} instructions run");
    assert!(
        wrong.is_empty(),
        "{target}, of {number} instructions: {wrong:#?}"
    );
}

#[test]
fn gfx90a_has_the_effects_of_its_facts() {
    check(Target::Gfx90a);
}

/// Nearly all facts of these are those of gfx90a.
#[test]
fn older_targets_have_the_effects_of_their_facts() {
    let older = Target::ALL
        .into_iter()
        .filter(|target| nearest(*target).is_some());
    for target in older.filter(|_| has_all_levels()) {
        check(target);
    }
}

#[test]
fn gfx942_has_the_effects_of_its_facts() {
    check(Target::Gfx942);
}

#[test]
fn gfx950_has_the_effects_of_its_facts() {
    check(Target::Gfx950);
}

#[test]
fn gfx1030_has_the_effects_of_its_facts() {
    check(Target::Gfx1030);
}

#[test]
fn gfx1100_has_the_effects_of_its_facts() {
    check(Target::Gfx1100);
}

#[test]
fn gfx1201_has_the_effects_of_its_facts() {
    check(Target::Gfx1201);
}

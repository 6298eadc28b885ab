//! Local data share instructions, and the permutations between lanes that the LDS unit does without
//! an access to memory.

use modelgpu_isa::{Generation, Instruction, Target};

use super::super::pull::PULL;
use super::super::{LdsAccess, Operation, Surroundings};
use super::atomic::AtomicFunction as Function;
use super::operation::{Action, MemoryOperation, Part, Permutation, Segment};
use crate::error::Access;
use crate::lanes::{LANES, Words, active};
use crate::wave::Wave;

const fn lds(action: Action) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Lds,
        action,
    })
}

const fn read(bytes: u8, sign_extend: bool, part: Part) -> Operation {
    lds(Action::Load {
        bytes,
        sign_extend,
        part,
    })
}

const fn write(bytes: u8, part: Part) -> Operation {
    lds(Action::Store { bytes, part })
}

const fn atomic(function: Function, bytes: u8) -> Operation {
    lds(Action::Atomic {
        function,
        bytes,
        returns: false,
    })
}

const fn atomic_rtn(function: Function, bytes: u8) -> Operation {
    lds(Action::Atomic {
        function,
        bytes,
        returns: true,
    })
}

macro_rules! atomics {
    ($($name:literal: $function:ident, $bytes:literal;)*) => {
        &[$(
            (concat!("ds_", $name), atomic(Function::$function, $bytes)),
        )*]
    };
}

macro_rules! returning_atomics {
    ($($name:literal, $type:literal: $function:ident, $bytes:literal;)*) => {
        &[$(
            (concat!("ds_", $name, "_rtn_", $type), atomic_rtn(Function::$function, $bytes)),
        )*]
    };
}

const ACCESSES: &[(&str, Operation)] = &[
    ("ds_read_u8", read(1, false, Part::Whole)),
    ("ds_read_i8", read(1, true, Part::Whole)),
    ("ds_read_u16", read(2, false, Part::Whole)),
    ("ds_read_i16", read(2, true, Part::Whole)),
    ("ds_read_u8_d16", read(1, false, Part::Low)),
    ("ds_read_i8_d16", read(1, true, Part::Low)),
    ("ds_read_u16_d16", read(2, false, Part::Low)),
    ("ds_read_u8_d16_hi", read(1, false, Part::High)),
    ("ds_read_i8_d16_hi", read(1, true, Part::High)),
    ("ds_read_u16_d16_hi", read(2, false, Part::High)),
    ("ds_read_b32", read(4, false, Part::Whole)),
    ("ds_read_b64", read(8, false, Part::Whole)),
    ("ds_read_b96", read(12, false, Part::Whole)),
    ("ds_read_b128", read(16, false, Part::Whole)),
    ("ds_write_b8", write(1, Part::Whole)),
    ("ds_write_b16", write(2, Part::Whole)),
    ("ds_write_b8_d16_hi", write(1, Part::High)),
    ("ds_write_b16_d16_hi", write(2, Part::High)),
    ("ds_write_b32", write(4, Part::Whole)),
    ("ds_write_b64", write(8, Part::Whole)),
    ("ds_write_b96", write(12, Part::Whole)),
    ("ds_write_b128", write(16, Part::Whole)),
    (
        "ds_read2_b32",
        lds(Action::LoadTwo {
            bytes: 4,
            stride: 1,
        }),
    ),
    (
        "ds_read2_b64",
        lds(Action::LoadTwo {
            bytes: 8,
            stride: 1,
        }),
    ),
    (
        "ds_read2st64_b32",
        lds(Action::LoadTwo {
            bytes: 4,
            stride: 64,
        }),
    ),
    (
        "ds_read2st64_b64",
        lds(Action::LoadTwo {
            bytes: 8,
            stride: 64,
        }),
    ),
    (
        "ds_write2_b32",
        lds(Action::StoreTwo {
            bytes: 4,
            stride: 1,
        }),
    ),
    (
        "ds_write2_b64",
        lds(Action::StoreTwo {
            bytes: 8,
            stride: 1,
        }),
    ),
    (
        "ds_write2st64_b32",
        lds(Action::StoreTwo {
            bytes: 4,
            stride: 64,
        }),
    ),
    (
        "ds_write2st64_b64",
        lds(Action::StoreTwo {
            bytes: 8,
            stride: 64,
        }),
    ),
    ("ds_permute_b32", lds(Action::Permute(Permutation::Push))),
    ("ds_bpermute_b32", lds(Action::Permute(Permutation::Pull))),
    (
        "ds_bpermute_fi_b32",
        lds(Action::Permute(Permutation::PullAny)),
    ),
    ("ds_swizzle_b32", lds(Action::Permute(Permutation::Swizzle))),
];

const ATOMICS: &[(&str, Operation)] = atomics! {
    "add_u32": Add, 4;
    "add_u64": Add, 8;
    "sub_u32": Sub, 4;
    "sub_u64": Sub, 8;
    "rsub_u32": ReverseSub, 4;
    "rsub_u64": ReverseSub, 8;
    "inc_u32": Increment, 4;
    "inc_u64": Increment, 8;
    "dec_u32": Decrement, 4;
    "dec_u64": Decrement, 8;
    "min_i32": SignedMin, 4;
    "min_i64": SignedMin, 8;
    "max_i32": SignedMax, 4;
    "max_i64": SignedMax, 8;
    "min_u32": UnsignedMin, 4;
    "min_u64": UnsignedMin, 8;
    "max_u32": UnsignedMax, 4;
    "max_u64": UnsignedMax, 8;
    "and_b32": And, 4;
    "and_b64": And, 8;
    "or_b32": Or, 4;
    "or_b64": Or, 8;
    "xor_b32": Xor, 4;
    "xor_b64": Xor, 8;
    "cmpst_b32": CompareSwap, 4;
    "cmpst_b64": CompareSwap, 8;
    "add_f32": FloatAdd, 4;
    "add_f64": FloatAdd, 8;
    "min_f32": FloatMin, 4;
    "min_f64": FloatMin, 8;
    "max_f32": FloatMax, 4;
    "max_f64": FloatMax, 8;
    "pk_add_f16": PackedHalfAdd, 4;
    "pk_add_bf16": PackedBrainAdd, 4;
    "cond_sub_u32": ConditionalSub, 4;
    "sub_clamp_u32": ClampedSub, 4;
};

const RETURNING_ATOMICS: &[(&str, Operation)] = returning_atomics! {
    "add", "u32": Add, 4;
    "add", "u64": Add, 8;
    "sub", "u32": Sub, 4;
    "sub", "u64": Sub, 8;
    "rsub", "u32": ReverseSub, 4;
    "rsub", "u64": ReverseSub, 8;
    "inc", "u32": Increment, 4;
    "inc", "u64": Increment, 8;
    "dec", "u32": Decrement, 4;
    "dec", "u64": Decrement, 8;
    "min", "i32": SignedMin, 4;
    "min", "i64": SignedMin, 8;
    "max", "i32": SignedMax, 4;
    "max", "i64": SignedMax, 8;
    "min", "u32": UnsignedMin, 4;
    "min", "u64": UnsignedMin, 8;
    "max", "u32": UnsignedMax, 4;
    "max", "u64": UnsignedMax, 8;
    "and", "b32": And, 4;
    "and", "b64": And, 8;
    "or", "b32": Or, 4;
    "or", "b64": Or, 8;
    "xor", "b32": Xor, 4;
    "xor", "b64": Xor, 8;
    "wrxchg", "b32": Swap, 4;
    "wrxchg", "b64": Swap, 8;
    "cmpst", "b32": CompareSwap, 4;
    "cmpst", "b64": CompareSwap, 8;
    "add", "f32": FloatAdd, 4;
    "add", "f64": FloatAdd, 8;
    "min", "f32": FloatMin, 4;
    "min", "f64": FloatMin, 8;
    "max", "f32": FloatMax, 4;
    "max", "f64": FloatMax, 8;
    "pk_add", "f16": PackedHalfAdd, 4;
    "pk_add", "bf16": PackedBrainAdd, 4;
    "cond_sub", "u32": ConditionalSub, 4;
    "sub_clamp", "u32": ClampedSub, 4;
};

pub(super) const TABLES: [super::super::Table; 3] = [ACCESSES, ATOMICS, RETURNING_ATOMICS];

/// Bytes of LDS. Returns `None` beyond it, with a warning: reads there give 0, and hardware drops
/// writes.
pub(super) fn words_at<'m>(
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &'m mut Surroundings<'_>,
    access: Access,
    address: u32,
    size: usize,
) -> Option<&'m mut [u8]> {
    let start = address as usize;
    if start + size > surroundings.lds.len() {
        (surroundings.beyond_lds)(LdsAccess {
            pc: wave.pc.wrapping_sub(instruction.size.into()),
            mnemonic: instruction.mnemonic,
            access,
            size: size as u64,
            address: address.into(),
        });
        return None;
    }
    Some(&mut surroundings.lds[start..start + size])
}

/// Stores a dword of the result of a load that goes to LDS. From M0 and the instruction's offset on,
/// each lane has a place of `size` bytes; `start` is the dword's offset there.
pub(super) fn copy(
    instruction: &Instruction,
    wave: &Wave,
    surroundings: &mut Surroundings<'_>,
    lane: usize,
    (start, size): (u32, u32),
    value: u32,
) {
    let base = wave.m0() & (surroundings.target.max_lds().next_power_of_two() - 1);
    let address = base
        .wrapping_add_signed(instruction.immediate)
        .wrapping_add(size * lane as u32 + start);
    if let Some(place) = words_at(instruction, wave, surroundings, Access::Write, address, 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

const ZEROS: Words = [0; LANES];

impl Permutation {
    pub(super) fn execute(
        self,
        lanes: u64,
        instruction: &Instruction,
        wave: &mut Wave,
        target: Target,
    ) {
        let simd = wave.simd;
        let pull = PULL.for_wave(wave);
        // RDNA 2 and 3 permute 32 lanes at a time, and RDNA 4 the whole wave (LLVM's `supportsWaveWideBPermute`, and the
        // pseudocode in AMD's guides to RDNA 3 and 4).
        let group = match target.generation() {
            Generation::Gfx9 | Generation::Gfx12 => wave.size.lanes(),
            Generation::Gfx10 | Generation::Gfx11 => 32,
        } as u32;
        let [first, second, _] = instruction.src.map(|operand| wave.vector(operand));
        let first = first.unwrap_or(&ZEROS);
        // Addresses count bytes of an imagined row of dwords.
        let named = |lane: usize| {
            let place = first[lane].wrapping_add(instruction.immediate as u32) >> 2;
            lane as u32 & !(group - 1) | place & (group - 1)
        };
        let sources: Words = match self {
            Self::Swizzle => {
                let pattern = instruction.immediate as usize;
                std::array::from_fn(|lane| swizzled(pattern, lane) as u32)
            }
            _ => std::array::from_fn(named),
        };
        let data = match self {
            Self::Swizzle => first,
            _ => second.unwrap_or(&ZEROS),
        };
        let mut results = ZEROS;
        match self {
            Self::Push => {
                for lane in active(lanes) {
                    results[sources[lane] as usize % LANES] = data[lane];
                }
            }
            Self::PullAny => pull.call([data, &sources, &ZEROS], &mut results),
            Self::Pull | Self::Swizzle => {
                // An inactive lane's value reads as 0.
                let mut active = ZEROS;
                simd.blend(&mut active, data, lanes);
                pull.call([&active, &sources, &ZEROS], &mut results);
            }
        }
        if let Some(register) = instruction.dst.vector_index() {
            simd.blend(&mut wave.vectors[register], &results, lanes);
        }
    }
}

/// The lane that a swizzle pattern gives `lane`: with bit 15 set a permutation of each four
/// lanes, else and, or and xor masks for the number in each half of the wave.
fn swizzled(pattern: usize, lane: usize) -> usize {
    if pattern & 0x8000 != 0 {
        return lane & !3 | pattern >> (2 * (lane & 3)) & 3;
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    lane & 32 | (lane & and | or) ^ xor
}

//! Flat, global, scratch and buffer instructions: their mnemonics and their addresses.
//!
//! A flat address in an aperture points at LDS or scratch. On gfx90a, LLVM uses buffer instructions
//! for scratch. Their resource is the private segment buffer in the kernel's first SGPRs.
//! [`PRIVATE_SEGMENT_BUFFER`] holds its contents here.

use modelgpu_isa::{Instruction, Target};

use super::super::value::Kind;
use super::super::{Operation, Table, scalar_source};
use super::atomic::AtomicFunction as Function;
use super::operation::{Action, MemoryOperation, Part, Segment};
use crate::error::{Fault, Space};
use crate::wave::Wave;

/// A buffer resource for scratch: all of memory, swizzled, from base 0, to which a kernel's
/// prologue may add its wave's offset (also 0).
pub(crate) const PRIVATE_SEGMENT_BUFFER: [u32; 4] = [0, 0, u32::MAX, 0x00e0_0000];

const fn load(segment: Segment, bytes: u8, sign_extend: bool, part: Part) -> Operation {
    let action = Action::Load {
        bytes,
        sign_extend,
        part,
    };
    Operation::Memory(MemoryOperation { segment, action })
}

const fn store(segment: Segment, bytes: u8, part: Part) -> Operation {
    Operation::Memory(MemoryOperation {
        segment,
        action: Action::Store { bytes, part },
    })
}

const fn atomic(segment: Segment, function: Function, bytes: u8) -> Operation {
    let action = Action::Atomic {
        function,
        bytes,
        returns: false,
    };
    Operation::Memory(MemoryOperation { segment, action })
}

macro_rules! loads_and_stores {
    ($prefix:literal, $segment:expr) => {
        &[
            (
                concat!($prefix, "_load_ubyte"),
                load($segment, 1, false, Part::Whole),
            ),
            (
                concat!($prefix, "_load_sbyte"),
                load($segment, 1, true, Part::Whole),
            ),
            (
                concat!($prefix, "_load_ushort"),
                load($segment, 2, false, Part::Whole),
            ),
            (
                concat!($prefix, "_load_sshort"),
                load($segment, 2, true, Part::Whole),
            ),
            (
                concat!($prefix, "_load_ubyte_d16"),
                load($segment, 1, false, Part::Low),
            ),
            (
                concat!($prefix, "_load_sbyte_d16"),
                load($segment, 1, true, Part::Low),
            ),
            (
                concat!($prefix, "_load_short_d16"),
                load($segment, 2, false, Part::Low),
            ),
            (
                concat!($prefix, "_load_ubyte_d16_hi"),
                load($segment, 1, false, Part::High),
            ),
            (
                concat!($prefix, "_load_sbyte_d16_hi"),
                load($segment, 1, true, Part::High),
            ),
            (
                concat!($prefix, "_load_short_d16_hi"),
                load($segment, 2, false, Part::High),
            ),
            (
                concat!($prefix, "_load_dword"),
                load($segment, 4, false, Part::Whole),
            ),
            (
                concat!($prefix, "_load_dwordx2"),
                load($segment, 8, false, Part::Whole),
            ),
            (
                concat!($prefix, "_load_dwordx3"),
                load($segment, 12, false, Part::Whole),
            ),
            (
                concat!($prefix, "_load_dwordx4"),
                load($segment, 16, false, Part::Whole),
            ),
            (
                concat!($prefix, "_store_byte"),
                store($segment, 1, Part::Whole),
            ),
            (
                concat!($prefix, "_store_short"),
                store($segment, 2, Part::Whole),
            ),
            (
                concat!($prefix, "_store_byte_d16_hi"),
                store($segment, 1, Part::High),
            ),
            (
                concat!($prefix, "_store_short_d16_hi"),
                store($segment, 2, Part::High),
            ),
            (
                concat!($prefix, "_store_dword"),
                store($segment, 4, Part::Whole),
            ),
            (
                concat!($prefix, "_store_dwordx2"),
                store($segment, 8, Part::Whole),
            ),
            (
                concat!($prefix, "_store_dwordx3"),
                store($segment, 12, Part::Whole),
            ),
            (
                concat!($prefix, "_store_dwordx4"),
                store($segment, 16, Part::Whole),
            ),
        ]
    };
}

macro_rules! atomics {
    ($prefix:literal, $segment:expr) => {
        &[
            (
                concat!($prefix, "_atomic_swap"),
                atomic($segment, Function::Swap, 4),
            ),
            (
                concat!($prefix, "_atomic_swap_x2"),
                atomic($segment, Function::Swap, 8),
            ),
            (
                concat!($prefix, "_atomic_cmpswap"),
                atomic($segment, Function::CompareSwap, 4),
            ),
            (
                concat!($prefix, "_atomic_cmpswap_x2"),
                atomic($segment, Function::CompareSwap, 8),
            ),
            (
                concat!($prefix, "_atomic_add"),
                atomic($segment, Function::Add, 4),
            ),
            (
                concat!($prefix, "_atomic_add_x2"),
                atomic($segment, Function::Add, 8),
            ),
            (
                concat!($prefix, "_atomic_sub"),
                atomic($segment, Function::Sub, 4),
            ),
            (
                concat!($prefix, "_atomic_sub_x2"),
                atomic($segment, Function::Sub, 8),
            ),
            (
                concat!($prefix, "_atomic_cond_sub_u32"),
                atomic($segment, Function::ConditionalSub, 4),
            ),
            (
                concat!($prefix, "_atomic_sub_clamp_u32"),
                atomic($segment, Function::ClampedSub, 4),
            ),
            (
                concat!($prefix, "_atomic_smin"),
                atomic($segment, Function::SignedMin, 4),
            ),
            (
                concat!($prefix, "_atomic_smin_x2"),
                atomic($segment, Function::SignedMin, 8),
            ),
            (
                concat!($prefix, "_atomic_umin"),
                atomic($segment, Function::UnsignedMin, 4),
            ),
            (
                concat!($prefix, "_atomic_umin_x2"),
                atomic($segment, Function::UnsignedMin, 8),
            ),
            (
                concat!($prefix, "_atomic_smax"),
                atomic($segment, Function::SignedMax, 4),
            ),
            (
                concat!($prefix, "_atomic_smax_x2"),
                atomic($segment, Function::SignedMax, 8),
            ),
            (
                concat!($prefix, "_atomic_umax"),
                atomic($segment, Function::UnsignedMax, 4),
            ),
            (
                concat!($prefix, "_atomic_umax_x2"),
                atomic($segment, Function::UnsignedMax, 8),
            ),
            (
                concat!($prefix, "_atomic_and"),
                atomic($segment, Function::And, 4),
            ),
            (
                concat!($prefix, "_atomic_and_x2"),
                atomic($segment, Function::And, 8),
            ),
            (
                concat!($prefix, "_atomic_or"),
                atomic($segment, Function::Or, 4),
            ),
            (
                concat!($prefix, "_atomic_or_x2"),
                atomic($segment, Function::Or, 8),
            ),
            (
                concat!($prefix, "_atomic_xor"),
                atomic($segment, Function::Xor, 4),
            ),
            (
                concat!($prefix, "_atomic_xor_x2"),
                atomic($segment, Function::Xor, 8),
            ),
            (
                concat!($prefix, "_atomic_inc"),
                atomic($segment, Function::Increment, 4),
            ),
            (
                concat!($prefix, "_atomic_inc_x2"),
                atomic($segment, Function::Increment, 8),
            ),
            (
                concat!($prefix, "_atomic_dec"),
                atomic($segment, Function::Decrement, 4),
            ),
            (
                concat!($prefix, "_atomic_dec_x2"),
                atomic($segment, Function::Decrement, 8),
            ),
            (
                concat!($prefix, "_atomic_add_f32"),
                atomic($segment, Function::FloatAdd, 4),
            ),
            (
                concat!($prefix, "_atomic_pk_add_f16"),
                atomic($segment, Function::PackedHalfAdd, 4),
            ),
            (
                concat!($prefix, "_atomic_add_f64"),
                atomic($segment, Function::FloatAdd, 8),
            ),
            (
                concat!($prefix, "_atomic_min_f64"),
                atomic($segment, Function::FloatMin, 8),
            ),
            (
                concat!($prefix, "_atomic_max_f64"),
                atomic($segment, Function::FloatMax, 8),
            ),
        ]
    };
}

pub(super) const TABLES: [Table; 8] = [
    loads_and_stores!("flat", Segment::Flat),
    loads_and_stores!("global", Segment::Global),
    loads_and_stores!("scratch", Segment::Scratch),
    loads_and_stores!("buffer", Segment::Buffer),
    atomics!("flat", Segment::Flat),
    atomics!("global", Segment::Global),
    atomics!("buffer", Segment::Buffer),
    &[
        (
            "flat_atomic_min_f32",
            atomic(Segment::Flat, Function::FloatMin, 4),
        ),
        (
            "flat_atomic_max_f32",
            atomic(Segment::Flat, Function::FloatMax, 4),
        ),
        (
            "global_atomic_min_f32",
            atomic(Segment::Global, Function::FloatMin, 4),
        ),
        (
            "global_atomic_max_f32",
            atomic(Segment::Global, Function::FloatMax, 4),
        ),
        (
            "buffer_atomic_min_f32",
            atomic(Segment::Buffer, Function::FloatMin, 4),
        ),
        (
            "buffer_atomic_max_f32",
            atomic(Segment::Buffer, Function::FloatMax, 4),
        ),
        (
            "flat_atomic_pk_add_bf16",
            atomic(Segment::Flat, Function::PackedBrainAdd, 4),
        ),
        (
            "buffer_atomic_pk_add_bf16",
            atomic(Segment::Buffer, Function::PackedBrainAdd, 4),
        ),
        (
            "global_atomic_pk_add_bf16",
            atomic(Segment::Global, Function::PackedBrainAdd, 4),
        ),
    ],
];

/// The part of one instruction's addresses that all lanes share.
///
/// A compiler folds a part of an address into the instruction's offset, also if the rest is negative (LLVM,
/// `isDSOffsetLegal`). So an address is the whole sum, as wide as its segment's addresses are.
pub(super) struct Addresses {
    pub segment: Segment,
    /// Added to each lane's own part.
    pub base: u64,
    /// The width of the lane's part: 64 bits, 32 bits, or none.
    pub vector: VectorPart,
    /// The part of `base` that selects the aperture of a flat address.
    pub scalar: u64,
    /// The bits that an address can have.
    pub bits: u64,
    /// The bytes from the address to each element of an instruction with two; else 0. One of them is 0.
    pub elements: [u32; 2],
}

pub(super) enum VectorPart {
    Absent,
    Word,
    Pair,
    /// A signed number of elements of this size. On gfx1250, LLVM also folds the sign extension of an index into an
    /// access, and on gfx1201 the zero extension only.
    Elements(u8),
}

impl MemoryOperation {
    pub(super) fn addresses(
        self,
        instruction: &Instruction,
        wave: &Wave,
        target: Target,
    ) -> Result<Addresses, Fault> {
        /// Addresses of LDS and of scratch.
        const SHORT: u64 = 0xffff_ffff;
        let offset = i64::from(instruction.immediate) as u64;
        let has_scalar = !instruction.src[2].is_none();
        let elements_of = |size| match instruction.scales_offset {
            true => VectorPart::Elements(size),
            false => VectorPart::Elements(1),
        };
        let optional_vector = match (instruction.has_vector_address, instruction.scales_offset) {
            (true, true) => elements_of(self.action.bytes()),
            (true, false) => VectorPart::Word,
            (false, _) => VectorPart::Absent,
        };
        let mut scalar = 0;
        let mut elements = [0; 2];
        let (base, vector, bits) = match self.segment {
            Segment::Flat | Segment::Global if has_scalar => {
                scalar = wave.pair(instruction.src[2]);
                let vector = match target.has_signed_offsets() {
                    true => elements_of(self.action.bytes()),
                    false => VectorPart::Word,
                };
                (scalar.wrapping_add(offset), vector, u64::MAX)
            }
            Segment::Flat | Segment::Global => (offset, VectorPart::Pair, u64::MAX),
            Segment::Scratch if has_scalar => {
                let scalar = scalar_source(instruction, 2, Kind::B32, wave)?;
                (scalar.wrapping_add(offset), optional_vector, SHORT)
            }
            Segment::Scratch => (offset, optional_vector, SHORT),
            Segment::Buffer => {
                // `buffer.rs` has all buffers other than the scratch buffer. The scalar offset is not swizzled: it counts
                // bytes of the whole wave.
                let lanes = wave.size.lanes() as u64;
                let scalar = scalar_source(instruction, 2, Kind::B32, wave)? / lanes;
                (scalar.wrapping_add(offset), optional_vector, SHORT)
            }
            Segment::Lds => {
                let base = match self.action {
                    Action::LoadTwo { bytes, stride } | Action::StoreTwo { bytes, stride } => {
                        let offsets = two_offsets(instruction, bytes, stride);
                        let lower = offsets[0].min(offsets[1]);
                        elements = offsets.map(|offset| offset - lower);
                        lower.into()
                    }
                    _ => offset,
                };
                (base, VectorPart::Word, SHORT)
            }
        };
        Ok(Addresses {
            segment: self.segment,
            base,
            vector,
            scalar,
            bits,
            elements,
        })
    }
}

impl Addresses {
    /// The address of an element of an instruction with two.
    pub(super) fn element(&self, address: u64, number: usize) -> u64 {
        address.wrapping_add(self.elements[number].into()) & self.bits
    }

    /// The part of `base` that does not select the aperture of a flat address.
    pub(super) fn offset(&self) -> u64 {
        self.base.wrapping_sub(self.scalar)
    }

    /// A lane's own part of its address.
    fn vector(&self, lane: usize, instruction: &Instruction, wave: &Wave) -> u64 {
        let register = instruction.src[0];
        match self.vector {
            VectorPart::Absent => 0,
            VectorPart::Word => wave.lane(register, lane).into(),
            VectorPart::Pair => wave.lane_pair(register, lane),
            VectorPart::Elements(size) => elements(wave.lane(register, lane), size),
        }
    }

    /// The lane whose scratch a lane points at, if it points at scratch.
    pub(super) fn owner(&self, lane: usize, instruction: &Instruction, wave: &Wave) -> usize {
        if self.segment != Segment::Flat {
            return lane;
        }
        let start = self
            .vector(lane, instruction, wave)
            .wrapping_add(self.scalar);
        wave.apertures.owner(start, lane).unwrap_or(lane)
    }

    /// The memory that a lane points at, and the address or offset in it.
    pub(super) fn place(
        &self,
        lane: usize,
        instruction: &Instruction,
        wave: &Wave,
    ) -> (Space, u64) {
        let vector = self.vector(lane, instruction, wave);
        let address = vector.wrapping_add(self.base) & self.bits;
        match self.segment {
            Segment::Global => (Space::Global, address),
            Segment::Lds => (Space::Lds, address),
            Segment::Scratch | Segment::Buffer => (Space::Scratch, address),
            Segment::Flat => {
                // The register selects the aperture, without the offset (LLVM, `SelectFlatOffsetImpl`).
                let (start, offset) = (vector.wrapping_add(self.scalar), address & 0xffff_ffff);
                if start & !0xffff_ffff == wave.apertures.shared {
                    (Space::Lds, offset)
                } else if wave.apertures.owner(start, lane).is_some() {
                    (Space::Scratch, offset)
                } else {
                    (Space::Global, address)
                }
            }
        }
    }
}

/// The bytes from a base to an element with a number.
pub(super) fn elements(number: u32, size: u8) -> u64 {
    (i64::from(number as i32) * i64::from(size)) as u64
}

/// The two offsets of an instruction in bytes. Its fields count units of `stride` elements of `bytes`.
pub(super) fn two_offsets(instruction: &Instruction, bytes: u8, stride: u8) -> [u32; 2] {
    let unit = u32::from(bytes) * u32::from(stride);
    let fields = instruction.immediate as u32;
    [(fields & 0xff) * unit, (fields >> 8 & 0xff) * unit]
}

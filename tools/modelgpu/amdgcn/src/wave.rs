//! A wave of up to 64 work-items: its registers and its scratch memory.

use modelgpu_isa::{Banks, Operand, Target, inline_constant};

use crate::compute_units::Place;
use crate::execute::value::Kind;
use crate::execute::{Fitted, Leveled, Simd};
use crate::grid_barriers::GridWait;
use crate::lanes::{LANES, WaveSize, Words};
use crate::registers::RegisterFile;

/// SGPRs, VCC, M0 and EXEC by operand code, with room behind them. A bad program may start a wide
/// access at the last one; the interpreter must not crash then.
const SCALARS: usize = 128 + 16;

/// The state of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    AtBarrier,
    Ended,
}

/// A wave's part in a barrier that signals and waits apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The wave has not signalled since its last wait.
    #[default]
    None,
    Signalled,
    /// All waves have signalled, and this one has not waited yet.
    Complete,
}

/// The apertures of LDS and scratch in the flat address space: 64-bit addresses whose low halves
/// are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Apertures {
    pub shared: u64,
    pub private: u64,
    /// The flat address of scratch also has the number of the lane that owns the memory.
    pub private_has_lane: bool,
}

impl Apertures {
    /// The first of the bits of a lane (LLVM's `lowerADDRSPACECAST`).
    const LANE: u32 = 52;
    const LANES: u64 = 31 << Self::LANE;
    /// A bit of the aperture that no address of other memory has: compilers take the higher bits for those of the
    /// aperture (`llvm.amdgcn.is.private`).
    const PRIVATE: u64 = 1 << 58;

    pub(crate) fn new(shared: u64, private: u64, target: Target) -> Self {
        let private_has_lane = target.has_global_scratch();
        Self {
            shared,
            private: match private_has_lane {
                true => private | Self::PRIVATE,
                false => private,
            },
            private_has_lane,
        }
    }

    /// The lane whose scratch an address is in; `None` outside scratch.
    #[inline(always)]
    pub(crate) fn owner(&self, address: u64, lane: usize) -> Option<usize> {
        let aperture = address & !0xffff_ffff;
        if !self.private_has_lane {
            return (aperture == self.private).then_some(lane);
        }
        (aperture & !Self::LANES == self.private).then_some((address >> Self::LANE & 31) as usize)
    }
}

/// The most bytes of scratch per work-item that are modelled. A wave's scratch is at most 64 MiB.
pub const MAX_SCRATCH: u64 = 1 << 20;

/// The private memory of a wave's work-items.
#[derive(Default)]
pub(crate) struct Scratch {
    pub bytes: Vec<u8>,
    /// Size of each lane's share, in bytes.
    pub per_lane: usize,
}

impl Scratch {
    /// The place of a lane's byte. Dwords of all lanes lie side by side, as on the hardware, because
    /// most accesses are at one address.
    fn place(&self, lane: usize, address: usize) -> usize {
        (address & !3) * LANES + 4 * lane + (address & 3)
    }

    /// Reads up to 8 bytes of a lane's share, zero-extended.
    #[inline]
    pub(crate) fn read(&self, lane: usize, address: usize, size: usize) -> u64 {
        let first = address & 3;
        // Most values lie in one dword.
        if first + size <= 4 {
            let word = self.bytes[self.place(lane, address & !3)..].first_chunk();
            let word = word.map_or(0, |word| u32::from_le_bytes(*word));
            return (word >> (8 * first) & u32::MAX >> (32 - 8 * size)).into();
        }
        (0..size).rev().fold(0, |value, byte| {
            value << 8 | u64::from(self.bytes[self.place(lane, address + byte)])
        })
    }

    /// Writes the low `size` bytes of a value to a lane's share.
    #[inline]
    pub(crate) fn write(&mut self, lane: usize, address: usize, size: usize, value: u64) {
        if size == 4 && address.is_multiple_of(4) {
            let place = self.place(lane, address);
            self.bytes[place..place + 4].copy_from_slice(&(value as u32).to_le_bytes());
            return;
        }
        for byte in 0..size {
            let place = self.place(lane, address + byte);
            self.bytes[place] = (value >> (8 * byte)) as u8;
        }
    }

    /// Gives each lane a share of `per_lane` bytes. Contents are arbitrary afterwards.
    pub(crate) fn resize(&mut self, per_lane: usize) {
        let bytes = per_lane * LANES;
        if self.bytes.len() < bytes {
            // A new vector of zeros takes memory only for what a kernel touches.
            self.bytes = vec![0; bytes];
        }
        self.per_lane = per_lane;
    }
}

pub(crate) struct Wave {
    pub scalars: [u32; SCALARS],
    pub vectors: RegisterFile,
    pub scc: bool,
    pub pc: u64,
    pub state: State,
    pub arrival: Arrival,
    pub mode: Mode,
    /// The operands that M0 indexes (`s_set_gpr_idx_on`): bits 0 to 2 sources, bit 3 the result.
    pub indexed: u8,
    /// The vector registers that instructions name, on targets with more than 256.
    pub banks: Banks,
    pub scratch: Scratch,
    pub apertures: Apertures,
    pub place: Place,
    pub size: WaveSize,
    /// The mask of all lanes: [`WaveSize::mask`], which most instructions need.
    pub all_lanes: u64,
    /// The host's instructions for vector operations.
    pub simd: Simd,
    /// The wave waits at a barrier of the grid.
    pub grid_wait: Option<GridWait>,
}

impl Wave {
    /// Creates a wave without private memory. Registers hold zeros; hardware promises nothing.
    pub(crate) fn new(simd: Simd) -> Self {
        Self {
            scalars: [0; SCALARS],
            vectors: RegisterFile::zeroed(),
            scc: false,
            pc: 0,
            state: State::Running,
            arrival: Arrival::None,
            mode: Mode(0),
            indexed: 0,
            banks: Banks::default(),
            scratch: Scratch::default(),
            apertures: Apertures::default(),
            place: Place::default(),
            size: WaveSize::Wave64,
            all_lanes: WaveSize::Wave64.mask(),
            simd,
            grid_wait: None,
        }
    }

    /// The lanes that execute, bit n for lane n.
    pub(crate) fn exec(&self) -> u64 {
        self.mask(Operand::EXEC)
    }

    pub(crate) fn vcc(&self) -> u64 {
        self.mask(Operand::VCC)
    }

    /// A register with a bit for each lane: one of 32 bits, or a pair.
    #[inline(always)]
    pub(crate) fn mask(&self, register: Operand) -> u64 {
        self.pair(register) & self.all_lanes
    }

    /// Sets a register with a bit for each lane.
    #[inline(always)]
    pub(crate) fn set_mask(&mut self, register: Operand, value: u64) {
        match self.size {
            WaveSize::Wave32 => self.set_word(register, value as u32),
            WaveSize::Wave64 => self.set_pair(register, value),
        }
    }

    /// The lane with a number, of which as many bits count as the wave's size has.
    pub(crate) fn lane_number(&self, number: usize) -> usize {
        number % self.size.lanes()
    }

    pub(crate) fn m0(&self) -> u32 {
        self.word(Operand::M0)
    }

    /// A 32-bit scalar register; 0 if the operand is not one.
    pub(crate) fn word(&self, register: Operand) -> u32 {
        register
            .scalar_index()
            .map_or(0, |index| self.scalars[index])
    }

    /// Two adjacent scalar registers, the low half first.
    pub(crate) fn pair(&self, register: Operand) -> u64 {
        register.scalar_index().map_or(0, |index| {
            u64::from(self.scalars[index]) | u64::from(self.scalars[index + 1]) << 32
        })
    }

    pub(crate) fn set_word(&mut self, register: Operand, value: u32) {
        if let Some(index) = register.scalar_index() {
            self.scalars[index] = value;
        }
    }

    pub(crate) fn set_pair(&mut self, register: Operand, value: u64) {
        if let Some(index) = register.scalar_index() {
            self.scalars[index] = value as u32;
            self.scalars[index + 1] = (value >> 32) as u32;
        }
    }

    /// Writes a scalar result of a kind; [`Kind::None`] writes nothing.
    pub(crate) fn set_scalar(&mut self, register: Operand, kind: Kind, value: u64) {
        match kind {
            Kind::None => {}
            _ if kind.is_long() => self.set_pair(register, value),
            _ => self.set_word(register, value as u32),
        }
    }

    /// The value of a scalar source operand; `None` for a code that is not modelled.
    pub(crate) fn scalar(&self, operand: Operand, kind: Kind, literal: u64) -> Option<u64> {
        let long = kind.is_long();
        if operand.scalar_index().is_some() {
            return Some(if long {
                self.pair(operand)
            } else {
                self.word(operand).into()
            });
        }
        if let Some(value) = constant(operand, kind, literal) {
            return Some(value);
        }
        Some(match operand {
            // A 32-bit operand reads the high half of an aperture.
            Operand::SHARED_BASE if long => self.apertures.shared,
            Operand::SHARED_BASE => self.apertures.shared >> 32,
            Operand::PRIVATE_BASE if long => self.apertures.private,
            Operand::PRIVATE_BASE => self.apertures.private >> 32,
            Operand::FLAT_SCRATCH_BASE if long => self.apertures.private,
            Operand::FLAT_SCRATCH_BASE => self.apertures.private & 0xffff_ffff,
            Operand::FLAT_SCRATCH_BASE_HIGH => self.apertures.private >> 32,
            Operand::VCCZ => (self.vcc() == 0).into(),
            Operand::EXECZ => (self.exec() == 0).into(),
            Operand::SCC => self.scc.into(),
            _ => return None,
        })
    }

    /// A vector register; `None` if the operand is not one.
    pub(crate) fn vector(&self, register: Operand) -> Option<&Words> {
        register.vector_index().map(|index| &self.vectors[index])
    }

    /// A vector register's value in one lane; 0 if the operand is not one.
    pub(crate) fn lane(&self, register: Operand, lane: usize) -> u32 {
        register
            .vector_index()
            .map_or(0, |index| self.vectors[index][lane])
    }

    /// The register at `offset` behind `register`, in one lane.
    pub(crate) fn lane_at(&self, register: Operand, offset: usize, lane: usize) -> u32 {
        register
            .vector_index()
            .map_or(0, |index| self.vectors[index + offset][lane])
    }

    /// A pair of registers as a 64-bit value, in one lane.
    pub(crate) fn lane_pair(&self, register: Operand, lane: usize) -> u64 {
        u64::from(self.lane_at(register, 0, lane))
            | u64::from(self.lane_at(register, 1, lane)) << 32
    }

    pub(crate) fn set_lane_at(
        &mut self,
        register: Operand,
        offset: usize,
        lane: usize,
        value: u32,
    ) {
        if let Some(index) = register.vector_index() {
            self.vectors[index + offset][lane] = value;
        }
    }
}

/// The value of a constant operand; `None` if the operand is not one.
pub(crate) fn constant(operand: Operand, kind: Kind, literal: u64) -> Option<u64> {
    if let Some(value) = inline_constant(operand, kind.float_format()) {
        return Some(if kind.is_long() {
            value
        } else {
            value & 0xffff_ffff
        });
    }
    if operand == Operand::LITERAL64 {
        return Some(literal & kind.all_bits());
    }
    (operand == Operand::LITERAL).then_some(match kind {
        Kind::F64 => literal << 32,
        Kind::I64 => literal as i32 as u64,
        _ => literal,
    })
}

/// The MODE register's floating-point fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub u32);

impl Mode {
    /// The bit for NaNs that become 0.
    pub(crate) const CLAMPS_NAN: u32 = 1 << 8;
    /// The bit for the rules of IEEE 754.
    const IEEE: u32 = 1 << 9;

    /// The fields of the kernel descriptor's COMPUTE_PGM_RSRC1.
    pub(crate) fn from_rsrc1(rsrc1: u32, target: Target) -> Self {
        let float = rsrc1 >> 12 & 0xff;
        if target.always_clamps_nan() {
            return Self(float | Self::CLAMPS_NAN);
        }
        let dx10_clamp = rsrc1 >> 21 & 1;
        let ieee = rsrc1 >> 23 & 1;
        Self(float | dx10_clamp << 8 | if ieee == 1 { Self::IEEE } else { 0 })
    }

    /// Returns whether all rounding is to nearest even.
    pub(crate) fn rounds_to_nearest(self) -> bool {
        self.0 & 0xf == 0
    }

    /// Returns whether numbers of all kinds round to nearest even, and denormal ones stay as they
    /// are.
    pub(crate) fn is_plain(self) -> bool {
        self.0 & 0xff == 0xf0
    }

    /// Returns whether denormal sources of a kind read as zero.
    pub(crate) fn flushes_sources(self, kind: Kind) -> bool {
        self.denormals(kind).is_some_and(|allowed| allowed & 1 == 0)
    }

    /// Returns whether denormal results of a kind become zero.
    pub(crate) fn flushes_results(self, kind: Kind) -> bool {
        self.denormals(kind).is_some_and(|allowed| allowed & 2 == 0)
    }

    /// FP_DENORM of a kind: bit 0 allows denormal sources, bit 1 denormal results.
    fn denormals(self, kind: Kind) -> Option<u32> {
        match kind {
            Kind::F32 => Some(self.0 >> 4 & 3),
            Kind::F16 | Kind::F64 => Some(self.0 >> 6 & 3),
            _ => None,
        }
    }

    /// Returns whether instructions follow IEEE 754. RDNA 4 has no bit for it.
    pub(crate) fn follows_ieee(self) -> bool {
        self.0 & Self::IEEE != 0
    }

    /// Returns whether a clamped NaN becomes 0.
    pub(crate) fn clamps_nan(self) -> bool {
        self.0 & Self::CLAMPS_NAN != 0
    }
}

impl<F: Copy> Leveled<F> {
    /// The function for waves of this size, at their level.
    #[inline]
    pub(crate) fn for_wave(&self, wave: &Wave) -> Fitted<F> {
        self.select(wave.simd).fit(wave.size)
    }
}

//! Operand codes.

use crate::target::Generation;

/// An operand as the source fields encode it, extended to all register files. 0 to 255 is the
/// scalar source space (SGPRs, special registers, constants), 256 to 511 are VGPRs, 512 to 767
/// accumulation VGPRs, and 768 to 1535 the VGPRs behind the first 256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operand(
    /// The code.
    pub u16,
);

impl Operand {
    /// Marks that the instruction lacks this operand.
    pub const NONE: Self = Self(0xffff);
    /// A register that reads as 0 and keeps nothing.
    pub const NULL: Self = Self(0xfffe);
    /// The mask of comparisons and carries; a pair of registers.
    pub const VCC: Self = Self(106);
    /// A register that some instructions read without naming it.
    pub const M0: Self = Self(124);
    /// The mask of active lanes; a pair of registers.
    pub const EXEC: Self = Self(126);
    /// The constant 0.
    pub const ZERO: Self = Self(128);
    /// The start of LDS among flat addresses.
    pub const SHARED_BASE: Self = Self(235);
    /// The start of scratch among flat addresses.
    pub const PRIVATE_BASE: Self = Self(237);
    /// 1 if VCC is 0.
    pub const VCCZ: Self = Self(251);
    /// 1 if EXEC is 0.
    pub const EXECZ: Self = Self(252);
    /// The condition code of scalar instructions.
    pub const SCC: Self = Self(253);
    /// The constant after the instruction.
    pub const LITERAL: Self = Self(255);
    /// The constant of 64 bits after the instruction, on gfx1250, which encodes it as 254. That is another operand on
    /// other targets.
    pub const LITERAL64: Self = Self(0xfffd);
    /// The start of the wave's scratch among flat addresses, on gfx1250.
    pub const FLAT_SCRATCH_BASE: Self = Self(230);
    /// The high half of it.
    pub const FLAT_SCRATCH_BASE_HIGH: Self = Self(231);

    const FIRST_VGPR: u16 = 256;
    const FIRST_AGPR: u16 = 512;
    const FIRST_HIGH_VGPR: u16 = 768;
    const END: u16 = Self::FIRST_HIGH_VGPR + 768;

    /// The operand with a code of the scalar source space.
    #[inline]
    pub fn scalar(code: u32) -> Self {
        Self(code as u16)
    }

    /// The vector register with a number.
    #[inline]
    pub fn vgpr(number: u32) -> Self {
        match number {
            0..256 => Self(Self::FIRST_VGPR + number as u16),
            _ => Self(Self::FIRST_HIGH_VGPR - 256 + number as u16),
        }
    }

    /// The vector register of a bank: banks have 256 registers. Other operands stay as they are.
    #[inline]
    pub fn in_bank(self, bank: u8) -> Self {
        match self.0 {
            code @ 256..512 => Self::vgpr(u32::from(code - 256) + 256 * u32::from(bank)),
            _ => self,
        }
    }

    /// The accumulation register with this register's number.
    #[inline]
    pub fn to_agpr(self) -> Self {
        Self(self.0 + (Self::FIRST_AGPR - Self::FIRST_VGPR))
    }

    /// The scalar register for the code in a vector field, such as v_readlane's result field.
    #[inline]
    pub fn to_scalar(self) -> Self {
        Self(self.0 - Self::FIRST_VGPR)
    }

    /// The operand for a scalar code of a generation: RDNA has a register that CDNA lacks, and RDNA 3 and 4 exchange it
    /// with M0.
    #[inline]
    pub fn in_generation(self, generation: Generation) -> Self {
        match (generation, self) {
            (Generation::Gfx9, other) => other,
            (Generation::Gfx10, Self(125)) => Self::NULL,
            (Generation::Gfx10, other) => other,
            (_, Self(124)) => Self::NULL,
            (_, Self(125)) => Self::M0,
            (_, other) => other,
        }
    }

    /// Returns whether the instruction lacks this operand.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The index into a wave's vector registers; accumulation registers, or those of other banks, follow the first
    /// 256.
    #[inline]
    pub fn vector_index(self) -> Option<usize> {
        match self.0 {
            code @ Self::FIRST_VGPR..Self::FIRST_HIGH_VGPR => {
                Some((code - Self::FIRST_VGPR).into())
            }
            code @ Self::FIRST_HIGH_VGPR..Self::END => {
                Some((code - Self::FIRST_HIGH_VGPR + 256).into())
            }
            _ => None,
        }
    }

    /// The index into a wave's scalar registers: SGPRs, VCC, M0, EXEC.
    #[inline]
    pub fn scalar_index(self) -> Option<usize> {
        (self.0 < 128).then_some(self.0.into())
    }
}

impl std::fmt::Debug for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0xffff => f.write_str("-"),
            0xfffe => f.write_str("null"),
            code @ 768.. => write!(f, "v{}", code - 512),
            code @ 512.. => write!(f, "a{}", code - 512),
            code @ 256.. => write!(f, "v{}", code - 256),
            code => write!(f, "{code}"),
        }
    }
}

/// The value of an inline constant in an operand of a kind.
#[inline]
pub fn inline_constant(operand: Operand, format: FloatFormat) -> Option<u64> {
    const FLOATS: [f64; 9] = [
        0.5,
        -0.5,
        1.0,
        -1.0,
        2.0,
        -2.0,
        4.0,
        -4.0,
        0.5 * std::f64::consts::FRAC_1_PI,
    ];
    /// The constants in half precision; 1/(2 pi) is rounded.
    const HALVES: [u16; 9] = [
        0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118,
    ];
    match operand.0 {
        _ if operand == Operand::NULL => Some(0),
        code @ 128..=192 => Some(u64::from(code) - 128),
        code @ 193..=208 => Some((192 - i64::from(code)) as u64),
        code @ 240..=248 => {
            let place = usize::from(code - 240);
            Some(match format {
                FloatFormat::Half => HALVES[place].into(),
                FloatFormat::Single => (FLOATS[place] as f32).to_bits().into(),
                FloatFormat::Double => FLOATS[place].to_bits(),
            })
        }
        _ => None,
    }
}

/// The format of a floating-point inline constant. It depends on the operand's size, even if the
/// instruction computes with integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// 16 bits.
    Half,
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

//! Operand codes.

/// An operand as the source fields encode it, extended to all register files. 0 to 255 is the
/// scalar source space (SGPRs, special registers, constants), 256 to 511 are VGPRs, 512 to 767
/// accumulation VGPRs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand(pub u16);

impl Operand {
    /// Marks that the instruction lacks this operand.
    pub(crate) const NONE: Self = Self(0xffff);
    /// A register that reads as 0 and keeps nothing.
    pub(crate) const NULL: Self = Self(0xfffe);
    pub(crate) const VCC: Self = Self(106);
    pub(crate) const M0: Self = Self(124);
    pub(crate) const EXEC: Self = Self(126);
    pub(crate) const SHARED_BASE: Self = Self(235);
    pub(crate) const PRIVATE_BASE: Self = Self(237);
    pub(crate) const VCCZ: Self = Self(251);
    pub(crate) const EXECZ: Self = Self(252);
    pub(crate) const SCC: Self = Self(253);
    pub(crate) const LITERAL: Self = Self(255);

    const FIRST_VGPR: u16 = 256;
    const FIRST_AGPR: u16 = 512;

    pub(crate) fn scalar(code: u32) -> Self {
        Self(code as u16)
    }

    pub(crate) fn vgpr(number: u32) -> Self {
        Self(Self::FIRST_VGPR + number as u16)
    }

    /// The accumulation register with this register's number.
    pub(crate) fn to_agpr(self) -> Self {
        Self(self.0 + (Self::FIRST_AGPR - Self::FIRST_VGPR))
    }

    /// The scalar register for the code in a vector field, such as v_readlane's result field.
    pub(crate) fn to_scalar(self) -> Self {
        Self(self.0 - Self::FIRST_VGPR)
    }

    /// The operand for a scalar code of RDNA, which exchanges M0 with the register that CDNA lacks.
    pub(crate) fn of_rdna(self) -> Self {
        match self {
            Self(124) => Self::NULL,
            Self(125) => Self::M0,
            other => other,
        }
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The index into a wave's vector registers; accumulation registers follow the plain ones.
    pub(crate) fn vector_index(self) -> Option<usize> {
        (Self::FIRST_VGPR..Self::FIRST_VGPR + 512)
            .contains(&self.0)
            .then(|| usize::from(self.0 - Self::FIRST_VGPR))
    }

    /// The index into a wave's scalar registers: SGPRs, VCC, M0, EXEC.
    pub(crate) fn scalar_index(self) -> Option<usize> {
        (self.0 < 128).then_some(self.0.into())
    }
}

impl std::fmt::Debug for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0xffff => f.write_str("-"),
            0xfffe => f.write_str("null"),
            code @ 512.. => write!(f, "a{}", code - 512),
            code @ 256.. => write!(f, "v{}", code - 256),
            code => write!(f, "{code}"),
        }
    }
}

/// The value of an inline constant in an operand of a kind.
pub(crate) fn inline_constant(operand: Operand, format: FloatFormat) -> Option<u64> {
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
pub(crate) enum FloatFormat {
    Half,
    Single,
    Double,
}

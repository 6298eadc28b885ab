//! The evidence for the behaviour of each executed opcode, from a recorded table.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use modelgpu_isa::Target;

/// The kinds of evidence for an opcode, apart from our own reading of AMD's guides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// A published test, which its authors ran on a GPU of the target, executes the opcode and agrees.
    pub silicon: bool,
    /// LLVM uses the opcode for an operation, and its results are those of LLVM's code for the host, or of LLVM's
    /// constant folding.
    pub compiler: bool,
    /// The results are those of another implementation of IEEE 754 or of integer arithmetic.
    pub arithmetic: bool,
}

/// The reason why the last bits of an opcode's results may be others on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBits {
    /// AMD's documents do not define in which order it adds, and when it rounds.
    Order,
    /// It is an approximation, which the model rounds correctly.
    Approximation,
}

impl LastBits {
    /// The reason for a mnemonic; `None` if its results are defined to the last bit.
    pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        let starts = |families: &[&str]| families.iter().any(|start| mnemonic.starts_with(start));
        let is_real = ["_f32_", "_f64_", "_f16_", "_bf16_"]
            .iter()
            .any(|kind| mnemonic.contains(kind));
        let sums = ["v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_", "v_dot"];
        let approximations = [
            "v_cos_",
            "v_exp_",
            "v_log_",
            "v_rcp_",
            "v_rsq_",
            "v_sin_",
            "v_sqrt_",
            "v_s_exp_",
            "v_s_log_",
            "v_s_rcp_",
            "v_s_rsq_",
            "v_s_sqrt_",
        ];
        if starts(&sums) && is_real {
            return Some(Self::Order);
        }
        starts(&approximations).then_some(Self::Approximation)
    }
}

/// The rows of the table: the letters of each target, by mnemonic.
type Rows = HashMap<&'static str, Vec<&'static str>>;

impl Evidence {
    /// The evidence for a mnemonic on a target; `None` if the target does not execute it.
    pub fn recorded(target: Target, mnemonic: &str) -> Option<Self> {
        static ROWS: OnceLock<Rows> = OnceLock::new();
        let rows = ROWS.get_or_init(|| {
            let lines = include_str!("evidence.txt").lines();
            let lines = lines.filter(|line| !line.starts_with('#'));
            let rows = lines.filter_map(|line| line.split_once(' '));
            rows.map(|(name, letters)| (name, letters.split(' ').collect()))
                .collect()
        });
        let column = rows
            .get("opcode")?
            .iter()
            .position(|name| *name == target.name())?;
        let letters = rows.get(mnemonic)?.get(column)?;
        (*letters != "-").then(|| Self {
            silicon: letters.contains('s'),
            compiler: letters.contains('c'),
            arithmetic: letters.contains('a'),
        })
    }

    /// Returns whether there is no evidence but our own reading of AMD's guides.
    pub fn is_own_reading(&self) -> bool {
        *self == Self::default()
    }
}

/// The letters of the table: `sca`, or `r` for our own reading.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.silicon, 's'),
            (self.compiler, 'c'),
            (self.arithmetic, 'a'),
        ];
        let letters: String = kinds
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, letter)| *letter)
            .collect();
        f.write_str(if letters.is_empty() { "r" } else { &letters })
    }
}

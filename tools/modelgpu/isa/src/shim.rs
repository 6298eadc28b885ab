#![allow(missing_docs, clippy::all)]
use crate::Operand;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveSize {
    Wave32,
    Wave64,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    Scalar,
    Vector,
    Accumulator,
}
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub file: File,
    pub first: u16,
    pub count: u8,
    w: bool,
}
impl Access {
    pub fn is_written(&self) -> bool {
        self.w
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    ExecZ,
    ExecNz,
    Scc0,
    Scc1,
    VccZ,
    VccNz,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    Branch {
        to: i32,
        condition: Option<Condition>,
    },
    Call {
        to: i32,
    },
    Indirect,
    IndirectCall,
    End,
    Trap,
}
impl crate::Instruction {
    pub fn accesses(&self, w: WaveSize) -> impl Iterator<Item = Access> {
        let m = self.mnemonic;
        let mut v = Vec::new();
        let wide = if m.contains("mfma") || m.contains("wmma") {
            16
        } else if m.contains("image") {
            8
        } else {
            4
        };
        let swidth = |m: &str| -> u8 {
            if m.contains("dwordx16") || m.contains("b512") {
                16
            } else if m.contains("dwordx8") || m.contains("b256") {
                8
            } else if m.contains("dwordx4") || m.contains("b128") {
                4
            } else if m.contains("dwordx2")
                || m.contains("b64")
                || m.contains("i64")
                || m.contains("u64")
                || m.contains("getpc")
                || m.contains("swappc")
                || m.contains("call")
            {
                2
            } else {
                1
            }
        };
        let mut add = |o: Operand, written: bool| {
            if o.is_none() || o == Operand::NULL {
                return;
            }
            let n = o.0;
            if n < 128 {
                let c = if m.starts_with("s_") {
                    if written { swidth(m) } else { 2 }
                } else if m.starts_with("v_cmp") && written {
                    if w == WaveSize::Wave64 { 2 } else { 1 }
                } else {
                    2
                };
                v.push(Access {
                    file: File::Scalar,
                    first: n,
                    count: c,
                    w: written,
                });
            } else if (256..512).contains(&n) {
                v.push(Access {
                    file: File::Vector,
                    first: n - 256,
                    count: wide,
                    w: written,
                });
            } else if (512..768).contains(&n) {
                v.push(Access {
                    file: File::Accumulator,
                    first: n - 512,
                    count: wide,
                    w: written,
                });
            }
        };
        add(self.dst, true);
        add(self.sdst, true);
        for s in self.src {
            add(s, false);
        }
        if let Some(s) = self.second {
            add(s.dst, true);
            for s in s.src {
                add(s, false);
            }
        }
        if self.writes_exec() {
            v.push(Access {
                file: File::Scalar,
                first: 126,
                count: 2,
                w: true,
            });
        }
        v.into_iter()
    }
    pub fn flow(&self) -> Flow {
        let to = self.immediate;
        let c = match self.mnemonic {
            "s_branch" => {
                return Flow::Branch {
                    to,
                    condition: None,
                };
            }
            "s_cbranch_scc0" => Condition::Scc0,
            "s_cbranch_scc1" => Condition::Scc1,
            "s_cbranch_vccz" => Condition::VccZ,
            "s_cbranch_vccnz" => Condition::VccNz,
            "s_cbranch_execz" => Condition::ExecZ,
            "s_cbranch_execnz" => Condition::ExecNz,
            "s_call_b64" => return Flow::Call { to },
            "s_setpc_b64" => return Flow::Indirect,
            "s_swappc_b64" => return Flow::IndirectCall,
            "s_endpgm" | "s_endpgm_saved" => return Flow::End,
            "s_trap" => return Flow::Trap,
            _ => return Flow::Next,
        };
        Flow::Branch {
            to,
            condition: Some(c),
        }
    }
    pub fn reads_scc(&self) -> bool {
        let m = self.mnemonic;
        [
            "s_cbranch_scc",
            "s_cselect",
            "s_addc_",
            "s_subb_",
            "s_cmov",
            "s_add_co_ci",
            "s_sub_co_ci",
        ]
        .iter()
        .any(|p| m.starts_with(p))
            || self.src.contains(&Operand::SCC)
    }
    pub fn writes_scc(&self) -> bool {
        let m = self.mnemonic;
        const NO: &[&str] = &[
            "s_mul_i32",
            "s_mul_hi",
            "s_mulk",
            "s_movk",
            "s_addk_co",
            "s_bfm",
            "s_add_f",
            "s_sub_f",
            "s_min_num",
            "s_max_num",
            "s_add_nc",
            "s_sub_nc",
        ];
        const YES: &[&str] = &[
            "s_add",
            "s_sub",
            "s_min",
            "s_max",
            "s_and",
            "s_or",
            "s_xor",
            "s_nand",
            "s_nor",
            "s_xnor",
            "s_not",
            "s_lsh",
            "s_ash",
            "s_bfe",
            "s_abs",
            "s_wqm",
            "s_quadmask",
            "s_bcnt",
            "s_cmp",
            "s_bitcmp",
        ];
        !NO.iter().any(|p| m.starts_with(p)) && YES.iter().any(|p| m.starts_with(p))
    }
    pub fn writes_exec(&self) -> bool {
        let m = self.mnemonic;
        m.contains("saveexec")
            || m.contains("wrexec")
            || m.starts_with("v_cmpx")
            || (m.starts_with("s_")
                && !m.starts_with("s_cmp")
                && !m.starts_with("s_bitcmp")
                && (self.dst == Operand::EXEC || self.dst.0 == 127))
    }
}

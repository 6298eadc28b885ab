//! Every form of a vector instruction is compared with its plain one: the encoding for three sources
//! with the short one, parts of registers (SDWA) with operands that shifts have cut out, and operands
//! from other lanes (DPP) with operands that a move has fetched. Other families test the plain forms,
//! the shifts and the moves against values from outside.
//!
//! LLVM says which forms exist: a case that cannot be assembled fails.

use std::collections::BTreeSet;

use modelgpu_amdgcn::{Standing, Target};

use crate::harness::{Case, Inputs, Want};
use crate::inputs::{doubles, halves, integers, singles};

/// Instructions that a kernel here compares. A failure names them all.
const AT_ONCE: usize = 8;

/// A form of an instruction.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Long,
    Parts,
    Lanes,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, target) in Target::WAVE64.iter().copied().enumerate() {
        let opcodes = modelgpu_amdgcn::opcodes(target);
        let long: BTreeSet<&str> = opcodes
            .iter()
            .filter(|opcode| opcode.encoding == "VOP3")
            .map(|opcode| opcode.mnemonic)
            .collect();
        for encoding in ["VOP1", "VOP2", "VOPC"] {
            let names: Vec<&'static str> = opcodes
                .iter()
                .filter(|opcode| opcode.encoding == encoding)
                .filter(|opcode| opcode.standing == Standing::Executed)
                .map(|opcode| opcode.mnemonic)
                .collect();
            for form in [Form::Long, Form::Parts, Form::Lanes] {
                let names: Vec<&'static str> = names
                    .iter()
                    .copied()
                    .filter(|name| match form {
                        Form::Long => long.contains(name),
                        _ => has_form(name, encoding, form),
                    })
                    .filter(|name| !is_special(name))
                    .collect();
                for (inputs, names) in by_inputs(&names) {
                    for names in names.chunks(AT_ONCE) {
                        let case = case(encoding, form, names, inputs());
                        cases.push(case.only(&Target::WAVE64[place..=place]));
                    }
                }
            }
        }
    }
    cases
}

/// Instructions without a vector result, and those whose forms have tests of their own.
fn is_special(name: &str) -> bool {
    ["v_nop", "v_clrexcp", "v_readfirstlane_b32", "v_swap_b32"].contains(&name)
        || name.starts_with("v_permlane")
        || name.starts_with("v_accvgpr")
        || name.ends_with("_fp8")
        || name.ends_with("_bf8")
}

fn is_wide(name: &str) -> bool {
    ["f64", "b64", "i64", "u64"]
        .iter()
        .any(|kind| name.contains(kind))
}

/// Returns whether an instruction has SDWA or DPP forms.
fn has_form(name: &str, encoding: &str, form: Form) -> bool {
    let has_constant = ["v_madmk", "v_madak", "v_fmamk", "v_fmaak"]
        .iter()
        .any(|kind| name.starts_with(kind));
    let accumulates = ["v_mac_", "v_fmac_", "v_dot"]
        .iter()
        .any(|kind| name.starts_with(kind));
    let is_packed = name.starts_with("v_pk_");
    match form {
        _ if is_wide(name) || has_constant || is_packed => false,
        Form::Parts => !accumulates,
        _ => encoding != "VOPC",
    }
}

type MakeInputs = fn() -> Inputs;

/// The instructions by the inputs that suit their operands.
fn by_inputs(names: &[&'static str]) -> Vec<(MakeInputs, Vec<&'static str>)> {
    let kinds: [(MakeInputs, &[&str]); 4] = [
        (doubles, &["_f64"]),
        (singles, &["_f32"]),
        (halves, &["_f16"]),
        (integers, &["_"]),
    ];
    let mut left = names.to_vec();
    kinds
        .into_iter()
        .map(|(inputs, endings)| {
            let (these, others) = left.iter().copied().partition(|name: &&str| {
                endings
                    .iter()
                    .any(|ending| ending == &"_" || name.ends_with(ending))
            });
            left = others;
            (inputs, these)
        })
        .collect()
}

/// The registers of a result and of two sources: their numbers of registers.
fn widths(name: &str) -> [usize; 3] {
    let of = |kind: &str| if kind.ends_with("64") { 2 } else { 1 };
    let parts: Vec<&str> = name.split('_').collect();
    let last = of(parts[parts.len() - 1]);
    let [result, first, second] = match parts[1] {
        "cvt" => [of(parts[2]), last, last],
        "frexp" if name.contains("exp_i32") => [1, last, last],
        "cmp" | "cmpx" if name.contains("class") => [1, last, 1],
        "cmp" | "cmpx" => [1, last, last],
        _ => [last, last, last],
    };
    [result, first, second]
}

fn registers(first: usize, count: usize) -> String {
    match count {
        1 => format!("v{first}"),
        _ => format!("v[{first}:{}]", first + count - 1),
    }
}

/// An instruction with its suffix and sources: the result in v20 or the pair from there, a mask in
/// s[40:41]. The short comparisons and carries have their mask in VCC.
fn instruction(name: &str, encoding: &str, suffix: &str, sources: [String; 2]) -> String {
    let [first, second] = sources;
    let result = registers(20, widths(name)[0]);
    let is_short = suffix != "_e64";
    let mask = if is_short { "vcc" } else { "s[40:41]" };
    let reads = ["v_addc_", "v_subb_", "v_subbrev_", "v_cndmask_"]
        .iter()
        .any(|kind| name.starts_with(kind));
    let carry_in = if reads { ", vcc" } else { "" };
    match encoding {
        "VOP1" => format!("{name}{suffix} {result}, {first}"),
        "VOPC" => format!("{name}{suffix} {mask}, {first}, {second}"),
        _ if name.contains("_co_") => {
            format!("{name}{suffix} {result}, {mask}, {first}, {second}{carry_in}")
        }
        _ => format!("{name}{suffix} {result}, {first}, {second}{carry_in}"),
    }
}

fn case(encoding: &str, form: Form, names: &[&'static str], inputs: Inputs) -> Case {
    let mut body = String::from(
        "v_mov_b32 v10, 0
         s_mov_b64 s[50:51], exec\n",
    );
    for name in names {
        let [result, first, second] = widths(name);
        let plain_sources = [registers(30, first), registers(32, second)];
        let whole = [registers(2, first), registers(4, second)];
        let (prepare, suffix, controls) = match form {
            Form::Long => (
                "v_mov_b32 v30, v2
                 v_mov_b32 v31, v3
                 v_mov_b32 v32, v4
                 v_mov_b32 v33, v5",
                "_e64",
                String::new(),
            ),
            Form::Parts => {
                let own = match encoding {
                    "VOPC" => "",
                    _ => " dst_sel:DWORD dst_unused:UNUSED_PAD",
                };
                let second = if encoding == "VOP1" {
                    ""
                } else {
                    " src1_sel:BYTE_2"
                };
                (
                    "v_lshrrev_b32 v30, 16, v2
                     v_bfe_u32 v32, v4, 16, 8",
                    "_sdwa",
                    format!("{own} src0_sel:WORD_1{second}"),
                )
            }
            Form::Lanes => (
                "v_mov_b32_dpp v30, v2 row_ror:3 row_mask:0xf bank_mask:0xf
                 v_mov_b32 v32, v4",
                "_dpp",
                " row_ror:3 row_mask:0xf bank_mask:0xf".to_owned(),
            ),
        };
        // The carry in, and an accumulator's old value. A mask is that of VCC or s[40:41], and EXEC.
        let start = "v_mov_b32 v20, v6
             v_mov_b32 v21, v7
             s_mov_b32 vcc_lo, 0x5a5af00f
             s_mov_b32 vcc_hi, 0x12345678
             s_mov_b64 s[40:41], vcc";
        let short = if name.starts_with("v_readfirstlane") {
            ""
        } else {
            "_e32"
        };
        let plain = instruction(name, encoding, short, plain_sources);
        let other = instruction(name, encoding, suffix, whole) + &controls;
        let mask = if suffix == "_e64" { "s[40:41]" } else { "vcc" };
        body += &format!(
            "{prepare}
             {start}
             {plain}
             s_mov_b64 s[44:45], exec
             s_mov_b64 exec, s[50:51]
             s_mov_b64 s[42:43], vcc
             v_mov_b32 v24, v20
             v_mov_b32 v25, v21
             {start}
             {other}
             s_mov_b64 s[46:47], exec
             s_mov_b64 exec, s[50:51]
             s_xor_b64 s[44:45], s[44:45], s[46:47]
             s_xor_b64 s[42:43], s[42:43], {mask}
             s_or_b64 s[42:43], s[42:43], s[44:45]
             v_cndmask_b32_e64 v26, 0, 1, s[42:43]
             v_or_b32 v10, v10, v26
             v_xor_b32 v20, v20, v24
             v_or_b32 v10, v10, v20\n"
        );
        if result == 2 {
            body += "v_xor_b32 v21, v21, v25\nv_or_b32 v10, v10, v21\n";
        }
    }
    Case::new(names[0], body, inputs, |_, _| Want::Word(0))
}

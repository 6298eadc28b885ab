//! Runs pieces of assembly with and without their waits.

use modelgpu_amdgcn::{Argument, Hazard, Launch, Program, Target};
use modelgpu_testing::{AssemblyKernel, assemble};

pub(crate) use modelgpu_testing::{GCN, GFX9};

/// The targets with unified registers.
pub(crate) const UNIFIED: &[Target] = &[Target::Gfx90a, Target::Gfx942, Target::Gfx950];
pub(crate) const GFX908: &[Target] = &[Target::Gfx908];
pub(crate) const GFX90A: &[Target] = &[Target::Gfx90a];
pub(crate) const GFX94: &[Target] = &[Target::Gfx942, Target::Gfx950];
pub(crate) const GFX942: &[Target] = &[Target::Gfx942];
pub(crate) const GFX950: &[Target] = &[Target::Gfx950];
pub(crate) const GFX10: &[Target] = &[Target::Gfx1030];
pub(crate) const GFX11: &[Target] = &[Target::Gfx1100];
pub(crate) const GFX12: &[Target] = &[Target::Gfx1201];
pub(crate) const RDNA: &[Target] = &[Target::Gfx1100, Target::Gfx1201];

/// A piece of code and the rule that it breaks without its wait. The wait is in braces. Without braces, the code is
/// right.
pub(crate) struct Planted {
    pub(crate) rule: &'static str,
    pub(crate) targets: &'static [Target],
    pub(crate) body: String,
}

pub(crate) fn planted(
    rule: &'static str,
    targets: &'static [Target],
    body: impl Into<String>,
) -> Planted {
    Planted {
        rule,
        targets,
        body: body.into(),
    }
}

/// A form of a piece of code.
struct Form {
    code: String,
    /// The rule that it breaks.
    breaks: Option<&'static str>,
}

impl Planted {
    /// The code with its wait, without it, and with one wait state too few.
    fn forms(&self) -> Vec<Form> {
        let Some((before, rest)) = self.body.split_once('{') else {
            let code = self.body.clone();
            return vec![Form { code, breaks: None }];
        };
        let (wait, behind) = rest.split_once('}').expect("a closing brace");
        let form = |wait: &str, breaks| Form {
            code: format!("{before}{wait}{behind}"),
            breaks,
        };
        let mut forms = vec![form(wait, None), form("", Some(self.rule))];
        let last = wait.rsplit('\n').next().expect("a line");
        if let Some(count) = last.trim().strip_prefix("s_nop ") {
            let count: u32 = count.parse().expect("a number");
            let others = &wait[..wait.len() - last.len()];
            let shorter = match count {
                0 => others.to_owned(),
                count => format!("{others}s_nop {}", count - 1),
            };
            forms.push(form(&shorter, Some(self.rule)));
        }
        forms
    }
}

/// The address of the memory in `s[12:13]`, a lane's offset in v1, and zeros in other registers.
fn preamble(target: Target) -> &'static str {
    match target {
        Target::Gfx1201 | Target::Gfx1250 => {
            "s_load_dwordx2 s[12:13], s[4:5], 0x0\ns_wait_kmcnt 0x0\nv_lshlrev_b32 v1, 2, v0\ns_nop 7\n"
        }
        _ => {
            "s_load_dwordx2 s[12:13], s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v1, 2, v0\n\
             s_nop 7\ns_nop 7\ns_nop 7\n"
        }
    }
}

/// Runs each form of each piece on its targets.
pub(crate) fn check(all: &[Planted]) {
    let mut wrong = Vec::new();
    for &target in Target::WAVE64 {
        let forms: Vec<Form> = all
            .iter()
            .filter(|planted| planted.targets.contains(&target))
            .flat_map(Planted::forms)
            .collect();
        let bodies: Vec<String> = forms.iter().map(|form| form.code.clone()).collect();
        for (form, hazards) in forms.iter().zip(run(target, &bodies)) {
            let rules: Vec<&str> = hazards.iter().map(|hazard| hazard.rule).collect();
            let is_right = match form.breaks {
                Some(rule) => rules.contains(&rule),
                None => rules.is_empty(),
            };
            if !is_right {
                let text = form.code.trim();
                wrong.push(format!(
                    "{target}, {:?} expected, {rules:?} found:\n{text}",
                    form.breaks
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The hazards of each body, in a kernel of one wave.
pub(crate) fn run(target: Target, bodies: &[String]) -> Vec<Vec<Hazard>> {
    if bodies.is_empty() {
        return Vec::new();
    }
    let kernels: Vec<AssemblyKernel> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| AssemblyKernel {
            name: format!("case_{number}"),
            body: format!("{}{body}", preamble(target)),
        })
        .collect();
    let registers = match target.has_unified_registers() {
        true => ".amdhsa_next_free_vgpr 192\n.amdhsa_accum_offset 128",
        false => "",
    };
    let object = assemble(target, &kernels, 1, registers);
    kernels
        .iter()
        .map(|kernel| {
            let mut program = Program::load(&object).expect("an object that was just linked");
            program.watch_hazards();
            let memory = program.arena_mut().allocate(&[0; 4096]);
            let launch = Launch {
                kernel: kernel.name.clone(),
                grid: [64, 1, 1],
                block: [64, 1, 1],
                dynamic_lds: 0,
                arguments: vec![Argument::Pointer(memory)],
            };
            program
                .launch(&launch)
                .unwrap_or_else(|error| panic!("{error}\n{}", kernel.body));
            program.hazards().to_vec()
        })
        .collect()
}

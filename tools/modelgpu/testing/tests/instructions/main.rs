//! Compares every modelled instruction with expected values that do not come from the interpreter.
//! The tests compute each value from the instruction's definition and, if possible, in another way.

mod atomics;
mod buffer;
mod cdna4;
mod compare;
mod control;
mod convert;
mod divide;
mod dot;
mod eight;
mod evidence;
mod float;
mod folded;
mod forms;
mod half;
mod half_functions;
mod harness;
mod image;
mod inputs;
mod integer;
mod lanes;
mod matrix;
mod media;
mod memory;
mod packed;
mod rdna;
mod rdna4;
mod rounding;
mod saturate;
mod scalar;
mod scaled;
mod small;
mod trigonometry;

use std::collections::BTreeSet;

use modelgpu_amdgcn::{Evidence, Standing, Target};

use harness::{Case, cases_on, check, executed};

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
            #[test]
            fn $family() {
                check(&crate::$family::cases());
            }
        )*

        pub(crate) fn cases_by_family() -> Vec<(&'static str, Vec<Case>)> {
            vec![$((stringify!($family), crate::$family::cases())),*]
        }
    };
}

pub(crate) mod tests {
    use super::*;

    families![
        atomics,
        buffer,
        cdna4,
        compare,
        control,
        convert,
        divide,
        dot,
        eight,
        float,
        folded,
        forms,
        half,
        half_functions,
        image,
        integer,
        lanes,
        matrix,
        media,
        memory,
        packed,
        rdna,
        rdna4,
        rounding,
        saturate,
        scalar,
        scaled,
        trigonometry,
    ];

    /// Every instruction that a target's tables have must be refused, or have a case that executes
    /// it on this target.
    #[test]
    fn every_modelled_instruction_has_a_case() {
        // amdgcn/tests/faults.rs covers instructions that end the kernel or send a message to the host,
        // amdgcn/tests/waiting those of barriers of a grid, and amdgcn/tests/wave_sizes products of matrices in RDNA's
        // layouts and the loads for them.
        let ending = ["s_trap", "s_sendmsg", "ds_gws_init", "ds_gws_barrier"];
        let families = cases_by_family();
        let cases: Vec<Case> = families.into_iter().flat_map(|(_, cases)| cases).collect();
        for &target in Target::WAVE64 {
            let modelled: BTreeSet<&str> = executed(target).values().copied().collect();
            let tested: BTreeSet<&str> = cases_on(target, &cases)
                .into_iter()
                .map(|(_, mnemonic)| mnemonic)
                .chain(modelled.iter().copied().filter(|mnemonic| {
                    ["v_wmma_", "v_swmmac_", "global_load_tr_"]
                        .iter()
                        .any(|family| mnemonic.starts_with(family))
                }))
                .chain(
                    ending
                        .into_iter()
                        .filter(|mnemonic| modelled.contains(mnemonic)),
                )
                .collect();
            let untested: Vec<_> = modelled.difference(&tested).collect();
            assert!(
                untested.is_empty(),
                "{target}: modelled, but never tested: {untested:?}"
            );
        }
    }

    /// The cases need waves of 64. A target without them must execute what another target has cases for, what LLVM
    /// chooses for the operations of its evidence, or what amdgcn/tests/gfx1250 and
    /// amdgcn/tests/compiled execute.
    #[test]
    fn opcodes_of_waves_of_32_alone_are_those_of_others() {
        let own = [
            "global_load_async_to_lds_b8",
            "global_load_async_to_lds_b32",
            "global_load_async_to_lds_b64",
            "global_load_async_to_lds_b128",
            "global_store_async_from_lds_b8",
            "global_store_async_from_lds_b32",
            "global_store_async_from_lds_b64",
            "global_store_async_from_lds_b128",
            "v_fma_mix_f32_bf16",
            "v_fma_mixhi_bf16",
            "v_pk_add_bf16",
            "v_pk_fma_bf16",
            "v_pk_max_num_bf16",
            "v_pk_min_num_bf16",
            "v_pk_mul_bf16",
            "flat_prefetch_b8",
            "global_prefetch_b8",
            "s_add_pc_i64",
            "s_get_shader_cycles_u64",
            "s_set_vgpr_msb",
            "s_setprio_inc_wg",
            "s_wait_asynccnt",
            "s_wait_tensorcnt",
            "s_wait_xcnt",
        ];
        let others: BTreeSet<String> = Target::WAVE64
            .iter()
            .flat_map(|target| executed(*target).keys().cloned())
            .collect();
        let alone = Target::ALL
            .into_iter()
            .filter(|target| !Target::WAVE64.contains(target));
        for target in alone {
            let untested: Vec<_> = modelgpu_amdgcn::opcodes(target)
                .into_iter()
                .filter(|opcode| opcode.standing == Standing::Executed)
                .filter(|opcode| !others.contains(&*opcode.operation))
                .map(|opcode| opcode.mnemonic)
                .filter(|mnemonic| !own.contains(mnemonic))
                .filter(|mnemonic| {
                    !Evidence::recorded(target, mnemonic).is_some_and(|kinds| kinds.compiler)
                })
                .collect();
            assert!(untested.is_empty(), "{target}: {untested:?}");
        }
    }

    /// The interpreter executes or refuses every opcode that LLVM supports.
    #[test]
    fn no_opcode_is_unknown() {
        for target in Target::ALL {
            let unknown: Vec<_> = modelgpu_amdgcn::opcodes(target)
                .into_iter()
                .filter(|opcode| opcode.standing == Standing::Unknown)
                .collect();
            assert!(unknown.is_empty(), "{target}: {unknown:?}");
        }
    }

    /// No table of the interpreter has an instruction that no target has.
    #[test]
    fn every_modelled_instruction_is_in_a_target() {
        let known: BTreeSet<String> = Target::ALL
            .into_iter()
            .flat_map(modelgpu_amdgcn::opcodes)
            .flat_map(|opcode| [opcode.mnemonic.to_owned(), opcode.operation.into_owned()])
            .collect();
        let strange: Vec<_> = modelgpu_amdgcn::modelled_instructions()
            .into_iter()
            .filter(|mnemonic| !known.contains(*mnemonic))
            .collect();
        assert!(strange.is_empty(), "on no target: {strange:?}");
    }
}

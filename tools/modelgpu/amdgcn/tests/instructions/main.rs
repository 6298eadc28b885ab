//! Compares every modelled instruction with expected values that do not come from the interpreter.
//! The tests compute each value from the instruction's definition and, if possible, in another way.

#[path = "../common/mod.rs"]
mod common;

mod atomics;
mod compare;
mod control;
mod convert;
mod divide;
mod dot;
mod eight;
mod float;
mod half;
mod half_functions;
mod harness;
mod inputs;
mod integer;
mod lanes;
mod memory;
mod packed;
mod saturate;
mod scalar;
mod trigonometry;

use std::collections::BTreeSet;

use harness::{Case, check};

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
            #[test]
            fn $family() {
                check(&crate::$family::cases());
            }
        )*

        fn all_cases() -> Vec<Case> {
            let mut cases = Vec::new();
            $(cases.extend(crate::$family::cases());)*
            cases
        }
    };
}

mod tests {
    use super::*;

    families![
        atomics,
        compare,
        control,
        convert,
        divide,
        dot,
        eight,
        float,
        half,
        half_functions,
        integer,
        lanes,
        memory,
        packed,
        saturate,
        scalar,
        trigonometry,
    ];

    /// Every accepted instruction must have a case that executes it on a target.
    #[test]
    fn every_modelled_instruction_has_a_case() {
        // tests/faults.rs covers instructions that end the kernel or send a message to the host,
        // tests/waiting those of barriers of a grid.
        let ending = ["s_trap", "s_sendmsg", "ds_gws_init", "ds_gws_barrier"];
        let tested: BTreeSet<&str> = all_cases()
            .iter()
            .map(|case| case.mnemonic)
            .chain(ending)
            .collect();
        let modelled: BTreeSet<&str> = modelgpu_amdgcn::modelled_instructions()
            .into_iter()
            .collect();
        let untested: Vec<_> = modelled.difference(&tested).collect();
        assert!(
            untested.is_empty(),
            "modelled, but never tested: {untested:?}"
        );
        let unknown: Vec<_> = tested.difference(&modelled).collect();
        assert!(unknown.is_empty(), "tested, but not modelled: {unknown:?}");
    }
}

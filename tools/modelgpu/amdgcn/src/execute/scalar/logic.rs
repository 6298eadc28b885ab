//! Scalar moves, selections, logic, and updates of EXEC.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::{ExecResult, ScalarOperation, scalar};

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    // Moves and selections.
    ("s_mov_b32", scalar!(Keep, |a: u32| -> u32 { a })),
    ("s_mov_b64", scalar!(Keep, |a: u64| -> u64 { a })),
    ("s_movk_i32", scalar!(Keep, |a: u32| -> u32 { a })),
    (
        "s_cmov_b32",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B32)),
    ),
    (
        "s_cmov_b64",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B64)),
    ),
    (
        "s_cmovk_i32",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B32)),
    ),
    ("s_movrels_b32", relative(Kind::B32, true)),
    ("s_movrels_b64", relative(Kind::B64, true)),
    ("s_movreld_b32", relative(Kind::B32, false)),
    ("s_movreld_b64", relative(Kind::B64, false)),
    (
        "s_cselect_b32",
        scalar!(Select, |a: u32, b: u32, scc: bool| -> u32 {
            if scc { a } else { b }
        }),
    ),
    (
        "s_cselect_b64",
        scalar!(Select, |a: u64, b: u64, scc: bool| -> u64 {
            if scc { a } else { b }
        }),
    ),
    // Logic.
    ("s_not_b32", scalar!(Nonzero, |a: u32| -> u32 { !a })),
    ("s_not_b64", scalar!(Nonzero, |a: u64| -> u64 { !a })),
    (
        "s_and_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a & b }),
    ),
    (
        "s_and_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a & b }),
    ),
    (
        "s_or_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a | b }),
    ),
    (
        "s_or_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a | b }),
    ),
    (
        "s_xor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a ^ b }),
    ),
    (
        "s_xor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a ^ b }),
    ),
    (
        "s_andn2_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a & !b }),
    ),
    (
        "s_andn2_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a & !b }),
    ),
    (
        "s_orn2_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a | !b }),
    ),
    (
        "s_orn2_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a | !b }),
    ),
    (
        "s_nand_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a & b) }),
    ),
    (
        "s_nand_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a & b) }),
    ),
    (
        "s_nor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a | b) }),
    ),
    (
        "s_nor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a | b) }),
    ),
    (
        "s_xnor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a ^ b) }),
    ),
    (
        "s_xnor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a ^ b) }),
    ),
    // EXEC masks.
    ("s_and_saveexec_b64", old_exec(|source, exec| source & exec)),
    ("s_or_saveexec_b64", old_exec(|source, exec| source | exec)),
    ("s_xor_saveexec_b64", old_exec(|source, exec| source ^ exec)),
    (
        "s_andn2_saveexec_b64",
        old_exec(|source, exec| source & !exec),
    ),
    (
        "s_orn2_saveexec_b64",
        old_exec(|source, exec| source | !exec),
    ),
    (
        "s_nand_saveexec_b64",
        old_exec(|source, exec| !(source & exec)),
    ),
    (
        "s_nor_saveexec_b64",
        old_exec(|source, exec| !(source | exec)),
    ),
    (
        "s_xnor_saveexec_b64",
        old_exec(|source, exec| !(source ^ exec)),
    ),
    (
        "s_andn1_saveexec_b64",
        old_exec(|source, exec| !source & exec),
    ),
    (
        "s_orn1_saveexec_b64",
        old_exec(|source, exec| !source | exec),
    ),
    (
        "s_andn1_wrexec_b64",
        new_exec(|source, exec| !source & exec),
    ),
    (
        "s_andn2_wrexec_b64",
        new_exec(|source, exec| source & !exec),
    ),
];

const fn relative(kind: Kind, source: bool) -> Operation {
    Operation::Scalar(ScalarOperation::MoveRelative { kind, source })
}

const fn old_exec(run: fn(u64, u64) -> u64) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::Old,
    })
}

const fn new_exec(run: fn(u64, u64) -> u64) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::New,
    })
}

//! Scalar moves, selections, logic, and updates of EXEC.

use super::super::value::{Kind, Value};
use super::super::{Operation, Table};
use super::operation::{ExecResult, ScalarOperation, scalar};

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
];

/// Updates of EXEC, for waves of 64 work-items or 32.
macro_rules! exec_updates {
    ($size:literal, $kind:expr) => {
        &[
            (
                concat!("s_and_saveexec_", $size),
                old_exec(|source, exec| source & exec, $kind),
            ),
            (
                concat!("s_or_saveexec_", $size),
                old_exec(|source, exec| source | exec, $kind),
            ),
            (
                concat!("s_xor_saveexec_", $size),
                old_exec(|source, exec| source ^ exec, $kind),
            ),
            (
                concat!("s_andn2_saveexec_", $size),
                old_exec(|source, exec| source & !exec, $kind),
            ),
            (
                concat!("s_orn2_saveexec_", $size),
                old_exec(|source, exec| source | !exec, $kind),
            ),
            (
                concat!("s_nand_saveexec_", $size),
                old_exec(|source, exec| !(source & exec), $kind),
            ),
            (
                concat!("s_nor_saveexec_", $size),
                old_exec(|source, exec| !(source | exec), $kind),
            ),
            (
                concat!("s_xnor_saveexec_", $size),
                old_exec(|source, exec| !(source ^ exec), $kind),
            ),
            (
                concat!("s_andn1_saveexec_", $size),
                old_exec(|source, exec| !source & exec, $kind),
            ),
            (
                concat!("s_orn1_saveexec_", $size),
                old_exec(|source, exec| !source | exec, $kind),
            ),
            (
                concat!("s_andn1_wrexec_", $size),
                new_exec(|source, exec| !source & exec, $kind),
            ),
            (
                concat!("s_andn2_wrexec_", $size),
                new_exec(|source, exec| source & !exec, $kind),
            ),
        ]
    };
}

pub(super) const UPDATES_64: Table = exec_updates!("b64", Kind::B64);
pub(super) const UPDATES_32: Table = exec_updates!("b32", Kind::B32);

const fn relative(kind: Kind, source: bool) -> Operation {
    Operation::Scalar(ScalarOperation::MoveRelative { kind, source })
}

const fn old_exec(run: fn(u64, u64) -> u64, kind: Kind) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::Old,
        kind,
    })
}

const fn new_exec(run: fn(u64, u64) -> u64, kind: Kind) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::New,
        kind,
    })
}

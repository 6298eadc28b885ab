//! The operations of scalar instructions.

use super::super::value::Kind;

#[derive(Clone, Copy)]
pub(crate) enum ScalarOperation {
    Compute {
        /// Maps the sources and SCC to the result and the new SCC.
        run: fn(u64, u64, bool) -> (u64, bool),
        sources: [Kind; 2],
        result: Kind,
        writes_scc: bool,
    },
    /// Writes the result only if SCC is set.
    ConditionalMove(Kind),
    /// Moves between registers, of which M0 is added to the source's or the result's number.
    MoveRelative { kind: Kind, source: bool },
    /// Sets or clears one bit of the result registers.
    SetBit { set: bool, result: Kind },
    /// Combines EXEC with the source and writes EXEC; the result is the old or the new EXEC.
    UpdateExec {
        run: fn(u64, u64) -> u64,
        result: ExecResult,
        kind: Kind,
    },
    /// Floating-point arithmetic; without a result, SCC tells whether the value is 1.
    Float {
        run: fn([u64; 3]) -> u64,
        sources: [Kind; 3],
        result: Kind,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum ExecResult {
    Old,
    New,
}

/// Makes a scalar operation from a closure. `Keep` does not change SCC. `Nonzero` sets it if the
/// result is not zero. `Flag` takes it from the closure. `Test` has no other result. `Select` reads
/// it.
macro_rules! scalar {
    (Keep, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, false, |a, _b, scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Keep, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Nonzero, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, true, |a, _b, _scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Nonzero, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, _scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Flag, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> ($R:ty, bool) $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let (result, flag): ($R, bool) = $body;
            (result.to_bits(), flag)
        })
    };
    (Select, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), $scc)
        })
    };
    (Test, |$a:ident: $A:ty, $b:ident: $B:ty| -> bool $body:block) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: |a, b, _scc| {
                let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
                (0, $body)
            },
            sources: [<$A as Value>::KIND, <$B as Value>::KIND],
            result: Kind::None,
            writes_scc: true,
        })
    };
    (@ $A:ty, None, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, Kind::None, $R, $writes, $run)
    };
    (@ $A:ty, $B:ty, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, <$B as Value>::KIND, $R, $writes, $run)
    };
    (@@ $a:expr, $b:expr, $R:ty, $writes:literal, $run:expr) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: $run,
            sources: [$a, $b],
            result: <$R as Value>::KIND,
            writes_scc: $writes,
        })
    };
}

pub(super) use scalar;

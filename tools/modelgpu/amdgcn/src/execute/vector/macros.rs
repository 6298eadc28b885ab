//! Makes vector operations from closures over one lane.

/// Makes a vector operation from a closure over one lane. The types give the kinds of the operands.
/// `Word` if nothing is wider than 32 bits, `Long` otherwise.
macro_rules! vector {
    ($size:ident, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::macros::bits!($size, first, lane));
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::macros::bits!($size, first, lane));
            let $b = <$B as Value>::from_bits($crate::execute::vector::macros::bits!($size, second, lane));
            $body
        })
    };
    ($size:ident, |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        vector!(@ $size, [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits($crate::execute::vector::macros::bits!($size, first, lane));
            let $b = <$B as Value>::from_bits($crate::execute::vector::macros::bits!($size, second, lane));
            let $c = <$C as Value>::from_bits($crate::execute::vector::macros::bits!($size, third, lane));
            $body
        })
    };
    (
        @ Word, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Words {
            run: $crate::execute::vector::macros::words!($R, |$first, $second, $third, $lane| $body),
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
    (
        @ Long, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Longs {
            run: $crate::execute::simd::leveled!(|
                $first: $crate::execute::simd::Wide<'_>,
                $second: $crate::execute::simd::Wide<'_>,
                $third: $crate::execute::simd::Wide<'_>,
                results: &mut [$crate::lanes::Words; 4]
            | -> () {
                for $lane in 0..LANES {
                    let result: $R = $body;
                    $crate::execute::vector::macros::put_bits!($R, results, $lane, result);
                }
            }),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
}

/// The bits of a source in a lane.
macro_rules! bits {
    (Word, $source:ident, $lane:ident) => {
        u64::from($source[$lane])
    };
    (Long, $source:ident, $lane:ident) => {
        $source.bits($lane)
    };
}

/// Sets a result of up to 64 bits in a lane.
macro_rules! put_bits {
    ($R:ty, $results:ident, $lane:ident, $result:expr) => {
        let bits = <$R as Value>::to_bits($result);
        $results[0][$lane] = bits as u32;
        if const { <$R as Value>::KIND.is_long() } {
            $results[1][$lane] = (bits >> 32) as u32;
        }
    };
}

/// A function of words from a block over one lane.
macro_rules! words {
    ($R:ty, |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block) => {
        $crate::execute::simd::leveled!(|$first: &$crate::lanes::Words,
                                         $second: &$crate::lanes::Words,
                                         $third: &$crate::lanes::Words,
                                         results: &mut $crate::lanes::Words|
         -> () {
            for $lane in 0..LANES {
                let result: $R = $body;
                results[$lane] = <$R as Value>::to_bits(result) as u32;
            }
        })
    };
}

/// Makes a vector operation with a carry. The closure's last argument is the lane's carry in (false
/// without one). Its second result is the carry out (ignored without one).
macro_rules! carry {
    (
        $direction:ident,
        |$a:ident: $A:ty, $b:ident: $B:ty, $in:ident: bool| -> ($R:ty, bool) $body:block
    ) => {
        carry!(@ $direction, [$A, $B], $R, |first, second, third, lane, $in| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            $body
        })
    };
    (
        $direction:ident,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $in:ident: bool|
            -> ($R:ty, bool) $body:block
    ) => {
        carry!(@ $direction, [$A, $B, $C], $R, |first, second, third, lane, $in| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            let $c = <$C as Value>::from_bits(third.bits(lane));
            $body
        })
    };
    (
        @ $direction:ident, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::macros::carries!($R, |$first, $second, $third, $lane, $in| $body),
            clamped: None,
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
}

/// A function with a carry from a block over one lane, which gives the result and the carry.
macro_rules! carries {
    (
        $R:ty, |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        $crate::execute::simd::leveled!(|$first: $crate::execute::simd::Wide<'_>,
                                         $second: $crate::execute::simd::Wide<'_>,
                                         $third: $crate::execute::simd::Wide<'_>,
                                         carry: &$crate::lanes::Words,
                                         results: &mut [$crate::lanes::Words; 4],
                                         out: &mut $crate::lanes::Words|
         -> () {
            for $lane in 0..LANES {
                let $in = carry[$lane] != 0;
                let (result, carry): ($R, bool) = $body;
                $crate::execute::vector::macros::put_bits!($R, results, $lane, result);
                out[$lane] = 0u32.wrapping_sub(carry.into());
            }
        })
    };
}

/// Makes an integer operation of at most 32 bits from a closure that gives the exact result. The
/// result wraps to its type, or saturates with the clamp modifier.
macro_rules! exact {
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first[lane].into());
            let $b = <$B as Value>::from_bits(second[lane].into());
            $body
        })
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {
        exact!(@ [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first[lane].into());
            let $b = <$B as Value>::from_bits(second[lane].into());
            let $c = <$C as Value>::from_bits(third[lane].into());
            $body
        })
    };
    (
        @ $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Words {
            run: $crate::execute::vector::macros::words!($R, |$first, $second, $third, $lane| {
                let exact: i64 = $body;
                exact as $R
            }),
            clamped: Some($crate::execute::vector::macros::words!($R, |$first, $second, $third, $lane| {
                let exact: i64 = $body;
                exact.clamp(<$R>::MIN.into(), <$R>::MAX.into()) as $R
            })),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
        })
    };
}

/// Makes an integer operation with a carry from a closure that gives the exact result as a number
/// of the preceding type. The carry out reports that the result's type cannot hold it.
macro_rules! exact_carry {
    (
        $direction:ident, $exact:ty,
        |$a:ident: $A:ty, $b:ident: $B:ty, $in:ident: bool| -> $R:ty $body:block
    ) => {
        exact_carry!(
            @operation $direction, $exact, [$A, $B], $R,
            |first, second, third, lane, $in| {
                let $a = <$A as Value>::from_bits(first.bits(lane));
                let $b = <$B as Value>::from_bits(second.bits(lane));
                $body
            }
        )
    };
    (
        $direction:ident, $exact:ty,
        |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block
    ) => {
        exact_carry!(
            @operation $direction, $exact, [$A, $B, $C], $R,
            |first, second, third, lane, _carry| {
                let $a = <$A as Value>::from_bits(first.bits(lane));
                let $b = <$B as Value>::from_bits(second.bits(lane));
                let $c = <$C as Value>::from_bits(third.bits(lane));
                $body
            }
        )
    };
    (
        @operation $direction:ident, $exact:ty, $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident, $in:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::macros::carries!($R, |$first, $second, $third, $lane, $in| {
                let exact: $exact = $body;
                let fits = exact >= <$R>::MIN.into() && exact <= <$R>::MAX.into();
                (exact as $R, !fits)
            }),
            clamped: Some($crate::execute::vector::macros::carries!($R, |$first, $second, $third, $lane, $in| {
                let exact: $exact = $body;
                let fits = exact >= <$R>::MIN.into() && exact <= <$R>::MAX.into();
                (exact.clamp(<$R>::MIN.into(), <$R>::MAX.into()) as $R, !fits)
            })),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::$direction,
        })
    };
}

/// Makes a multiply-add of 64 bits from a closure that gives the sum, whether it overflows, and its
/// limit then: the result with the clamp modifier.
macro_rules! wide_sum {
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> ($R:ty, bool, $L:ty) $body:block) => {
        wide_sum!(@ [$A, $B, $C], $R, |first, second, third, lane| {
            let $a = <$A as Value>::from_bits(first.bits(lane));
            let $b = <$B as Value>::from_bits(second.bits(lane));
            let $c = <$C as Value>::from_bits(third.bits(lane));
            $body
        })
    };
    (
        @ $types:tt, $R:ty,
        |$first:ident, $second:ident, $third:ident, $lane:ident| $body:block
    ) => {
        Operation::Vector(VectorOperation::Carry {
            run: $crate::execute::vector::macros::carries!(
                $R,
                |$first, $second, $third, $lane, _carry| {
                    let (sum, overflows, _) = $body;
                    (sum, overflows)
                }
            ),
            clamped: Some($crate::execute::vector::macros::carries!(
                $R,
                |$first, $second, $third, $lane, _carry| {
                    let (sum, overflows, limit) = $body;
                    (if overflows { limit } else { sum }, overflows)
                }
            )),
            sources: kinds!($types),
            result: <$R as Value>::KIND,
            direction: CarryDirection::Out,
        })
    };
}

/// The operand kinds of one to three types.
macro_rules! kinds {
    ([$A:ty]) => {
        [<$A as Value>::KIND, Kind::None, Kind::None]
    };
    ([$A:ty, $B:ty]) => {
        [<$A as Value>::KIND, <$B as Value>::KIND, Kind::None]
    };
    ([$A:ty, $B:ty, $C:ty]) => {
        [
            <$A as Value>::KIND,
            <$B as Value>::KIND,
            <$C as Value>::KIND,
        ]
    };
}

pub(super) use {
    bits, carries, carry, exact, exact_carry, kinds, put_bits, vector, wide_sum, words,
};

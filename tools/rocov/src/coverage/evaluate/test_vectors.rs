//! The values that the conditions of a decision had together, from the bits of the function's bitmap.
//!
//! A decision looks at its conditions in an order that depends on their values. Each way through them has a
//! bit. Raw profiles from version 10 on number the ways: conditions and ends are visited breadth first, each
//! end has as many bits as ways lead to its last condition, and ends of many ways come first. In version 9, the
//! number of a bit has a binary digit for each condition, 1 for true.

use std::cmp::Reverse;
use std::collections::VecDeque;

use thiserror::Error;

use super::decisions::Condition;
use crate::coverage::function::{DecisionOutcome, Vector};

/// The most ways through a decision. `a && b || c && d || ...` has 16382 ways with 26 conditions.
pub(super) const MAX_WAYS: u64 = 1 << 14;

/// The numbering of the bits of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// By the values of the conditions: raw version 9.
    Values,
    /// By ways: raw version 10 and later.
    Ways,
}

/// The reason why a decision cannot be evaluated.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum DecisionError {
    /// The order of the conditions makes no sense.
    #[error("its conditions lead nowhere or in a circle")]
    Order,
    /// There are too many ways.
    #[error("there are more than {MAX_WAYS} paths through its conditions")]
    Ways,
    /// A bit lies beyond the bitmap.
    #[error("its bits are not in the bitmap")]
    Bitmap,
}

/// Returns whether there are so many ways through the conditions of a decision that rocov leaves it out.
pub(super) fn has_too_many_ways(conditions: &[Condition]) -> bool {
    matches!(Ways::new(conditions), Err(DecisionError::Ways))
}

/// The outcome of the decision with these conditions, whose place in `bitmap` is `place`. No condition ran if
/// there is no bitmap.
pub(super) fn outcome(
    conditions: &[Condition],
    place: u32,
    bitmap: Option<(&[u8], Numbering)>,
) -> Result<DecisionOutcome, DecisionError> {
    let ways = Ways::new(conditions)?;
    let mut vectors: Vec<TestVector> = Vec::new();
    if let Some((bytes, numbering)) = bitmap {
        ways.for_each(|way, values, result| {
            let bit = match numbering {
                Numbering::Values => digits(values)?.checked_add(8 * u64::from(place)),
                Numbering::Ways => u64::from(place)
                    .checked_sub(ways.number)
                    .map(|number| number + way),
            }?;
            let byte = bytes.get(usize::try_from(bit / 8).ok()?)?;
            if byte & (1 << (bit % 8)) != 0 {
                vectors.push((result, way, values.clone()));
            }
            Some(())
        })?;
    }
    // llvm-cov has those first that end with false, then the order of the ways.
    vectors.sort_unstable();
    let falses = vectors.partition_point(|(result, ..)| !result);
    let trues = vectors.len() - falses;
    let decides = deciding(vectors.split_at(falses), conditions.len());
    let numbers = || {
        conditions
            .iter()
            .map(|condition| usize::from(condition.number))
    };
    let vectors = vectors.iter().map(|(result, _, values)| Vector {
        conditions: numbers().map(|number| values[number]).collect(),
        executed: true,
        result: *result,
    });
    Ok(DecisionOutcome {
        branch: [trues as u64, falses as u64],
        covered: numbers().map(|number| decides[number]).collect(),
        vectors: Some(vectors.collect()),
    })
}

/// The values of the conditions, by their numbers. `None` for one that was not looked at.
type Values = Vec<Option<bool>>;

/// The result of a way that was taken, its number, and the values on it.
type TestVector = (bool, u64, Values);

/// The number whose binary digits are the values, that of condition 0 last. `None` if it is too large.
fn digits(values: &Values) -> Option<u64> {
    let mut digits = values
        .iter()
        .rev()
        .map(|value| u64::from(*value == Some(true)));
    digits.try_fold(0_u64, |number, digit| {
        number.checked_mul(2)?.checked_add(digit)
    })
}

/// For each condition, by its number: true if two vectors, one that ends with false and one that ends with
/// true, show that it decides by itself.
fn deciding((falses, trues): (&[TestVector], &[TestVector]), conditions: usize) -> Vec<bool> {
    let mut decides = vec![false; conditions];
    for (_, _, a) in trues {
        for (_, _, b) in falses {
            let both = a.iter().zip(b).enumerate();
            let mut differing = both.filter(|(_, (a, b))| a.is_some() && b.is_some() && a != b);
            if let (Some((condition, _)), None) = (differing.next(), differing.next()) {
                decides[condition] = true;
            }
        }
    }
    decides
}

/// The ways through the conditions of a decision.
struct Ways {
    /// For each condition, by its number, what false and true lead to.
    next: Vec<[Option<usize>; 2]>,
    /// The part of false and true in the number of a way.
    part: Vec<[u64; 2]>,
    /// The number of ways.
    number: u64,
}

impl Ways {
    fn new(conditions: &[Condition]) -> Result<Self, DecisionError> {
        let len = conditions.len();
        let mut next = vec![[None; 2]; len];
        let mut before = vec![0_usize; len];
        for condition in conditions {
            let sides = condition.next.map(|next| next.map(usize::from));
            for inner in sides.iter().flatten() {
                *before.get_mut(*inner).ok_or(DecisionError::Order)? += 1;
            }
            // The numbers of the conditions of a decision are all different, and below their number.
            next[usize::from(condition.number)] = sides;
        }
        let mut part = vec![[0; 2]; len];
        let mut width = vec![0_u64; len];
        let mut ends = Vec::new();
        let mut queue = VecDeque::new();
        if before.first() == Some(&0) {
            width[0] = 1;
            queue.push_back(0);
        }
        let mut visited = 0;
        while let Some(condition) = queue.pop_front() {
            visited += 1;
            for side in 0..2 {
                let Some(inner) = next[condition][side] else {
                    ends.push((Reverse(width[condition]), ends.len(), condition, side));
                    continue;
                };
                part[condition][side] = width[inner];
                width[inner] += width[condition];
                if width[inner] > MAX_WAYS {
                    return Err(DecisionError::Ways);
                }
                before[inner] -= 1;
                if before[inner] == 0 {
                    queue.push_back(inner);
                }
            }
        }
        // A circle is never ready to be visited.
        if visited < len {
            return Err(DecisionError::Order);
        }
        ends.sort_unstable();
        let mut number = 0;
        for (Reverse(width), _, condition, side) in ends {
            part[condition][side] = number;
            number += width;
        }
        match number {
            number if number > MAX_WAYS => Err(DecisionError::Ways),
            number => Ok(Self { next, part, number }),
        }
    }

    /// Gives each way to `take`: its number, the values of the conditions on it, and the result at its end.
    /// `take` returns `None` if the bitmap has no such way.
    fn for_each(
        &self,
        mut take: impl FnMut(u64, &Values, bool) -> Option<()>,
    ) -> Result<(), DecisionError> {
        let mut values: Values = vec![None; self.next.len()];
        // The conditions of the way up to here, each with the number of the way before it.
        let mut way = vec![(0, 0)];
        while let Some((condition, before)) = way.last().copied() {
            let value: bool = match values[condition] {
                None => false,
                Some(false) => true,
                Some(true) => {
                    values[condition] = None;
                    way.pop();
                    continue;
                }
            };
            values[condition] = Some(value);
            let side = usize::from(value);
            let number = before + self.part[condition][side];
            match self.next[condition][side] {
                Some(inner) => way.push((inner, number)),
                None => take(number, &values, value).ok_or(DecisionError::Bitmap)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conditions with these next ones, for false and for true.
    fn conditions(next: &[[Option<u16>; 2]]) -> Vec<Condition> {
        let numbered = (0_u16..).zip(next);
        let conditions = numbered.map(|(number, next)| Condition {
            number,
            next: *next,
            is_folded: false,
        });
        conditions.collect()
    }

    fn result(next: &[[Option<u16>; 2]], place: u32, bytes: &[u8]) -> Result<(), DecisionError> {
        let bitmap = Some((bytes, Numbering::Ways));
        outcome(&conditions(next), place, bitmap).map(drop)
    }

    #[test]
    fn two_vectors_show_that_a_condition_decides() {
        // a && b: the ways are false, true and false, and true and true.
        let both = conditions(&[[None, Some(1)], [None, None]]);
        let decided = |bits: u8| {
            let outcome = outcome(&both, 3, Some((&[bits], Numbering::Ways))).unwrap();
            (outcome.branch, outcome.covered)
        };
        assert_eq!(decided(0b000), ([0, 0], vec![false, false]));
        assert_eq!(decided(0b101), ([1, 1], vec![true, false]));
        assert_eq!(decided(0b110), ([1, 1], vec![false, true]));
        assert_eq!(decided(0b111), ([1, 2], vec![true, true]));
        // In version 9, a has the digit 1 and b the digit 2. The place is a byte.
        let bitmap = [0, 0b1010];
        let old = outcome(&both, 1, Some((&bitmap, Numbering::Values))).unwrap();
        assert_eq!((old.branch, old.covered), ([1, 1], vec![false, true]));
        let never = outcome(&both, 3, None).unwrap();
        assert_eq!(never.vectors, Some(Vec::new()));
    }

    #[test]
    fn damaged_decisions_are_errors() {
        let both = [[None, Some(1)], [None, None]];
        assert_eq!(result(&both, 3, &[0]), Ok(()));
        assert_eq!(result(&both, 2, &[0]), Err(DecisionError::Bitmap));
        assert_eq!(result(&both, 10, &[0]), Err(DecisionError::Bitmap));
        for next in [
            &[[None, Some(1)], [None, Some(0)]][..],
            &[[None, Some(1)], [None, Some(1)]],
            &[[None, Some(2)], [None, None]],
            &[[None, None], [None, None]],
        ] {
            assert_eq!(result(next, 3, &[0]), Err(DecisionError::Order), "{next:?}");
        }
        // Each condition doubles the number of ways.
        let mut many: Vec<_> = (1..40).map(|next| [Some(next); 2]).collect();
        many.push([None; 2]);
        assert_eq!(result(&many, 3, &[0]), Err(DecisionError::Ways));
        assert!(has_too_many_ways(&conditions(&many)));
        assert!(!has_too_many_ways(&conditions(&both)));
    }
}

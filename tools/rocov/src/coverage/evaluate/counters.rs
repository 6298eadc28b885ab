//! The values of a function's counters and expressions.

use rocov::format::codeobject::{Counter, Expression};

/// The largest count. llvm-cov writes it for a larger or negative one: JSON holds signed numbers only.
const LARGEST: u64 = i64::MAX as u64;

/// The counters of a function, and its expressions.
pub(super) struct Counters<'a> {
    /// `None` for a function without counts: then each counter is 0.
    counters: Option<&'a [u64]>,
    expressions: &'a [Expression],
    /// The values of both sides of each expression.
    sides: Vec<Sides>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// Not needed yet.
    Unknown,
    /// Other expressions are needed first.
    Open,
    /// `None` if an expression is damaged.
    Known(Option<[i64; 2]>),
}

impl<'a> Counters<'a> {
    pub(super) fn new(counters: Option<&'a [u64]>, expressions: &'a [Expression]) -> Self {
        Self {
            counters,
            expressions,
            sides: vec![Sides::Unknown; expressions.len()],
        }
    }

    /// The count of a counter. `None` if it is damaged: the function has no such counter, or an expression
    /// contains itself.
    pub(super) fn count(&mut self, counter: Counter) -> Option<u64> {
        if let Some(number) = expression(counter) {
            self.compute(number);
        }
        let value = self.value(counter)?;
        Some(value.cast_unsigned().min(LARGEST))
    }

    /// Computes the sides of an expression, after those of all expressions in it. Each is computed once, so
    /// an expression that repeats another many times takes no longer.
    fn compute(&mut self, number: usize) {
        let mut needed = vec![number];
        while let Some(number) = needed.last().copied() {
            let Some([left, right]) = self.expressions.get(number).copied() else {
                return;
            };
            match self.sides[number] {
                Sides::Unknown => {
                    self.sides[number] = Sides::Open;
                    let inner = [left, right].into_iter().filter_map(expression);
                    // An open one contains this one, which is damage.
                    let is_unknown =
                        |counter: &usize| self.sides.get(*counter) == Some(&Sides::Unknown);
                    needed.extend(inner.filter(is_unknown));
                }
                Sides::Open => {
                    let sides = self.value(left).zip(self.value(right));
                    self.sides[number] = Sides::Known(sides.map(Into::into));
                }
                Sides::Known(_) => _ = needed.pop(),
            }
        }
    }

    /// The value of a counter. The expression in it must be computed.
    fn value(&self, counter: Counter) -> Option<i64> {
        let sides = |number: u32| match self.sides.get(number as usize)? {
            Sides::Known(sides) => *sides,
            Sides::Unknown | Sides::Open => None,
        };
        match counter {
            Counter::Zero => Some(0),
            Counter::Value(number) => match self.counters {
                Some(counters) => counters
                    .get(number as usize)
                    .map(|counter| counter.cast_signed()),
                None => Some(0),
            },
            Counter::Sum(number) => sides(number).map(|[left, right]| left.wrapping_add(right)),
            Counter::Difference(number) => {
                sides(number).map(|[left, right]| left.wrapping_sub(right))
            }
        }
    }
}

/// The number of the expression of a counter, if it has one.
fn expression(counter: Counter) -> Option<usize> {
    match counter {
        Counter::Zero | Counter::Value(_) => None,
        Counter::Sum(number) | Counter::Difference(number) => Some(number as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_sums_and_differences() {
        let [one, two] = [0, 1].map(Counter::Value);
        let expressions = [
            [one, two],
            [Counter::Difference(0), Counter::Sum(0)],
            [Counter::Zero, one],
        ];
        let mut counters = Counters::new(Some(&[7, 5]), &expressions);
        for (counter, count) in [
            (Counter::Zero, 0),
            (two, 5),
            (Counter::Sum(1), 2 + 12),
            (Counter::Sum(0), 12),
            // Counters that were read while a kernel ran may contradict each other.
            (Counter::Difference(2), LARGEST),
        ] {
            assert_eq!(counters.count(counter), Some(count), "{counter:?}");
        }
        let mut without = Counters::new(None, &expressions);
        assert_eq!(without.count(Counter::Sum(1)), Some(0));
    }

    #[test]
    fn damaged_expressions_have_no_count() {
        let expressions = [
            [Counter::Sum(1), Counter::Zero],
            [Counter::Zero, Counter::Sum(0)],
            [Counter::Value(9), Counter::Zero],
        ];
        let mut counters = Counters::new(Some(&[1]), &expressions);
        for number in 0..4 {
            assert_eq!(counters.count(Counter::Sum(number)), None, "{number}");
        }
        assert_eq!(counters.count(Counter::Value(0)), Some(1));
    }

    #[test]
    fn an_expression_in_many_others_is_computed_once() {
        let mut expressions = vec![[Counter::Value(0); 2]];
        expressions.extend((0..60).map(|number| [Counter::Sum(number); 2]));
        let mut counters = Counters::new(Some(&[1]), &expressions);
        assert_eq!(counters.count(Counter::Sum(60)), Some(1 << 61));
        let mut deep = vec![[Counter::Value(0), Counter::Zero]];
        deep.extend((0..1_000_000).map(|number| [Counter::Sum(number), Counter::Zero]));
        let mut counters = Counters::new(Some(&[3]), &deep);
        assert_eq!(counters.count(Counter::Sum(1_000_000)), Some(3));
    }
}

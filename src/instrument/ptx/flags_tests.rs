//! Flags, named by hand, and those of random functions against ways that are tried out.

use std::collections::HashSet;
use std::fmt::Write;

use super::*;
use crate::format::ptx::Module;
use crate::format::ptx::statements::{Flow, StatementKind};
use crate::instrument::ptx::plan::{Plan, Space, Way};
use crate::support::counting::Counting;

const SPACE: Space = Space {
    is_memory: false,
    room: usize::MAX,
    plain: None,
};

const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n";

/// The blocks of each flag, and the block that sets it.
fn found(body: &str) -> Vec<(Vec<usize>, Option<usize>)> {
    let text = format!("{HEAD}{body}}}\n");
    let module = Module::parse(&text).unwrap();
    let function = &module.functions[0];
    let plan = Plan::new(function, &HashSet::new(), Counting::Reached, SPACE);
    for (number, flag) in plan.flags.iter().enumerate() {
        let way = flag.at.map(|at| plan.ways[at]);
        assert!(way.is_none_or(|way| way == Way::Flag(number)), "{body}");
    }
    plan.flags
        .into_iter()
        .map(|flag| (flag.blocks, flag.at))
        .collect()
}

#[test]
fn blocks_that_run_together_share_a_flag() {
    for (body, expected) in [
        ("ret;\n", vec![(vec![0], None)]),
        // An `if`.
        (
            "@%p bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n",
            vec![(vec![0, 2], None), (vec![1], Some(1))],
        ),
        // An `if` with `else`.
        (
            "@%p bra L;\nmov.u32 %r, 1;\nbra E;\nL:\nmov.u32 %r, 2;\nE:\nret;\n",
            vec![(vec![0, 3], None), (vec![1], Some(1)), (vec![2], Some(2))],
        ),
        // A loop that runs once at least, after a condition: nothing is set in the loop.
        (
            "@%p bra E;\nmov.u32 %r, 1;\nL:\nadd.u32 %r, %r, 1;\n@%q bra L;\nE:\nret;\n",
            vec![(vec![0, 3], None), (vec![1, 2], Some(1))],
        ),
        // An `if` in a loop.
        (
            "L:\n@%p bra M;\nadd.u32 %r, %r, 1;\nM:\n@%q bra L;\nret;\n",
            vec![(vec![0, 2, 3], None), (vec![1], Some(1))],
        ),
        // A thread may end before the rest.
        (
            "@%p exit;\nmov.u32 %r, 1;\nret;\n",
            vec![(vec![0], None), (vec![1], Some(1))],
        ),
        // A thread that stays in the loop records nothing, and all others run both ends.
        (
            "@%p bra E;\nL:\nbra L;\nE:\nret;\n",
            vec![(vec![0, 2], None), (vec![1], Some(1))],
        ),
    ] {
        assert_eq!(found(body), expected, "{body}");
    }
}

/// Flags show what a call of the function has run, along random ways.
#[test]
fn flags_of_random_functions_tell_what_ran() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let (mut ends, mut shared, mut all) = (0, 0, 0);
    for turn in 0..600 {
        let count = 3 + below(9);
        let mut body = String::new();
        for block in 0..count {
            let _ = write!(body, "L{block}:\nmov.u32 %r1, 1;\n");
            body.push_str(&match below(9) {
                0..5 => format!("@%p bra L{};\n", below(count)),
                5 => format!("@%p bra L{};\nbra L{};\n", below(count), below(count)),
                6 => format!("bra L{};\n", below(count)),
                7 => "@%p ret;\n".into(),
                _ => "call f, ();\n".into(),
            });
        }
        let text = format!(
            ".version 8.8\n.target sm_90\n.address_size 64\n.func f()\n{{\n@%p exit;\nret;\n}}\n.entry k()\n{{\n{body}ret;\n}}\n"
        );
        let module = Module::parse(&text).unwrap();
        let function = &module.functions[1];
        // The callee ends no thread, or any of them.
        let may_end = turn % 2 == 0;
        let ending: HashSet<&str> = may_end.then_some("f").into_iter().collect();
        let plan = Plan::new(function, &ending, Counting::Reached, SPACE);
        all += function.body.blocks.spans.len();
        shared += function.body.blocks.spans.len() - plan.flags.len();
        for _ in 0..12 {
            let Some(ran) = walk(function, may_end, &mut below) else {
                continue;
            };
            ends += 1;
            for flag in &plan.flags {
                let is_set = flag.at.is_none_or(|at| ran.contains(&at));
                for block in &flag.blocks {
                    assert_eq!(ran.contains(block), is_set, "block {block} of\n{text}");
                }
            }
        }
    }
    assert!(
        ends > 2000 && shared > 1000 && all > 4000,
        "{ends} {shared} {all}"
    );
}

/// The blocks of a random way to an end. `None` if it is too long.
fn walk(
    function: &PtxFunction<'_>,
    may_end: bool,
    below: &mut impl FnMut(usize) -> usize,
) -> Option<HashSet<usize>> {
    let blocks = &function.body.blocks;
    let mut ran = HashSet::new();
    let mut block = 0;
    for _ in 0..400 {
        ran.insert(block);
        let span = blocks.spans[block];
        let mut to = Some(block + 1);
        for number in span.first..=span.last {
            let StatementKind::Instruction(it) = &function.body.statements.all[number].kind else {
                continue;
            };
            if it.is_guarded && below(2) == 0 {
                continue;
            }
            match it.flow {
                Flow::Branch { .. } => {
                    to = blocks.ways[&number][0];
                    break;
                }
                Flow::Return | Flow::Exit => return Some(ran),
                Flow::Call { .. } if may_end && below(2) == 0 => return Some(ran),
                _ => {}
            }
        }
        match to.filter(|to| *to < blocks.spans.len()) {
            Some(next) => block = next,
            None => return Some(ran),
        }
    }
    None
}

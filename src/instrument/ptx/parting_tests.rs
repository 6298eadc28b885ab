//! Exits that are apart, named by hand, and those of random functions against ways that are tried out.

use std::collections::HashSet;

use super::*;
use crate::format::ptx::Module;

const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n";

/// The lines of the body whose statements have an exit of their own.
fn apart_lines(body: &str) -> Vec<usize> {
    let text = format!("{HEAD}{body}}}\n");
    let module = Module::parse(&text).unwrap();
    let function = &module.functions[0];
    let lines = apart(function).into_iter();
    let mut lines: Vec<usize> = lines
        .map(|number| function.body.statements.all[number].line - 6)
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn threads_that_others_may_wait_for_leave_apart() {
    for (body, expected) in [
        // None waits.
        ("@%p bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n", &[][..]),
        // An early return before a barrier, and an `if` at the end, whose lanes meet.
        (
            "@%p bra E;\nbar.sync 0;\n@%q bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n",
            &[0],
        ),
        // Each turn of a loop has a barrier.
        ("L:\nbar.sync 0;\n@%p bra E;\nbra L;\nE:\nret;\n", &[2]),
        // The first turn meets no barrier any more.
        (
            "bar.sync 0;\nL:\n@%p bra E;\n@%q bra L;\n@%r ret;\nE:\nret;\n",
            &[],
        ),
        // Cold code past the end.
        (
            "@%p bra C;\nshfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n@%q ret;\nret;\nC:\nst.global.u32 [%a], 1;\nret;\n",
            &[6],
        ),
        // Both sides wait.
        (
            "@%p bra C;\nbar.sync 0;\nret;\nC:\nbar.sync 1;\nret;\n",
            &[2, 5],
        ),
        // They meet before the barrier.
        (
            "@%p bra C;\nst.global.u32 [%a], 1;\nC:\nbar.sync 0;\n@%q ret;\nret;\n",
            &[],
        ),
    ] {
        assert_eq!(apart_lines(body), expected, "{body}");
    }
}

/// Returns whether a thread comes from a block to one of `targets` without coming to `left_out`.
fn comes(next: &[Vec<usize>], from: usize, targets: &[usize], left_out: usize) -> bool {
    let mut known = HashSet::from([left_out]);
    let mut left = vec![from];
    while let Some(block) = left.pop() {
        if known.insert(block) {
            left.extend(&next[block]);
        }
    }
    from != left_out
        && targets
            .iter()
            .any(|target| *target != left_out && known.contains(target))
}

/// If two threads part, and one comes to the common exit while the other may wait, then there is a block that they both
/// come to first: without it, there is no way out.
#[test]
fn no_thread_waits_at_a_common_exit() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound) as usize
    };
    let (mut common, mut own) = (0, 0);
    for _ in 0..600 {
        let count = 3 + below(7);
        let mut body = String::new();
        for block in 0..count {
            body.push_str(&format!("L{block}:\n"));
            body.push_str(["mov.u32 %r1, 1;\n", "bar.sync 0;\n"][usize::from(below(5) == 0)]);
            body.push_str(&match below(8) {
                0..4 => format!("@%p bra L{};\n", below(count as u64)),
                4 => format!("bra L{};\n", below(count as u64)),
                5 => "@%p ret;\n".into(),
                6 => "ret;\n".into(),
                _ => String::new(),
            });
        }
        let text = format!("{HEAD}{body}ret;\n}}\n");
        let module = Module::parse(&text).unwrap();
        let function = &module.functions[0];
        let Some(ways) = Ways::new(function) else {
            continue;
        };
        let apart = apart(function);
        let outside = ways.outside();
        let is_common = |block: usize| ways.exits[block].iter().any(|exit| !apart.contains(exit));
        let leaving: Vec<usize> = (0..outside).filter(|block| is_common(*block)).collect();
        let spans = &function.body.blocks.spans;
        let waiting: Vec<usize> = (0..outside)
            .filter(|block| {
                let own = spans[*block].first..=spans[*block].last;
                function
                    .instructions()
                    .any(|(number, _, instruction)| own.contains(&number) && waits(instruction))
            })
            .collect();
        (common, own) = (common + leaving.len(), own + apart.len());
        for (block, next) in ways.next.iter().enumerate() {
            for (one, other) in next
                .iter()
                .flat_map(|one| next.iter().map(move |other| (one, other)))
            {
                // One thread leaves by a way of its own, or continues, and the other continues.
                let leaves = match *one == outside {
                    true => is_common(block),
                    false => comes(&ways.next, *one, &leaving, usize::MAX),
                };
                if one == other || !leaves || !comes(&ways.next, *other, &waiting, usize::MAX) {
                    continue;
                }
                let meet = (0..outside)
                    .filter(|other| *other != block)
                    .any(|other| !comes(&ways.next, block, &[outside], other));
                assert!(meet, "block {block}: {one} and {other} of\n{text}");
            }
        }
    }
    assert!(common > 500 && own > 300, "{common} {own}");
}

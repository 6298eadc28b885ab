//! Exits that are apart, named by hand, and those of random functions against ways that are tried out.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::format::ptx::Module;

const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n";

/// The lines of the body whose statements do not leave by the common exit: those that leave together, each with its number, and
/// those that leave alone.
fn apart_lines(body: &str) -> Vec<Vec<usize>> {
    let text = format!("{HEAD}{body}}}\n");
    let module = Module::parse(&text).unwrap();
    let function = &module.functions[0];
    let mut found: Vec<Vec<usize>> = Vec::new();
    for exit in exits(&apart(function)) {
        let lines = exit
            .iter()
            .map(|number| function.body.statements.all[*number].line - 6);
        let mut lines: Vec<usize> = lines.collect();
        lines.sort_unstable();
        found.push(lines);
    }
    found.sort_unstable();
    found
}

/// The statements of each exit that is not the common one.
fn exits(apart: &HashMap<usize, Exits>) -> Vec<Vec<usize>> {
    let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
    for (statement, exits) in apart {
        let number = match exits {
            Exits::Of(number) => *number,
            Exits::Alone => apart.len() + statement,
            Exits::Common => panic!("{statement} is not apart"),
        };
        found.entry(number).or_default().push(*statement);
    }
    found.into_values().collect()
}

#[test]
fn threads_that_others_may_wait_for_leave_apart() {
    for (body, expected) in [
        // None waits.
        ("@%p bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n", &[][..]),
        // An early return before a barrier, and an `if` at the end, whose lanes meet.
        (
            "@%p bra E;\nbar.sync 0;\n@%q bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n",
            &[&[0][..]][..],
        ),
        // Each turn of a loop has a barrier.
        ("L:\nbar.sync 0;\n@%p bra E;\nbra L;\nE:\nret;\n", &[&[2]]),
        // The first turn meets no barrier any more.
        (
            "bar.sync 0;\nL:\n@%p bra E;\n@%q bra L;\n@%r ret;\nE:\nret;\n",
            &[],
        ),
        // Cold code past the end.
        (
            "@%p bra C;\nshfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n@%q ret;\nret;\nC:\nst.global.u32 [%a], 1;\nret;\n",
            &[&[6]],
        ),
        // Both sides wait.
        (
            "@%p bra C;\nbar.sync 0;\nret;\nC:\nbar.sync 1;\nret;\n",
            &[&[2], &[5]],
        ),
        // The exits of each side are one.
        (
            "@%p bra C;\nbar.sync 0;\n@%q bra E;\nst.global.u32 [%a], 1;\nbra E;\nC:\nbar.sync 1;\n@%q ret;\nret;\nE:\nret;\n",
            &[&[2, 4], &[7, 8]],
        ),
        // Threads of both sides come to the last exit.
        (
            "@%p bra C;\nbar.sync 0;\n@%q bra D;\nret;\nC:\nbar.sync 1;\n@%q ret;\nD:\nmov.u32 %r1, 1;\nret;\n",
            &[&[3], &[6], &[9]],
        ),
        // Two entries of a table lead to one block, whose threads meet those that left by another way.
        (
            "@%p bra X;\nbar.sync 0;\nT:\n.branchtargets L, A, L;\nbrx.idx %r1, T;\nA:\nmov.u32 %r1, 1;\nret;\nL:\nret;\nX:\nmov.u32 %r1, 2;\nret;\n",
            &[&[12]],
        ),
        // Those that do not wait have two exits.
        (
            "@%p bra C;\nbar.sync 0;\nret;\nC:\n@%q ret;\nmov.u32 %r1, 1;\nret;\n",
            &[&[4, 6]],
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

/// Two threads part, one of them comes to the common exit, and the other may wait: then there is a block that they both come
/// to first. Without it, there is no way out. Threads that both come to an exit of several statements have such a block, too.
#[test]
fn no_thread_waits_at_a_common_exit() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound) as usize
    };
    let (mut common, mut own, mut together) = (0, 0, 0);
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
        let all = ways.exits.iter().flatten().copied();
        let of_all: Vec<usize> = all.filter(|exit| !apart.contains_key(exit)).collect();
        let spans = &function.body.blocks.spans;
        let waiting: Vec<usize> = (0..outside)
            .filter(|block| {
                let own = spans[*block].first..=spans[*block].last;
                function
                    .instructions()
                    .any(|(number, _, instruction)| own.contains(&number) && waits(instruction))
            })
            .collect();
        let shared = exits(&apart).into_iter().filter(|exit| exit.len() > 1);
        let shared: Vec<Vec<usize>> = shared.collect();
        common += of_all.len();
        together += shared.iter().flatten().count();
        own += apart.len();
        for (exit, is_common) in shared
            .iter()
            .map(|exit| (exit, false))
            .chain([(&of_all, true)])
        {
            let is_of_exit = |block: usize| ways.exits[block].iter().any(|it| exit.contains(it));
            let leaving: Vec<usize> = (0..outside).filter(|block| is_of_exit(*block)).collect();
            for (block, next) in ways.next.iter().enumerate() {
                // A thread leaves by a way of its own, or continues.
                let leaves = |side: usize| match side == outside {
                    true => is_of_exit(block),
                    false => comes(&ways.next, side, &leaving, usize::MAX),
                };
                let pairs = next
                    .iter()
                    .flat_map(|one| next.iter().map(move |other| (*one, *other)));
                for (one, other) in pairs {
                    let may_wait = comes(&ways.next, other, &waiting, usize::MAX);
                    if one == other || !may_wait || !leaves(one) || !is_common && !leaves(other) {
                        continue;
                    }
                    let meet = (0..outside)
                        .filter(|other| *other != block)
                        .any(|other| !comes(&ways.next, block, &[outside], other));
                    assert!(meet, "block {block}: {one} and {other} of\n{text}");
                }
            }
        }
    }
    assert!(
        common > 500 && own > 300 && together > 10,
        "{common} {own} {together}"
    );
}

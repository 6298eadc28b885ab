//! The registers of loops that are written by hand, and where they are checked.

use super::*;
use crate::format::ptx::Module;

/// The widths of the registers that count these blocks and edges.
fn widths(body: &str, counted: &[[usize; 2]], room: usize) -> Widths {
    let room = Room {
        registers: room,
        is_for_wide: true,
    };
    widths_with(body, counted, room, |_| None)
}

/// The widths if `leader` is the register that counts a block.
fn widths_with(
    body: &str,
    counted: &[[usize; 2]],
    room: Room,
    leader: impl Fn(usize) -> Option<Slot>,
) -> Widths {
    let text =
        format!(".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{{\n{body}ret;\n}}\n");
    let module = Module::parse(&text).unwrap();
    let slots = counted.iter().enumerate();
    let slots: Vec<(Slot, [usize; 2])> = slots
        .map(|(number, blocks)| (Slot::Block(number), *blocks))
        .collect();
    Widths::new(&module.functions[0], &slots, leader, room)
}

/// The numbers of the registers that are checked at each head.
fn checks(widths: &Widths) -> Vec<(usize, Vec<usize>)> {
    let checks = widths.checks.iter().map(|(head, slots)| {
        let numbers = slots.iter().map(|slot| match slot {
            Slot::Block(number) | Slot::Edge(number) => *number,
        });
        (*head, numbers.collect())
    });
    checks.collect()
}

/// Blocks 1 to 5 are a loop, and 2 and 3 a loop in it.
const NESTED: &str = "mov.u32 %r, 0;\nA:\n@%p bra C;\nB:\n@%q bra D;\nmov.u32 %r, 1;\nD:\n@%p bra B;\n\
    C:\nmov.u32 %r, 2;\n@%q bra A;\n";

#[test]
fn a_register_is_checked_at_the_head_of_its_innermost_loop() {
    // The blocks: 0, A = 1, B = 2, 3, D = 4, C = 5, 6.
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [4, 5]];
    let found = widths(NESTED, &counted, 0);
    // The edge from the inner loop runs once in a turn of the outer one.
    assert_eq!(checks(&found), [(1, vec![0, 1, 4]), (2, vec![2, 3])]);
    assert_eq!(found.checked.len(), 5);
}

#[test]
fn registers_are_wide_if_there_is_room_or_few_share_a_loop() {
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [4, 5]];
    let roomy = widths(NESTED, &counted, 10);
    assert!(roomy.checks.is_empty() && (0..5).all(|number| roomy.is_wide(Slot::Block(number))));
    // Only one counter of the inner loop.
    let counted = [[1, 1], [5, 5], [2, 2], [1, 2], [4, 5]];
    let found = widths(NESTED, &counted, 9);
    assert_eq!(checks(&found), [(1, vec![0, 1, 3, 4])]);
    assert!(found.is_wide(Slot::Block(2)));
    assert_eq!(widths(NESTED, &counted[..4], 0).checks.len(), 0);
}

#[test]
fn a_loop_with_two_ways_in_is_checked_at_all_heads() {
    // A branch before A leads to B, so a thread may run B and D without A, and the inner loop is not closed.
    let body = NESTED.replace("mov.u32 %r, 0;\n", "@%p bra D;\n");
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [4, 5]];
    let found = widths(&body, &counted, 0);
    assert_eq!(
        checks(&found),
        [(1, vec![0, 1, 2, 3, 4]), (2, vec![2, 3, 4])]
    );
    // An edge that leaves all loops runs once at most.
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [5, 6]];
    let found = widths(NESTED, &counted, 0);
    assert!(!found.is_wide(Slot::Block(4)) && found.high(Slot::Block(4)).is_none());
}

#[test]
fn the_counter_of_the_head_shows_whether_others_of_its_loop_are_half_full() {
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [4, 5]];
    let room = Room {
        registers: 0,
        is_for_wide: true,
    };
    // The first register counts the head of the outer loop. That of the inner loop has none.
    let leader = |block: usize| (block == 1).then_some(Slot::Block(0));
    let found = widths_with(NESTED, &counted, room, leader);
    assert_eq!(checks(&found), [(1, vec![0, 1, 4]), (2, vec![2, 3])]);
    assert_eq!(found.tested[&1], [Slot::Block(0)]);
    assert_eq!(found.tested[&2], [Slot::Block(2), Slot::Block(3)]);
    let mut largest = found.largest;
    largest.sort_unstable();
    assert_eq!(largest, [0, 2, 3].map(Slot::Block));
    // A thread may come to the inner loop without its head, and the counter of a head shows nothing then.
    let body = NESTED.replace("mov.u32 %r, 0;\n", "@%p bra D;\n");
    let found = widths_with(&body, &counted, room, leader);
    assert_eq!(found.tested, found.checks);
}

#[test]
fn registers_are_narrow_if_fewer_threads_would_have_room() {
    let counted = [[1, 1], [5, 5], [2, 2], [3, 3], [4, 5]];
    let room = |is_for_wide| Room {
        registers: 10,
        is_for_wide,
    };
    let is_wide = |counted: &[[usize; 2]], is_for_wide| {
        widths_with(NESTED, counted, room(is_for_wide), |_| None).is_wide(Slot::Block(0))
    };
    assert!(is_wide(&counted, true) && !is_wide(&counted, false));
    // A check costs more than four wide registers.
    assert!(is_wide(&counted[..4], false));
}

#[test]
fn two_counts_share_a_register() {
    // Seven counts: the second one is the only one of the inner loop, and wide.
    let counted = [[1, 1], [2, 2], [5, 5], [1, 2], [4, 5], [1, 5], [5, 1]];
    let found = widths(NESTED, &counted, 0);
    let places = (0..7).map(|number| {
        let slot = Slot::Block(number);
        (found.name(slot), found.shift(slot))
    });
    let expected = [
        ("n0", 0),
        ("w1", 0),
        ("n0", 16),
        ("n1", 0),
        ("n1", 16),
        ("n2", 0),
        ("n2", 16),
    ];
    assert_eq!(
        Vec::from_iter(places),
        expected.map(|(name, shift)| (format!("%rocov_{name}"), shift))
    );
    let registers: Vec<(String, u32)> = found.registers().collect();
    let expected = [("w1", 64), ("n0", 32), ("n1", 32), ("n2", 32)];
    assert_eq!(
        registers,
        expected.map(|(name, bits)| (format!("%rocov_{name}"), bits))
    );
    let masks = found.masks(&[0, 1, 3, 4, 6].map(Slot::Block), 0xc000);
    assert_eq!(
        Vec::from_iter(masks),
        [(0, 0xc000), (1, 0xc000_c000), (2, 0xc000_0000)]
    );
}

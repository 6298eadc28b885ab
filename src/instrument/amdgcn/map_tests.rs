use super::*;

/// The value of one counter.
fn one(counter: usize) -> Sum {
    Sum {
        denominator: 1,
        terms: vec![(counter, 1)],
    }
}

/// The map of a function, of so many counters. The `sums` among them are sums of others.
fn encoded(function: &FunctionCounts, sums: &[(u64, u64)], counters: u64) -> Vec<u8> {
    let mut parts = MapParts::default();
    parts.add(function);
    for (counter, count) in sums {
        parts.add_sum(*counter, *count);
    }
    let mut bytes = Vec::new();
    parts.write(&mut bytes, 0x2000, counters);
    bytes
}

#[test]
fn counts_are_those_of_the_stretch_of_each_instruction() {
    // Words 0, 1 and 3 start instructions; the second stretch starts at word 1.
    let function = FunctionCounts {
        address: 0x100,
        words: 4,
        starts: vec![0, 1, 3],
        stretches: vec![
            StretchCounts {
                word: 0,
                waves: one(0),
                lanes: one(1),
            },
            StretchCounts {
                word: 1,
                waves: Sum {
                    denominator: 2,
                    terms: vec![(0, 4), (2, -2)],
                },
                lanes: one(2),
            },
        ],
    };
    let bytes = encoded(&function, &[], 3);
    let mut numbers = Numbers { all: &bytes, at: 0 };
    let head: Vec<u64> = (0..4).map(|_| numbers.next().expect("a number")).collect();
    assert_eq!(head, [MAP_VERSION, 0x2000, 3, 0]);
    assert_eq!(numbers.next().expect("a number"), 1);
    let (address, words) = (numbers.next(), numbers.next());
    let size = numbers.next().expect("a size");
    let body = numbers.bytes(size).expect("a function");
    let map = CounterMap {
        original: &[],
        address: 0x2000,
        counters: 3,
        spread: Vec::new(),
        functions: vec![Place {
            address: address.expect("an address"),
            words: words.expect("a size"),
            body,
        }],
    };
    let values = [5, 300, 3];
    let executed = map.executed(&values);
    let mut counts = [9; 12];
    executed.count(0x0f8, &mut counts).expect("a whole map");
    // Two words before the function, and 5 * 4 / 2 - 3 = 7 waves in the second stretch.
    assert_eq!(counts, [9, 9, 9, 9, 5, 300, 7, 3, 9, 9, 7, 3]);
}

#[test]
fn counters_that_are_sums_have_the_values_of_their_lanes() {
    let function = FunctionCounts {
        address: 0x100,
        words: 2,
        starts: vec![0, 1],
        stretches: vec![
            StretchCounts {
                word: 0,
                waves: one(0),
                lanes: one(1),
            },
            StretchCounts {
                word: 1,
                waves: one(5),
                lanes: one(6),
            },
        ],
    };
    // Counter 1 is the sum of four lanes, and counter 6 that of two.
    let bytes = encoded(&function, &[(1, 4), (6, 2)], 8);
    let map = CounterMap::new(&[], &bytes).expect("a whole map");
    let values = [1, 10, 20, 30, 40, 2, 100, 200];
    let mut counts = [0; 4];
    let executed = map.executed(&values);
    executed.count(0x100, &mut counts).expect("a whole map");
    assert_eq!(counts, [1, 100, 2, 300]);
}

#[test]
fn a_count_of_bits_is_whether_one_is_set() {
    let bits = |terms: &[(usize, i64)]| Sum {
        denominator: 0,
        terms: terms.to_vec(),
    };
    let stretch = |word: u64, waves: Sum, lanes: Sum| StretchCounts { word, waves, lanes };
    let function = FunctionCounts {
        address: 0x100,
        words: 3,
        starts: vec![0, 1, 2],
        stretches: vec![
            stretch(0, bits(&[(0, -1)]), bits(&[(0, -1), (1, 4)])),
            stretch(1, bits(&[(1, 1 << 31)]), bits(&[(1, 2), (2, 1)])),
            stretch(2, bits(&[(1, 5), (0, -1)]), bits(&[])),
        ],
    };
    let bytes = encoded(&function, &[], 3);
    let map = CounterMap::new(&[], &bytes).expect("a whole map");
    for (values, expected) in [
        ([0, 0, 0], [0, 0, 0, 0, 0, 0]),
        ([8192, 0, 0], [1, 1, 0, 0, 1, 0]),
        ([0, 1 << 31 | 2, 0], [0, 0, 1, 1, 0, 0]),
        ([0, 4, 3], [0, 1, 0, 1, 1, 0]),
    ] {
        let mut counts = [0; 6];
        let executed = map.executed(&values);
        executed.count(0x100, &mut counts).expect("a whole map");
        assert_eq!(counts, expected, "{values:?}");
    }
}

#[test]
fn damaged_maps_have_an_error() {
    let map = |numbers: &[u64]| {
        let mut bytes = Vec::new();
        for number in numbers {
            write_uleb128(&mut bytes, *number);
        }
        CounterMap::new(&[], &bytes).map(|_| ())
    };
    // No sum, and a function of one word without stretches.
    let head = [MAP_VERSION, 0x2000, 70];
    let whole = [&head[..], &[0, 1, 0x100, 1, 2, 1, 0]].concat();
    map(&whole).expect("a whole map");
    let sums: [&[u64]; 5] = [
        // Too many lanes, none, behind the last counter, twice the same, and within another one.
        &[1, 0, 65],
        &[1, 0, 0],
        &[1, 7, 64],
        &[2, 3, 4, 0, 4],
        &[2, 3, 4, 2, 4],
    ];
    for sums in sums {
        let damaged = [&head[..], sums, &[0]].concat();
        map(&damaged).expect_err("a damaged map");
    }
    map(&[&head[..], &[2, 3, 4, 4, 4], &[0]].concat()).expect("two sums");
    let functions: [[u64; 3]; 3] = [
        // More bytes than there are addresses, an end beyond them, and more words than bits.
        [0x100, 1 << 62, 2],
        [u64::MAX - 4, 2, 2],
        [0x100, 17, 2],
    ];
    for function in functions {
        let damaged = [&head[..], &[0, 1], &function, &[1, 0]].concat();
        map(&damaged).expect_err("a damaged map");
    }
}

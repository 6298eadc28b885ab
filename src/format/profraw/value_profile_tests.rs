//! Values byte by byte. tools/rocov compares them with llvm-profdata.

use super::*;

fn site(values: &[(u64, u64)]) -> Site {
    let values = values.iter();
    values
        .map(|(value, count)| ValueCount {
            value: *value,
            count: *count,
        })
        .collect()
}

fn profile<const N: usize>(kinds: [(ValueKind, Vec<Site>); N]) -> ValueProfile {
    ValueProfile {
        kinds: kinds.into(),
    }
}

/// A profile with sites of two kinds, and its bytes.
fn written() -> (ValueProfile, Vec<u8>) {
    let calls = vec![site(&[(7, 5), (8, 2)]), site(&[])];
    let sizes = vec![site(&[(64, 1)])];
    let profile = profile([
        (ValueKind::IndirectCall, calls),
        (ValueKind::MemorySize, sizes),
    ]);
    let halves: [&[u32]; 6] = [
        &[8 + 16 + 32 + 16 + 16, 2],
        &[0, 2, 2, 0],
        &[7, 0, 5, 0, 8, 0, 2, 0],
        &[1, 1, 1, 0],
        &[64, 0, 1, 0],
        &[],
    ];
    let bytes = halves.concat().into_iter().flat_map(u32::to_le_bytes);
    (profile, bytes.collect())
}

#[test]
fn a_profile_is_read_as_it_was_written() {
    let (expected, bytes) = written();
    let mut found = Vec::new();
    expected.write(&mut found);
    assert_eq!(found, bytes);
    found.extend([1; 9]);
    assert_eq!(ValueProfile::read(&found, 3), Ok((expected, bytes.len())));
    let mut empty = Vec::new();
    ValueProfile::default().write(&mut empty);
    assert_eq!(empty, [8, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn damaged_profiles_are_refused() {
    let (_, bytes) = written();
    for len in 0..bytes.len() {
        let found = ValueProfile::read(&bytes[..len], 3);
        assert!(
            matches!(found, Err(ValueProfileError::Truncated { found, .. }) if found == len),
            "{len}: {found:?}"
        );
    }
    let with = |at: usize, value: u32| {
        let mut bytes = bytes.clone();
        LittleEndian::write_u32(&mut bytes[at..], value);
        ValueProfile::read(&bytes, 3).unwrap_err()
    };
    let len = bytes.len();
    assert_eq!(with(0, 7), ValueProfileError::Size { found: 7 });
    let cut = |needed| ValueProfileError::Truncated { needed, found: len };
    // A third kind, sites and values that do not fit.
    assert_eq!(with(4, 3), cut(len as u64 + 8));
    assert_eq!(with(12, u32::MAX), cut(16 + u64::from(u32::MAX)));
    assert_eq!(with(16, 200), cut(24 + 200 * 16));
    // A kind that is not known, or there twice.
    let (kind, max) = (ValueKind::IndirectCall as u32, 2);
    assert_eq!(with(8, 3), ValueProfileError::Kind { found: 3, max });
    assert_eq!(with(56, kind), ValueProfileError::Kind { found: kind, max });
    let mut tables = bytes.clone();
    tables[8] = 2;
    assert!(ValueProfile::read(&tables, 3).is_ok());
    let older = ValueProfileError::Kind { found: 2, max: 1 };
    assert_eq!(ValueProfile::read(&tables, 2), Err(older));
}

#[test]
fn values_add_up_at_each_site() {
    let of = |values: &[(u64, u64)]| profile([(ValueKind::MemorySize, vec![site(values)])]);
    let mut sum = of(&[(8, 1), (3, 9), (0, u64::MAX)]);
    sum.add(&of(&[(3, 1), (8, 11), (0, 1), (5, 2)]));
    assert_eq!(sum, of(&[(0, u64::MAX), (8, 12), (3, 10), (5, 2)]));
    // Values of other sites are not added.
    let before = sum.clone();
    let two = profile([(ValueKind::MemorySize, vec![site(&[]), site(&[(8, 1)])])]);
    let calls = profile([(ValueKind::IndirectCall, vec![site(&[(8, 1)])])]);
    for other in [two, calls] {
        assert!(!sum.fits(&other));
        sum.add(&other);
        assert_eq!(sum, before);
    }
    assert!(sum.fits(&before));
}

#[test]
fn sums_do_not_depend_on_the_order() {
    let of = |values: &[(u64, u64)]| profile([(ValueKind::IndirectCall, vec![site(values)])]);
    let [one, two, three] = [
        of(&[(0, 1), (7, 4), (0, 9), (0, 3)]),
        of(&[(0, 20), (0, 2), (8, 1)]),
        of(&[(7, 1), (0, 6), (0, 30)]),
    ];
    let sum = |parts: [&ValueProfile; 3]| {
        let [first, second, third] = parts.map(Clone::clone);
        let (mut left, mut right) = (first.clone(), second.clone());
        left.add(&second);
        left.add(&third);
        right.add(&third);
        let mut all = first;
        all.add(&right);
        assert_eq!(left, all);
        all
    };
    let expected = of(&[(0, 59), (0, 11), (7, 5), (0, 1), (8, 1)]);
    assert_eq!(sum([&one, &two, &three]), expected);
    assert_eq!(sum([&three, &one, &two]), expected);
}

#[test]
fn a_site_keeps_the_largest_counts() {
    let of = |values: std::ops::Range<u64>| -> Site {
        values
            .map(|value| ValueCount {
                value,
                count: value,
            })
            .collect()
    };
    let kind = ValueKind::IndirectCall;
    let mut sum = profile([(kind, vec![of(1..200)])]);
    sum.add(&profile([(kind, vec![of(150..400)])]));
    let [found] = &sum.kinds[&kind][..] else {
        panic!("{sum:?}");
    };
    assert_eq!(found.len(), MAX_VALUES);
    // 150 to 199 are in both.
    assert_eq!((found[0].value, found[0].count), (399, 399));
    assert!(
        found
            .iter()
            .any(|value| (value.value, value.count) == (150, 300))
    );
    assert!(found.iter().all(|value| value.value > 144));
}

//! Sums of counts, with limits and with profiles of different shapes.

use std::ops::Range;

use super::*;
use crate::format::profraw::{Counts, MAX_COUNT, Parts, Version, encode};
use crate::format::sections::PerSection;

fn counts(counters: &[u64]) -> Counts {
    let counters = counters
        .iter()
        .copied()
        .flat_map(u64::to_le_bytes)
        .collect();
    Counts {
        counters,
        ..Counts::default()
    }
}

#[test]
fn counts_add_and_stop_at_the_limit_of_the_reader() {
    let version = Version::from_word(10).unwrap();
    let mut sum = counts(&[1, 0, MAX_COUNT - 1, u64::MAX]);
    sum.add(&counts(&[2, 0, 5, u64::MAX]), &version).unwrap();
    assert_eq!(sum, counts(&[3, 0, MAX_COUNT, MAX_COUNT]));
}

#[test]
fn single_byte_counters_and_bitmaps_join() {
    let version = Version::from_word(1 << 60 | 10).unwrap();
    let mut sum = Counts {
        counters: vec![0xff, 0, 0xff, 0],
        bitmap: vec![1, 6],
        ..Counts::default()
    };
    let more = Counts {
        counters: vec![0xff, 0xff, 0, 0],
        bitmap: vec![2, 4],
        ..Counts::default()
    };
    sum.add(&more, &version).unwrap();
    assert_eq!(sum.counters, [0xff, 0, 0, 0]);
    assert_eq!(sum.bitmap, [3, 6]);
}

#[test]
fn what_is_new_is_told_from_what_was_there() {
    let with = |counts: Counts, bitmap| Counts {
        uniform: counts.counters.clone(),
        bitmap: vec![bitmap],
        ..counts
    };
    let version = Version::from_word(10).unwrap();
    // The second counter was reset in between.
    let news = with(counts(&[5, 3, 7]), 6).since(&with(counts(&[2, 4, 7]), 3), &version);
    assert_eq!(news, with(counts(&[3, 3, 0]), 4));
    let reached = |counters: &[u8]| Counts {
        counters: counters.to_vec(),
        ..Counts::default()
    };
    let ten = version;
    let version = Version::from_word(1 << 60 | 10).unwrap();
    // The last counter was reset in between.
    let news = reached(&[0, 0, 0xff, 0xff]).since(&reached(&[0, 0xff, 0xff, 0]), &version);
    assert_eq!(news, reached(&[0xff, 0, 0xff, 0xff]));
    assert!(!counts(&[1, 4]).is_below(&counts(&[1, 3]), &ten));
    assert!(counts(&[2, 2]).is_below(&counts(&[1, 3]), &ten));
    assert!(!news.is_nothing(&version));
    assert!(reached(&[0xff, 0xff]).is_nothing(&version));
    let [none, counters] = [0, 1].map(|count| counts(&[count]));
    let bitmap = Counts {
        bitmap: vec![0, 1],
        ..none.clone()
    };
    let uniform = Counts {
        uniform: vec![0, 1],
        ..none.clone()
    };
    let some = [counters, bitmap, uniform];
    assert!(some.iter().all(|some| !some.is_nothing(&ten)));
    assert!(with(none, 0).is_nothing(&ten));
}

#[test]
fn other_code_is_refused() {
    let version = Version::from_word(10).unwrap();
    let mut sum = counts(&[7]);
    let error = sum.add(&counts(&[1, 2]), &version).unwrap_err();
    assert_eq!(
        error,
        ProfileError::Mismatch {
            found: 16,
            expected: 8
        }
    );
    assert_eq!(sum, counts(&[7]));
}

/// A profile of two functions with `counters` each. Another `hash` makes other functions.
fn profile(word: u64, hash: u8, counters: &[u8]) -> Vec<u8> {
    let version = Version::from_word(word).unwrap();
    let bytes = version.layout().record.bytes as usize;
    encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &vec![hash; 2 * bytes],
            counters,
            bitmap: if word == 8 { &[] } else { &counters[..8] },
            uniform: if word == 11 { counters } else { &[] },
            names: b"names",
        },
        names_address: 0,
    })
}

#[test]
fn files_add_where_nothing_but_counts_differs() {
    let twice = |value: u64| value.to_le_bytes().repeat(2);
    for (word, one, two, both) in [
        (8, 1, 2, 3),
        (10, 1, 2, 3),
        (11, 1, 2, 3),
        (1 << 60 | 10, u64::MAX, 0xff00, 0xff00),
    ] {
        let mut sum = Sum::new(profile(word, 7, &twice(one))).unwrap();
        sum.add(&profile(word, 7, &twice(two))).unwrap();
        let part = |part: &Range<usize>| sum.bytes()[part.clone()].to_vec();
        assert_eq!(part(&sum.profile().sections.counters), twice(both));
        if word != 8 {
            assert_eq!(
                part(&sum.profile().sections.bitmap),
                (one | two).to_le_bytes()
            );
        }
        if word == 11 {
            assert_eq!(part(&sum.profile().sections.uniform), twice(both));
        }
    }
}

#[test]
fn the_counts_of_a_file_are_those_it_was_made_of() {
    let counters = [1, 2].map(u64::to_le_bytes).concat();
    let expected = Counts {
        bitmap: counters[..8].to_vec(),
        uniform: counters.clone(),
        counters,
        ..Counts::default()
    };
    let file = profile(11, 7, &expected.counters);
    assert_eq!(Counts::from_profile(&file), Ok(expected.clone()));
    // A file of other counts, with these counts in their place.
    let version = Version::from_word(11).unwrap();
    let other = Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &vec![7; 2 * version.layout().record.bytes as usize],
            counters: &[9; 16],
            bitmap: &[9; 8],
            uniform: &[9; 16],
            names: b"names",
        },
        names_address: 0,
    };
    assert_eq!(encode(&other.counting(&expected)), file);
}

#[test]
fn sections_that_a_version_does_not_have_are_in_none_of_its_files() {
    for word in [8, 9, 10, 11] {
        let version = Version::from_word(word).unwrap();
        let bytes = version.layout().record.bytes as usize;
        let file = encode(&Parts {
            version,
            build_id: None,
            sections: PerSection {
                data: &vec![7; bytes],
                counters: &[1; 16],
                bitmap: &[0x22; 8],
                uniform: &[0x33; 8],
                names: b"names",
            },
            names_address: 0,
        });
        let sum = Sum::new(file.as_slice()).unwrap();
        assert_eq!(
            &file[sum.profile().sections.names.clone()],
            b"names",
            "{word}"
        );
        assert_eq!(file.contains(&0x22), word > 8, "{word}");
        assert_eq!(
            file.ends_with(&[[0x33; 8], *b"names\0\0\0"].concat()),
            word > 10
        );
    }
}

#[test]
fn files_of_other_code_and_damaged_ones_are_told_apart() {
    let good = profile(10, 7, &[1; 16]);
    let mut sum = Sum::new(good.clone()).unwrap();
    let mut other_names = good.clone();
    *other_names.iter_mut().rfind(|byte| **byte == b's').unwrap() = b'z';
    for other in [
        profile(10, 8, &[1; 16]),
        profile(10, 7, &[1; 24]),
        profile(11, 7, &[1; 16]),
        other_names,
    ] {
        assert_eq!(sum.add(&other), Err(ProfileError::OtherCode));
    }
    // Only the header distinguishes these: records have no place for the data after the counters.
    let mut first = Sum::new(profile(8, 7, &[1; 16])).unwrap();
    let other = profile(8, 7, &[1; 24]);
    assert_eq!(first.add(&other), Err(ProfileError::OtherCode));
    let two = [good.as_slice(), &good].concat();
    let more = ProfileError::MoreParts {
        end: good.len(),
        found: good.len(),
    };
    assert_eq!(Sum::new(two.clone()).unwrap_err(), more);
    assert_eq!(sum.add(&two), Err(more));
    assert!(matches!(
        sum.add(&good[..good.len() - 1]),
        Err(ProfileError::Truncated { .. })
    ));
    assert!(matches!(
        sum.add(&[0; 200]),
        Err(ProfileError::WrongMagic { .. })
    ));
    assert_eq!(sum.bytes(), good);
}

/// A profile of version 11 with two records of these sizes of waves, and with these counts.
fn waves(sizes: [u16; 2], counts: [u64; 2]) -> Vec<u8> {
    let version = Version::from_word(11).unwrap();
    let data: Vec<u8> = [1_u64, 2]
        .into_iter()
        .zip(sizes)
        .flat_map(|(name, size)| {
            let mut record = vec![0; 72];
            record[..8].copy_from_slice(&name.to_le_bytes());
            // OffloadDeviceWaveSize, after NumValueSites[3].
            record[66..68].copy_from_slice(&size.to_le_bytes());
            record
        })
        .collect();
    encode(&Parts {
        version,
        build_id: None,
        sections: PerSection {
            data: &data,
            counters: &counts.map(u64::to_le_bytes).concat(),
            names: b"names",
            ..PerSection::default()
        },
        names_address: 0,
    })
}

#[test]
fn functions_that_ran_in_one_profile_only_give_their_size_of_waves() {
    let mut sum = Sum::new(waves([64, 0], [5, 0])).unwrap();
    sum.add(&waves([0, 64], [0, 7])).unwrap();
    assert_eq!(sum.bytes(), waves([64, 64], [5, 7]));
    sum.add(&waves([0, 0], [0, 0])).unwrap();
    assert_eq!(sum.bytes(), waves([64, 64], [5, 7]));
}

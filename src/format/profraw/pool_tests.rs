//! Pools return the counts that went in, whichever half is in force or damaged.

use super::*;
use crate::format::profraw::{Counts, Parts, Sum, Version, encode};
use crate::format::sections::PerSection;

/// A profile with all kinds of counts, each of them `count`.
fn profile(version: u64, count: u8) -> Vec<u8> {
    let version = Version::from_word(version).unwrap();
    let counters = u64::from(count).to_le_bytes().repeat(3);
    let record = version.layout().record;
    let bitmap = [count; 5];
    encode(&Parts {
        version,
        build_id: Some(&[1, 2, 3]),
        sections: PerSection {
            data: &vec![0; record.bytes as usize],
            counters: &counters,
            bitmap: record.bitmap_ptr.map_or(&[], |_| &bitmap),
            uniform: record.uniform_ptr.map_or(&[], |_| &counters[..16]),
            names: b"name",
        },
        names_address: 0x77,
    })
}

/// The file after another addition of `pooled` to `half`, which is then in force.
fn added(file: &[u8], pooled: &Pooled<'_>, half: usize) -> Vec<u8> {
    let mut file = file.to_vec();
    let room = pooled.room();
    let place = |half| room.start + half * room.len();
    let mut counts = file[place(1 - half)..][..room.len()].to_vec();
    assert!(pooled.add_to(&mut counts));
    file[place(half)..][..counts.len()].copy_from_slice(&counts);
    let header = pooled.header(half);
    file[..header.len()].copy_from_slice(&header);
    file
}

#[test]
fn a_pool_gives_back_all_kinds_of_counts() {
    for version in [8, 9, 10, 11] {
        let (one, two) = (profile(version, 1), profile(version, 2));
        let pooled = Pooled::new(&two).unwrap();
        let file = added(&Pooled::new(&one).unwrap().file(), &pooled, 1);
        let counts = |file: &[u8]| Counts::from_profile(Sum::new(file).unwrap().bytes()).unwrap();
        // 1 and 2 are 3, added or joined.
        assert_eq!(counts(&file), counts(&profile(version, 3)));
        // The counts of the old set, because the new set is damaged.
        let mut torn = file;
        torn[pooled.room().start + pooled.room().len()] ^= 1;
        assert_eq!(counts(&torn), counts(&one));
    }
}

#[test]
fn a_pool_is_a_profile_of_its_sums_at_any_time() {
    for version in [8, 9, 10, 11] {
        let one = profile(version, 1);
        let pooled = Pooled::new(&one).unwrap();
        let mut file = pooled.file();
        for sum in 1..=4 {
            let half = usize::from(sum) % 2;
            if sum > 1 {
                file = added(&file, &pooled, 1 - half);
            }
            assert_eq!(file.len() as u64, pooled.len());
            // A reader without support for pools.
            let parsed = RawProfile::parse(&file).unwrap();
            parsed.check_counts(&file).unwrap();
            let mut expected = Counts::from_profile(&profile(version, sum)).unwrap();
            // Bitmaps are joined, not added.
            expected.bitmap.fill(1);
            assert_eq!(Counts::from_profile(&file).unwrap(), expected);
            assert_eq!(file[parsed.sections.names], *b"name");
            // Without the room, it is the output of `encode`.
            let mut plain = Sum::new(one.clone()).unwrap();
            for _ in 1..sum {
                plain.add(&one).unwrap();
            }
            assert_eq!(Sum::new(file.clone()).unwrap().bytes(), plain.bytes());
        }
    }
}

#[test]
fn where_what_is_in_force_is_damaged_the_other_half_is_left() {
    let one = profile(11, 1);
    let pooled = Pooled::new(&one).unwrap();
    let first = pooled.file();
    let room = pooled.room();
    for at in [0, 30, room.len() - 1] {
        // The second half is in force.
        let mut file = added(&first, &pooled, 1);
        file[room.end + at] ^= 1;
        let parsed = RawProfile::parse(&file).unwrap();
        assert_eq!(parsed.check_counts(&file), Err(ProfileError::NotWhole));
        assert_eq!(Sum::new(file.clone()).unwrap().bytes(), one);
        let mut sum = Sum::new(one.clone()).unwrap();
        assert_eq!(sum.add(&file), Err(ProfileError::NotWhole));
        assert!(!pooled.add_to(&mut file[room.end..][..room.len()]));
        // The first half is in force. The second has sums that never were.
        let mut file = added(&first, &pooled, 1);
        let header = pooled.header(0);
        file[..header.len()].copy_from_slice(&header);
        let two = Sum::new(added(&first, &pooled, 1)).unwrap();
        file[room.start + at] ^= 1;
        assert_eq!(Sum::new(file.clone()).unwrap().bytes(), two.bytes());
        file[room.end + at] ^= 1;
        assert_eq!(Sum::new(file).unwrap_err(), ProfileError::NotWhole);
    }
}

#[test]
fn counts_of_other_code_are_not_added() {
    let [one, other] = [10, 11].map(|version| profile(version, 1));
    let mut names = one.clone();
    *names.iter_mut().rfind(|byte| **byte == b'e').unwrap() = b'z';
    let pooled = Pooled::new(&one).unwrap();
    let file = pooled.file();
    let half = &file[pooled.room()];
    for other in [&other, &names] {
        let other = Pooled::new(other).unwrap();
        let mut counts = half.to_vec();
        assert!(!other.add_to(&mut counts));
        assert_eq!(counts, half);
    }
}

#[test]
fn what_has_no_room_is_no_pool() {
    let one = profile(11, 1);
    let parsed = RawProfile::parse(&one).unwrap();
    assert_eq!(parsed.check_counts(&one), Ok(()));
    assert_eq!(Sum::new(one.clone()).unwrap().bytes(), one);
}

//! The sum of the copies of counters.

use std::borrow::Cow;

use crate::format::copies_table::Probes;
use crate::format::sections::PerSection;
use crate::support::memory::{NoMemory, zeroed};
use crate::validate::CopiesArea;

/// Adds all copies of `area` to the counters in `sections`, modulo 2^64. `copies` are the bytes of its memory.
///
/// # Errors
/// Fails if the system has no memory for one copy. The counters do not change then.
pub(crate) fn add_copies(
    sections: &mut PerSection<Cow<'_, [u8]>>,
    area: &CopiesArea,
    copies: &[u8],
) -> Result<(), NoMemory> {
    let mut sum = zeroed(area.stride as u64)?;
    for copy in copies.chunks_exact(area.stride) {
        add_words(&mut sum, copy);
    }
    if let (Some(probes), [(section, place)]) = (&area.probes, area.ranges.as_slice()) {
        if sum.iter().any(|byte| *byte != 0) {
            let counters = sections.get_mut(*section).to_mut();
            add_probes(&mut counters[place.clone()], &sum, probes);
        }
        return Ok(());
    }
    let mut rest = sum.as_slice();
    for (section, place) in &area.ranges {
        let (counts, others) = rest.split_at(place.len());
        rest = others;
        if counts.iter().any(|byte| *byte != 0) {
            let counters = sections.get_mut(*section).to_mut();
            add_words(&mut counters[place.clone()], counts);
        }
    }
    Ok(())
}

/// Adds the words of probes in `sum` to the counters that are sums of them.
fn add_probes(counters: &mut [u8], sum: &[u8], probes: &Probes) {
    let ((counters, _), (sum, _)) = (counters.as_chunks_mut::<8>(), sum.as_chunks::<8>());
    probes.each(|counter, probe| {
        if let (Some(counter), Some(count)) = (counters.get_mut(counter), sum.get(probe)) {
            add_word(counter, count);
        }
    });
}

/// Adds words of 8 bytes, little endian, modulo 2^64.
fn add_words(into: &mut [u8], from: &[u8]) {
    let (words, _) = into.as_chunks_mut::<8>();
    for (word, more) in words.iter_mut().zip(from.as_chunks::<8>().0) {
        add_word(word, more);
    }
}

fn add_word(into: &mut [u8; 8], from: &[u8; 8]) {
    let total = u64::from_le_bytes(*into).wrapping_add(u64::from_le_bytes(*from));
    *into = total.to_le_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceRange;
    use crate::format::copies_table::CopiesTables;
    use crate::format::sections::Section;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// An area of copies with counters 1 and 2, uniform counter 0, and counter 2 again.
    fn area(copies: u64) -> CopiesArea {
        CopiesArea {
            memory: DeviceRange {
                start: 0x1000,
                len: 40 * copies,
            },
            stride: 40,
            ranges: vec![
                (Section::Counters, 8..24),
                (Section::Uniform, 0..8),
                (Section::Counters, 16..24),
            ],
            probes: None,
        }
    }

    /// Counters and uniform counters after the sum of the area with these words.
    fn sum(copies: u64, area_words: &[u64]) -> (Vec<u8>, Vec<u8>) {
        let (counters, uniform) = (words(&[1, 2, 3]), words(&[4, 5]));
        let mut sections = PerSection::<Cow<'_, [u8]>> {
            counters: counters.as_slice().into(),
            uniform: uniform.as_slice().into(),
            ..PerSection::default()
        };
        add_copies(&mut sections, &area(copies), &words(area_words)).unwrap();
        (
            sections.counters.into_owned(),
            sections.uniform.into_owned(),
        )
    }

    #[test]
    fn each_word_of_each_copy_goes_to_its_counter() {
        let first = [10, 20, 30, 40, 999];
        let second = [100, 200, 300, 400, 999];
        let (counters, uniform) = sum(2, &[first, second].concat());
        let expected = [1, 2 + 110, 3 + 220 + 440];
        assert_eq!(counters, words(&expected), "the fifth word is padding");
        assert_eq!(uniform, words(&[4 + 330, 5]));
    }

    #[test]
    fn counters_are_sums_of_probes_of_all_copies() {
        // Probes 0 and 1, none, and probe 1, by the description of the format.
        let words_of_table = [
            u64::from_le_bytes(*b"rocovcps"),
            72 << 32 | 2,
            0x1000,
            0x1080,
            0x2000,
            0x2018,
            2,
            1 | 2 << 32,
            0xffff_fffe | 2 << 32,
        ];
        let tables = CopiesTables::decode(&words(&words_of_table));
        let area = CopiesArea {
            stride: 64,
            ranges: vec![(Section::Counters, 0..24)],
            probes: tables.tables[0].probes.clone(),
            ..area(1)
        };
        let mut sections = PerSection::<Cow<'_, [u8]>> {
            counters: words(&[1, 2, u64::MAX]).into(),
            ..PerSection::default()
        };
        let first = [10, 20, 7, 7, 7, 7, 7, 7];
        let second = [100, 200, 7, 7, 7, 7, 7, 7];
        add_copies(&mut sections, &area, &words(&[first, second].concat())).unwrap();
        assert_eq!(sections.counters, words(&[331, 2, 219]));
    }

    #[test]
    fn words_after_the_last_whole_copy_count_nothing() {
        let (counters, _) = sum(1, &[10, 0, 0, 0, 0, 7, 7, 7, 7]);
        assert_eq!(counters, words(&[1, 12, 3]));
    }

    #[test]
    fn sums_wrap_around() {
        let (counters, _) = sum(1, &[u64::MAX, 0, 0, 0, 0]);
        assert_eq!(counters, words(&[1, 1, 3]));
    }
}

//! Line numbers in messages and tables.

/// Line numbers in order, as ranges: `1-3, 7`.
pub(crate) fn ranges(lines: impl IntoIterator<Item = u32>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let text = |(first, last)| {
        if first == last {
            format!("{first}")
        } else {
            format!("{first}-{last}")
        }
    };
    ranges.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10]), ["1-3", "7", "9-10"]);
        assert!(ranges([]).is_empty());
    }
}

//! Line numbers in messages and tables.

/// Line numbers in order, as ranges: `1-3, 7`.
pub(crate) fn ranges(lines: impl IntoIterator<Item = u32>) -> Vec<String> {
    spans(lines).into_iter().map(range).collect()
}

/// The first and the last of line numbers that follow one another, of numbers in order.
pub(crate) fn spans(lines: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => spans.push((line, line)),
        }
    }
    spans
}

/// A first and a last line: `1-3`, or `7` if they are one.
pub(crate) fn range((first, last): (u32, u32)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
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

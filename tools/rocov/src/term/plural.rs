//! Phrases in messages.

/// `number` and `noun`, in the plural if need be.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix("ry")) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ries"),
        _ if noun.ends_with('s') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn nouns_have_their_plurals() {
        assert_eq!(count(1, "kernel registry"), "1 kernel registry");
        assert_eq!(count(2, "kernel registry"), "2 kernel registries");
        assert_eq!(count(0, "other process"), "0 other processes");
        assert_eq!(count(3, "profile"), "3 profiles");
    }
}

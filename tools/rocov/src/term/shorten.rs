//! Names that a terminal has no room for, without their middle.

/// `name` in at most `width` characters. A path keeps its first folder and as many of the last ones as fit, another
/// name its start and its end. `mark` stands for the characters that are left out.
pub(crate) fn shortened(name: &str, width: usize, mark: &str) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    path(name, width, mark).unwrap_or_else(|| middle(name, width, mark))
}

/// As many of the first items of a list, with commas between them, as `width` characters have room for. `mark` stands for
/// the others.
pub(crate) fn first_of(list: &str, width: usize, mark: &str) -> String {
    if list.chars().count() <= width {
        return list.to_owned();
    }
    let ends = list.rmatch_indices(", ").map(|(at, _)| at);
    let mut starts = ends.map(|end| format!("{}, {mark}", &list[..end]));
    let fits = |text: &String| text.chars().count() <= width;
    starts.find(fits).unwrap_or_else(|| mark.to_owned())
}

/// A path without folders of its middle. `None` if its last part does not fit.
fn path(name: &str, width: usize, mark: &str) -> Option<String> {
    let first = name.split_inclusive('/').next()?;
    let fits = |text: &String| text.chars().count() <= width;
    let with = |start: &str| {
        let rests = name
            .match_indices('/')
            .map(|(at, _)| &name[at..])
            .skip(1)
            .filter(|rest| rest.len() > 1);
        rests.map(|rest| format!("{start}{mark}{rest}")).find(fits)
    };
    let rests = name.match_indices('/').map(|(at, _)| &name[at..]);
    let mut without = rests.map(|rest| format!("{mark}{rest}"));
    with(first).or_else(|| without.find(fits))
}

/// The start and the end of a name.
fn middle(name: &str, width: usize, mark: &str) -> String {
    let length = name.chars().count();
    let kept = width.saturating_sub(mark.chars().count());
    let start: String = name.chars().take(kept.div_ceil(2)).collect();
    let end: String = name.chars().skip(length - kept / 2).collect();
    let mark: String = mark.chars().take(width).collect();
    start + &mark + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_folders_and_a_name_its_middle() {
        for (name, width, expected) in [
            ("src/gpu/kernels/scale.hip", 25, "src/gpu/kernels/scale.hip"),
            ("src/gpu/kernels/scale.hip", 24, "src/…/kernels/scale.hip"),
            ("src/gpu/kernels/scale.hip", 22, "src/…/scale.hip"),
            ("src/gpu/kernels/scale.hip", 12, "…/scale.hip"),
            ("src/gpu/kernels/scale.hip", 10, "src/g….hip"),
            ("gemm_universal_batched.hpp", 11, "gemm_…d.hpp"),
            ("éééééé", 3, "é…é"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(shortened(name, width, "…"), expected, "{name} in {width}");
        }
        for (width, expected) in [
            (13, "1-2, 5, 10-12"),
            (12, "1-2, 5, …"),
            (9, "1-2, 5, …"),
            (8, "1-2, …"),
            (3, "…"),
        ] {
            assert_eq!(first_of("1-2, 5, 10-12", width, "…"), expected);
        }
        assert_eq!(shortened("abcdefghij", 7, "..."), "ab...ij");
        assert_eq!(shortened("abcdefghij", 2, "..."), "..");
    }
}

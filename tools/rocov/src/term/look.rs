//! The look of a text: its colors, and what it may use of a terminal.

use std::env;
use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

/// The look of a text. By default it is plain, for a file or a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) is_colored: bool,
    /// The number of characters of a line that a terminal has room for, if one is known.
    pub(crate) width: Option<usize>,
    /// The characters of bars, if the text has bars.
    pub(crate) bars: Option<Bars>,
}

/// The characters that bars are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bars {
    /// Block elements of Unicode.
    Blocks,
    Ascii,
}

impl Look {
    /// The look of a text on standard output.
    pub(crate) fn for_stdout(is_colored: bool) -> Self {
        if !io::stdout().is_terminal() {
            return Self {
                is_colored,
                ..Self::default()
            };
        }
        let columns = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let columns = columns.filter(|columns| *columns > 0);
        // A terminal may report its columns and no rows.
        let size = || tcgetwinsize(io::stdout()).ok();
        let actual = || Some(usize::from(size()?.ws_col)).filter(|columns| *columns > 0);
        let is_dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self {
            is_colored,
            width: columns.or_else(actual),
            bars: (!is_dumb).then(Bars::from_locale),
        }
    }
}

impl Bars {
    /// The characters that the user's locale has.
    fn from_locale() -> Self {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let values = names.iter().filter_map(|name| env::var(name).ok());
        let locale = values
            .into_iter()
            .find(|value| !value.is_empty())
            .unwrap_or_default()
            .to_ascii_lowercase();
        match locale.contains("utf-8") || locale.contains("utf8") {
            true => Self::Blocks,
            false => Self::Ascii,
        }
    }

    /// The mark for characters that are left out.
    pub(crate) fn ellipsis(self) -> &'static str {
        match self {
            Self::Blocks => "…",
            Self::Ascii => "...",
        }
    }

    /// The bar of `width` characters for `covered` of `total`: what is covered, and the rest. It is full if all is
    /// covered, and empty if nothing is.
    pub(crate) fn draw(self, covered: u64, total: u64, width: usize) -> [String; 2] {
        let (whole, rest) = match self {
            Self::Blocks => ("█", "░"),
            Self::Ascii => ("#", "-"),
        };
        let drawn = match total {
            0 => 0,
            _ => u128::from(covered) * width as u128 / u128::from(total),
        };
        let drawn = usize::try_from(drawn).unwrap_or_default();
        [
            whole.repeat(drawn),
            rest.repeat(width.saturating_sub(drawn)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_if_all_is_covered() {
        for (covered, total, expected) in [
            (0, 5, "░░░░"),
            (5, 5, "████"),
            (1, 2, "██░░"),
            (999, 1000, "███░"),
            (1, 5, "░░░░"),
            (0, 0, "░░░░"),
            (u64::MAX, u64::MAX, "████"),
        ] {
            let drawn = Bars::Blocks.draw(covered, total, 4).concat();
            assert_eq!(drawn, expected, "{covered} of {total}");
        }
        assert_eq!(Bars::Ascii.draw(999, 1000, 4).concat(), "###-");
    }
}

//! A badge with the lines that ran, an SVG in the style of shields.io that needs no other file.

use std::fmt::Display;
use std::io::{self, Write};

use super::grades::grade;
use super::xml::Xml;
use crate::coverage::figures::Figure;
use crate::coverage::view::View;

/// The text on the left.
const LABEL: &str = "GPU coverage";
/// The width of it in pixels, in Verdana of 11 pixels.
const LABEL_WIDTH: u32 = 77;
/// The space on either side of a text.
const PADDING: u32 = 5;
/// The font that the widths are of, and those that take its place.
const FONT: &str = "Verdana,Geneva,DejaVu Sans,sans-serif";

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels: Vec<_> = view
        .columns
        .iter()
        .map(|column| column.label.as_str())
        .collect();
    write_badge(view.table().total.all.lines, &labels.join(", "), out)
}

/// Writes the badge of lines that ran in columns of these names.
fn write_badge(lines: Figure, columns: &str, out: &mut dyn Write) -> io::Result<()> {
    let value = shown(lines);
    let color = match lines.percent().map(grade) {
        None => "#9f9f9f",
        Some("high") => "#4c1",
        Some("medium") => "#dfb317",
        Some(_) => "#e05d44",
    };
    let value_width = value.chars().map(tenths).sum::<u32>().div_ceil(10);
    let [left, right] = [LABEL_WIDTH, value_width].map(|width| width + 2 * PADDING);
    let title = format!("{LABEL}: {} of lines on {columns}", lines.share_text());
    let width = left + right;
    let mut xml = Xml::new(out);
    let image: [(&str, &dyn Display); 5] = [
        ("xmlns", &"http://www.w3.org/2000/svg"),
        ("width", &width),
        ("height", &20),
        ("role", &"img"),
        ("aria-label", &title),
    ];
    xml.element("svg", &image, |xml| {
        xml.text("title", &title)?;
        xml.element("clipPath", &[("id", &"r")], |xml| {
            let shape: [(&str, &dyn Display); 3] = [("width", &width), ("height", &20), ("rx", &3)];
            xml.empty("rect", &shape)
        })?;
        xml.element("g", &[("clip-path", &"url(#r)")], |xml| {
            for (x, width, fill) in [(0, left, "#555"), (left, right, color)] {
                let shape: [(&str, &dyn Display); 4] = [
                    ("x", &x),
                    ("width", &width),
                    ("height", &20),
                    ("fill", &fill),
                ];
                xml.empty("rect", &shape)?;
            }
            Ok(())
        })?;
        let font: [(&str, &dyn Display); 3] = [
            ("fill", &"#fff"),
            ("font-family", &FONT),
            ("font-size", &11),
        ];
        xml.element("g", &font, |xml| {
            for (x, width, text) in [(0, LABEL_WIDTH, LABEL), (left, value_width, &value)] {
                let place: [(&str, &dyn Display); 3] =
                    [("x", &(x + PADDING)), ("y", &14), ("textLength", &width)];
                xml.text_with("text", &place, text)?;
            }
            Ok(())
        })
    })?;
    xml.end()
}

/// The percentage, as in the table; `100%` means all.
fn shown(lines: Figure) -> String {
    match lines.total {
        0 => "none".to_owned(),
        total if total == lines.covered => "100%".to_owned(),
        _ => lines.percent_text(),
    }
}

/// The width of a letter in tenths of a pixel.
fn tenths(letter: char) -> u32 {
    match letter {
        '.' => 40,
        '%' => 118,
        _ => 70,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn badge(covered: u64, total: u64, columns: &str) -> String {
        let mut out = Vec::new();
        write_badge(Figure { total, covered }, columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_all_of_it_is_100_percent_and_it_has_the_colour_of_pages() {
        for (covered, total, text, color) in [
            (71, 90, "78.89%", "#dfb317"),
            (1_999, 2_000, "99.95%", "#4c1"),
            (199_999, 200_000, "99.99%", "#4c1"),
            (90, 90, "100%", "#4c1"),
            (90, 100, "90.00%", "#4c1"),
            (899, 1_000, "89.90%", "#dfb317"),
            (749, 1_000, "74.90%", "#e05d44"),
            (0, 90, "0.00%", "#e05d44"),
            (0, 0, "none", "#9f9f9f"),
        ] {
            let badge = badge(covered, total, "gfx90a");
            assert!(badge.contains(&format!(">{text}</text>")), "{badge}");
            assert!(badge.contains(&format!("fill=\"{color}\"")), "{badge}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let badge = badge(1, 2, "a\"<b>&\x1b");
        assert!(badge.contains("&lt;b&gt;&amp;\\u{1b}</title>"), "{badge}");
        assert_eq!(badge.matches("<b>").count(), 0, "{badge}");
    }
}

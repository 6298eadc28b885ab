//! The grades of a share: those of the colours of pages and badges.

/// The percentages from which a share is high, and from which it is medium.
const GRADES: [f64; 2] = [90.0, 75.0];

/// The grade of a share of so many percent: the class of its colour in pages.
pub(super) fn grade(percent: f64) -> &'static str {
    let [high, medium] = GRADES;
    if percent >= high {
        "high"
    } else if percent >= medium {
        "medium"
    } else {
        "low"
    }
}

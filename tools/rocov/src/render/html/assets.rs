//! The style and the script of pages.

pub(super) const STYLE: &str = include_str!("../../../html/report.css");

pub(super) const SCRIPT: &str = include_str!("../../../html/report.js");

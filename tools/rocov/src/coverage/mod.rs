//! What ran of the source, per arch and per binary, and how it is written down.
//!
//! `llvm-cov export` says for each code object which [`function`]s it has and how often their
//! regions and branches ran ([`export`]). The [`model`] keeps these apart; a [`view`] takes those of
//! one arch, or of one binary, together as a column, and has the [`figures`] of every file in every
//! column, by llvm-cov's own rules ([`segments`], [`detail`]). A [`file`] has its counts line by line,
//! and of a change those of its lines are [`changed`]; which file a user means is [`asked`]. Components
//! and tests are [`parts`] of it all. A [`comparison`] is of two reports.
//! The formats are in [`output`], what a user can choose in [`options`], and [`report`] does it all.

#[cfg(test)]
mod against_llvm_cov;
mod asked;
mod changed;
mod collect;
mod comparison;
mod detail;
mod export;
mod figures;
mod file;
mod fit;
mod folded;
mod function;
mod gates;
mod missed;
mod model;
mod options;
mod output;
mod parts;
mod places;
mod report;
mod saved;
mod segments;
mod select;
mod texts;
mod tool;
mod view;

pub(crate) use collect::Collected;
pub(crate) use comparison::{Comparison, Format as ComparisonFormat};
pub(crate) use figures::Figure;
pub(crate) use fit::{Misfit, misfit};
pub(crate) use options::Options;
pub(crate) use output::SHARED;
pub(crate) use output::paths::{below, here};
pub(crate) use report::Report;
pub(crate) use saved::read as read_saved;
pub(crate) use select::{Filters, PathMap, Selection};
pub(crate) use texts::Texts;
pub(crate) use tool::{Function, functions, llvm_cov, sources};
pub(crate) use view::{By, View};

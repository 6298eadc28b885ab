//! The model of coverage: the parts of the source that ran, per arch and per binary.
//!
//! rocov [`evaluate`]s the [`function`]s of each code object: how often their regions and branches ran. llvm-cov does
//! that for host code ([`export`]). The sources of code that [`hiprtc`] compiled are in the code object. The [`model`]
//! keeps code objects apart. A [`view`] joins those of one arch, or of one binary, to a column, and has the [`figures`]
//! of every file in every column, by the rules of llvm-cov ([`segments`], [`function_coverage`]) or by its own, which
//! add [`inferred`] regions, and its [`uniformity`]. A [`file`] has its counts line by line, the [`instances`] of a
//! template their own, and [`changed`] those of the lines of a change; [`resolve_source`] finds the file that a user
//! means, and [`checkouts`] the sources that have several paths. A [`baseline`] has the figures of earlier runs.
//! [`exclusions`] are left out of all that. A [`breakdown`] has the figures of components and tests. A [`comparison`]
//! compares two reports, and pages show the [`earlier`] one inline. The [`provenance`] of a report shows where it comes
//! from.

pub(crate) mod activity;
pub(crate) mod baseline;
pub(crate) mod baseline_column;
pub(crate) mod breakdown;
pub(crate) mod changed;
pub(crate) mod checkouts;
mod code_scanner;
pub(crate) mod collect;
pub(crate) mod comparison;
pub(crate) mod earlier;
pub(crate) mod evaluate;
pub(crate) mod exclusions;
pub(crate) mod export;
pub(crate) mod figures;
pub(crate) mod file;
pub(crate) mod folded;
pub(crate) mod function;
pub(crate) mod function_coverage;
pub(crate) mod function_figures;
pub(crate) mod function_groups;
pub(crate) mod gates;
pub(crate) mod hiprtc;
pub(crate) mod inferred;
#[cfg(test)]
mod inferred_tests;
pub(crate) mod instances;
pub(crate) mod joined_file;
pub(crate) mod line;
pub(crate) mod line_table;
mod line_tests;
pub(crate) mod llvm_cov;
pub(crate) mod mapped_functions;
pub(crate) mod misfit;
pub(crate) mod model;
pub(crate) mod part;
pub(crate) mod path_match;
pub(crate) mod provenance;
pub(crate) mod ran_lines;
pub(crate) mod report;
pub(crate) mod report_json;
pub(crate) mod resolve_source;
pub(crate) mod segments;
pub(crate) mod selection;
pub(crate) mod source_text;
pub(crate) mod sources_to_show;
pub(crate) mod staleness;
pub(crate) mod test_coverage;
pub(crate) mod uncovered;
pub(crate) mod uniformity;
pub(crate) mod view;
mod view_input;

pub(crate) use baseline::Baseline;
pub(crate) use changed::Change;
pub(crate) use collect::Collected;
pub(crate) use comparison::Comparison;
pub(crate) use earlier::Earlier;
pub(crate) use exclusions::{ExclusionRules, Exclusions};
pub(crate) use figures::{Figure, Measure};
pub(crate) use function_figures::{FunctionFigures, functions};
pub(crate) use gates::{Bound, Gates, Limit, LimitedSources};
pub(crate) use provenance::Provenance;
pub(crate) use report::Report;
pub(crate) use selection::{PathMap, PathMaps, Selection, SourceGlobs};
pub(crate) use source_text::SourceTexts;
pub(crate) use staleness::misfit;
pub(crate) use view::{By, Rules, View};
pub(crate) use view_input::ViewInput;

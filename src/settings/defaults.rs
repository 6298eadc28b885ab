//! The defaults that code takes and the book prints.
//!
//! Code parses each as if a user had written it, so both have one source.

/// Defines defaults: each as users write it, and in `markdown` for the table.
macro_rules! defaults {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $value;)*

        /// The defaults in Markdown.
        pub(super) mod markdown {
            $(pub(in crate::settings) const $name: &str = concat!("`", $value, "`");)*
        }
    };
}

defaults! {
    /// The default of `LLVM_PROFILE_FILE`: LLVM's own name for profiles.
    PROFILE_FILE = "default.profraw";
    /// The default of `ROCOV_ZERO`: code that was never launched counts as zero.
    ZERO = "1";
    /// The default of `ROCOV_WAIT`, in seconds.
    WAIT = "10";
    /// The default of `ROCOV_REGISTRY`.
    REGISTRY = "auto";
    /// The default of `ROCOV_OBJECTS`.
    OBJECTS = "instrumented";
    /// The default of `ROCOV_OBJECTS_MAX`.
    OBJECTS_MAX = "4G";
    /// The default of `ROCOV_PAUSED`: everything counts from the start.
    PAUSED = "0";
    /// The default of `ROCOV_ROCTX`: ranges are no labels.
    ROCTX = "0";
    /// The default of `ROCOV_INSTRUMENT`: CUDA code stays as it is.
    INSTRUMENT = "0";
    /// The default of `ROCOV_CACHE_MAX`.
    CACHE_MAX = "1G";
    /// The default of `ROCM_PATH`.
    ROCM_PATH = "/opt/rocm";
}

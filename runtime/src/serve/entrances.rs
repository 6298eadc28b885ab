//! The services that the drainer needs of the ways into librocov.

/// The services that the drainer needs of the ways into librocov.
pub(crate) struct Entrances {
    /// Registers the early exit drain. Called after instrumented code was loaded.
    pub(crate) register_early_exit: fn(),
    /// Returns whether the hooks of some copy see loads and unloads.
    pub(crate) see_calls: fn() -> bool,
}

//! The failing functions of ROCr, their failures and the cost.

/// The cost of faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Costs {
    /// No counts, and no message.
    Nothing,
    /// No counts. The failing call decides whether there is a message.
    NothingOrWords,
    /// No counts. A message reports the operation that failed or must wait.
    NothingButWords,
    /// The counts of one GPU.
    One,
    /// All counts: librocov can see or read nothing.
    All,
}

impl Costs {
    /// The number of GPUs that lose their counts.
    pub(crate) fn gpus(self) -> usize {
        match self {
            Self::Nothing | Self::NothingOrWords | Self::NothingButWords => 0,
            Self::One => 1,
            Self::All => 2,
        }
    }
}

/// The failing calls of the function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strikes {
    /// One call: the first, a middle and the last, each in a separate run.
    Once,
    /// The call with this number.
    At(usize),
    /// All calls.
    Always,
}

/// Faults of one function that have one cost.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) function: &'static str,
    /// The failures, each in a separate run.
    pub(crate) whats: &'static [&'static str],
    pub(crate) strikes: Strikes,
    pub(crate) costs: Costs,
    /// A further failure, without which librocov would not call the function.
    pub(crate) behind: Option<&'static str>,
}

impl Row {
    const fn behind(self, fault: &'static str) -> Self {
        Self {
            behind: Some(fault),
            ..self
        }
    }
}

const fn row(
    function: &'static str,
    whats: &'static [&'static str],
    strikes: Strikes,
    costs: Costs,
) -> Row {
    Row {
        function,
        whats,
        strikes,
        costs,
        behind: None,
    }
}

const fn once(function: &'static str, whats: &'static [&'static str], costs: Costs) -> Row {
    row(function, whats, Strikes::Once, costs)
}

const fn at(
    number: usize,
    function: &'static str,
    whats: &'static [&'static str],
    costs: Costs,
) -> Row {
    row(function, whats, Strikes::At(number), costs)
}

const fn always(function: &'static str, whats: &'static [&'static str], costs: Costs) -> Row {
    row(function, whats, Strikes::Always, costs)
}

/// `HSA_STATUS_ERROR`, `_INVALID_ARGUMENT`, `_OUT_OF_RESOURCES`.
const ERROR: &str = "0x1000";
const INVALID: &str = "0x1001";
const SHORT: &str = "0x1008";

/// librocov drains each code object at the beginning of the exit. If that fails, it drains again
/// when HIP unloads the code object. So a single failure costs nothing.
pub(crate) const TABLE: &[Row] = {
    use Costs::{All, Nothing, NothingButWords, NothingOrWords, One};
    &[
        // The check that HSA is there.
        once("hsa_system_get_info", &[ERROR], Nothing),
        always("hsa_system_get_info", &[ERROR], Nothing),
        always("hsa_system_get_info", &["missing"], All),
        // The list of agents. The first call finds the GPUs, the others a CPU as the target of
        // copies.
        once("hsa_iterate_agents", &[ERROR, SHORT], NothingOrWords),
        once("hsa_iterate_agents", &["null"], Nothing),
        always("hsa_iterate_agents", &[ERROR, "missing"], All),
        always("hsa_iterate_agents", &["null"], Nothing),
        once("hsa_agent_get_info", &[ERROR, INVALID], NothingOrWords),
        always("hsa_agent_get_info", &[ERROR, "missing"], All),
        once("hsa_isa_get_info_alt", &[ERROR], Nothing),
        always("hsa_isa_get_info_alt", &[ERROR], Nothing),
        always("hsa_isa_get_info_alt", &["missing"], All),
        // The list of loaded code objects. librocov cannot see either that a code object has no
        // counters.
        once(
            "hsa_executable_get_symbol_by_name",
            &[ERROR, SHORT],
            NothingOrWords,
        ),
        always(
            "hsa_executable_get_symbol_by_name",
            &[ERROR],
            NothingButWords,
        ),
        always("hsa_executable_get_symbol_by_name", &["missing"], All),
        once("hsa_executable_symbol_get_info", &[ERROR], Nothing),
        always("hsa_executable_symbol_get_info", &[ERROR], Nothing),
        always("hsa_executable_symbol_get_info", &["missing"], All),
        once(
            "hsa_system_get_major_extension_table",
            &[ERROR],
            NothingOrWords,
        ),
        always(
            "hsa_system_get_major_extension_table",
            &[ERROR, "missing"],
            All,
        ),
        once("iterate_executables", &[ERROR], NothingOrWords),
        always("iterate_executables", &[ERROR], NothingButWords),
        always("iterate_executables", &["null"], Nothing),
        once("iterate_loaded_code_objects", &[ERROR], NothingOrWords),
        always("iterate_loaded_code_objects", &[ERROR], All),
        always("iterate_loaded_code_objects", &["null"], Nothing),
        once(
            "loaded_code_object_get_info",
            &[ERROR, INVALID],
            NothingOrWords,
        ),
        always("loaded_code_object_get_info", &[ERROR], All),
        once("query_host_address", &[ERROR], Nothing),
        always("query_host_address", &[ERROR], Nothing),
        // Copies.
        once("hsa_amd_agent_iterate_memory_pools", &[ERROR], Nothing),
        always(
            "hsa_amd_agent_iterate_memory_pools",
            &[ERROR, "missing"],
            Nothing,
        ),
        once("hsa_amd_memory_pool_get_info", &[ERROR], Nothing),
        always("hsa_amd_memory_pool_get_info", &[ERROR, "missing"], Nothing),
        once("hsa_amd_agent_memory_pool_get_info", &[ERROR], Nothing),
        always(
            "hsa_amd_agent_memory_pool_get_info",
            &[ERROR, "missing"],
            Nothing,
        ),
        once("hsa_amd_pointer_info", &[ERROR], Nothing),
        always("hsa_amd_pointer_info", &[ERROR, "missing"], All),
        once(
            "hsa_amd_memory_async_copy",
            &[ERROR, SHORT, "fail"],
            Nothing,
        ),
        always(
            "hsa_amd_memory_async_copy",
            &[ERROR, "fail", "missing"],
            Nothing,
        ),
        // Each GPU has one copy, and all go together. librocov makes no further request to a GPU
        // whose copies hang.
        at(0, "hsa_amd_memory_async_copy", &["hang"], One),
        at(1, "hsa_amd_memory_async_copy", &["hang"], One),
        always("hsa_amd_memory_async_copy", &["hang"], All),
        once("hsa_amd_memory_lock", &[ERROR], Nothing),
        always("hsa_amd_memory_lock", &[ERROR, SHORT, "missing"], Nothing),
        always("hsa_amd_memory_unlock", &[ERROR, "missing"], Nothing),
        once("hsa_signal_create", &[SHORT], NothingOrWords),
        always("hsa_signal_wait_scacquire", &["missing"], Nothing),
        // The wait for completion callbacks brings no counts.
        always("hsa_amd_signal_async_handler", &[ERROR, "missing"], Nothing),
        // These calls wait for kernels; without them, copies still work.
        always("hsa_signal_create", &[SHORT, "missing"], NothingButWords),
        always("hsa_signal_destroy", &[ERROR], Nothing),
        always("hsa_signal_destroy", &["missing"], NothingButWords),
        always("hsa_signal_store_screlease", &["missing"], NothingButWords),
        always("hsa_signal_load_scacquire", &["missing"], NothingButWords),
        always(
            "hsa_queue_load_read_index_scacquire",
            &["missing"],
            NothingButWords,
        ),
        always(
            "hsa_queue_load_write_index_scacquire",
            &["missing"],
            NothingButWords,
        ),
        always(
            "hsa_queue_cas_write_index_scacq_screl",
            &["missing"],
            NothingButWords,
        ),
        // The last resort, which librocov calls if no other copy works.
        always("hsa_memory_copy", &["missing"], All),
        once("hsa_memory_copy", &[ERROR, SHORT], Nothing).behind(REFUSED),
        always("hsa_memory_copy", &[ERROR], All).behind(REFUSED),
        once("hsa_memory_copy", &[ERROR], Nothing).behind(BROKEN),
        always("hsa_memory_copy", &[ERROR], All).behind(BROKEN),
        always("hsa_memory_copy", &[ERROR], All).behind("hsa_amd_memory_lock:*:0x1008"),
        always("hsa_memory_copy", &[ERROR], All).behind("hsa_amd_memory_lock:*:missing"),
    ]
};

/// No copy starts.
const REFUSED: &str = "hsa_amd_memory_async_copy:*:0x1000";
/// Copies end with an error.
const BROKEN: &str = "hsa_amd_memory_async_copy:*:fail";

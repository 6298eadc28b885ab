//! Which functions of ROCr fail, how, and what that costs.

/// What faults cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Costs {
    /// No counts, and not a word is said.
    Nothing,
    /// No counts. Whether something is said depends on which call fails.
    NothingOrWords,
    /// No counts. What could not be done for now, or at all, is said.
    NothingButWords,
    /// Those of one GPU.
    One,
    /// All: nothing can be seen or read.
    All,
}

impl Costs {
    /// GPUs whose counts are lost.
    pub(crate) fn gpus(self) -> usize {
        match self {
            Costs::Nothing | Costs::NothingOrWords | Costs::NothingButWords => 0,
            Costs::One => 1,
            Costs::All => 2,
        }
    }
}

/// Which calls of the function go wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strikes {
    /// One: the first, a middle and the last, in a run each.
    Once,
    /// The one of this number.
    At(usize),
    /// All.
    Always,
}

/// Faults of one function that cost the same.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) function: &'static str,
    /// What goes wrong, in a run each.
    pub(crate) whats: &'static [&'static str],
    pub(crate) strikes: Strikes,
    pub(crate) costs: Costs,
    /// What goes wrong besides, so that the function is called at all.
    pub(crate) behind: Option<&'static str>,
}

impl Row {
    const fn behind(self, fault: &'static str) -> Row {
        Row {
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

/// Each code object is drained at the beginning of the exit, and again when HIP unloads it if that failed: what
/// fails once costs nothing.
pub(crate) const TABLE: &[Row] = {
    use Costs::{All, Nothing, NothingButWords, NothingOrWords, One};
    &[
        // Whether HSA is there.
        once("hsa_system_get_info", &[ERROR], Nothing),
        always("hsa_system_get_info", &[ERROR], Nothing),
        always("hsa_system_get_info", &["missing"], All),
        // What there is. The first call is for the GPUs, the others for a CPU to copy to.
        once("hsa_iterate_agents", &[ERROR, SHORT], NothingOrWords),
        once("hsa_iterate_agents", &["null"], Nothing),
        always("hsa_iterate_agents", &[ERROR, "missing"], All),
        always("hsa_iterate_agents", &["null"], Nothing),
        once("hsa_agent_get_info", &[ERROR, INVALID], NothingOrWords),
        always("hsa_agent_get_info", &[ERROR, "missing"], All),
        once("hsa_isa_get_info_alt", &[ERROR], Nothing),
        always("hsa_isa_get_info_alt", &[ERROR], Nothing),
        always("hsa_isa_get_info_alt", &["missing"], All),
        // What is loaded. Of code objects that do not count, nobody knows that either.
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
        once("iterate_executables", &[ERROR], NothingButWords),
        always("iterate_executables", &[ERROR], NothingButWords),
        always("iterate_executables", &["null"], Nothing),
        once("iterate_loaded_code_objects", &[ERROR], NothingButWords),
        always("iterate_loaded_code_objects", &[ERROR], All),
        always("iterate_loaded_code_objects", &["null"], Nothing),
        once(
            "loaded_code_object_get_info",
            &[ERROR, INVALID],
            NothingButWords,
        ),
        always("loaded_code_object_get_info", &[ERROR], All),
        once("query_host_address", &[ERROR], Nothing),
        always("query_host_address", &[ERROR], Nothing),
        // Copies.
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
        // There is one copy for each GPU, and they go together. A GPU whose copies hang is not asked
        // again.
        at(0, "hsa_amd_memory_async_copy", &["hang"], One),
        at(1, "hsa_amd_memory_async_copy", &["hang"], One),
        always("hsa_amd_memory_async_copy", &["hang"], All),
        once("hsa_amd_memory_lock", &[ERROR], Nothing),
        always("hsa_amd_memory_lock", &[ERROR, SHORT, "missing"], Nothing),
        always("hsa_amd_memory_unlock", &[ERROR, "missing"], Nothing),
        once("hsa_signal_create", &[SHORT], NothingOrWords),
        always("hsa_signal_wait_scacquire", &["missing"], Nothing),
        // What copies alone do not need where these fail, which kernels are waited for with.
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
        // The last word, which is called where nothing else copies.
        always("hsa_memory_copy", &["missing"], All),
        once("hsa_memory_copy", &[ERROR, SHORT], Nothing).behind(REFUSED),
        always("hsa_memory_copy", &[ERROR], All).behind(REFUSED),
        once("hsa_memory_copy", &[ERROR], Nothing).behind(BROKEN),
        always("hsa_memory_copy", &[ERROR], All).behind(BROKEN),
        always("hsa_memory_copy", &[ERROR], All).behind("hsa_amd_memory_lock:*:0x1008"),
        always("hsa_memory_copy", &[ERROR], All).behind("hsa_amd_memory_lock:*:missing"),
    ]
};

/// No copy is begun.
const REFUSED: &str = "hsa_amd_memory_async_copy:*:0x1000";
/// Copies end badly.
const BROKEN: &str = "hsa_amd_memory_async_copy:*:fail";

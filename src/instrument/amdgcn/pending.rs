//! Vector registers that await the results of loads where waves end.

use modelgpu_isa::Flow;

use super::code::FirstVectors;
use super::function::Function;

/// The beginnings of the names of matrix instructions, which still read registers when others run.
const MATRIX: [&str; 4] = ["v_mfma", "v_smfmac", "v_wmma", "v_swmmac"];

/// The first vector registers that a load may still write to when a wave ends in a function. Code waits for a load before it
/// reads or writes its result.
pub(super) fn at_ends(function: &Function<'_>) -> FirstVectors {
    let has_matrices = function
        .all
        .iter()
        .any(|ins| MATRIX.iter().any(|name| ins.mnemonic.starts_with(name)));
    if has_matrices || !function.is_kernel() || function.used.has_indexed_vectors {
        return FirstVectors::MAX;
    }
    let mut before: Vec<Option<FirstVectors>> = vec![None; function.stretches.len()];
    let mut open: Vec<usize> = Vec::new();
    for entry in &function.entries {
        let stretch = function.stretch_of(*entry);
        before[stretch] = Some(0);
        open.push(stretch);
    }
    let mut pending = 0;
    while let Some(stretch) = open.pop() {
        let Some(mut state) = before[stretch] else {
            continue;
        };
        let range = function.instructions_of(stretch);
        for ins in &function.all[range] {
            state = state & !ins.vectors | ins.loads;
            if ins.is_call() {
                state = FirstVectors::MAX;
            }
            if matches!(ins.flow, Flow::End) {
                pending |= state;
            }
        }
        for next in function.stretches_behind(stretch).iter().copied() {
            let joined = before[next].map_or(state, |known| known | state);
            if before[next] != Some(joined) {
                before[next] = Some(joined);
                open.push(next);
            }
        }
    }
    pending
}

//! Functions that give their callers the active lanes back as they were.

use std::collections::{HashMap, HashSet};

use super::code::{Decoder, Scalars};
use super::outline::{Outline, Outlines};

/// The state of a search through calls.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// The search is in it.
    Open,
    /// It changes no lanes, and may write these scalar registers. `None`: it is not known to be so.
    Done(Option<Scalars>),
}

/// Notes the calls after which the lanes are active that were so before, with the scalar registers that they may write.
pub(super) fn note(outlines: &mut Outlines<'_>) {
    let Outlines {
        functions, decoder, ..
    } = outlines;
    if functions.iter().all(|function| function.calls == 0) {
        return;
    }
    let numbers: HashMap<u64, usize> = functions
        .iter()
        .enumerate()
        .map(|(number, function)| (function.address(), number))
        .collect();
    let called = functions
        .iter()
        .flat_map(|function| function.callees.values());
    let called: HashSet<usize> = called
        .filter_map(|goal| numbers.get(goal).copied())
        .collect();
    let mut found: HashMap<usize, Found> = HashMap::new();
    for start in 0..functions.len() {
        // Callees come first.
        let mut open = vec![(start, false)];
        while let Some((number, is_ready)) = open.pop() {
            if !is_ready {
                if found.contains_key(&number) {
                    continue;
                }
                found.insert(number, Found::Open);
                open.push((number, true));
                let callees = functions[number].callees.values();
                let callees = callees.filter_map(|goal| numbers.get(goal).copied());
                open.extend(callees.map(|callee| (callee, false)));
                continue;
            }
            let function = &functions[number];
            let calls = function.callees.iter().filter_map(|(call, goal)| {
                match numbers.get(goal).and_then(|callee| found.get(callee)) {
                    Some(Found::Done(Some(writes))) => Some((*call, *writes)),
                    _ => None,
                }
            });
            let calls = calls.collect();
            functions[number].set_kept_calls(calls);
            let is_called = called.contains(&number);
            let kept = is_called
                .then(|| kept(&functions[number], decoder))
                .flatten();
            found.insert(number, Found::Done(kept));
        }
    }
}

/// The scalar registers that a function and its callees may write, if it returns with the lanes of its entry.
fn kept(outline: &Outline<'_>, decoder: &mut Decoder) -> Option<Scalars> {
    if !outline.may_return_whole() {
        return None;
    }
    let kept_calls = outline.kept_calls();
    if kept_calls.len() < outline.calls {
        return None;
    }
    let writes = kept_calls
        .values()
        .fold(outline.writes, |all, own| all | own);
    outline.returns_whole(decoder).then_some(writes)
}

//! From a code object to one with counters.

use std::collections::HashMap;

use modelgpu_isa::{Flow, WaveSize};

use super::code::Used;
use super::emit::{Emitter, Labels};
use super::encoder::Encoder;
use super::error::Refusal;
use super::function::Function;
use super::link::Layout;
use super::map::{FunctionCounts, StretchCounts};
use super::object::{Object, granule};
use super::plan::Plan;
use super::registers::{Group, plan};
use super::text::{Goal, Label, Text};
use super::{AmdgcnOptions, Instrumented};

/// The farthest that a branch reaches, in bytes from behind it.
const REACH: i64 = 0x7fff * 4;
/// The bytes of a branch to a far place: `s_getpc_b64`, two additions of constants, and `s_setpc_b64`.
const FAR_BRANCH: u64 = 24;

/// Puts counters into a code object for AMD GPUs.
///
/// # Errors
/// Fails if the code object is damaged, is for a processor that is not supported, or has no function that can be instrumented.
pub fn instrument(elf: &[u8], options: &AmdgcnOptions) -> Result<Instrumented, Refusal> {
    let object = Object::parse(elf)?;
    let functions = object.functions();
    let mut refused = Vec::new();
    let (connected, mut groups) = groups(&functions, &mut refused);
    let mut plans: Vec<(Plan, Vec<&Function<'_>>)> = Vec::new();
    let mut words = 0;
    let mut is_apart = false;
    if let Some(connected) = connected {
        // Many functions have too many counters to have them all in registers at once. And one that stays as it is may end
        // waves.
        let has_gaps = functions
            .iter()
            .any(|function| !function.is_kernel() && obstacle(function).is_some());
        let whole = (!has_gaps && !options.is_apart)
            .then(|| planned(&object, &functions, &connected, words, options, false).ok())
            .flatten();
        match whole {
            Some(plan) => {
                words += plan.words;
                plans.push((plan, connected));
            }
            None => {
                is_apart = true;
                groups.extend(connected.into_iter().map(|function| vec![function]));
            }
        }
    }
    for group in groups {
        let is_apart = is_apart && (group[0].calls || !group[0].is_kernel());
        match planned(&object, &functions, &group, words, options, is_apart) {
            Ok(plan) => {
                words += plan.words;
                plans.push((plan, group));
            }
            Err(refusal) => {
                let names = group.iter().map(|function| function.name.clone());
                refused.extend(names.map(|name| (name, refusal.clone())));
            }
        }
    }
    join_registers(&mut plans);
    if plans.is_empty() {
        let first = refused.into_iter().next();
        return Err(first.map_or(Refusal::NoFunction, |(_, refusal)| refusal));
    }
    let mut text = Text::default();
    let mut labels = Labels::default();
    for function in plans.iter().flat_map(|(_, group)| group) {
        let label = text.label();
        let known = match function.is_kernel() {
            true => &mut labels.kernels,
            false => &mut labels.starts,
        };
        known.insert(function.code.address, label);
    }
    let branch = plans[0].0.encoder.branch_word();
    text.filler = plans[0].0.encoder.nothing_word();
    for (plan, group) in &plans {
        Emitter::new(plan, group, &labels, &mut text).write(&mut text)?;
    }
    text.bridge(branch)?;
    text.link_branches();
    let layout = Layout::new(&object, &text, words)?;
    let patches = patches(&object, &plans, &labels, &text, &layout)?;
    let counts = counts(&plans);
    let code = layout.link(&object, &text, &counts, |bytes| {
        for (offset, patch) in patches {
            bytes[offset..offset + patch.len()].copy_from_slice(&patch);
        }
    })?;
    Ok(Instrumented { code, refused })
}

/// The kernels that call functions, and these functions, if there are any; and groups of others: kernels that call none. Adds
/// those that cannot be copied to `refused`.
fn groups<'f, 'data>(
    functions: &'f [Function<'data>],
    refused: &mut Vec<(String, Refusal)>,
) -> (
    Option<Vec<&'f Function<'data>>>,
    Vec<Vec<&'f Function<'data>>>,
) {
    let (mut connected, mut single) = (Vec::new(), Vec::new());
    for function in functions {
        match obstacle(function) {
            None if function.calls || !function.is_kernel() => connected.push(function),
            None => single.push(vec![function]),
            Some(refusal) => refused.push((function.name.clone(), refusal)),
        }
    }
    let has_kernel = connected.iter().any(|function| function.is_kernel());
    (has_kernel.then_some(connected), single)
}

/// Gives all kernels that call functions the registers of all functions that are apart.
fn join_registers(plans: &mut [(Plan, Vec<&Function<'_>>)]) {
    let apart = || plans.iter().filter(|(plan, _)| plan.is_apart);
    let Some(first) = apart().map(|(plan, _)| plan.total).next() else {
        return;
    };
    let mut total = first;
    apart().for_each(|(plan, _)| total.join(plan.total));
    let accumulator = apart().map(|(plan, _)| plan.first_accumulator).max();
    for (plan, _) in plans.iter_mut().filter(|(plan, _)| plan.is_apart) {
        plan.total = total;
        plan.first_accumulator = accumulator.unwrap_or(plan.first_accumulator);
    }
}

/// Why a function cannot be copied.
fn obstacle(function: &Function<'_>) -> Option<Refusal> {
    const FOREIGN: [&str; 7] = [
        "s_cbranch_i_fork",
        "s_cbranch_g_fork",
        "s_cbranch_join",
        "s_rfe",
        "s_subvector",
        "s_cbranch_cdbg",
        "s_set_vgpr_msb",
    ];
    let mut is_indexing = false;
    for (number, ins) in function.all.iter().enumerate() {
        let name = ins.mnemonic;
        let refusal = Refusal::Instruction {
            mnemonic: name,
            address: ins.address,
        };
        if name == "s_set_gpr_idx_mode" || FOREIGN.iter().any(|foreign| name.starts_with(foreign)) {
            return Some(refusal);
        }
        match name {
            "s_set_gpr_idx_on" => is_indexing = true,
            "s_set_gpr_idx_off" => is_indexing = false,
            _ if is_indexing && function.stretches[function.stretch_of(number)].first == number => {
                return Some(refusal);
            }
            _ => {}
        }
    }
    let unknown = |number: &usize| Refusal::Branch {
        address: function.all[*number].address,
    };
    let unresolved = function.unresolved.first().filter(|_| function.is_kernel());
    function.outside.first().or(unresolved).map(unknown)
}

/// The plan of a group.
fn planned(
    object: &Object<'_>,
    functions: &[Function<'_>],
    group: &[&Function<'_>],
    first_word: u64,
    options: &AmdgcnOptions,
    is_apart: bool,
) -> Result<Plan, Refusal> {
    let mut used = Used::default();
    match is_apart || group.iter().any(|function| function.calls) {
        // Any of them may be called.
        true => functions
            .iter()
            .for_each(|function| used.join(function.used)),
        false => group.iter().for_each(|function| used.join(function.used)),
    }
    let mut callees = functions.iter().filter(|function| !function.is_kernel());
    let callees_end = callees.any(|function| {
        let mut all = function.all.iter();
        all.any(|ins| matches!(ins.flow, Flow::End | Flow::Trap))
    });
    let kernels = group
        .iter()
        .filter_map(|function| object.kernels.get(&function.code.address));
    let wave = group[0].code.wave;
    if let Some(other) = group.iter().find(|function| function.code.wave != wave) {
        return Err(Refusal::Callee {
            callee: other.name.clone(),
        });
    }
    let group = Group {
        target: object.target,
        lanes: match wave {
            WaveSize::W32 => 32,
            WaveSize::W64 => 64,
        },
        functions: group,
        descriptors: kernels.flatten().copied().collect(),
        used,
        callees_end,
        is_apart,
        counting: options.counting,
    };
    plan(&group, first_word, options.rounds)
}

/// The changes to loaded bytes of the original, by offset in the file: kernel descriptors, and branches from functions to
/// their copies.
fn patches(
    object: &Object<'_>,
    plans: &[(Plan, Vec<&Function<'_>>)],
    labels: &Labels,
    text: &Text,
    layout: &Layout,
) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
    let outside = || Refusal::Damaged("a function is not loaded".to_owned());
    let place = |label: Label| layout.text + text.offset(label);
    let mut patches = Vec::new();
    for (plan, group) in plans {
        let is_gfx9 = object.target.generation() == modelgpu_isa::Generation::Gfx9;
        for function in group {
            let address = function.code.address;
            if let Some(label) = labels.kernels.get(&address) {
                for descriptor in object.kernels.get(&address).into_iter().flatten() {
                    let offset = object.offset(descriptor.address, 64).ok_or_else(outside)?;
                    let mut bytes = object.bytes[offset..offset + 64].to_vec();
                    let accumulator = is_gfx9.then_some(plan.first_accumulator);
                    let vectors = match accumulator {
                        Some(first) => first + plan.total.accumulators,
                        None => plan.total.vectors,
                    };
                    let granule = granule(object.target, plan.encoder.lanes);
                    let scalars = plan.total.scalars;
                    descriptor.write(
                        &mut bytes,
                        place(*label),
                        vectors,
                        scalars,
                        accumulator,
                        granule,
                    );
                    patches.push((offset, bytes));
                }
            } else if let Some(label) = labels.starts.get(&address) {
                let bytes = pad(plan, function, place(*label))?;
                let offset = object
                    .offset(address, bytes.len() as u64)
                    .ok_or_else(outside)?;
                patches.push((offset, bytes));
            }
        }
    }
    Ok(patches)
}

/// The branch from the start of a function to its copy.
fn pad(plan: &Plan, function: &Function<'_>, goal: u64) -> Result<Vec<u8>, Refusal> {
    let address = function.code.address;
    let distance = goal.wrapping_sub(address + 4).cast_signed();
    if distance.abs() <= REACH {
        let word = plan.encoder.branch_word() | (distance / 4) as u32 & 0xffff;
        return Ok(word.to_le_bytes().to_vec());
    }
    let size = function.code.bytes.len() as u64;
    if size < FAR_BRANCH {
        return Err(Refusal::Short { size });
    }
    let mut text = Text::default();
    // SCC and the temporaries are free at an entry.
    let pair = plan.temporaries[0];
    let encoder: Encoder = plan.encoder;
    encoder.address(&mut text, pair, Goal::Original(goal));
    encoder.jump(&mut text, pair);
    Ok(text.bytes(address, 0))
}

/// The counts of all functions, for the map.
fn counts(plans: &[(Plan, Vec<&Function<'_>>)]) -> Vec<FunctionCounts> {
    let mut all: HashMap<u64, FunctionCounts> = HashMap::new();
    for (plan, group) in plans {
        for (number, function) in group.iter().enumerate() {
            let start = function.code.address;
            let word = |address: u64| (address - start) / 4;
            let stretches = function.stretches.iter().zip(&plan.sums[number]);
            let stretches = stretches.map(|(stretch, (waves, lanes))| StretchCounts {
                word: word(function.all[stretch.first].address),
                waves: waves.clone(),
                lanes: lanes.clone(),
            });
            let counts = FunctionCounts {
                address: start,
                words: function.code.bytes.len() as u64 / 4,
                starts: function.all.iter().map(|ins| word(ins.address)).collect(),
                stretches: stretches.collect(),
            };
            all.insert(start, counts);
        }
    }
    let mut all: Vec<FunctionCounts> = all.into_values().collect();
    all.sort_by_key(|counts| counts.address);
    all
}

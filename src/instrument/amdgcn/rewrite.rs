//! From a code object to one with counters.

use std::collections::HashMap;

use modelgpu_isa::{Flow, Generation, WaveSize};

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
use super::{AmdgcnOptions, Instrumented, Sharing};

/// The farthest that a branch reaches, in bytes from behind it.
const REACH: i64 = 0x7fff * 4;
/// The bytes of a branch to a far place: `s_getpc_b64`, two additions of constants, and `s_setpc_b64`.
const FAR_BRANCH: u64 = 24;
/// The bytes before it that keep the values of a pair of registers, at most: waits, and two `v_writelane_b32`.
const KEPT_PAIR: u64 = 44;

/// Puts counters into a code object for AMD GPUs.
///
/// # Errors
/// Fails if the code object is damaged, is for a processor that is not supported, or has no function that can be instrumented.
pub fn instrument(elf: &[u8], options: &AmdgcnOptions) -> Result<Instrumented, Refusal> {
    let object = Object::parse(elf)?;
    let (end, _) = object.ends()?;
    match instrument_within(&object, options, Far { end, reach: REACH }) {
        // Its copy lies far behind the end.
        Err(Refusal::Short { .. }) => instrument_within(&object, options, Far { end, reach: 0 }),
        instrumented => instrumented,
    }
}

/// Puts counters into a code object whose functions are as far from their copies as they seem.
fn instrument_within(
    object: &Object<'_>,
    options: &AmdgcnOptions,
    far: Far,
) -> Result<Instrumented, Refusal> {
    let functions = object.functions();
    let mut refused = Vec::new();
    let (connected, mut groups) = groups(&functions, far, &mut refused);
    let mut plans: Vec<(Plan, Vec<&Function<'_>>)> = Vec::new();
    let mut words = 0;
    let mut is_apart = false;
    if let Some(connected) = connected {
        // Many functions have too many counters to have them all in registers at once. And one that stays as it is may end
        // waves.
        let has_gaps = functions
            .iter()
            .any(|function| is_connected(function) && far.obstacle(function).is_some());
        let whole = (!has_gaps && options.sharing == Sharing::Separate)
            .then(|| planned(object, &functions, &connected, words, options, false).ok())
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
        let is_apart = is_apart && is_connected(group[0]);
        let plan = planned(object, &functions, &group, words, options, is_apart);
        match plan.and_then(|plan| far.with_room(plan, group[0])) {
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
    for (plan, group) in &plans {
        for function in group {
            let address = function.code.address;
            let known = match function.is_kernel() {
                true => &mut labels.kernels,
                false => &mut labels.starts,
            };
            known.insert(address, text.label());
            if plan.borrowed.is_some() {
                labels.behind_pairs.insert(address, text.label());
            }
        }
    }
    let branch = plans[0].0.encoder.branch_word();
    text.filler = plans[0].0.encoder.nothing_word();
    for (plan, group) in &plans {
        Emitter::new(plan, group, &labels, &mut text).write(&mut text)?;
    }
    text.bridge(branch)?;
    text.link_branches();
    let layout = Layout::new(object, &text, words)?;
    let mut patches = patches(object, &plans, &labels, &text, &layout)?;
    if let Some((plan, _)) = plans.iter().find(|(plan, _)| plan.is_apart) {
        let kept = functions.iter().filter(|function| {
            function.calls && !labels.kernels.contains_key(&function.code.address)
        });
        for function in kept {
            patches.extend(described(object, plan, function, None)?);
        }
    }
    let counts = counts(&plans);
    let code = layout.link(object, &text, &counts, |bytes| {
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
    far: Far,
    refused: &mut Vec<(String, Refusal)>,
) -> (
    Option<Vec<&'f Function<'data>>>,
    Vec<Vec<&'f Function<'data>>>,
) {
    let (mut connected, mut single) = (Vec::new(), Vec::new());
    for function in functions {
        match far.obstacle(function) {
            None if is_connected(function) => connected.push(function),
            None => single.push(vec![function]),
            Some(refusal) => refused.push((function.name.clone(), refusal)),
        }
    }
    let has_kernel = connected.iter().any(|function| function.is_kernel());
    (has_kernel.then_some(connected), single)
}

/// A kernel that calls functions, or a function.
fn is_connected(function: &Function<'_>) -> bool {
    function.calls || !function.is_kernel()
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

/// The distances from functions to their copies.
#[derive(Clone, Copy, Debug)]
struct Far {
    /// The end of the loaded bytes, behind which the copies lie.
    end: u64,
    /// Branches from functions that are farther from the end do not reach their copies.
    reach: i64,
}

impl Far {
    /// Why a function has no room for a branch to its copy that takes so many bytes.
    fn shortage(&self, function: &Function<'_>, needed: u64) -> Option<Refusal> {
        let size = function.code.bytes.len() as u64;
        let distance = self.end.saturating_sub(function.code.address);
        let is_far = distance.cast_signed() > self.reach;
        let is_short = !function.is_kernel() && size < needed && is_far;
        is_short.then_some(Refusal::Short { size })
    }

    /// Why a function cannot be copied.
    fn obstacle(&self, function: &Function<'_>) -> Option<Refusal> {
        obstacle(function).or_else(|| self.shortage(function, FAR_BRANCH))
    }

    /// The plan of a function, if this has room for its branch.
    fn with_room(&self, plan: Plan, function: &Function<'_>) -> Result<Plan, Refusal> {
        let needed = match plan.borrowed {
            Some(_) => FAR_BRANCH + KEPT_PAIR,
            None => FAR_BRANCH,
        };
        match self.shortage(function, needed) {
            Some(refusal) => Err(refusal),
            None => Ok(plan),
        }
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
    let mut own = Used::default();
    group.iter().for_each(|function| own.join(function.used));
    let mut used = own;
    if is_apart || group.iter().any(|function| function.calls) {
        // Any of them may be called.
        functions
            .iter()
            .for_each(|function| used.join(function.used));
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
        own,
        callees_end,
        is_apart,
        counting: options.counting,
        sharing: options.sharing,
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
    let place = |label: Label| layout.text + text.offset(label);
    let mut patches = Vec::new();
    for (plan, group) in plans {
        for function in group {
            let address = function.code.address;
            if let Some(label) = labels.kernels.get(&address) {
                let entry = place(*label);
                patches.extend(described(object, plan, function, Some(entry))?);
            } else if let Some(label) = labels.starts.get(&address) {
                let behind = labels.behind_pairs.get(&address).copied();
                let behind = behind.map_or(place(*label), place);
                let bytes = pad(plan, function, place(*label), behind)?;
                let offset = object
                    .offset(address, bytes.len() as u64)
                    .ok_or_else(outside)?;
                patches.push((offset, bytes));
            }
        }
    }
    Ok(patches)
}

/// The descriptors of a kernel with the registers of a plan, and with the entry of its copy if it has one: functions that a kernel
/// without a copy calls need registers, too.
fn described(
    object: &Object<'_>,
    plan: &Plan,
    function: &Function<'_>,
    entry: Option<u64>,
) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
    let is_gfx9 = object.target.generation() == Generation::Gfx9;
    let accumulator = is_gfx9.then_some(plan.first_accumulator);
    let vectors = match accumulator {
        Some(first) => first + plan.total.accumulators,
        None => plan.total.vectors,
    };
    let granule = granule(object.target, plan.encoder.lanes);
    let descriptors = object.kernels.get(&function.code.address);
    let patches = descriptors.into_iter().flatten().map(|descriptor| {
        let offset = object.offset(descriptor.address, 64).ok_or_else(outside)?;
        let mut bytes = object.bytes[offset..offset + 64].to_vec();
        descriptor.write(
            &mut bytes,
            entry.unwrap_or(descriptor.entry),
            vectors,
            plan.total.scalars,
            accumulator,
            granule,
        );
        Ok((offset, bytes))
    });
    patches.collect()
}

fn outside() -> Refusal {
    Refusal::Damaged("a function is not loaded".to_owned())
}

/// The branch from the start of a function to its copy: to `goal`, or to the place there behind the instructions that keep the
/// first pair of borrowed registers.
fn pad(plan: &Plan, function: &Function<'_>, goal: u64, behind: u64) -> Result<Vec<u8>, Refusal> {
    let address = function.code.address;
    let distance = goal.wrapping_sub(address + 4).cast_signed();
    if distance.abs() <= REACH {
        let word = plan.encoder.branch_word() | (distance / 4) as u32 & 0xffff;
        return Ok(word.to_le_bytes().to_vec());
    }
    let mut text = Text::default();
    // SCC is free at an entry, and so are the temporaries, but for borrowed ones.
    let pair = plan.temporaries[0];
    let encoder: Encoder = plan.encoder;
    if let Some(borrowed) = &plan.borrowed {
        encoder.keep_pair(&mut text, borrowed.scalars.start, borrowed.scalars_in);
    }
    encoder.address(&mut text, pair, Goal::Original(behind));
    encoder.jump(&mut text, pair);
    let size = function.code.bytes.len() as u64;
    match 4 * text.len() as u64 > size {
        true => Err(Refusal::Short { size }),
        false => Ok(text.bytes(address, 0)),
    }
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

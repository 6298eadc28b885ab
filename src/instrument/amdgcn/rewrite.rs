//! From a code object to one with counters.

use std::collections::{BTreeMap, HashMap};

use modelgpu_isa::{Flow, Generation, WaveSize};

use super::code::Used;
use super::encoder::Encoder;
use super::error::Refusal;
use super::function::Function;
use super::insert::{Emitter, Labels, Own, Planned};
use super::kept;
use super::link::Layout;
use super::map::{self, FunctionCounts, StretchCounts};
use super::object::{Object, granule};
use super::plan::Plan;
use super::registers::{Group, plan};
use super::text::{Goal, Label, Text};
use super::{AmdgcnOptions, Instrumented, Sharing};

/// The farthest that a branch reaches, in bytes from after it.
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
        // Its copy lies far past the end.
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
    let mut functions = object.functions();
    kept::note(&mut functions);
    let planner = Planner {
        object,
        options,
        far,
        functions: &functions,
        words: 0,
        plans: Vec::new(),
        refused: Vec::new(),
    };
    let (mut plans, words, refused) = planner.plan();
    join_registers(&mut plans);
    if plans.is_empty() {
        let first = refused.into_iter().next();
        return Err(first.map_or(Refusal::NoFunction, |(_, refusal)| refusal));
    }
    let mut text = Text::default();
    let mut labels = Labels::default();
    for Planned {
        own,
        plan,
        functions,
    } in &plans
    {
        for function in functions {
            let address = function.code.address;
            let label = text.label();
            match function.is_kernel() {
                true => labels.kernels.insert(address, label),
                false => labels.starts.insert((*own, address), label),
            };
            if plan.borrowed.is_some() {
                let label = text.label();
                labels.behind_pairs.insert(address, label);
            }
        }
    }
    let branch = plans[0].plan.encoder.branch_word();
    text.filler = plans[0].plan.encoder.nothing_word();
    for planned in &plans {
        Emitter::new(planned, &labels, &mut text).write(&mut text)?;
    }
    text.bridge(branch)?;
    text.link_branches();
    let layout = Layout::new(object, &text, words)?;
    let mut patches = patches(object, &plans, &labels, &text, &layout)?;
    if let Some(apart) = plans.iter().find(|planned| planned.plan.is_apart) {
        let kept = functions.iter().filter(|function| {
            function.calls && !labels.kernels.contains_key(&function.code.address)
        });
        for function in kept {
            patches.extend(described(object, &apart.plan, function, None)?);
        }
    }
    let spread = plans.iter().flat_map(|planned| planned.plan.spread());
    let mut spread: Vec<(u64, u64)> = spread.collect();
    spread.sort_unstable();
    let map = map::encode(
        layout.counters,
        layout.counter_count(),
        &spread,
        counts(&plans),
    );
    // The new code object may be large, and they are no longer needed.
    drop(plans);
    drop(functions);
    let code = layout.link(object, &text, &map, |bytes| {
        for (offset, patch) in patches {
            bytes[offset..offset + patch.len()].copy_from_slice(&patch);
        }
    })?;
    Ok(Instrumented { code, refused })
}

/// Divides the functions of a code object into groups that share registers, and plans their counters.
struct Planner<'f, 'data> {
    object: &'f Object<'data>,
    options: &'f AmdgcnOptions,
    far: Far,
    functions: &'f [Function<'data>],
    words: u64,
    plans: Vec<Planned<'f, 'data>>,
    refused: Vec<(String, Refusal)>,
}

impl<'f, 'data> Planner<'f, 'data> {
    /// The plans, the words of their counters in memory, and the functions without counters.
    fn plan(mut self) -> (Vec<Planned<'f, 'data>>, u64, Vec<(String, Refusal)>) {
        let connected = self.plan_kernels();
        self.plan_connected(connected);
        (self.plans, self.words, self.refused)
    }

    /// Plans each kernel by itself: with copies of the functions that it calls, if these are known. Returns the other
    /// kernels that call functions, also those that cannot be copied.
    fn plan_kernels(&mut self) -> Vec<&'f Function<'data>> {
        let by_address = self.functions.iter();
        let by_address: HashMap<u64, &Function<'data>> = by_address
            .map(|function| (function.code.address, function))
            .collect();
        // Copies for single kernels double the code at most.
        let sizes = self
            .functions
            .iter()
            .map(|function| function.code.bytes.len());
        let mut room: usize = sizes.sum();
        let mut connected = Vec::new();
        for kernel in self
            .functions
            .iter()
            .filter(|function| function.is_kernel())
        {
            if let Some(refusal) = obstacle(kernel) {
                self.refused.push((kernel.name.clone(), refusal));
                connected.extend(kernel.calls.then_some(kernel));
                continue;
            }
            let is_separate = self.options.sharing == Sharing::Separate;
            let callees = match kernel.calls {
                true if !is_separate => None,
                true => callees(kernel, &by_address),
                false => Some(Vec::new()),
            };
            let Some(callees) = callees else {
                connected.push(kernel);
                continue;
            };
            let size: usize = callees
                .iter()
                .map(|function| function.code.bytes.len())
                .sum();
            let mut group = vec![kernel];
            group.extend(callees);
            let used = joined(&group);
            let plan = match size <= room {
                true => self.planned(&group, used, Reach::Kernel),
                false => Err(Refusal::NoFunction),
            };
            match plan {
                Ok(plan) => {
                    room -= size;
                    self.add(Some(kernel.code.address), plan, group);
                }
                Err(_) if kernel.calls => connected.push(kernel),
                Err(refusal) => self.refused.push((kernel.name.clone(), refusal)),
            }
        }
        connected
    }

    /// Plans the functions that these kernels may call, and those of the kernels that can be copied.
    fn plan_connected(&mut self, kernels: Vec<&'f Function<'data>>) {
        if kernels.is_empty() {
            return;
        }
        let devices = self
            .functions
            .iter()
            .filter(|function| !function.is_kernel());
        let all: Vec<&Function<'data>> = kernels.into_iter().chain(devices).collect();
        // Any of them may be called.
        let used = joined(&all);
        let (mut group, mut has_gaps) = (Vec::new(), false);
        for function in all {
            match self.far.obstacle(function) {
                None => group.push(function),
                Some(refusal) => {
                    // That of a kernel is known.
                    has_gaps = true;
                    if !function.is_kernel() {
                        self.refused.push((function.name.clone(), refusal));
                    }
                }
            }
        }
        // Many functions have too many counters to have them all in registers at once. And one that stays as it is may end waves.
        let is_whole = !has_gaps && self.options.sharing == Sharing::Separate;
        let whole = is_whole.then(|| self.planned(&group, used, Reach::Object).ok());
        if let Some(plan) = whole.flatten() {
            self.add(None, plan, group);
            return;
        }
        for function in group {
            let plan = self.planned(&[function], used, Reach::Function);
            match plan.and_then(|plan| self.far.with_room(plan, function)) {
                Ok(plan) => self.add(None, plan, vec![function]),
                Err(refusal) => self.refused.push((function.name.clone(), refusal)),
            }
        }
    }

    fn add(&mut self, own: Own, plan: Plan, functions: Vec<&'f Function<'data>>) {
        self.words += plan.words;
        self.plans.push(Planned {
            own,
            plan,
            functions,
        });
    }

    /// The plan of a group. These registers are `used` by it and all that it may call.
    fn planned(&self, group: &[&Function<'_>], used: Used, reach: Reach) -> Result<Plan, Refusal> {
        let ends = |function: &Function<'_>| {
            let mut all = function.all.iter();
            all.any(|ins| matches!(ins.flow, Flow::End | Flow::Trap))
        };
        let is_apart = reach == Reach::Function;
        let callees_end = match is_apart {
            true => self
                .functions
                .iter()
                .any(|function| !function.is_kernel() && ends(function)),
            false => group
                .iter()
                .any(|function| !function.is_kernel() && ends(function)),
        };
        let kernels = group
            .iter()
            .filter_map(|function| self.object.kernels.get(&function.code.address));
        let wave = group[0].code.wave;
        if let Some(other) = group.iter().find(|function| function.code.wave != wave) {
            return Err(Refusal::Callee {
                callee: other.name.clone(),
            });
        }
        let group = Group {
            target: self.object.target,
            lanes: match wave {
                WaveSize::W32 => 32,
                WaveSize::W64 => 64,
            },
            functions: group,
            descriptors: kernels.flatten().copied().collect(),
            used,
            own: joined(group),
            callees_end,
            is_apart,
            is_closed: reach == Reach::Kernel,
            counting: self.options.counting,
            sharing: self.options.sharing,
        };
        plan(&group, self.words, self.options.rounds)
    }
}

/// The functions of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// A kernel, with copies of its own of all functions that it may call.
    Kernel,
    /// All that are connected by calls.
    Object,
    /// One function, which shares its registers with others.
    Function,
}

/// The registers that functions use.
fn joined(functions: &[&Function<'_>]) -> Used {
    let mut used = Used::default();
    functions
        .iter()
        .for_each(|function| used.join(function.used));
    used
}

/// The functions that a kernel may call, and those that they may call. `None` if some are not known, or have no copy.
fn callees<'f, 'data>(
    kernel: &Function<'data>,
    by_address: &HashMap<u64, &'f Function<'data>>,
) -> Option<Vec<&'f Function<'data>>> {
    let mut found = BTreeMap::new();
    let mut open: Vec<&Function<'data>> = vec![kernel];
    while let Some(function) = open.pop() {
        let calls = function.all.iter().filter(|ins| ins.is_call()).count();
        if calls != function.callees.len() || !function.unresolved.is_empty() {
            return None;
        }
        for (number, goal) in &function.callees {
            // A direct call within the function is a branch.
            let is_direct = matches!(function.all[*number].flow, Flow::Call { .. });
            if is_direct && function.number_at(*goal).is_some() {
                continue;
            }
            let callee = by_address.get(goal).copied()?;
            if callee.is_kernel() || obstacle(callee).is_some() {
                return None;
            }
            if found.insert(*goal, callee).is_none() {
                open.push(callee);
            }
        }
    }
    Some(found.into_values().collect())
}

/// Gives all kernels that call functions the registers of all functions that are apart.
fn join_registers(plans: &mut [Planned<'_, '_>]) {
    let apart = || {
        plans
            .iter()
            .map(|planned| &planned.plan)
            .filter(|plan| plan.is_apart)
    };
    let Some(first) = apart().map(|plan| plan.total).next() else {
        return;
    };
    let mut total = first;
    apart().for_each(|plan| total.join(plan.total));
    let accumulator = apart().map(|plan| plan.first_accumulator).max();
    for plan in plans.iter_mut().map(|planned| &mut planned.plan) {
        if plan.is_apart {
            plan.total = total;
            plan.first_accumulator = accumulator.unwrap_or(plan.first_accumulator);
        }
    }
}

/// The distances from functions to their copies.
#[derive(Clone, Copy, Debug)]
struct Far {
    /// The end of the loaded bytes, after which the copies are.
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

/// The changes to loaded bytes of the original, by offset in the file: kernel descriptors, and branches from functions to
/// their copies.
fn patches(
    object: &Object<'_>,
    plans: &[Planned<'_, '_>],
    labels: &Labels,
    text: &Text,
    layout: &Layout,
) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
    let place = |label: Label| layout.text + text.offset(label);
    let mut patches = Vec::new();
    for Planned {
        own,
        plan,
        functions,
    } in plans
    {
        for function in functions {
            let address = function.code.address;
            if own.is_some() && !function.is_kernel() {
                continue;
            }
            if let Some(label) = labels.kernels.get(&address) {
                let entry = place(*label);
                patches.extend(described(object, plan, function, Some(entry))?);
            } else if let Some(label) = labels.starts.get(&(None, address)) {
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

/// The branch from the start of a function to its copy: to `goal`, or to the place there after the instructions that keep the
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

/// The counts of all copies of functions by address, for the map.
fn counts(plans: &[Planned<'_, '_>]) -> impl ExactSizeIterator<Item = FunctionCounts> {
    let numbered = plans.iter().flat_map(
        |Planned {
             plan, functions, ..
         }| {
            let numbered = functions.iter().copied().enumerate();
            numbered.map(move |(number, function)| (plan, number, function))
        },
    );
    let mut all: Vec<(&Plan, usize, &Function<'_>)> = numbered.collect();
    all.sort_by_key(|(.., function)| function.code.address);
    all.into_iter().map(|(plan, number, function)| {
        let start = function.code.address;
        let word = |address: u64| (address - start) / 4;
        let stretches = function.stretches.iter().zip(&plan.sums[number]);
        let stretches = stretches.map(|(stretch, (waves, lanes))| StretchCounts {
            word: word(function.all[stretch.first].address),
            waves: waves.clone(),
            lanes: lanes.clone(),
        });
        FunctionCounts {
            address: start,
            words: function.code.bytes.len() as u64 / 4,
            starts: function.all.iter().map(|ins| word(ins.address)).collect(),
            stretches: stretches.collect(),
        }
    })
}

//! From a code object to one with counters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use modelgpu_isa::{Generation, WaveSize};

use super::code::{Decoder, Used};
use super::encoder::Encoder;
use super::error::Refusal;
use super::function::Function;
use super::helpers::{Helpers, Work};
use super::insert::{Emitter, Labels, Own, Planned};
use super::kept;
use super::link::Layout;
use super::map::{FunctionCounts, MapParts, StretchCounts, Sum};
use super::marks;
use super::object::{Object, granule};
use super::outline::{DECODED_BYTES, Outline, Outlines};
use super::plan::Plan;
use super::registers::{self, Group};
use super::text::{Goal, Label, Text};
use super::{AmdgcnOptions, Instrumented, Sharing};
use crate::support::counting::Counting;

/// The farthest that a branch reaches, in bytes from after it.
const REACH: i64 = 0x7fff * 4;
/// The bytes of a branch to a far place: `s_getpc_b64`, two additions of constants, and `s_setpc_b64`.
const FAR_BRANCH: u64 = 24;
/// The bytes before it that keep the values of a pair of registers, at most: waits, and two `v_writelane_b32`.
const KEPT_PAIR: u64 = 44;

/// Puts counters into a code object for AMD GPUs, on the calling thread.
///
/// # Errors
/// Fails if the code object is damaged, is for a processor that is not supported, or has no function that can be instrumented.
pub fn instrument(elf: &[u8], options: &AmdgcnOptions) -> Result<Instrumented, Refusal> {
    instrument_with(elf, options, Helpers::NONE)
}

/// As [`instrument()`], with the help of other threads if the code object is large. The result is the same.
///
/// # Errors
/// Fails if [`instrument()`] does.
pub fn instrument_with(
    elf: &[u8],
    options: &AmdgcnOptions,
    helpers: Helpers,
) -> Result<Instrumented, Refusal> {
    let object = Object::parse(elf)?;
    let (end, _) = object.ends()?;
    let within = |reach| instrument_within(&object, options, helpers, Far { end, reach });
    match within(REACH) {
        // Its copy lies far past the end.
        Err(Refusal::Short { .. }) => within(0),
        instrumented => instrumented,
    }
}

/// Puts counters into a code object whose functions are as far from their copies as they seem.
fn instrument_within(
    object: &Object<'_>,
    options: &AmdgcnOptions,
    helpers: Helpers,
    far: Far,
) -> Result<Instrumented, Refusal> {
    let layout = Layout::new(object)?;
    let mut outlines = Outlines::new(&object.codes(), options.at_once, helpers);
    kept::note(&mut outlines);
    let mut rewriter = Rewriter {
        outlines: &outlines,
        far,
        words: 0,
        text: Text::after(layout.before_text(object)),
        labels: Labels::default(),
        map: MapParts::default(),
        written: Vec::new(),
        refused: Vec::new(),
    };
    rewriter.rewrite(Planner::new(object, options, &outlines.functions))?;
    let Rewriter {
        words,
        mut text,
        labels,
        map,
        mut written,
        refused,
        ..
    } = rewriter;
    let Some(first) = written.first() else {
        let first = refused.into_iter().next();
        return Err(first.map_or(Refusal::NoFunction, |(_, refusal)| refusal));
    };
    let functions = &outlines.functions;
    check_direct_calls(functions, &written, &labels, &text)?;
    text.bridge(first.plan.encoder.branch_word())?;
    text.link_branches();
    join_registers(&mut written);
    let mut patches = patches(object, functions, &written, &labels, &text, &layout)?;
    if let Some(apart) = written.iter().find(|written| written.plan.is_apart) {
        let kept = functions.iter().filter(|function| {
            function.calls > 0 && !labels.kernels.contains_key(&function.address())
        });
        for function in kept {
            patches.extend(described(object, &apart.plan, function, None)?);
        }
    }
    // The new code object may be large, and they are no longer needed.
    drop((written, outlines));
    let code = layout.link(object, text, words, map, |bytes| {
        for (offset, patch) in patches {
            bytes[offset..offset + patch.len()].copy_from_slice(&patch);
        }
    })?;
    Ok(Instrumented { code, refused })
}

/// The copies of a group of functions that have been written.
struct Written {
    own: Own,
    /// Without its counters.
    plan: Plan,
    /// The numbers of the functions.
    functions: Vec<usize>,
}

/// A group of functions, decoded, and its plan.
type PlannedGroup<'data> = (Plan, Vec<Arc<Function<'data>>>);

/// The way of a kernel.
enum KernelWay {
    /// It cannot be copied.
    Obstacle(Refusal),
    /// Its callees are not known, or have no copies of their own.
    Connected,
    /// It has copies of its own of the functions that it calls: these are the numbers of all, and the bytes of these functions.
    Apart(Vec<usize>, usize),
    /// So it may be, but there may be no room for these copies.
    Unsure,
}

/// Divides the functions of a code object into groups that share registers, and writes their copies. Few groups are decoded at a
/// time.
struct Rewriter<'o, 'data> {
    outlines: &'o Outlines<'data>,
    far: Far,
    /// The words of counters in memory.
    words: u64,
    text: Text,
    labels: Labels,
    map: MapParts,
    written: Vec<Written>,
    /// The functions without counters.
    refused: Vec<(String, Refusal)>,
}

impl<'o, 'data> Rewriter<'o, 'data> {
    fn rewrite(&mut self, planner: Planner<'o, 'data>) -> Result<(), Refusal> {
        let mut decoder = self.outlines.another_decoder();
        let connected = self.rewrite_kernels(planner, &mut decoder)?;
        self.rewrite_connected(planner, connected, &mut decoder)
    }

    fn refuse(&mut self, function: &Outline<'_>, refusal: Refusal) {
        self.refused.push((function.named.name.to_owned(), refusal));
    }

    /// Rewrites each kernel by itself: with copies of the functions that it calls, if these are known. Returns the numbers of
    /// the other kernels that call functions, also of those that cannot be copied.
    fn rewrite_kernels(
        &mut self,
        planner: Planner<'o, 'data>,
        decoder: &mut Decoder,
    ) -> Result<Vec<usize>, Refusal> {
        let functions = planner.functions;
        let by_address: HashMap<u64, usize> = functions
            .iter()
            .enumerate()
            .map(|(number, function)| (function.address(), number))
            .collect();
        // Copies for single kernels double the code at most.
        let mut room: usize = functions.iter().map(Outline::size).sum();
        let mut sure_room = room;
        let numbers = (0..functions.len()).filter(|number| functions[*number].is_kernel());
        let ways = numbers.map(|number| {
            let way = planner.way(number, &by_address);
            let KernelWay::Apart(_, size) = way else {
                return (number, way);
            };
            let rest = sure_room.checked_sub(size);
            sure_room = rest.unwrap_or(sure_room);
            (number, rest.map_or(KernelWay::Unsure, |_| way))
        });
        let ways: Vec<(usize, KernelWay)> = ways.collect();
        let mut connected = Vec::new();
        let work = Work {
            items: &ways,
            size: &|(number, way)| match way {
                KernelWay::Apart(_, size) => functions[*number].size() + size,
                _ => 0,
            },
            most: DECODED_BYTES,
        };
        let done: Result<(), Refusal> = work.run(
            self.outlines.helpers,
            decoder,
            || self.outlines.another_decoder(),
            |decoder, (_, way)| match way {
                KernelWay::Apart(group, _) => Some(planner.planned_apart(group, decoder)),
                _ => None,
            },
            |decoder, (number, way), planned| {
                let kernel = &functions[*number];
                let unsure = matches!(way, KernelWay::Unsure);
                let unsure = unsure.then(|| planner.way(*number, &by_address));
                let (group, size) = match unsure.as_ref().unwrap_or(way) {
                    KernelWay::Apart(group, size) => (group, *size),
                    KernelWay::Obstacle(refusal) => {
                        self.refuse(kernel, refusal.clone());
                        connected.extend((kernel.calls > 0).then_some(*number));
                        return Ok(());
                    }
                    KernelWay::Connected | KernelWay::Unsure => {
                        connected.push(*number);
                        return Ok(());
                    }
                };
                // Kernels that were unsure may have taken the room of others.
                let planned = match size <= room {
                    true => planned.unwrap_or_else(|| planner.planned_apart(group, decoder)),
                    false => Err(Refusal::NoFunction),
                };
                match planned {
                    Ok(planned) => {
                        room -= size;
                        let own = Some(kernel.address());
                        self.write(own, planned, group.clone(), decoder)?;
                    }
                    Err(_) if kernel.calls > 0 => connected.push(*number),
                    Err(refusal) => self.refuse(kernel, refusal),
                }
                Ok(())
            },
        );
        done.map(|()| connected)
    }

    /// Rewrites the functions that these kernels may call, and those of the kernels that can be copied.
    fn rewrite_connected(
        &mut self,
        planner: Planner<'o, 'data>,
        kernels: Vec<usize>,
        decoder: &mut Decoder,
    ) -> Result<(), Refusal> {
        if kernels.is_empty() {
            return Ok(());
        }
        let functions = planner.functions;
        let devices = (0..functions.len()).filter(|number| !functions[*number].is_kernel());
        let all: Vec<usize> = kernels.into_iter().chain(devices).collect();
        // Any of them may be called.
        let used = joined(functions, &all);
        let (mut group, mut has_gaps) = (Vec::new(), false);
        for number in all {
            let function = &functions[number];
            match self.far.obstacle(function) {
                None => group.push(number),
                Some(refusal) => {
                    // That of a kernel is known.
                    has_gaps = true;
                    if !function.is_kernel() {
                        self.refuse(function, refusal);
                    }
                }
            }
        }
        // Many functions have too many counters to have them all in registers at once. And one that stays as it is may end waves.
        let is_whole = !has_gaps && planner.options.sharing == Sharing::Separate;
        let mut whole = || planner.planned(&group, used, Reach::Object, decoder).ok();
        if let Some(planned) = is_whole.then(&mut whole).flatten() {
            return self.write(None, planned, group, decoder);
        }
        // Functions refer to copies of others that come later, and may not come.
        for function in group.iter().map(|number| &functions[*number]) {
            if !function.is_kernel() {
                let label = self.text.copy_label(function.address());
                let place = (None, function.address());
                self.labels.starts.insert(place, label);
            }
        }
        let far = self.far;
        let work = Work {
            items: &group,
            size: &|number| functions[*number].size(),
            most: DECODED_BYTES,
        };
        work.run(
            self.outlines.helpers,
            decoder,
            || self.outlines.another_decoder(),
            |decoder, number| {
                let planned = planner.planned(&[*number], used, Reach::Function, decoder)?;
                far.with_room(planned, &functions[*number])
            },
            |decoder, number, planned| match planned {
                Ok(planned) => self.write(None, planned, vec![*number], decoder),
                Err(refusal) => {
                    self.refuse(&functions[*number], refusal);
                    Ok(())
                }
            },
        )
    }

    /// Writes the copies of a group with these numbers.
    fn write(
        &mut self,
        own: Own,
        (mut plan, functions): PlannedGroup<'data>,
        numbers: Vec<usize>,
        decoder: &mut Decoder,
    ) -> Result<(), Refusal> {
        plan.move_words(self.words);
        let text = &mut self.text;
        if self.written.is_empty() {
            text.filler = plan.encoder.nothing_word();
        }
        for function in &functions {
            let address = function.code.address;
            if function.is_kernel() {
                self.labels.kernels.insert(address, text.label());
            } else {
                let starts = self.labels.starts.entry((own, address));
                starts.or_insert_with(|| text.label());
            }
            if plan.borrowed.is_some() {
                self.labels.behind_pairs.insert(address, text.label());
            }
        }
        self.words += plan.words;
        let sums = std::mem::take(&mut plan.sums);
        let planned = Planned {
            own,
            plan,
            functions: functions.iter().map(Arc::as_ref).collect(),
        };
        Emitter::new(&planned, &self.labels, text).write(text)?;
        for (function, sums) in functions.iter().zip(sums) {
            self.map.add(&counts(function, sums));
        }
        let sums = planned.plan.spread();
        sums.for_each(|(counter, count)| self.map.add_sum(counter, count));
        let mut plan = planned.plan;
        plan.forget_counters();
        for function in functions.into_iter().filter_map(Arc::into_inner) {
            decoder.take_back(function.all);
        }
        self.written.push(Written {
            own,
            plan,
            functions: numbers,
        });
        Ok(())
    }
}

/// Plans the counters of groups. Several threads may do so at once.
#[derive(Clone, Copy)]
struct Planner<'o, 'data> {
    object: &'o Object<'data>,
    options: &'o AmdgcnOptions,
    functions: &'o [Outline<'data>],
    /// A wave may end in some device function.
    devices_end: bool,
}

impl<'o, 'data> Planner<'o, 'data> {
    fn new(
        object: &'o Object<'data>,
        options: &'o AmdgcnOptions,
        functions: &'o [Outline<'data>],
    ) -> Self {
        let devices_end = |function: &Outline<'_>| !function.is_kernel() && function.may_end;
        Self {
            object,
            options,
            functions,
            devices_end: functions.iter().any(devices_end),
        }
    }

    /// The way of the kernel with this number, if there is room for copies of functions.
    fn way(&self, number: usize, by_address: &HashMap<u64, usize>) -> KernelWay {
        let functions = self.functions;
        let kernel = &functions[number];
        if let Some(refusal) = kernel.obstacle.clone() {
            return KernelWay::Obstacle(refusal);
        }
        let is_separate = self.options.sharing == Sharing::Separate;
        let callees = match kernel.calls > 0 {
            true if !is_separate => None,
            true => callees(functions, number, by_address),
            false => Some(Vec::new()),
        };
        let Some(callees) = callees else {
            return KernelWay::Connected;
        };
        let size = callees.iter().map(|callee| functions[*callee].size()).sum();
        let mut group = vec![number];
        group.extend(callees);
        KernelWay::Apart(group, size)
    }

    /// The plan of a kernel with copies of its own of the functions that it calls.
    fn planned_apart(
        &self,
        group: &[usize],
        decoder: &mut Decoder,
    ) -> Result<PlannedGroup<'data>, Refusal> {
        let used = joined(self.functions, group);
        self.planned(group, used, Reach::Kernel, decoder)
    }

    /// The plan of a group, whose first word in memory is 0. These registers are `used` by it and all that it may call.
    fn planned(
        &self,
        numbers: &[usize],
        used: Used,
        reach: Reach,
        decoder: &mut Decoder,
    ) -> Result<PlannedGroup<'data>, Refusal> {
        let outlines = || numbers.iter().map(|number| &self.functions[*number]);
        let is_apart = reach == Reach::Function;
        let callees_end = match is_apart {
            true => self.devices_end,
            false => outlines().any(|function| !function.is_kernel() && function.may_end),
        };
        let kernels =
            outlines().filter_map(|function| self.object.kernels.get(&function.address()));
        let wave = self.functions[numbers[0]].named.code.wave;
        if let Some(other) = outlines().find(|function| function.named.code.wave != wave) {
            return Err(Refusal::Callee {
                callee: other.named.name.to_owned(),
            });
        }
        let mut group = Group {
            target: self.object.target,
            lanes: match wave {
                WaveSize::W32 => 32,
                WaveSize::W64 => 64,
            },
            functions: &[],
            stretches: outlines().map(|function| function.stretches).sum(),
            descriptors: kernels.flatten().copied().collect(),
            used,
            own: joined(self.functions, numbers),
            callees_end,
            is_apart,
            is_closed: reach == Reach::Kernel,
            counting: self.options.counting,
            sharing: self.options.sharing,
        };
        group.check()?;
        let functions = outlines().map(|function| function.function(decoder));
        let functions: Vec<Arc<Function<'data>>> = functions.collect();
        let decoded: Vec<&Function<'data>> = functions.iter().map(Arc::as_ref).collect();
        group.functions = &decoded;
        let plan = match group.counting {
            Counting::Exact => registers::plan(&group, self.options.rounds)?,
            Counting::Reached => marks::plan(&group, self.options.rounds)?,
        };
        Ok((plan, functions))
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

/// The registers that functions with these numbers use.
fn joined(functions: &[Outline<'_>], numbers: &[usize]) -> Used {
    let mut used = Used::default();
    numbers
        .iter()
        .for_each(|number| used.join(functions[*number].used));
    used
}

/// The numbers of the functions that a kernel may call, and of those that they may call. `None` if some are not known, or have
/// no copy.
fn callees(
    functions: &[Outline<'_>],
    kernel: usize,
    by_address: &HashMap<u64, usize>,
) -> Option<Vec<usize>> {
    let mut found = BTreeMap::new();
    let mut open = vec![kernel];
    while let Some(number) = open.pop() {
        let function = &functions[number];
        if function.calls != function.callees.len() || function.has_unresolved {
            return None;
        }
        for goal in &function.goals {
            let number = by_address.get(goal).copied()?;
            let callee = &functions[number];
            if callee.is_kernel() || callee.obstacle.is_some() {
                return None;
            }
            if found.insert(*goal, number).is_none() {
                open.push(number);
            }
        }
    }
    Some(found.into_values().collect())
}

/// Requires that all functions that direct calls lead to have a copy.
fn check_direct_calls(
    functions: &[Outline<'_>],
    written: &[Written],
    labels: &Labels,
    text: &Text,
) -> Result<(), Refusal> {
    let connected = written.iter().filter(|written| written.own.is_none());
    for number in connected.flat_map(|written| &written.functions) {
        for (address, goal) in &functions[*number].direct_calls {
            let label = labels.starts.get(&(None, *goal));
            if !label.is_some_and(|label| text.has_place(*label)) {
                return Err(Refusal::Branch { address: *address });
            }
        }
    }
    Ok(())
}

/// Gives all kernels that call functions the registers of all functions that are apart.
fn join_registers(written: &mut [Written]) {
    let apart = || {
        written
            .iter()
            .map(|written| &written.plan)
            .filter(|plan| plan.is_apart)
    };
    let Some(first) = apart().map(|plan| plan.total).next() else {
        return;
    };
    let mut total = first;
    apart().for_each(|plan| total.join(plan.total));
    let accumulator = apart().map(|plan| plan.first_accumulator).max();
    for plan in written.iter_mut().map(|written| &mut written.plan) {
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
    fn shortage(&self, function: &Outline<'_>, needed: u64) -> Option<Refusal> {
        let size = function.size() as u64;
        let distance = self.end.saturating_sub(function.address());
        let is_far = distance.cast_signed() > self.reach;
        let is_short = !function.is_kernel() && size < needed && is_far;
        is_short.then_some(Refusal::Short { size })
    }

    /// Why a function cannot be copied.
    fn obstacle(&self, function: &Outline<'_>) -> Option<Refusal> {
        let own = function.obstacle.clone();
        own.or_else(|| self.shortage(function, FAR_BRANCH))
    }

    /// The plan of a function, if this has room for its branch.
    fn with_room<'data>(
        &self,
        planned: PlannedGroup<'data>,
        function: &Outline<'_>,
    ) -> Result<PlannedGroup<'data>, Refusal> {
        let needed = match planned.0.borrowed {
            Some(_) => FAR_BRANCH + KEPT_PAIR,
            None => FAR_BRANCH,
        };
        match self.shortage(function, needed) {
            Some(refusal) => Err(refusal),
            None => Ok(planned),
        }
    }
}

/// The changes to loaded bytes of the original, by offset in the file: kernel descriptors, and branches from functions to
/// their copies.
fn patches(
    object: &Object<'_>,
    outlines: &[Outline<'_>],
    written: &[Written],
    labels: &Labels,
    text: &Text,
    layout: &Layout,
) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
    let place = |label: Label| layout.text + text.offset(label);
    let mut patches = Vec::new();
    for Written {
        own,
        plan,
        functions,
    } in written
    {
        for function in functions.iter().map(|number| &outlines[*number]) {
            let address = function.address();
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
    function: &Outline<'_>,
    entry: Option<u64>,
) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
    let is_gfx9 = object.target.generation() == Generation::Gfx9;
    let accumulator = is_gfx9.then_some(plan.first_accumulator);
    let vectors = match accumulator {
        Some(first) => first + plan.total.accumulators,
        None => plan.total.vectors,
    };
    let granule = granule(object.target, plan.encoder.lanes);
    let descriptors = object.kernels.get(&function.address());
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
fn pad(plan: &Plan, function: &Outline<'_>, goal: u64, behind: u64) -> Result<Vec<u8>, Refusal> {
    let address = function.address();
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
    let size = function.size() as u64;
    match 4 * text.len() as u64 > size {
        true => Err(Refusal::Short { size }),
        false => Ok(text.into_bytes(address, 0)),
    }
}

/// The counts of a copy of a function, for the map.
fn counts(function: &Function<'_>, sums: Vec<(Sum, Sum)>) -> FunctionCounts {
    let start = function.code.address;
    let word = |address: u64| (address - start) / 4;
    let stretches = function.stretches.iter().zip(sums);
    let stretches = stretches.map(|(stretch, (waves, lanes))| StretchCounts {
        word: word(function.all[stretch.first].address),
        waves,
        lanes,
    });
    FunctionCounts {
        address: start,
        words: function.code.bytes.len() as u64 / 4,
        starts: function.all.iter().map(|ins| word(ins.address)).collect(),
        stretches: stretches.collect(),
    }
}

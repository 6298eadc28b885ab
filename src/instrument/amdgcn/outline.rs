//! Outlines of functions: the facts about all functions that a rewrite needs at once.
//!
//! A decoded instruction takes 64 bytes, ten times the size of its code. The functions of a large code object are therefore
//! decoded again one by one when they are rewritten.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use modelgpu_isa::Flow;

use super::code::{Decoder, NamedCode, Scalars, Used};
use super::error::Refusal;
use super::function::Function;
use super::helpers::{Helpers, Work};
use super::lanes::KnownLanes;
use super::masks;

/// The bytes of the functions that are decoded at once: their instructions and counters take some forty times as much.
pub(super) const DECODED_BYTES: usize = 512 << 10;

/// A function of a code object, without its instructions.
#[derive(Debug)]
pub(super) struct Outline<'data> {
    pub(super) named: NamedCode<'data>,
    pub(super) used: Used,
    /// The scalar registers that its own instructions write.
    pub(super) writes: Scalars,
    /// The number of its stretches.
    pub(super) stretches: usize,
    /// The number of its calls.
    pub(super) calls: usize,
    /// The ELF addresses that calls lead to, by the numbers of instructions. Other calls lead to addresses that are not known.
    pub(super) callees: BTreeMap<usize, u64>,
    /// The goals of calls that lead out of it, as far as they are known.
    pub(super) goals: Vec<u64>,
    /// The ELF addresses of its direct calls that lead out of it, and their goals.
    pub(super) direct_calls: Vec<(u64, u64)>,
    /// It has jumps to addresses that are not known.
    pub(super) has_unresolved: bool,
    /// It has direct branches that lead out of it.
    pub(super) has_outside: bool,
    /// A wave may end in it.
    pub(super) may_end: bool,
    /// Why it cannot be copied.
    pub(super) obstacle: Option<Refusal>,
    kept_calls: BTreeMap<usize, Scalars>,
    /// The lanes of its entry are active wherever it returns. `None`: it is not known yet.
    returns_whole: Option<bool>,
    /// The ways of its lanes, until it is decoded again.
    lanes: Mutex<KnownLanes>,
    decoded: Option<Arc<Function<'data>>>,
}

/// The outlines of the functions of a code object, without empty ones.
pub(super) struct Outlines<'data> {
    pub(super) functions: Vec<Outline<'data>>,
    /// The threads that help with these functions, and the decoder of the calling one.
    pub(super) helpers: Helpers,
    pub(super) decoder: Decoder,
    /// The bytes of all functions.
    bytes: usize,
}

impl<'data> Outlines<'data> {
    pub(super) fn new(codes: &[NamedCode<'data>], at_once: usize, helpers: Helpers) -> Self {
        let sizes = codes.iter().map(|named| named.code.bytes.len());
        let bytes = sizes.sum();
        let is_kept = bytes <= at_once;
        let helpers = if is_kept { Helpers::NONE } else { helpers };
        let mut decoder = Decoder::new(bytes);
        let mut functions = Vec::with_capacity(codes.len());
        let work = Work {
            items: codes,
            size: &|named| named.code.bytes.len(),
            most: DECODED_BYTES,
        };
        let Ok(()) = work.run(
            helpers,
            &mut decoder,
            || Decoder::new(bytes),
            |decoder, named| Outline::find(named, decoder, is_kept),
            |_, _, found| {
                functions.extend(found);
                Ok::<(), Infallible>(())
            },
        );
        Self {
            functions,
            helpers,
            decoder,
            bytes,
        }
    }

    /// A decoder for one more thread.
    pub(super) fn another_decoder(&self) -> Decoder {
        Decoder::new(self.bytes)
    }
}

impl<'data> Outline<'data> {
    /// The outline of a function, unless it is empty. `is_kept`: the function stays decoded.
    fn find(named: &NamedCode<'data>, decoder: &mut Decoder, is_kept: bool) -> Option<Self> {
        let mut function = Function::new(named, decoder);
        function.find_callees();
        let mut outline = (!function.all.is_empty()).then(|| Self::new(named, &function))?;
        if !function.calls && outline.may_return_whole() {
            // It is decoded now.
            outline.returns_whole = Some(masks::returns_whole(&function));
            outline.lanes = Mutex::new(function.lanes.clone());
        }
        if is_kept {
            function.find_loops();
            outline.decoded = Some(Arc::new(function));
        } else {
            decoder.take_back(function.all);
        }
        Some(outline)
    }

    fn new(named: &NamedCode<'data>, function: &Function<'data>) -> Self {
        let all = function.all.iter();
        let mut goals = Vec::new();
        let mut direct_calls = Vec::new();
        for (number, goal) in &function.callees {
            let ins = &function.all[*number];
            let is_direct = matches!(ins.flow, Flow::Call { .. });
            // A direct call within the function is a branch.
            if is_direct && function.number_at(*goal).is_some() {
                continue;
            }
            goals.push(*goal);
            if is_direct {
                direct_calls.push((ins.address, *goal));
            }
        }
        Self {
            used: function.used,
            writes: all.clone().fold(0, |writes, ins| writes | ins.writes),
            stretches: function.stretches.len(),
            calls: all.clone().filter(|ins| ins.is_call()).count(),
            callees: function.callees.clone(),
            goals,
            direct_calls,
            has_unresolved: !function.unresolved.is_empty(),
            has_outside: !function.outside.is_empty(),
            may_end: all
                .clone()
                .any(|ins| matches!(ins.flow, Flow::End | Flow::Trap)),
            obstacle: obstacle(function),
            kept_calls: BTreeMap::new(),
            returns_whole: None,
            lanes: Mutex::default(),
            decoded: None,
            named: named.clone(),
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.named.is_kernel()
    }

    /// Its ELF address.
    pub(super) fn address(&self) -> u64 {
        self.named.code.address
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        self.named.code.bytes.len()
    }

    /// The function, whose loops may not be known.
    fn decoded(&self, decoder: &mut Decoder) -> Arc<Function<'data>> {
        self.decoded.clone().unwrap_or_else(|| {
            let mut function = Function::new(&self.named, decoder);
            function.callees.clone_from(&self.callees);
            function.kept_calls.clone_from(&self.kept_calls);
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            function.lanes = std::mem::take(&mut lanes);
            Arc::new(function)
        })
    }

    /// The function.
    pub(super) fn function(&self, decoder: &mut Decoder) -> Arc<Function<'data>> {
        let mut function = self.decoded(decoder);
        if self.decoded.is_none() {
            Arc::make_mut(&mut function).find_loops();
        }
        function
    }

    /// All of its ways are known, and it may return.
    pub(super) fn may_return_whole(&self) -> bool {
        let is_open = self.has_unresolved || self.has_outside;
        !self.is_kernel() && !is_open && !self.used.has_indexed_scalars
    }

    /// Returns whether the lanes of its entry are active wherever it returns. [`Self::set_kept_calls`] comes before.
    pub(super) fn returns_whole(&self, decoder: &mut Decoder) -> bool {
        self.returns_whole.unwrap_or_else(|| {
            let function = self.decoded(decoder);
            let returns_whole = masks::returns_whole(&function);
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.clone_from(&function.lanes);
            returns_whole
        })
    }

    /// The calls after which the active lanes are those before it, with the scalar registers that the callees may write.
    pub(super) fn kept_calls(&self) -> &BTreeMap<usize, Scalars> {
        &self.kept_calls
    }

    pub(super) fn set_kept_calls(&mut self, calls: BTreeMap<usize, Scalars>) {
        if let Some(decoded) = &mut self.decoded {
            Arc::make_mut(decoded).kept_calls.clone_from(&calls);
        }
        self.kept_calls = calls;
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
        if !is_indexing && !name.starts_with("s_") {
            continue;
        }
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

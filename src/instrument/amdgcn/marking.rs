//! The instructions of marks.

use super::encoder::{EXEC, Encoder, MAX_OFFSET, Source};
use super::plan::{MarkPlan, MarkWay, Plan, WORD};
use super::text::{Goal, Text};

/// Sets the registers of marks to their start: at that of a wave of a kernel, or of a function.
pub(super) fn begin(text: &mut Text, plan: &Plan, marks: &MarkPlan) {
    let encoder = plan.encoder;
    let pair = plan.temporaries[0];
    if let Some((base, vector)) = marks.pointer {
        if marks.activates_all {
            encoder.activate_all(text, pair);
        }
        encoder.point_at(text, base, vector, Goal::Counter(marks.word));
        if marks.activates_all {
            encoder.wait_for_scalars(text);
            encoder.move_mask(text, EXEC, Source::Scalar(pair));
        }
    }
    for bits in &marks.bits {
        encoder.move_32(text, bits.register, Source::Constant(bits.first));
    }
    for mask in &marks.masks {
        encoder.move_mask(text, mask.register, Source::Constant(0));
    }
}

/// Returns whether a mark changes SCC.
pub(super) fn changes_scc(way: MarkWay) -> bool {
    matches!(way, MarkWay::Collect(_))
}

/// Returns whether a scalar instruction of a mark reads EXEC.
pub(super) fn reads_exec(way: MarkWay) -> bool {
    matches!(way, MarkWay::Collect(_) | MarkWay::StoreAlways(_))
}

/// Writes a mark.
pub(super) fn mark(text: &mut Text, plan: &Plan, marks: &MarkPlan, way: MarkWay) {
    let encoder = plan.encoder;
    let store = |text: &mut Text, word: u64| {
        if let Some((base, vector)) = marks.pointer {
            let offset = (word - marks.word) * WORD;
            encoder.store_mark(text, vector, base, offset as u32);
        }
    };
    match way {
        MarkWay::Set(register, bit) => encoder.set_bit(text, register, bit),
        MarkWay::Collect(mask) => encoder.collect_active(text, mask),
        MarkWay::Store(word) => store(text, word),
        MarkWay::StoreAlways(word) => {
            let pair = plan.temporaries[0];
            encoder.move_mask(text, pair, Source::Scalar(EXEC));
            encoder.move_mask(text, EXEC, Source::Constant(1));
            store(text, word);
            encoder.move_mask(text, EXEC, Source::Scalar(pair));
        }
    }
}

/// Sets the bits of masks that have a lane. Changes SCC.
pub(super) fn join_masks(text: &mut Text, plan: &Plan, marks: &MarkPlan) {
    let [free, ..] = plan.temporaries;
    for mask in &marks.masks {
        let encoder = plan.encoder;
        encoder.set_bit_if_any(text, mask.bits, mask.bit, mask.register, free);
    }
}

/// Adds the bits of a wave that ends to memory, in its first lane. These vector registers are free: for an offset, and for data.
pub(super) fn finish(text: &mut Text, plan: &Plan, marks: &MarkPlan, [offset, data]: [u16; 2]) {
    let encoder = plan.encoder;
    let Some(first) = marks.bits.first() else {
        return;
    };
    join_masks(text, plan, marks);
    encoder.move_mask(text, EXEC, Source::Constant(1));
    let far = marks.bits.last().map_or(0, |last| last.word - marks.word);
    let is_near = far * WORD <= MAX_OFFSET.into();
    let (base, vector, word) = match marks.pointer.filter(|_| is_near) {
        Some((base, vector)) => (base, vector, marks.word),
        None => {
            let base = plan.temporaries[0];
            encoder.point_at(text, base, offset, Goal::Counter(first.word));
            (base, offset, first.word)
        }
    };
    add(text, encoder, marks, data, |bits| {
        (base, vector, ((bits - word) * WORD) as u32)
    });
}

/// Adds the bits to memory at the place that `place` returns for a word: a pair of scalar registers, a vector register, and an offset.
pub(super) fn add(
    text: &mut Text,
    encoder: Encoder,
    marks: &MarkPlan,
    data: u16,
    place: impl Fn(u64) -> (u16, u16, u32),
) {
    for bits in &marks.bits {
        text.joint();
        encoder.vector_move(text, data, Source::Scalar(bits.register));
        let (base, vector, offset) = place(bits.word);
        encoder.atomic_or(text, vector, data, base, offset);
    }
}

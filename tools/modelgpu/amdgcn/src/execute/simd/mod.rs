//! The host's vector instructions. A loop over lanes is compiled for three levels of them, for each size
//! of a wave, and the best form that the processor has runs. Unsafe because a function with instructions
//! that a processor lacks must not run there.
//!
//! Native loops over lanes are faster than code from a translator such as Cranelift, which has no
//! vectors of 256 or 512 bits for x86-64.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
pub(crate) mod rows;

use crate::lanes::{LANES, WaveSize, Words};
use crate::memory::Span;

/// The vector instructions that this processor has: a value is the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Those of every processor of the architecture.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// All levels of this processor, the best one last, with their names.
    pub fn available() -> Vec<(&'static str, Self)> {
        #[allow(unused_mut, reason = "other architectures have one level")]
        let mut levels = vec![("baseline", Self(Level::Baseline))];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 {
                levels.push(("avx2", Self(Level::Avx2)));
            }
            if avx512 {
                levels.push(("avx512", Self(Level::Avx512)));
            }
        }
        levels
    }

    /// The best level of this processor.
    pub fn best() -> Self {
        let levels = Self::available();
        levels[levels.len() - 1].1
    }
}

/// One function, compiled by [`leveled`], which alone makes these values, for each level and for waves of
/// each size. `F` is an unsafe function pointer.
#[derive(Clone, Copy)]
pub(crate) struct Leveled<F> {
    pub baseline: BySize<F>,
    #[cfg(target_arch = "x86_64")]
    pub avx2: BySize<F>,
    #[cfg(target_arch = "x86_64")]
    pub avx512: BySize<F>,
}

/// A function for all lanes of a register, and one for those of a wave of 32.
#[derive(Clone, Copy)]
pub(crate) struct BySize<F> {
    pub whole: F,
    pub half: F,
}

/// Compiles a function for each level and each size of a wave. In the block, `LANES` is the number of lanes.
macro_rules! leveled {
    (|$($name:ident: $type:ty),*| -> $result:ty $body:block) => {{
        #[inline(always)]
        #[allow(unused_variables, reason = "an operation with fewer sources")]
        #[allow(clippy::too_many_arguments, reason = "in registers")]
        fn baseline<const LANES: usize>($($name: $type),*) -> $result $body
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<const LANES: usize>($($name: $type),*) -> $result {
            baseline::<LANES>($($name),*)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(
            enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
        )]
        fn avx512<const LANES: usize>($($name: $type),*) -> $result {
            baseline::<LANES>($($name),*)
        }
        use $crate::execute::simd::{Leveled, BySize};
        use $crate::lanes::WaveSize::{Wave32, Wave64};
        Leveled {
            baseline: BySize {
                whole: baseline::<{ Wave64.lanes() }>,
                half: baseline::<{ Wave32.lanes() }>,
            },
            #[cfg(target_arch = "x86_64")]
            avx2: BySize {
                whole: avx2::<{ Wave64.lanes() }>,
                half: avx2::<{ Wave32.lanes() }>,
            },
            #[cfg(target_arch = "x86_64")]
            avx512: BySize {
                whole: avx512::<{ Wave64.lanes() }>,
                half: avx512::<{ Wave32.lanes() }>,
            },
        }
    }};
}

/// Compiles a function for each level with its rows of sums ([`rows`]): that for all processors, and those of the
/// others.
macro_rules! of_rows {
    (|$($name:ident: $type:ty),*| $run:ident, $width:literal, [$portable:ident, $avx2:ident, $avx512:ident]) => {{
        fn baseline($($name: $type),*) {
            use $crate::execute::simd::rows::portable::$portable;
            // SAFETY: each processor has this level.
            unsafe { $run::<$portable, $width>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2($($name: $type),*) {
            use $crate::execute::simd::rows::avx2::$avx2;
            // SAFETY: this function runs on processors with this level.
            unsafe { $run::<$avx2, $width>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(
            enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
        )]
        fn avx512($($name: $type),*) {
            use $crate::execute::simd::rows::avx512::$avx512;
            // SAFETY: this function runs on processors with this level.
            unsafe { $run::<$avx512, $width>($($name),*) }
        }
        use $crate::execute::simd::{BySize, Leveled};
        Leveled {
            baseline: BySize { whole: baseline, half: baseline },
            #[cfg(target_arch = "x86_64")]
            avx2: BySize { whole: avx2, half: avx2 },
            #[cfg(target_arch = "x86_64")]
            avx512: BySize { whole: avx512, half: avx512 },
        }
    }};
}

pub(crate) use leveled;
pub(crate) use of_rows;
pub(crate) use portable::select;

/// A function for the level of this processor.
#[derive(Clone, Copy)]
pub(crate) struct Selected<F>(BySize<F>);

impl<F: Copy> Leveled<F> {
    pub(crate) fn select(&self, simd: Simd) -> Selected<F> {
        Selected(match simd.0 {
            Level::Baseline => self.baseline,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => self.avx2,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => self.avx512,
        })
    }
}

/// A function for waves of one size.
#[derive(Clone, Copy)]
pub(crate) struct Fitted<F>(F);

impl<F: Copy> Selected<F> {
    #[inline(always)]
    pub(crate) fn fit(self, size: WaveSize) -> Fitted<F> {
        Fitted(match size {
            WaveSize::Wave32 => self.0.half,
            WaveSize::Wave64 => self.0.whole,
        })
    }
}

/// A source of up to 64 bits in each lane: two registers.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'a> {
    pub low: &'a Words,
    pub high: &'a Words,
}

impl Wide<'_> {
    #[inline(always)]
    pub(crate) fn bits(self, lane: usize) -> u64 {
        u64::from(self.low[lane]) | u64::from(self.high[lane]) << 32
    }
}

/// Maps three sources to a result. An operation with fewer sources ignores the others.
pub(crate) type WordsFunction = unsafe fn(&Words, &Words, &Words, &mut Words);
pub(crate) type LongsFunction = unsafe fn(Wide<'_>, Wide<'_>, Wide<'_>, &mut [Words; 4]);
/// The fourth argument is the carry in: a word of zeros or ones per lane. The last one is the carry
/// out.
pub(crate) type CarryFunction =
    unsafe fn(Wide<'_>, Wide<'_>, Wide<'_>, &Words, &mut [Words; 4], &mut Words);
/// Compares two sources. The third argument has the accepted relations, and the result is a word of
/// zeros or ones per lane.
pub(crate) type CompareFunction = unsafe fn(Wide<'_>, Wide<'_>, u8, &mut Words);

/// Multiplies matrices of a shape: the numbers of A, those of B, and the places of those of a sparse A; the first
/// registers of C and of D, and all registers.
pub(crate) type ProductsFunction<S, T> =
    unsafe fn(&S, (&[T], &[T], &[u8]), [usize; 2], &mut [Words]);
/// Decodes the numbers of a format from registers, from a bit on and with a distance in bits.
pub(crate) type DecodeFunction<F, T> = unsafe fn(&[Words], F, [usize; 2], &mut [[T; LANES]]);
/// Decodes pairs of registers, with a sign bit to change.
pub(crate) type PairsFunction = unsafe fn(&[Words; 2], u64, &mut [f64; LANES]);
/// The inverse of [`DecodeFunction`].
pub(crate) type EncodeFunction = unsafe fn(&[Words], [usize; 2], &mut [Words]);
/// Tests all lanes of registers.
pub(crate) type TestFunction = unsafe fn(&[Words]) -> bool;

impl<S, T> Fitted<ProductsFunction<S, T>> {
    #[inline(always)]
    pub(crate) fn call(
        self,
        shape: &S,
        factors: (&[T], &[T], &[u8]),
        sums: [usize; 2],
        registers: &mut [Words],
    ) {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(shape, factors, sums, registers) }
    }
}

impl<F, T> Fitted<DecodeFunction<F, T>> {
    #[inline(always)]
    pub(crate) fn call(
        self,
        words: &[Words],
        format: F,
        bits: [usize; 2],
        lines: &mut [[T; LANES]],
    ) {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(words, format, bits, lines) }
    }
}

impl Fitted<PairsFunction> {
    #[inline(always)]
    pub(crate) fn call(self, words: &[Words; 2], sign: u64, line: &mut [f64; LANES]) {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(words, sign, line) }
    }
}

impl Fitted<EncodeFunction> {
    #[inline(always)]
    pub(crate) fn call(self, lines: &[Words], bits: [usize; 2], registers: &mut [Words]) {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(lines, bits, registers) }
    }
}

impl Fitted<TestFunction> {
    #[inline(always)]
    pub(crate) fn call(self, registers: &[Words]) -> bool {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(registers) }
    }
}

/// Computes the addresses of lanes: low and high parts, a base, the bits of an address and the active lanes.
pub(crate) type SpanFunction = unsafe fn(&Words, &Words, u64, u64, u64, &mut Span);

impl Fitted<SpanFunction> {
    #[inline(always)]
    pub(crate) fn call(
        self,
        low: &Words,
        high: &Words,
        base: u64,
        bits: u64,
        lanes: u64,
        span: &mut Span,
    ) {
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(low, high, base, bits, lanes, span) }
    }
}

impl Fitted<WordsFunction> {
    #[inline(always)]
    pub(crate) fn call(self, sources: [&Words; 3], results: &mut Words) {
        let [a, b, c] = sources;
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(a, b, c, results) }
    }
}

impl Fitted<LongsFunction> {
    #[inline(always)]
    pub(crate) fn call(self, sources: [Wide<'_>; 3], results: &mut [Words; 4]) {
        let [a, b, c] = sources;
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(a, b, c, results) }
    }
}

impl Fitted<CarryFunction> {
    #[inline(always)]
    pub(crate) fn call(
        self,
        sources: [Wide<'_>; 3],
        carry: &Words,
        results: &mut [Words; 4],
        out: &mut Words,
    ) {
        let [a, b, c] = sources;
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(a, b, c, carry, results, out) }
    }
}

impl Fitted<CompareFunction> {
    #[inline(always)]
    pub(crate) fn call(self, sources: [Wide<'_>; 2], accepted: u8, flags: &mut Words) {
        let [a, b] = sources;
        // SAFETY: the function is for a level that the processor has (`Simd`).
        unsafe { (self.0)(a, b, accepted, flags) }
    }
}

impl Simd {
    /// Fills the lanes of a wave with one word.
    #[inline(always)]
    pub(crate) fn fill(self, words: &mut [u32], value: u32) {
        match self.0 {
            Level::Baseline => portable::fill(words, value),
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::fill(words, value) },
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::fill(words, value) },
        }
    }

    /// Selects a part of a wave's lanes by [`select`], and clears and then flips bits.
    #[inline(always)]
    pub(crate) fn change_bits(
        self,
        from: &[u32],
        clear: u32,
        flip: u32,
        to: &mut [u32],
        shifts: (u32, u32, bool),
    ) {
        match self.0 {
            Level::Baseline => portable::change_bits(from, clear, flip, to, shifts),
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::change_bits(from, clear, flip, to, shifts) },
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::change_bits(from, clear, flip, to, shifts) },
        }
    }

    /// Copies the lanes whose bits are set.
    #[inline(always)]
    pub(crate) fn blend(self, to: &mut Words, from: &Words, lanes: u64) {
        match self.0 {
            Level::Baseline => portable::blend(to, from, lanes),
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::blend(to, from, lanes) },
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::blend(to, from, lanes) },
        }
    }

    /// The offsets that [`Simd::gather`] takes at once.
    pub(crate) const GATHERED: usize = portable::GATHERED;

    /// Loads a word from each offset in `bytes`, plus `shift`; 0 for one outside. The number of offsets is a
    /// multiple of [`Simd::GATHERED`].
    #[inline(always)]
    pub(crate) fn gather(self, bytes: &[u8], offsets: &[u64], shift: usize, words: &mut Words) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has the level (`Simd`).
            Level::Avx512 => unsafe { avx512::gather(bytes, offsets, shift, words) },
            _ => {
                for (word, offset) in words.iter_mut().zip(offsets) {
                    let place = *offset as usize + shift;
                    let found = bytes.get(place..).and_then(|bytes| bytes.first_chunk());
                    *word = found.map_or(0, |bytes| u32::from_le_bytes(*bytes));
                }
            }
        }
    }

    /// A bit per lane to a word of zeros or ones.
    #[inline(always)]
    pub(crate) fn spread(self, bits: u64, flags: &mut Words) {
        match self.0 {
            Level::Baseline => portable::spread(bits, flags),
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::spread(bits, flags) },
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::spread(bits, flags) },
        }
    }

    /// The highest bits of all lanes: the inverse of [`Simd::spread`].
    #[inline(always)]
    pub(crate) fn pack(self, flags: &Words) -> u64 {
        match self.0 {
            Level::Baseline => portable::pack(flags),
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::pack(flags) },
            // SAFETY: the processor has the level (`Simd`).
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::pack(flags) },
        }
    }
}

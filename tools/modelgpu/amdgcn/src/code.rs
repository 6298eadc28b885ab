//! The decoded instructions and the memory of waves that a GPU keeps between dispatches for each thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use modelgpu_isa::Target;

use crate::code_object::KernelDescriptor;
use crate::decoder::Decoder;
use crate::execute::Simd;
use crate::grid_barriers::GridBarriers;
use crate::wave::Wave;
use crate::workgroup::Workgroup;

/// The decoded instructions and the memory of waves that a GPU's threads keep from one dispatch to
/// the next.
pub struct Code {
    target: Target,
    simd: Simd,
    cores: Vec<Core>,
    barriers: Arc<GridBarriers>,
    dispatch: u64,
}

/// One thread's part of them.
pub(crate) struct Core {
    pub decoder: Decoder,
    pub spare: Spare,
}

/// Workgroups and waves that have ended, for their memory.
#[derive(Default)]
pub(crate) struct Spare {
    pub workgroups: Vec<Workgroup>,
    /// Waves that a smaller workgroup did not need.
    pub waves: Vec<Wave>,
}

impl Code {
    /// Creates an empty cache for code of `target`.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            simd: Simd::best(),
            cores: Vec::new(),
            barriers: Arc::default(),
            dispatch: 0,
        }
    }

    /// Chooses the host's instructions for vector operations. All give equal results.
    pub fn set_simd(&mut self, simd: Simd) {
        *self = Self {
            simd,
            ..Self::new(self.target)
        };
    }

    /// The host's instructions for vector operations.
    pub(crate) fn simd(&self) -> Simd {
        self.simd
    }

    /// The barriers of grids.
    pub(crate) fn barriers(&self) -> Arc<GridBarriers> {
        Arc::clone(&self.barriers)
    }

    /// The processor that the code is for.
    pub(crate) fn target(&self) -> Target {
        self.target
    }

    /// Starts a dispatch on at most `threads` threads: memory may have changed since the last one.
    /// Counts executions if it `is_traced`. Returns what each thread keeps.
    pub(crate) fn begin_dispatch(
        &mut self,
        threads: usize,
        is_traced: bool,
        descriptor: &KernelDescriptor,
    ) -> &mut [Core] {
        self.dispatch += 1;
        let (target, simd) = (self.target, self.simd);
        while self.cores.len() < threads {
            self.cores.push(Core {
                decoder: Decoder::new(target, simd),
                spare: Spare::default(),
            });
        }
        for core in &mut self.cores {
            let registers = descriptor.registers(target);
            let size = descriptor.wave_size();
            core.decoder
                .begin_dispatch(self.dispatch, is_traced, registers, size);
        }
        &mut self.cores[..threads]
    }

    /// The mnemonics of the instructions that the last dispatch reached.
    pub fn mnemonics(&self) -> BTreeSet<&'static str> {
        self.cores
            .iter()
            .flat_map(|core| core.decoder.mnemonics())
            .collect()
    }
}

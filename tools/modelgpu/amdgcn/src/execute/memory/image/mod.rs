//! Images: texels at coordinates, and samples between them.
//!
//! Sources of the fields: AMD's GCN3, Vega, RDNA 3 and RDNA 4 instruction set guides ("Image Resource", "Image
//! Sampler"), and ROCr's resource_ai.h, resource_gfx11.h and resource_gfx12.h. Rows lie one behind the other,
//! also where hardware would interleave them: a program sees a texture in an array only through such
//! instructions.

mod access;
mod resource;
mod sample;

use modelgpu_isa::Instruction;

use super::super::{Operation, Surroundings, unmodelled};
use super::atomic::AtomicFunction;
use super::operation::{Action, Image, MemoryOperation, Sampling, Segment, Selector};
use crate::error::Fault;
use crate::lanes::active;
use crate::wave::Wave;
use access::ImageAccess;
use resource::Resource;
use sample::Sampler;

const PLAIN: Sampling = Sampling::by(Selector::None);
const BIASED: Sampling = Sampling::by(Selector::Bias);
const DERIVED: Sampling = Sampling::by(Selector::Derivatives);
const SHORT_DERIVED: Sampling = Sampling::by(Selector::ShortDerivatives);

const fn image(image: Image) -> Operation {
    Operation::Memory(MemoryOperation {
        segment: Segment::Global,
        action: Action::Image(image),
    })
}

const fn sample(sampling: Sampling) -> Operation {
    image(Image::Sample(sampling))
}

const fn gather(sampling: Sampling) -> Operation {
    image(Image::Gather(sampling))
}

const fn atomic(function: AtomicFunction) -> Operation {
    image(Image::Atomic(function))
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load", image(Image::Load)),
    ("image_load_mip", image(Image::LoadLevel)),
    ("image_store", image(Image::Store)),
    ("image_store_mip", image(Image::StoreLevel)),
    ("image_sample", sample(PLAIN)),
    ("image_sample_l", sample(PLAIN)),
    ("image_sample_lz", sample(PLAIN)),
    ("image_sample_cl", sample(PLAIN)),
    ("image_sample_b", sample(BIASED)),
    ("image_sample_b_cl", sample(BIASED)),
    ("image_sample_d", sample(DERIVED)),
    ("image_sample_d_cl", sample(DERIVED)),
    ("image_sample_cd", sample(DERIVED)),
    ("image_sample_cd_cl", sample(DERIVED)),
    ("image_sample_d_g16", sample(SHORT_DERIVED)),
    ("image_sample_d_cl_g16", sample(SHORT_DERIVED)),
    ("image_sample_o", sample(PLAIN.with_offset())),
    ("image_sample_l_o", sample(PLAIN.with_offset())),
    ("image_sample_lz_o", sample(PLAIN.with_offset())),
    ("image_sample_cl_o", sample(PLAIN.with_offset())),
    ("image_sample_b_o", sample(BIASED.with_offset())),
    ("image_sample_b_cl_o", sample(BIASED.with_offset())),
    ("image_sample_d_o", sample(DERIVED.with_offset())),
    ("image_sample_d_cl_o", sample(DERIVED.with_offset())),
    ("image_sample_cd_o", sample(DERIVED.with_offset())),
    ("image_sample_cd_cl_o", sample(DERIVED.with_offset())),
    ("image_sample_d_o_g16", sample(SHORT_DERIVED.with_offset())),
    (
        "image_sample_d_cl_o_g16",
        sample(SHORT_DERIVED.with_offset()),
    ),
    ("image_gather4", gather(PLAIN)),
    ("image_gather4_l", gather(PLAIN)),
    ("image_gather4_lz", gather(PLAIN)),
    ("image_gather4_cl", gather(PLAIN)),
    ("image_gather4_b", gather(BIASED)),
    ("image_gather4_b_cl", gather(BIASED)),
    ("image_gather4_o", gather(PLAIN.with_offset())),
    ("image_gather4_l_o", gather(PLAIN.with_offset())),
    ("image_gather4_lz_o", gather(PLAIN.with_offset())),
    ("image_gather4_cl_o", gather(PLAIN.with_offset())),
    ("image_gather4_b_o", gather(BIASED.with_offset())),
    ("image_gather4_b_cl_o", gather(BIASED.with_offset())),
    ("image_get_resinfo", image(Image::Size)),
    ("image_atomic_swap", atomic(AtomicFunction::Swap)),
    ("image_atomic_cmpswap", atomic(AtomicFunction::CompareSwap)),
    ("image_atomic_add", atomic(AtomicFunction::Add)),
    ("image_atomic_sub", atomic(AtomicFunction::Sub)),
    ("image_atomic_smin", atomic(AtomicFunction::SignedMin)),
    ("image_atomic_umin", atomic(AtomicFunction::UnsignedMin)),
    ("image_atomic_smax", atomic(AtomicFunction::SignedMax)),
    ("image_atomic_umax", atomic(AtomicFunction::UnsignedMax)),
    ("image_atomic_and", atomic(AtomicFunction::And)),
    ("image_atomic_or", atomic(AtomicFunction::Or)),
    ("image_atomic_xor", atomic(AtomicFunction::Xor)),
    ("image_atomic_inc", atomic(AtomicFunction::Increment)),
    ("image_atomic_dec", atomic(AtomicFunction::Decrement)),
    ("image_atomic_add_flt", atomic(AtomicFunction::FloatAdd)),
    ("image_atomic_min_flt", atomic(AtomicFunction::FloatMin)),
    ("image_atomic_max_flt", atomic(AtomicFunction::FloatMax)),
    (
        "image_atomic_pk_add_f16",
        atomic(AtomicFunction::PackedHalfAdd),
    ),
    (
        "image_atomic_pk_add_bf16",
        atomic(AtomicFunction::PackedBrainAdd),
    ),
];

impl Image {
    pub(super) fn execute(
        self,
        lanes: u64,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Fault> {
        let control = instruction.image;
        if control.short_resource {
            return Err(unmodelled(instruction, "a resource of four dwords"));
        }
        if control.dimensions == Some(0) {
            return Err(unmodelled(instruction, "a cube or several samples"));
        }
        if control.tells_residence {
            return Err(unmodelled(instruction, "a register for missing memory"));
        }
        let resource = Resource::new(instruction, wave, surroundings.target)?;
        let sampler = match self {
            Self::Sample(_) | Self::Gather(_) => Some(Sampler::new(instruction, wave)?),
            _ => None,
        };
        for lane in active(lanes) {
            let mut access = ImageAccess {
                resource: &resource,
                instruction,
                lane,
                surroundings,
            };
            match (self, &sampler) {
                (Self::Sample(sampling), Some(sampler)) => {
                    let components = access.sample(wave, sampler, sampling)?;
                    access.set(wave, components, control.mask);
                }
                (Self::Gather(sampling), Some(sampler)) => {
                    let components = access.gather(wave, sampler, sampling)?;
                    access.set(wave, components, 15);
                }
                (Self::Load | Self::LoadLevel, _) => {
                    let place = access.place(wave, matches!(self, Self::LoadLevel));
                    let components = access.texel(place)?;
                    access.set(wave, components, control.mask);
                }
                (Self::Store | Self::StoreLevel, _) => {
                    let place = access.place(wave, matches!(self, Self::StoreLevel));
                    access.store(wave, place)?;
                }
                (Self::Size, _) => {
                    let [width, height, depth] = resource.size;
                    // It has one level.
                    let size = [width, height, depth, 1];
                    access.set(wave, size, control.mask);
                }
                (Self::Atomic(function), _) => {
                    let place = access.place(wave, false);
                    access.atomic(wave, place, function)?;
                }
                // There is a sampler.
                (Self::Sample(_) | Self::Gather(_), None) => {}
            }
        }
        Ok(())
    }
}

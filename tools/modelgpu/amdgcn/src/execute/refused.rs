//! Instructions that the model refuses by name, with what each does that the model lacks. Clang
//! emits none of them.

use super::Operation;
use crate::target::Target;

const FORKS: Operation = Operation::Refused("forks the lanes of a wave, which Clang never does");
const HANDLER: Operation = Operation::Refused("belongs to trap handlers");
const HALT: Operation = Operation::Refused("halts the wave for a debugger");
const GRAPHICS: Operation = Operation::Refused("belongs to graphics shaders");
const SKIP: Operation =
    Operation::Refused("skips vector instructions by a mode that Clang never sets");
const SCALAR_SCRATCH: Operation =
    Operation::Refused("accesses scratch for a whole wave, which Clang never does");
const SCRATCH_TO_LDS: Operation =
    Operation::Refused("copies scratch to LDS, which Clang never does");
const IMAGE: Operation =
    Operation::Refused("reads or writes an image's packed bits, which Clang never does");
const SEMAPHORE: Operation =
    Operation::Refused("waits for a semaphore of the whole GPU, which Clang never does");

const SMALL_FLOATS: Operation = Operation::Refused(
    "computes with numbers of 8, 6 or 4 bits in the OCP's formats, which the model lacks",
);
const RANDOM_ROUNDING: Operation =
    Operation::Refused("rounds by random bits, in a way that the model lacks");
const BRAIN_DOT: Operation =
    Operation::Refused("adds products of bfloat16, in an order that the model lacks");
const LONG_SPARSE: Operation =
    Operation::Refused("multiplies sparse matrices of twice the depth, which the model lacks");
const TRANSPOSED: Operation =
    Operation::Refused("transposes elements of LDS between lanes, which the model lacks");
const THREE_TO_LDS: Operation =
    Operation::Refused("copies three dwords of each lane to LDS, in a layout that the model lacks");

/// The refusal of a mnemonic that the model executes on other targets, or of a family of mnemonics.
///
/// The 8-bit formats of gfx950 are not those of gfx942, under the same names.
pub(super) fn on_target(mnemonic: &str, target: Target) -> Option<&'static Operation> {
    let is_small = [
        "fp8",
        "bf8",
        "f8f6f4",
        "_scalef32_",
        "_mfma_scale_",
        "_mfma_ld_scale_",
    ]
    .iter()
    .any(|part| mnemonic.contains(part));
    (target == Target::Gfx950 && is_small).then_some(&SMALL_FLOATS)
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load_pck", IMAGE),
    ("image_load_pck_sgn", IMAGE),
    ("image_load_mip_pck", IMAGE),
    ("image_load_mip_pck_sgn", IMAGE),
    ("image_store_pck", IMAGE),
    ("image_store_mip_pck", IMAGE),
    ("s_cbranch_g_fork", FORKS),
    ("s_cbranch_i_fork", FORKS),
    ("s_cbranch_join", FORKS),
    ("s_rfe_b64", HANDLER),
    ("s_rfe_restore_b64", HANDLER),
    ("s_endpgm_saved", HANDLER),
    ("s_sethalt", HALT),
    ("s_setkill", HALT),
    ("s_sendmsghalt", HALT),
    ("s_endpgm_ordered_ps_done", GRAPHICS),
    ("v_screen_partition_4se_b32", GRAPHICS),
    ("v_cvt_sr_bf16_f32", RANDOM_ROUNDING),
    ("v_cvt_sr_f16_f32", RANDOM_ROUNDING),
    ("v_dot2_f32_bf16", BRAIN_DOT),
    ("v_dot2c_f32_bf16", BRAIN_DOT),
    ("v_smfmac_f32_16x16x64_f16", LONG_SPARSE),
    ("v_smfmac_f32_16x16x64_bf16", LONG_SPARSE),
    ("v_smfmac_f32_32x32x32_f16", LONG_SPARSE),
    ("v_smfmac_f32_32x32x32_bf16", LONG_SPARSE),
    ("v_smfmac_i32_16x16x128_i8", LONG_SPARSE),
    ("v_smfmac_i32_32x32x64_i8", LONG_SPARSE),
    ("ds_read_b64_tr_b4", TRANSPOSED),
    ("ds_read_b64_tr_b8", TRANSPOSED),
    ("ds_read_b64_tr_b16", TRANSPOSED),
    ("ds_read_b96_tr_b6", TRANSPOSED),
    ("global_load_lds_dwordx3", THREE_TO_LDS),
    ("s_setvskip", SKIP),
    ("s_scratch_load_dword", SCALAR_SCRATCH),
    ("s_scratch_load_dwordx2", SCALAR_SCRATCH),
    ("s_scratch_load_dwordx4", SCALAR_SCRATCH),
    ("s_scratch_store_dword", SCALAR_SCRATCH),
    ("s_scratch_store_dwordx2", SCALAR_SCRATCH),
    ("s_scratch_store_dwordx4", SCALAR_SCRATCH),
    ("ds_gws_sema_br", SEMAPHORE),
    ("scratch_load_lds_ubyte", SCRATCH_TO_LDS),
    ("scratch_load_lds_sbyte", SCRATCH_TO_LDS),
    ("scratch_load_lds_ushort", SCRATCH_TO_LDS),
    ("scratch_load_lds_sshort", SCRATCH_TO_LDS),
    ("scratch_load_lds_dword", SCRATCH_TO_LDS),
];

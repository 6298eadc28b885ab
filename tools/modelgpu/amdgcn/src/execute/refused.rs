//! Instructions that the model refuses by name, with what each does that the model lacks. Clang emits none of
//! those that all of CDNA has, other than s_sendmsghalt and ds_gws_sema_br for the builtin functions of these
//! names.

use modelgpu_isa::{Generation, Target};

use super::Operation;

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
    Operation::Refused("waits for a semaphore of the whole GPU, which HIP never does");

const THREE_TO_LDS: Operation =
    Operation::Refused("copies three dwords of each lane to LDS, in a layout that the model lacks");

const DEPTH: Operation = Operation::Refused("compares with a depth, for graphics");
const LEVEL: Operation = Operation::Refused("computes a level of detail, for graphics");
const FOUR_OF_ROW: Operation =
    Operation::Refused("gathers four texels of a row, which Clang never does");
const SAMPLES: Operation = Operation::Refused("loads several samples of a texel, for graphics");
const RAY: Operation = Operation::Refused("finds what a ray meets, which the model lacks");
const RDNA_SEMAPHORE: Operation =
    Operation::Refused("waits for a resource that the driver has on CDNA and RDNA 2 only");
const DIRECTX: Operation = Operation::Refused("multiplies by the rules of DirectX 9, for graphics");
const LANE_ADDRESS: Operation =
    Operation::Refused("adds the lane's number to an address, which the model lacks");
const OTHER_BARRIERS: Operation =
    Operation::Refused("uses a barrier other than the workgroup's, which the model lacks");
const DYNAMIC_REGISTERS: Operation = Operation::Refused(
    "changes the number of registers, which the driver allows for graphics only",
);
const BLOCKS: Operation =
    Operation::Refused("moves the registers that M0 selects, which Clang does by an option only");
const ORDERED: Operation = Operation::Refused("orders the atomics of waves, which the model lacks");
const FLOAT_SWAP: Operation =
    Operation::Refused("compares memory as a float before a swap, which the model lacks");
const TWO_PLACES: Operation =
    Operation::Refused("combines two places of LDS, which Clang never does");
const LOOP: Operation =
    Operation::Refused("runs a loop for both halves of a wave, which Clang never does");
const TWO_RELATIVE: Operation =
    Operation::Refused("moves between two registers that M0 selects, which the model lacks");
const ASKS: Operation = Operation::Refused("asks for values of the driver, which HIP never does");
const PRODUCTS: Operation =
    Operation::Refused("multiplies matrices in gfx1250's layouts, which the model lacks");
const TENSORS: Operation =
    Operation::Refused("moves a tensor by a descriptor, which the model lacks");
const CLUSTERS: Operation = Operation::Refused("belongs to clusters, which the model lacks");
const MONITOR: Operation =
    Operation::Refused("waits for a change of memory, which the model lacks");
const LDS_BARRIERS: Operation = Operation::Refused("uses a barrier in LDS, which the model lacks");
const TRANSPOSES: Operation =
    Operation::Refused("moves elements between lanes in gfx1250's layouts, which the model lacks");
const APPROXIMATES: Operation =
    Operation::Refused("approximates a function to a precision that the model lacks");
const SMALL: Operation =
    Operation::Refused("converts numbers of few bits in gfx1250's layouts, which the model lacks");
const PERMUTES: Operation = Operation::Refused("moves values in a way that the model lacks");
const SUMS: Operation = Operation::Refused("joins a sum and a comparison, which Clang never does");
const FORMATS: Operation =
    Operation::Refused("converts by the formats of RDNA 2, which the model lacks");
const PADDING: Operation = Operation::Refused("marks the end of the code");

/// Starts of mnemonics, with the refusal of each family.
type Families = &'static [(&'static [&'static str], &'static Operation)];

/// The refusal of a mnemonic that the model executes on other targets, or of a family of mnemonics.
pub(super) fn on_target(mnemonic: &str, target: Target) -> Option<&'static Operation> {
    const OF_ALL: Families = &[
        (&["image_sample_c_", "image_gather4_c_"], &DEPTH),
        (&["image_bvh", "ds_bvh_"], &RAY),
        (
            &["ds_ordered_", "ds_add_gs_", "ds_sub_gs_", "v_interp_"],
            &GRAPHICS,
        ),
        (&DOUBLED, &TWO_PLACES),
    ];
    const OF_RDNA2: Families = &[(
        &[
            "image_",
            "tbuffer_",
            "buffer_load_format_",
            "buffer_store_format_",
        ],
        &FORMATS,
    )];
    const OF_RDNA: Families = &[(&["ds_gws_"], &RDNA_SEMAPHORE)];
    let of_generation = match target.generation() {
        Generation::Gfx9 => &[],
        Generation::Gfx10 => OF_RDNA2,
        _ => OF_RDNA,
    };
    let own = match target {
        Target::Gfx1250 => OF_GFX1250,
        _ => &[],
    };
    OF_ALL
        .iter()
        .chain(of_generation)
        .chain(own)
        .find(|(prefixes, _)| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix)))
        .map(|(_, refusal)| *refusal)
}

/// The functions of LDS with two places.
const DOUBLED: [&str; 11] = [
    "ds_add_src2_",
    "ds_sub_src2_",
    "ds_rsub_src2_",
    "ds_inc_src2_",
    "ds_dec_src2_",
    "ds_min_src2_",
    "ds_max_src2_",
    "ds_and_src2_",
    "ds_or_src2_",
    "ds_xor_src2_",
    "ds_write_src2_",
];

/// The families that gfx1250 alone has, and those whose layouts differ from gfx1201's.
const OF_GFX1250: Families = &[
    (&["v_wmma_", "v_swmmac_"], &PRODUCTS),
    (&["tensor_"], &TENSORS),
    (&["cluster_", "s_wakeup_barrier"], &CLUSTERS),
    (
        &["s_monitor_", "global_load_monitor_", "flat_load_monitor_"],
        &MONITOR,
    ),
    (
        &["ds_atomic_async_barrier_", "ds_atomic_barrier_"],
        &LDS_BARRIERS,
    ),
    (&["ds_load_tr", "global_load_tr"], &TRANSPOSES),
    (
        &[
            "v_tanh_",
            "v_rcp_bf16",
            "v_sqrt_bf16",
            "v_rsq_bf16",
            "v_log_bf16",
            "v_exp_bf16",
            "v_sin_bf16",
            "v_cos_bf16",
        ],
        &APPROXIMATES,
    ),
    (
        &[
            "v_cvt_scale",
            "v_cvt_pk_f16_fp8",
            "v_cvt_pk_f16_bf8",
            "v_cvt_f16_fp8",
            "v_cvt_f16_bf8",
            "v_cvt_pk_fp8_f16",
            "v_cvt_pk_bf8_f16",
            "v_cvt_sr_fp8_f16",
            "v_cvt_sr_bf8_f16",
            "v_cvt_sr_pk_",
            "v_sat_pk4_",
        ],
        &SMALL,
    ),
    (&["v_permlane_", "v_perm_pk16_"], &PERMUTES),
    (
        &["v_add_max_", "v_add_min_", "v_pk_add_max_", "v_pk_add_min_"],
        &SUMS,
    ),
];

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("image_load_pck", IMAGE),
    ("image_load_pck_sgn", IMAGE),
    ("image_load_mip_pck", IMAGE),
    ("image_load_mip_pck_sgn", IMAGE),
    ("image_store_pck", IMAGE),
    ("image_store_mip_pck", IMAGE),
    ("image_sample_c", DEPTH),
    ("image_gather4_c", DEPTH),
    ("image_gather4h", FOUR_OF_ROW),
    ("image_get_lod", LEVEL),
    ("image_msaa_load", SAMPLES),
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
    ("global_load_lds_dwordx3", THREE_TO_LDS),
    ("v_fma_dx9_zero_f32", DIRECTX),
    ("v_fmac_dx9_zero_f32", DIRECTX),
    ("v_mullit_f32", DIRECTX),
    ("global_load_addtid_b32", LANE_ADDRESS),
    ("global_store_addtid_b32", LANE_ADDRESS),
    ("flat_atomic_cmpswap_f32", FLOAT_SWAP),
    ("global_atomic_cmpswap_f32", FLOAT_SWAP),
    ("buffer_atomic_cmpswap_f32", FLOAT_SWAP),
    ("flat_atomic_cmpswap_f64", FLOAT_SWAP),
    ("global_atomic_cmpswap_f64", FLOAT_SWAP),
    ("buffer_atomic_cmpswap_f64", FLOAT_SWAP),
    ("s_subvector_loop_begin", LOOP),
    ("s_subvector_loop_end", LOOP),
    ("s_movrelsd_2_b32", TWO_RELATIVE),
    ("v_movrelsd_b32", TWO_RELATIVE),
    ("v_movrelsd_2_b32", TWO_RELATIVE),
    ("v_swaprel_b32", TWO_RELATIVE),
    ("s_code_end", PADDING),
    ("s_sendmsg_rtn_b32", ASKS),
    ("s_barrier_signal_isfirst", OTHER_BARRIERS),
    ("s_get_barrier_state", OTHER_BARRIERS),
    ("s_barrier_init", OTHER_BARRIERS),
    ("s_barrier_join", OTHER_BARRIERS),
    ("s_barrier_leave", OTHER_BARRIERS),
    ("s_alloc_vgpr", DYNAMIC_REGISTERS),
    ("global_load_block", BLOCKS),
    ("global_store_block", BLOCKS),
    ("scratch_load_block", BLOCKS),
    ("scratch_store_block", BLOCKS),
    ("global_atomic_ordered_add_b64", ORDERED),
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

//! Mnemonics of RDNA for operations that CDNA has under another name. The tables of operations have
//! CDNA's.

use std::borrow::Cow;

/// RDNA's mnemonic, and CDNA's.
const WHOLE: &[(&str, &str)] = &[
    ("s_and_not1_b32", "s_andn2_b32"),
    ("s_and_not1_b64", "s_andn2_b64"),
    ("s_or_not1_b32", "s_orn2_b32"),
    ("s_or_not1_b64", "s_orn2_b64"),
    ("s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"),
    ("s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"),
    ("s_and_not0_wrexec_b32", "s_andn1_wrexec_b32"),
    ("s_and_not0_wrexec_b64", "s_andn1_wrexec_b64"),
    ("s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"),
    ("s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"),
    ("s_and_not1_wrexec_b32", "s_andn2_wrexec_b32"),
    ("s_and_not1_wrexec_b64", "s_andn2_wrexec_b64"),
    ("s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"),
    ("s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"),
    ("s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"),
    ("s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"),
    ("s_ctz_i32_b32", "s_ff1_i32_b32"),
    ("s_ctz_i32_b64", "s_ff1_i32_b64"),
    ("s_clz_i32_u32", "s_flbit_i32_b32"),
    ("s_clz_i32_u64", "s_flbit_i32_b64"),
    ("s_cls_i32", "s_flbit_i32"),
    ("s_cls_i32_i64", "s_flbit_i32_i64"),
    ("v_add_nc_u32", "v_add_u32"),
    ("v_sub_nc_u32", "v_sub_u32"),
    ("v_subrev_nc_u32", "v_subrev_u32"),
    ("v_add_nc_i32", "v_add_i32"),
    ("v_sub_nc_i32", "v_sub_i32"),
    ("v_add_nc_u16", "v_add_u16"),
    ("v_sub_nc_u16", "v_sub_u16"),
    ("v_add_nc_i16", "v_add_i16"),
    ("v_sub_nc_i16", "v_sub_i16"),
    ("v_add_co_ci_u32", "v_addc_co_u32"),
    ("v_sub_co_ci_u32", "v_subb_co_u32"),
    ("v_subrev_co_ci_u32", "v_subbrev_co_u32"),
    ("v_ctz_i32_b32", "v_ffbl_b32"),
    ("v_clz_i32_u32", "v_ffbh_u32"),
    ("v_cls_i32", "v_ffbh_i32"),
    ("v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"),
    ("v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"),
    ("v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"),
    ("v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"),
    ("v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"),
    ("v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"),
    ("v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"),
    ("v_dot2acc_f32_f16", "v_dot2c_f32_f16"),
    ("v_dot2acc_f32_bf16", "v_dot2c_f32_bf16"),
    ("v_mul_dx9_zero_f32", "v_mul_legacy_f32"),
    ("v_fmac_f16", "v_fma_f16"),
    ("v_fmamk_f16", "v_fma_f16"),
    ("v_fmaak_f16", "v_fma_f16"),
    ("v_min_num_f16", "v_min_f16"),
    ("v_max_num_f16", "v_max_f16"),
    ("v_min_num_f32", "v_min_f32"),
    ("v_max_num_f32", "v_max_f32"),
    ("v_min_num_f64", "v_min_f64"),
    ("v_max_num_f64", "v_max_f64"),
    ("v_min3_num_f16", "v_min3_f16"),
    ("v_min3_num_f32", "v_min3_f32"),
    ("v_max3_num_f16", "v_max3_f16"),
    ("v_max3_num_f32", "v_max3_f32"),
    ("v_med3_num_f16", "v_med3_f16"),
    ("v_med3_num_f32", "v_med3_f32"),
    ("v_minmax_num_f16", "v_minmax_f16"),
    ("v_minmax_num_f32", "v_minmax_f32"),
    ("v_maxmin_num_f16", "v_maxmin_f16"),
    ("v_maxmin_num_f32", "v_maxmin_f32"),
    ("v_pk_min_num_f16", "v_pk_min_f16"),
    ("v_pk_max_num_f16", "v_pk_max_f16"),
    ("v_mad_co_u64_u32", "v_mad_u64_u32"),
    ("v_mad_co_i64_i32", "v_mad_i64_i32"),
    ("s_add_co_u32", "s_add_u32"),
    ("s_sub_co_u32", "s_sub_u32"),
    ("s_add_co_i32", "s_add_i32"),
    ("s_sub_co_i32", "s_sub_i32"),
    ("s_add_co_ci_u32", "s_addc_u32"),
    ("s_sub_co_ci_u32", "s_subb_u32"),
    ("s_addk_co_i32", "s_addk_i32"),
    ("ds_min_num_f32", "ds_min_f32"),
    ("ds_min_num_f64", "ds_min_f64"),
    ("ds_min_num_rtn_f32", "ds_min_rtn_f32"),
    ("ds_min_num_rtn_f64", "ds_min_rtn_f64"),
    ("ds_max_num_f32", "ds_max_f32"),
    ("ds_max_num_f64", "ds_max_f64"),
    ("ds_max_num_rtn_f32", "ds_max_rtn_f32"),
    ("ds_max_num_rtn_f64", "ds_max_rtn_f64"),
    ("v_cmp_t_f16", "v_cmp_tru_f16"),
    ("v_cmp_t_f32", "v_cmp_tru_f32"),
    ("v_cmp_t_f64", "v_cmp_tru_f64"),
    ("v_cmpx_t_f16", "v_cmpx_tru_f16"),
    ("v_cmpx_t_f32", "v_cmpx_tru_f32"),
    ("v_cmpx_t_f64", "v_cmpx_tru_f64"),
];

/// The parts behind the segment's name, such as `flat_`, `global_` or `s_`.
const ACCESSES: &[(&str, &str)] = &[
    ("load_u8", "load_ubyte"),
    ("load_i8", "load_sbyte"),
    ("load_u16", "load_ushort"),
    ("load_i16", "load_sshort"),
    ("load_b32", "load_dword"),
    ("load_b64", "load_dwordx2"),
    ("load_b96", "load_dwordx3"),
    ("load_b128", "load_dwordx4"),
    ("load_b256", "load_dwordx8"),
    ("load_b512", "load_dwordx16"),
    ("load_d16_u8", "load_ubyte_d16"),
    ("load_d16_i8", "load_sbyte_d16"),
    ("load_d16_b16", "load_short_d16"),
    ("load_d16_hi_u8", "load_ubyte_d16_hi"),
    ("load_d16_hi_i8", "load_sbyte_d16_hi"),
    ("load_d16_hi_b16", "load_short_d16_hi"),
    ("store_b8", "store_byte"),
    ("store_b16", "store_short"),
    ("store_b32", "store_dword"),
    ("store_b64", "store_dwordx2"),
    ("store_b96", "store_dwordx3"),
    ("store_b128", "store_dwordx4"),
    ("store_d16_hi_b8", "store_byte_d16_hi"),
    ("store_d16_hi_b16", "store_short_d16_hi"),
    ("atomic_swap_b32", "atomic_swap"),
    ("atomic_swap_b64", "atomic_swap_x2"),
    ("atomic_cmpswap_b32", "atomic_cmpswap"),
    ("atomic_cmpswap_b64", "atomic_cmpswap_x2"),
    ("atomic_add_u32", "atomic_add"),
    ("atomic_add_u64", "atomic_add_x2"),
    ("atomic_sub_u32", "atomic_sub"),
    ("atomic_sub_u64", "atomic_sub_x2"),
    ("atomic_min_i32", "atomic_smin"),
    ("atomic_min_i64", "atomic_smin_x2"),
    ("atomic_min_u32", "atomic_umin"),
    ("atomic_min_u64", "atomic_umin_x2"),
    ("atomic_max_i32", "atomic_smax"),
    ("atomic_max_i64", "atomic_smax_x2"),
    ("atomic_max_u32", "atomic_umax"),
    ("atomic_max_u64", "atomic_umax_x2"),
    ("atomic_and_b32", "atomic_and"),
    ("atomic_and_b64", "atomic_and_x2"),
    ("atomic_or_b32", "atomic_or"),
    ("atomic_or_b64", "atomic_or_x2"),
    ("atomic_xor_b32", "atomic_xor"),
    ("atomic_xor_b64", "atomic_xor_x2"),
    ("atomic_inc_u32", "atomic_inc"),
    ("atomic_inc_u64", "atomic_inc_x2"),
    ("atomic_dec_u32", "atomic_dec"),
    ("atomic_dec_u64", "atomic_dec_x2"),
    ("atomic_min_num_f32", "atomic_min_f32"),
    ("atomic_max_num_f32", "atomic_max_f32"),
    ("load_d16_format_x", "load_format_d16_x"),
    ("load_d16_format_xy", "load_format_d16_xy"),
    ("load_d16_format_xyz", "load_format_d16_xyz"),
    ("load_d16_format_xyzw", "load_format_d16_xyzw"),
    ("store_d16_format_x", "store_format_d16_x"),
    ("store_d16_format_xy", "store_format_d16_xy"),
    ("store_d16_format_xyz", "store_format_d16_xyz"),
    ("store_d16_format_xyzw", "store_format_d16_xyzw"),
    ("load_d16_hi_format_x", "load_format_d16_hi_x"),
    ("store_d16_hi_format_x", "store_format_d16_hi_x"),
    ("atomic_add_uint", "atomic_add"),
    ("atomic_sub_uint", "atomic_sub"),
    ("atomic_min_int", "atomic_smin"),
    ("atomic_min_uint", "atomic_umin"),
    ("atomic_max_int", "atomic_smax"),
    ("atomic_max_uint", "atomic_umax"),
    ("atomic_inc_uint", "atomic_inc"),
    ("atomic_dec_uint", "atomic_dec"),
    // RDNA 3's name is the older one.
    ("atomic_csub_u32", "atomic_sub_clamp_u32"),
];

/// Parts of mnemonics of LDS instructions, the longer ones first.
const LDS: &[(&str, &str)] = &[
    ("storexchg_2addr_stride64_", "wrxchg2st64_"),
    ("storexchg_2addr_", "wrxchg2_"),
    ("storexchg_", "wrxchg_"),
    ("load_2addr_stride64_", "read2st64_"),
    ("load_2addr_", "read2_"),
    ("load_", "read_"),
    ("cmpstore_", "cmpst_"),
    ("store_2addr_stride64_", "write2st64_"),
    ("store_2addr_", "write2_"),
    ("store_", "write_"),
];

/// The mnemonic under which the tables have an operation.
pub(crate) fn canonical(mnemonic: &str) -> Cow<'_, str> {
    let of = |table: &[(&'static str, &'static str)], name: &str| {
        let found = table.iter().find(|(rdna, _)| *rdna == name);
        found.map(|(_, cdna)| *cdna)
    };
    if let Some(name) = of(WHOLE, mnemonic) {
        return name.into();
    }
    if let Some(rest) = mnemonic.strip_prefix("ds_") {
        let found = LDS
            .iter()
            .find_map(|(rdna, cdna)| Some((cdna, rest.strip_prefix(rdna)?)));
        if let Some((cdna, rest)) = found {
            return format!("ds_{cdna}{rest}").into();
        }
    }
    for segment in [
        "flat_",
        "global_",
        "scratch_",
        "buffer_",
        "tbuffer_",
        "image_",
        "s_buffer_",
        "s_",
    ] {
        let name = mnemonic.strip_prefix(segment);
        if let Some(name) = name.and_then(|name| of(ACCESSES, name)) {
            return format!("{segment}{name}").into();
        }
    }
    mnemonic.into()
}

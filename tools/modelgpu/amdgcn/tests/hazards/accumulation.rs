//! Wait states around matrix products of gfx908.

use crate::run::{GFX908, check, planted};

/// A product by its name, the states before a read of its result, and before writes of its result and of its addend.
const PRODUCTS: [(&str, u32, [u32; 3]); 3] = [
    ("v_mfma_f32_4x4x1f32", 4, [4, 1, 0]),
    ("v_mfma_f32_16x16x4f32", 4, [10, 7, 5]),
    ("v_mfma_f32_32x32x2f32", 16, [18, 15, 13]),
];

/// So many states.
fn states(count: u32) -> String {
    let full = "s_nop 7\n".repeat((count / 8) as usize);
    match count % 8 {
        0 => full.trim_end().to_owned(),
        rest => format!("{full}s_nop {}", rest - 1),
    }
}

#[test]
fn results_and_addends() {
    let mut all = Vec::new();
    for (name, width, [read, write, addend]) in PRODUCTS {
        let sums = format!("a[32:{}]", 31 + width);
        let addends = format!("a[0:{}]", width - 1);
        let product = format!("{name} {sums}, v2, v3, {addends}");
        let waits = |count| match count {
            0 => String::new(),
            _ => format!("{{{}}}\n", states(count)),
        };
        all.extend([
            planted(
                "mfma-read",
                GFX908,
                format!("{product}\n{}v_accvgpr_read_b32 v4, a33", waits(read)),
            ),
            planted(
                "mfma-overwrite",
                GFX908,
                format!("{product}\n{}v_accvgpr_write_b32 a33, v2", waits(write)),
            ),
            planted(
                if addend == 0 {
                    ""
                } else {
                    "mfma-srcc-overwrite"
                },
                GFX908,
                format!("{product}\n{}v_accvgpr_write_b32 a1, v2", waits(addend)),
            ),
        ]);
    }
    let product = "v_mfma_f32_4x4x1f32 a[32:35], v2, v3, a[0:3]";
    let other = |sources: &str| format!("v_mfma_f32_4x4x1f32 a[36:39], {sources}");
    all.extend([
        planted(
            "mfma-srcab",
            GFX908,
            format!("{product}\n{{s_nop 3}}\n{}", other("a33, v3, a[4:7]")),
        ),
        planted(
            "mfma-srcc",
            GFX908,
            format!("{product}\n{{s_nop 1}}\n{}", other("v2, v3, a[34:37]")),
        ),
        // The hardware waits for a whole result.
        planted(
            "",
            GFX908,
            format!("{product}\n{}", other("v2, v3, a[32:35]")),
        ),
    ]);
    check(&all);
}

#[test]
fn moves_between_the_files() {
    let product = "v_mfma_f32_4x4x1f32 a[32:35], v2, v3, a[0:3]";
    let write = "v_accvgpr_write_b32 a1, v5\n";
    check(&[
        planted(
            "valu-mfma",
            GFX908,
            format!("v_mov_b32 v2, v0\n{{s_nop 1}}\n{product}"),
        ),
        planted(
            "valu-mfma",
            GFX908,
            "v_mov_b32 v2, v0\n{s_nop 1}\nv_accvgpr_write_b32 a1, v2",
        ),
        planted(
            "valu-exec-mfma",
            GFX908,
            format!("v_cmpx_eq_u32 s[20:21], v0, v0\n{{s_nop 3}}\n{product}"),
        ),
        planted(
            "accvgpr-write",
            GFX908,
            format!("{write}{{s_nop 0}}\n{product}"),
        ),
        planted(
            "accvgpr-write",
            GFX908,
            format!("{write}{{s_nop 2}}\nv_mfma_f32_4x4x1f32 a[32:35], a1, v3, a[4:7]"),
        ),
        planted(
            "accvgpr-write",
            GFX908,
            format!("{write}{{s_nop 2}}\nv_accvgpr_read_b32 v4, a1"),
        ),
        planted(
            "accvgpr-memory",
            GFX908,
            "v_accvgpr_read_b32 v4, a1\n{s_nop 1}\nglobal_store_dword v1, v4, s[12:13]",
        ),
        planted(
            "accvgpr-memory",
            GFX908,
            "v_mov_b32 v4, 0\nv_accvgpr_read_b32 v5, a1\n{s_nop 0}\nglobal_store_dword v1, v4, s[12:13]",
        ),
        planted(
            "",
            GFX908,
            "v_mov_b32 v4, 0\nglobal_store_dword v1, v4, s[12:13]",
        ),
    ]);
}

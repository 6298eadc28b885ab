//! Wait states around matrix products of CDNA.

use modelgpu_amdgcn::Target;

use crate::run::{GFX90A, GFX942, GFX950, Planted, UNIFIED, check, planted};

/// A product, and the wait states behind it.
struct Product {
    targets: &'static [Target],
    /// The mnemonic, and the registers of the result, and of a factor.
    name: &'static str,
    result: u32,
    factor: u32,
    /// Before a vector instruction that reads the result.
    vector: u32,
    /// Before a vector instruction that overwrites it.
    overwrite: u32,
    /// Before an access to memory that reads it.
    memory: u32,
    /// Before a product of this kind that multiplies by it.
    product: u32,
    /// Before a product of this kind that adds to a part of it.
    part: u32,
    /// Before a product of this kind that adds to all of it.
    whole: u32,
    /// Before a vector instruction that overwrites the addend, if it is not the result.
    addend: u32,
}

/// The columns of the table: vector, overwrite, memory, product, part, whole and addend.
const fn product(
    targets: &'static [Target],
    name: &'static str,
    [result, factor]: [u32; 2],
    [vector, overwrite, memory, product, part, whole, addend]: [u32; 7],
) -> Product {
    Product {
        targets,
        name,
        result,
        factor,
        vector,
        overwrite,
        memory,
        product,
        part,
        whole,
        addend,
    }
}

const PRODUCTS: [Product; 20] = [
    product(GFX90A, "v_mfma_f32_4x4x1f32", [4, 1], [5, 5, 5, 5, 2, 0, 1]),
    product(
        GFX90A,
        "v_mfma_f32_16x16x4f32",
        [4, 1],
        [11, 11, 11, 11, 8, 0, 7],
    ),
    product(
        GFX90A,
        "v_mfma_f32_32x32x2f32",
        [16, 1],
        [19, 19, 19, 19, 16, 0, 15],
    ),
    product(
        GFX90A,
        "v_mfma_f32_32x32x8f16",
        [16, 2],
        [19, 19, 19, 19, 16, 0, 15],
    ),
    product(GFX90A, "v_mfma_f64_4x4x4f64", [2, 2], [6, 6, 9, 6, 4, 4, 0]),
    product(
        GFX90A,
        "v_mfma_f64_16x16x4f64",
        [8, 2],
        [11, 11, 18, 11, 9, 0, 0],
    ),
    product(
        GFX942,
        "v_mfma_f32_4x4x1_16b_f32",
        [4, 1],
        [4, 4, 4, 4, 2, 2, 0],
    ),
    product(
        GFX942,
        "v_mfma_f32_16x16x4_f32",
        [4, 1],
        [10, 10, 10, 10, 8, 0, 0],
    ),
    product(
        GFX942,
        "v_mfma_f32_32x32x2_f32",
        [16, 1],
        [18, 18, 18, 18, 16, 0, 0],
    ),
    product(
        GFX942,
        "v_mfma_f32_4x4x4_16b_f16",
        [4, 2],
        [5, 5, 5, 5, 3, 2, 1],
    ),
    product(
        GFX942,
        "v_mfma_f32_16x16x16_f16",
        [4, 2],
        [7, 7, 7, 7, 5, 0, 3],
    ),
    product(
        GFX942,
        "v_mfma_f32_32x32x8_f16",
        [16, 2],
        [11, 11, 11, 11, 9, 0, 7],
    ),
    product(
        GFX942,
        "v_mfma_f32_32x32x4_2b_f16",
        [32, 2],
        [19, 19, 19, 19, 17, 0, 15],
    ),
    product(
        GFX942,
        "v_mfma_f32_32x32x4_xf32",
        [16, 2],
        [11, 11, 11, 11, 9, 0, 7],
    ),
    product(
        GFX942,
        "v_mfma_f64_16x16x4_f64",
        [8, 2],
        [11, 11, 18, 11, 9, 0, 0],
    ),
    product(
        GFX950,
        "v_mfma_f32_4x4x4_16b_f16",
        [4, 2],
        [5, 5, 5, 5, 4, 2, 1],
    ),
    product(
        GFX950,
        "v_mfma_f32_16x16x32_f16",
        [4, 4],
        [8, 8, 8, 8, 6, 0, 3],
    ),
    product(
        GFX950,
        "v_mfma_f32_32x32x16_f16",
        [16, 4],
        [12, 12, 12, 12, 10, 0, 7],
    ),
    product(
        GFX950,
        "v_mfma_f32_16x16x4_f32",
        [4, 1],
        [10, 10, 10, 10, 8, 0, 0],
    ),
    product(
        GFX950,
        "v_mfma_f64_16x16x4_f64",
        [8, 2],
        [19, 11, 18, 19, 17, 0, 0],
    ),
];

fn registers(first: u32, count: u32) -> String {
    match count {
        1 => format!("v{first}"),
        count => format!("v[{first}:{}]", first + count - 1),
    }
}

/// Wait states: eight in an instruction.
fn wait(states: u32) -> String {
    match states {
        0 => String::new(),
        1..=8 => format!("s_nop {}", states - 1),
        states => format!("s_nop 7\n{}", wait(states - 8)),
    }
}

impl Product {
    /// The product of v[2:...] and v[8:...], with results and an addend from these registers on.
    fn text(&self, result: u32, first: u32, addend: u32) -> String {
        let (a, b) = (registers(first, self.factor), registers(8, self.factor));
        let (c, d) = (
            registers(addend, self.result),
            registers(result, self.result),
        );
        format!("{} {d}, {a}, {b}, {c}\n", self.name)
    }

    fn planted(&self) -> Vec<Planted> {
        let whole = self.text(16, 2, 16);
        let with = |rule, states, next: &str| {
            let body = match states {
                0 => format!("{whole}{next}"),
                states => format!("{whole}{{{}}}\n{next}", wait(states)),
            };
            planted(rule, self.targets, body)
        };
        let mut all = vec![
            with("mfma-read", self.vector, "v_mov_b32 v80, v17"),
            with("mfma-overwrite", self.overwrite, "v_mov_b32 v17, 0"),
            with(
                "mfma-read",
                self.memory,
                "global_store_dword v1, v17, s[12:13]",
            ),
            with("mfma-srcab", self.product, &self.text(80, 16, 80)),
            with("mfma-srcc", self.whole, &self.text(16, 2, 16)),
        ];
        // A smaller result has no part that begins at an even number.
        if self.result > 2 {
            all.push(with("mfma-srcc", self.part, &self.text(80, 2, 18)));
        }
        if self.addend > 0 {
            let product = self.text(16, 2, 80);
            let body = format!("{product}{{{}}}\nv_mov_b32 v81, 0", wait(self.addend));
            all.push(planted("mfma-srcc-overwrite", self.targets, body));
        }
        all
    }
}

#[test]
fn results_of_products() {
    let all: Vec<Planted> = PRODUCTS.iter().flat_map(Product::planted).collect();
    check(&all);
}

#[test]
fn sources_of_products() {
    let product = "v_mfma_i32_4x4x4i8 v[16:19], v2, v3, v[16:19]";
    let later = "v_mfma_i32_4x4x4_16b_i8 v[16:19], v2, v3, v[16:19]";
    let doubles = "v_mfma_f64_4x4x4f64 v[16:17], v[2:3], v[4:5], v[16:17]\n";
    let mut all = Vec::new();
    for (targets, product) in [(GFX90A, product), (GFX942, later), (GFX950, later)] {
        all.extend([
            planted(
                "valu-mfma",
                targets,
                format!("v_mov_b32 v2, v0\n{{s_nop 1}}\n{product}"),
            ),
            planted(
                "valu-exec-mfma",
                targets,
                format!("v_cmpx_eq_u32 s[20:21], v0, v0\n{{s_nop 3}}\n{product}"),
            ),
        ]);
    }
    all.extend([
        planted(
            "dgemm-fma-f64",
            UNIFIED,
            format!("{doubles}{{s_nop 1}}\nv_fma_f64 v[20:21], v[22:23], v[22:23], v[22:23]"),
        ),
        planted(
            "dgemm-vmem",
            GFX90A,
            format!("v_mov_b32 v1, v1\n{doubles}{{s_nop 0}}\nglobal_load_dword v6, v1, s[12:13]"),
        ),
    ]);
    // gfx942 and gfx950 have another name.
    let renamed = "v_mfma_f64_4x4x4_4b_f64 v[16:17]";
    for planted in &mut all {
        if planted.targets == UNIFIED {
            planted.body = planted
                .body
                .replace("v_mfma_f64_4x4x4f64 v[16:17]", renamed);
            planted.targets = GFX942;
        }
    }
    check(&all);
}

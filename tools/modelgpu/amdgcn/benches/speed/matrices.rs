//! The speed of matrix instructions: each one in a loop of one wave, on one thread.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use modelgpu_amdgcn::{Launch, Program, Target};
use modelgpu_testing::{is_rdna, text, tool};
use rustix::time::ClockId;

use super::{ROUNDS, cpu_time, median};

/// An instruction with its modifiers, the registers of D, A and B, and the lanes of a wave.
struct Product {
    text: &'static str,
    registers: [u32; 3],
    lanes: u32,
}

const fn dense(text: &'static str, [size, depth, blocks]: [u32; 3], bits: u32) -> Product {
    const LANES: u32 = 64;
    let factor = size * depth * blocks * bits / 32;
    let sum = size * size * blocks * if bits == 64 { 2 } else { 1 };
    Product {
        text,
        registers: [sum / LANES, factor.div_ceil(LANES), factor.div_ceil(LANES)],
        lanes: LANES,
    }
}

/// A's registers lack a half of its numbers.
const fn sparse(text: &'static str, size: u32, depth: u32, bits: u32) -> Product {
    let whole = dense(text, [size, depth, 1], bits);
    let [sum, factor, _] = whole.registers;
    Product {
        registers: [sum, factor / 2, factor],
        ..whole
    }
}

const fn of_wave(lanes: u32, text: &'static str, registers: [u32; 3]) -> Product {
    Product {
        text,
        registers,
        lanes,
    }
}

const GFX90A: &[Product] = &[
    dense("v_mfma_f32_32x32x1f32", [32, 1, 2], 32),
    dense("v_mfma_f32_16x16x1f32", [16, 1, 4], 32),
    dense("v_mfma_f32_4x4x1f32", [4, 1, 16], 32),
    dense("v_mfma_f32_32x32x2f32", [32, 2, 1], 32),
    dense("v_mfma_f32_16x16x4f32", [16, 4, 1], 32),
    dense("v_mfma_f32_32x32x4f16", [32, 4, 2], 16),
    dense("v_mfma_f32_16x16x4f16", [16, 4, 4], 16),
    dense("v_mfma_f32_4x4x4f16", [4, 4, 16], 16),
    dense("v_mfma_f32_32x32x8f16", [32, 8, 1], 16),
    dense("v_mfma_f32_16x16x16f16", [16, 16, 1], 16),
    dense("v_mfma_f32_32x32x4bf16_1k", [32, 4, 2], 16),
    dense("v_mfma_f32_16x16x4bf16_1k", [16, 4, 4], 16),
    dense("v_mfma_f32_4x4x4bf16_1k", [4, 4, 16], 16),
    dense("v_mfma_f32_32x32x8bf16_1k", [32, 8, 1], 16),
    dense("v_mfma_f32_16x16x16bf16_1k", [16, 16, 1], 16),
    dense("v_mfma_i32_32x32x4i8", [32, 4, 2], 8),
    dense("v_mfma_i32_16x16x4i8", [16, 4, 4], 8),
    dense("v_mfma_i32_4x4x4i8", [4, 4, 16], 8),
    dense("v_mfma_i32_32x32x8i8", [32, 8, 1], 8),
    dense("v_mfma_i32_16x16x16i8", [16, 16, 1], 8),
    dense("v_mfma_f64_16x16x4f64", [16, 4, 1], 64),
    dense("v_mfma_f64_4x4x4f64", [4, 4, 4], 64),
];

const GFX942: &[Product] = &[
    dense("v_mfma_f32_32x32x2_f32", [32, 2, 1], 32),
    dense("v_mfma_f32_32x32x4_xf32", [32, 4, 1], 32),
    dense("v_mfma_f32_16x16x8_xf32", [16, 8, 1], 32),
    dense("v_mfma_f32_32x32x8_f16", [32, 8, 1], 16),
    dense("v_mfma_f32_16x16x16_bf16", [16, 16, 1], 16),
    dense("v_mfma_i32_32x32x16_i8", [32, 16, 1], 8),
    dense("v_mfma_i32_16x16x32_i8", [16, 32, 1], 8),
    dense("v_mfma_f32_32x32x16_fp8_fp8", [32, 16, 1], 8),
    dense("v_mfma_f32_16x16x32_bf8_bf8", [16, 32, 1], 8),
    dense("v_mfma_f64_16x16x4_f64", [16, 4, 1], 64),
    sparse("v_smfmac_f32_16x16x32_f16", 16, 32, 16),
    sparse("v_smfmac_f32_32x32x16_bf16", 32, 16, 16),
    sparse("v_smfmac_i32_16x16x64_i8", 16, 64, 8),
    sparse("v_smfmac_f32_32x32x32_fp8_bf8", 32, 32, 8),
];

const GFX950: &[Product] = &[
    dense("v_mfma_f32_16x16x32_f16", [16, 32, 1], 16),
    dense("v_mfma_f32_32x32x16_bf16", [32, 16, 1], 16),
    dense("v_mfma_i32_16x16x64_i8", [16, 64, 1], 8),
    dense("v_mfma_f32_16x16x32_fp8_bf8", [16, 32, 1], 8),
    sparse("v_smfmac_f32_16x16x64_f16", 16, 64, 16),
    sparse("v_smfmac_i32_32x32x64_i8", 32, 64, 8),
    sparse("v_smfmac_f32_16x16x128_fp8_fp8", 16, 128, 8),
    dense("v_mfma_f32_16x16x128_f8f6f4", [16, 128, 1], 8),
    dense("v_mfma_f32_32x32x64_f8f6f4 cbsz:4 blgp:4", [32, 64, 1], 4),
    dense("v_mfma_f32_32x32x64_f8f6f4 cbsz:2 blgp:3", [32, 64, 1], 6),
    dense("v_mfma_scale_f32_16x16x128_f8f6f4", [16, 128, 1], 8),
];

const GFX1100: &[Product] = &[
    of_wave(32, "v_wmma_f32_16x16x16_f16", [8, 8, 8]),
    of_wave(32, "v_wmma_f32_16x16x16_bf16", [8, 8, 8]),
    of_wave(32, "v_wmma_f16_16x16x16_f16", [8, 8, 8]),
    of_wave(32, "v_wmma_bf16_16x16x16_bf16", [8, 8, 8]),
    of_wave(32, "v_wmma_i32_16x16x16_iu8", [8, 4, 4]),
    of_wave(32, "v_wmma_i32_16x16x16_iu4", [8, 2, 2]),
    of_wave(64, "v_wmma_f32_16x16x16_f16", [4, 8, 8]),
    of_wave(64, "v_wmma_i32_16x16x16_iu8", [4, 4, 4]),
];

const GFX1201: &[Product] = &[
    of_wave(32, "v_wmma_f32_16x16x16_f16", [8, 4, 4]),
    of_wave(32, "v_wmma_f32_16x16x16_bf16", [8, 4, 4]),
    of_wave(32, "v_wmma_f16_16x16x16_f16", [4, 4, 4]),
    of_wave(32, "v_wmma_bf16_16x16x16_bf16", [4, 4, 4]),
    of_wave(32, "v_wmma_f32_16x16x16_fp8_fp8", [8, 2, 2]),
    of_wave(32, "v_wmma_f32_16x16x16_bf8_fp8", [8, 2, 2]),
    of_wave(32, "v_wmma_i32_16x16x16_iu8", [8, 2, 2]),
    of_wave(32, "v_wmma_i32_16x16x16_iu4", [8, 1, 1]),
    of_wave(32, "v_wmma_i32_16x16x32_iu4", [8, 2, 2]),
    of_wave(64, "v_wmma_f32_16x16x16_f16", [4, 2, 2]),
    of_wave(32, "v_swmmac_f32_16x16x32_f16", [8, 4, 8]),
    of_wave(32, "v_swmmac_f32_16x16x32_bf16", [8, 4, 8]),
    of_wave(32, "v_swmmac_f16_16x16x32_f16", [4, 4, 8]),
    of_wave(32, "v_swmmac_bf16_16x16x32_bf16", [4, 4, 8]),
    of_wave(32, "v_swmmac_f32_16x16x32_fp8_bf8", [8, 2, 4]),
    of_wave(32, "v_swmmac_i32_16x16x32_iu8", [8, 2, 4]),
    of_wave(32, "v_swmmac_i32_16x16x64_iu4", [8, 2, 4]),
    of_wave(64, "v_swmmac_f32_16x16x32_f16", [4, 2, 4]),
];

const fn products(target: Target) -> &'static [Product] {
    match target {
        // gfx906 and gfx1030 have none, and those of gfx908 are gfx90a's functions with sums in another file.
        Target::Gfx906 | Target::Gfx908 | Target::Gfx1030 => &[],
        Target::Gfx90a => GFX90A,
        Target::Gfx942 => GFX942,
        Target::Gfx950 => GFX950,
        Target::Gfx1100 => GFX1100,
        Target::Gfx1201 => GFX1201,
        // The model refuses its products.
        Target::Gfx1250 => &[],
    }
}

/// Instructions in the loop's body: its end costs little beside them.
const UNROLLED: u32 = 16;
/// A measurement takes longer than this.
const LEAST: Duration = Duration::from_millis(20);
/// The registers that B, C and D begin at. The places of a sparse A are in the registers of C.
const SECOND: u32 = 16;
const ADDEND: u32 = 32;
const RESULT: u32 = 64;

impl Product {
    fn is_sparse(&self) -> bool {
        self.text.contains("mfmac") || self.text.contains("swmmac")
    }

    fn instruction(&self) -> String {
        let [sum, first, second] = self.registers;
        let range = |from: u32, count: u32| match count {
            1 => format!("v{from}"),
            _ => format!("v[{from}:{}]", from + count - 1),
        };
        let (name, modifiers) = self.text.split_once(' ').unwrap_or((self.text, ""));
        let third = match self.is_sparse() {
            true => range(ADDEND, 1),
            false => range(ADDEND, sum),
        };
        let scales = match name.contains("_scale_") {
            true => ", v14, v15",
            false => "",
        };
        format!(
            "{name} {}, {}, {}, {third}{scales} {modifiers}",
            range(RESULT, sum),
            range(0, first),
            range(SECOND, second),
        )
    }

    /// A kernel that executes the instruction as often as its argument says, in its units of [`UNROLLED`].
    fn assembly(&self, target: Target) -> String {
        let mut source = format!(
            ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n.text\n.globl product\n.p2align 8\n\
             .type product,@function\nproduct:\ns_load_b32 s8, s[0:1], 0x0\n"
        );
        if !is_rdna(target) {
            source = source.replace("s_load_b32", "s_load_dword");
        }
        // Ordinary numbers in all formats.
        for register in 0..RESULT {
            let value = if register < ADDEND {
                0x3c01_3c3a
            } else {
                0x3c1e_3914
            };
            writeln!(source, "v_mov_b32 v{register}, {value:#x}").expect("a string");
        }
        let wait = match target {
            Target::Gfx1201 | Target::Gfx1250 => "s_wait_kmcnt 0x0",
            _ => "s_waitcnt lgkmcnt(0)",
        };
        writeln!(source, "{wait}\nagain:").expect("a string");
        for _ in 0..UNROLLED {
            writeln!(source, "{}", self.instruction()).expect("a string");
        }
        let own = match is_rdna(target) {
            true => format!(".amdhsa_wavefront_size32 {}", u32::from(self.lanes == 32)),
            false => ".amdhsa_accum_offset 128".to_owned(),
        };
        write!(
            source,
            "s_sub_u32 s8, s8, 1
             s_cmp_lg_u32 s8, 0
             s_cbranch_scc1 again
             s_endpgm
             .size product, .-product
             .rodata
             .p2align 6
             .amdhsa_kernel product
             .amdhsa_kernarg_size 4
             .amdhsa_user_sgpr_kernarg_segment_ptr 1
             .amdhsa_next_free_vgpr 128
             .amdhsa_next_free_sgpr 16
             {own}
             .end_amdhsa_kernel
             .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: product
    .symbol: product.kd
    .kernarg_segment_size: 4
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {}
    .sgpr_count: 16
    .vgpr_count: 128
    .max_flat_workgroup_size: 64
    .args:
      - {{.offset: 0, .size: 4, .value_kind: by_value}}
.end_amdgpu_metadata\n",
            self.lanes
        )
        .expect("a string");
        source
    }

    fn assemble(&self, target: Target, directory: &Path) -> Vec<u8> {
        let (source, object) = (directory.join("product.s"), directory.join("product.co"));
        fs::write(&source, self.assembly(target)).expect("a writable file");
        let processor = format!("-mcpu={target}");
        let mut options = vec!["--target=amdgcn-amd-amdhsa", &processor, "-nogpulib"];
        if is_rdna(target) && self.lanes == 64 {
            options.push("-mwavefrontsize64");
        }
        options.extend(["-x", "assembler", text(&source), "-o", text(&object)]);
        tool("clang++-22", &options);
        fs::read(&object).expect("clang's output")
    }

    /// Instructions of this kind in a second.
    fn rate(&self, target: Target, directory: &Path) -> f64 {
        let object = self.assemble(target, directory);
        let mut program = Program::load(&object).expect("an object that was just linked");
        program.set_threads(1);
        let mut run = |loops: u32| {
            let launch = Launch {
                kernel: "product".into(),
                grid: [self.lanes, 1, 1],
                block: [self.lanes, 1, 1],
                dynamic_lds: 0,
                arguments: vec![modelgpu_amdgcn::Argument::Bytes(loops.to_le_bytes().into())],
            };
            let start = cpu_time(ClockId::ThreadCPUTime);
            let done = program.launch(&launch);
            done.unwrap_or_else(|error| panic!("{}: {error}", self.text));
            cpu_time(ClockId::ThreadCPUTime) - start
        };
        // The first run decodes the code.
        run(1);
        let mut loops = 1;
        while run(loops) < LEAST {
            loops *= 2;
        }
        let time = median((0..ROUNDS).map(|_| run(loops)).collect());
        f64::from(loops * UNROLLED) / time.as_secs_f64()
    }
}

/// Prints the rates of a target's matrix instructions.
pub(super) fn print(target: Target, directory: &Path) {
    println!("\n{target}, matrix instructions of one thread; medians of {ROUNDS} rounds");
    println!("instruction                                lanes   thousand/s");
    for product in products(target) {
        let rate = product.rate(target, directory) / 1e3;
        println!("{:42} {:5} {rate:12.1}", product.text, product.lanes);
    }
}

//! Shared parts of the integration tests: LLVM's tools, and kernels in assembly.
// Each test binary uses only a part of this.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use modelgpu_amdgcn::Target;

/// A path under the root of the workspace.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// Runs a tool, requires success and returns its output.
pub(crate) fn tool(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{name} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{name} {}: {}\n{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("LLVM's tools print UTF-8")
}

/// Compiles the device code of a HIP source for one target, without HIP's headers and libraries, to `object`.
pub(crate) fn compile_hip(
    source: &Path,
    target: Target,
    options: &[&str],
    object: &Path,
) -> Vec<u8> {
    let arch = format!("--offload-arch={target}");
    let how = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpuinc",
        "-nogpulib",
        &arch,
    ];
    let files = [text(source), "-o", text(object)];
    tool("clang++-22", &[&how[..], options, &files].concat());
    std::fs::read(object).expect("clang's output")
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// A kernel in assembly with pointers as arguments.
pub(crate) struct AssemblyKernel {
    pub(crate) name: String,
    pub(crate) body: String,
}

/// Bytes of LDS that an assembly kernel has.
pub(crate) const LDS_SIZE: usize = 8192;
/// Bytes of scratch that its work-items have.
pub(crate) const SCRATCH_SIZE: usize = 512;

/// Assembles and links kernels with `pointers` arguments each. The kernels find the address of the
/// arguments in `s[4:5]`. `more` holds further directives of the kernel descriptor.
pub(crate) fn assemble(
    target: Target,
    kernels: &[AssemblyKernel],
    pointers: u64,
    more: &str,
) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let (source, object, linked) = (path("kernels.s"), path("kernels.o"), path("kernels.co"));
    std::fs::write(&source, assembly(target, kernels, pointers, more)).expect("a writable file");
    let cpu = format!("-mcpu={target}");
    tool(
        "llvm-mc-22",
        &[
            "-triple=amdgcn-amd-amdhsa",
            &cpu,
            "-filetype=obj",
            text(&source),
            "-o",
            text(&object),
        ],
    );
    tool(
        "ld.lld-22",
        &["-shared", text(&object), "-o", text(&linked)],
    );
    std::fs::read(&linked).expect("the linker's output")
}

fn assembly(target: Target, kernels: &[AssemblyKernel], pointers: u64, more: &str) -> String {
    let mut source = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n");
    // gfx942 has no private segment buffer, so two pointers take its four SGPRs.
    let own = match target {
        Target::Gfx90a => {
            ".amdhsa_user_sgpr_private_segment_buffer 1
             .amdhsa_system_sgpr_private_segment_wavefront_offset 1"
        }
        Target::Gfx942 | Target::Gfx950 => {
            ".amdhsa_user_sgpr_dispatch_ptr 1
             .amdhsa_user_sgpr_queue_ptr 1
             .amdhsa_enable_private_segment 1"
        }
    };
    for AssemblyKernel { name, body } in kernels {
        write!(
            source,
            ".text
             .globl {name}
             .p2align 8
             .type {name},@function
             {name}:
             {body}
             s_endpgm
             .size {name}, .-{name}
             .rodata
             .p2align 6
             .amdhsa_kernel {name}
             .amdhsa_group_segment_fixed_size {LDS_SIZE}
             .amdhsa_private_segment_fixed_size {SCRATCH_SIZE}
             .amdhsa_kernarg_size {size}
             .amdhsa_user_sgpr_kernarg_segment_ptr 1
             .amdhsa_float_denorm_mode_32 3
             .amdhsa_next_free_vgpr 128
             .amdhsa_accum_offset 64
             .amdhsa_next_free_sgpr 96
             {own}
             {more}
             .end_amdhsa_kernel\n",
            size = 8 * pointers,
        )
        .expect("a string");
    }
    source + &metadata(kernels, pointers)
}

fn metadata(kernels: &[AssemblyKernel], pointers: u64) -> String {
    let mut metadata = String::from(".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n");
    for AssemblyKernel { name, .. } in kernels {
        write!(
            metadata,
            "  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: {}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {LDS_SIZE}
    .private_segment_fixed_size: {SCRATCH_SIZE}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 64
    .max_flat_workgroup_size: 1024
    .args:\n",
            8 * pointers,
        )
        .expect("a string");
        for pointer in 0..pointers {
            writeln!(
                metadata,
                "      - {{.offset: {}, .size: 8, .value_kind: global_buffer, \
                 .address_space: global}}",
                8 * pointer
            )
            .expect("a string");
        }
    }
    metadata + ".end_amdgpu_metadata\n"
}

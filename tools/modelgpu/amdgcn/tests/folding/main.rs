//! Compares two ways of one compiler to address memory: with a summand in the instruction's offset, and with the
//! sum in a register. LLVM folds summands also if the rest of the address is negative.

use std::path::Path;

use modelgpu_amdgcn::Target;
use modelgpu_testing::{arbitrary, compile_hip, compiled_targets, run, text, tool};

const WORKGROUP: usize = 128;
const ITEMS: usize = 3 * WORKGROUP;

/// Kernels, each with the instructions that have the folded offset, of which one must be there.
const KERNELS: &[(&str, &[&str])] = &[
    (
        "reads",
        &[
            "ds_read2st64_b32",
            "ds_load_2addr_stride64_b32",
            "ds_read2_b32",
            "ds_load_2addr_b32",
        ],
    ),
    ("wide_reads", &["ds_read2_b64", "ds_load_2addr_b64"]),
    (
        "writes",
        &["ds_write2st64_b32", "ds_store_2addr_stride64_b32"],
    ),
    ("atomics", &["ds_add_u32"]),
    ("appended", &["ds_append"]),
    ("scratch", &["buffer_load_dword", "scratch_load"]),
    ("buffers", &["buffer_load"]),
    ("flat", &["flat_load"]),
];

#[test]
fn folded_offsets_change_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folding/kernels.hip");
    let object = directory.path().join("kernels.co");
    let input = arbitrary(9, ITEMS);
    for target in compiled_targets() {
        let processor = target.to_string();
        let compile = |options: &[&str]| {
            compile_hip(&source, &processor, &[&["-O3"], options].concat(), &object)
        };
        let hidden = compile(&["-DHIDDEN"]);
        let folded = compile(&[]);
        let listing = tool("llvm-objdump-22", &["-d", text(&object)]);
        for (kernel, instructions) in KERNELS {
            let [wanted, found] =
                [&hidden, &folded].map(|object| run(object, kernel, &input, WORKGROUP));
            assert_eq!(found, wanted, "{target} {kernel}");
            assert!(found.iter().any(|value| *value != 0), "{target} {kernel}");
            let body = listing
                .split_once(&format!("<{kernel}>:"))
                .map(|(_, rest)| rest.split("\n\n").next().unwrap_or_default())
                .expect("the kernel's listing");
            let folds = body.lines().any(|line| {
                line.contains("offset") && instructions.iter().any(|name| line.contains(name))
            });
            // LLVM folds into scratch's instructions if the hardware takes a negative register, and not into a
            // buffer's whose addresses may have more than 32 bits.
            let may_fold = match *kernel {
                "scratch" => matches!(
                    target,
                    Target::Gfx906
                        | Target::Gfx908
                        | Target::Gfx90a
                        | Target::Gfx1030
                        | Target::Gfx1201
                        | Target::Gfx1250
                ),
                "buffers" => target != Target::Gfx1250,
                _ => true,
            };
            assert_eq!(folds, may_fold, "{target} {kernel}:\n{body}");
        }
    }
}

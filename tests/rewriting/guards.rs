//! Counters that have a value only if a bit of their block is set, and marks in their place.

use std::path::Path;

use rocov::instrument::amdgcn::{AmdgcnOptions, instrument};
use rocov::support::counting::Counting;
use rocov_tests::compile::{clang, device_only};

use crate::run::{compare, counted, run_into_traps, traced};

/// The names of EXEC, of two masks in scalar registers and of VCC in a target's assembly, and the ending of instructions for
/// masks.
fn names(target: &str) -> [&'static str; 5] {
    match target.starts_with("gfx9") {
        true => ["exec", "s[40:41]", "s[42:43]", "vcc", "b64"],
        // Clang compiles for waves of 32 there.
        false => ["exec_lo", "s40", "s42", "vcc_lo", "b32"],
    }
}

/// A block whose first instruction reads SCC, and that activates fewer lanes later. The kernel has two ends.
fn scc(target: &str) -> String {
    let [exec, _, kept, vcc, bits] = names(target);
    format!(
        r#"#include "dev.h"
__global__ void first(u32 *out, u32 n) {{
  u32 i = global_x(), x = 7;
  asm volatile(
      "s_cmp_eq_u32 %2, 0\n"
      "s_cbranch_scc1 1f\n"
      "s_cselect_b32 s40, 1, 2\n"
      "v_cmp_gt_u32 {vcc}, 20, %1\n"
      "s_and_saveexec_{bits} {kept}, {vcc}\n"
      "v_mov_b32 %0, s40\n"
      "s_mov_{bits} {exec}, {kept}\n"
      "1:\n"
      "s_cmp_eq_u32 %2, 77777\n"
      "s_cbranch_scc0 2f\n"
      "s_endpgm\n"
      "2:\n"
      : "+v"(x) : "v"(i), "s"(n) : "s40", "s42", "s43", "vcc");
  out[i] = x;
}}
REGISTER_KERNEL(first);
"#
    )
}

/// Two kernels that share one copy of a function, because it is too large for a copy for each.
fn shared() -> String {
    let steps: String = (0..60)
        .map(|step| {
            format!(
                "  if (x % {} == 1) x = x * {} + {step};\n",
                step + 2,
                2 * step + 3
            )
        })
        .collect();
    let kernel = |name: &str, condition: &str| {
        format!(
            "__global__ void {name}(u32 *out, u32 n) {{\n  u32 i = global_x();\n  if ({condition})\n    \
             out[i] = large(out[i] + i);\n}}\nREGISTER_KERNEL({name});\n"
        )
    };
    let kernels = [
        kernel("first", "i < n"),
        kernel("second", "i % 3 == 1"),
        kernel("third", "i > 5 && i % 7 != 2"),
    ];
    format!(
        "#include \"dev.h\"\n__device__ __noinline__ u32 large(u32 x) {{\n{steps}  return x;\n}}\n{}",
        kernels.concat()
    )
}

/// A kernel that activates all lanes of its waves, and then only lanes that its workgroup does not have.
fn all_lanes(target: &str) -> String {
    let [exec, saved, kept, vcc, bits] = names(target);
    let (last, count) = match bits {
        "b64" => (50, "v_mbcnt_hi_u32_b32 %0, -1, %0\\n"),
        _ => (25, ""),
    };
    format!(
        r#"#include "dev.h"
__global__ void first(u32 *out, u32 n) {{
  u32 i = global_x(), x = 7;
  asm volatile(
      "s_mov_{bits} {saved}, {exec}\n"
      "s_mov_{bits} {exec}, -1\n"
      "v_mbcnt_lo_u32_b32 %0, -1, 0\n"
      "{count}"
      "v_cmp_lt_u32 {vcc}, {last}, %0\n"
      "s_and_saveexec_{bits} {kept}, {vcc}\n"
      "s_cbranch_execz 1f\n"
      "v_mov_b32 %0, 9\n"
      "1:\n"
      "s_mov_{bits} {exec}, {saved}\n"
      : "+v"(x) : : "s40", "s41", "s42", "s43", "vcc");
  out[i] = x + n;
}}
REGISTER_KERNEL(first);
"#
    )
}

/// Two kernels that call a function by its address.
const BY_ADDRESS: &str = r#"#include "dev.h"
using Function = u32 (*)(u32);
__device__ Function stored;
__device__ __noinline__ u32 turns(u32 x) { return x % 3 == 1 ? 2 * x : x + 5; }
__global__ void first(u32 *out, u32 n) {
  u32 i = global_x();
  *static_cast<volatile Function *>(&stored) = turns;
  if (i < n)
    out[i] = (*static_cast<volatile Function *>(&stored))(i);
}
REGISTER_KERNEL(first);
__global__ void second(u32 *out, u32 n) {
  u32 i = global_x();
  if (i < n && stored)
    out[i] = stored(i + 3);
}
REGISTER_KERNEL(second);
"#;

/// A kernel whose waves trap behind conditions and a loop, the ways through which depend on `n`. The trap is a block of its own.
const TRAPPING: &str = r#"#include "dev.h"
__global__ void first(u32 *out, u32 n) {
  u32 i = global_x(), x = i;
  if (n % 2)
    x = x * 3 + out[n];
  for (u32 turn = 0; turn < n % 4; ++turn) {
    if (turn % 2)
      asm volatile("s_nop 0");
    if (out[turn + i] < x) {
      asm volatile("s_nop 1");
      x += n;
    }
  }
  if (x % 5 == 1)
    out[i] = x;
  asm volatile(
      "s_cmp_gt_u32 %0, 99\n"
      "s_cbranch_scc1 1f\n"
      "s_trap 2\n"
      "1:\n"
      : : "s"(n) : "scc");
  out[i + 64] = x;
}
REGISTER_KERNEL(first);
"#;

/// Kernels with copies of the functions that they call. The copies for the first one cannot have counters, as it leaves no
/// scalar register. Those for the next two take the room that was kept for it, so that none is left for the last.
fn crowded() -> String {
    let registers: String = (0..100)
        .filter(|number| *number != 32)
        .map(|number| format!(", \"s{number}\""))
        .collect();
    let function = |name: &str, instructions: usize, callee: &str| {
        format!(
            "__device__ __noinline__ void {name}() {{\n  asm volatile(\".rept {instructions}\\n s_nop 0\\n \
             .endr\");\n  {callee}\n}}\n"
        )
    };
    let kernel = |name: &str, body: &str| {
        format!(
            "__global__ void {name}(u32 *out, u32 n) {{\n  {body}\n  out[global_x()] = 1;\n}}\n\
             REGISTER_KERNEL({name});\n"
        )
    };
    let used = format!("asm volatile(\"s_nop 0\" ::: \"memory\"{registers}); first_callee();");
    [
        "#include \"dev.h\"\n".to_owned(),
        function("shared_callee", 5000, ""),
        function("first_callee", 4000, "shared_callee();"),
        function("last_callee", 1250, ""),
        kernel("first", &used),
        kernel("second", "shared_callee();"),
        kernel("third", "shared_callee();"),
        kernel("fourth", "last_callee();"),
    ]
    .concat()
}

/// Compares the plain kernels of a source with those that have counters.
fn check(title: &str, target: &str, source: &str, kernels: &[&str]) {
    check_in_blocks(128, title, target, source, kernels);
}

/// As [`check`], in workgroups of so many work-items.
fn check_in_blocks(items: u32, title: &str, target: &str, source: &str, kernels: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).expect("a test can write into its directory");
    };
    write(&place("buffer"), &[1; 4 * 256]);
    let launches = kernels.iter().map(|kernel| {
        let name = format!("_Z{}{kernel}Pjj", kernel.len());
        format!("launch {name} 2 1 1 {items} 1 1 p0 hc8000000\n")
    });
    let launches: String = launches.collect();
    let spec = format!("buf {}\n{launches}", place("buffer").display());
    write(&place("spec"), spec.as_bytes());
    let source_file = format!("{title}.hip");
    write(&place(&source_file), source.as_bytes());
    let object = device_only(clang(), &[target], 6)
        .arguments(["-O2"])
        .source(place(&source_file))
        .output(&format!("{title}.{target}"));
    let object = std::fs::read(object).expect("the compiler's output");
    let title = format!("{title} {target}");
    for counting in [Counting::Exact, Counting::Reached] {
        let options = AmdgcnOptions {
            counting,
            ..AmdgcnOptions::default()
        };
        compare(&title, &object, &place("spec"), &options);
    }
}

const TARGETS: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];

#[test]
fn bits_at_the_start_of_a_block_keep_scc() {
    for target in TARGETS {
        check("scc", target, &scc(target), &["first"]);
    }
}

#[test]
fn counters_of_kernels_that_share_functions_stay_apart() {
    for target in TARGETS {
        check(
            "shared",
            target,
            &shared(),
            &["first", "second", "third", "second"],
        );
    }
}

#[test]
fn lanes_that_a_workgroup_lacks_are_marked() {
    for target in TARGETS {
        let items = match target.starts_with("gfx9") {
            true => 40,
            false => 20,
        };
        check_in_blocks(items, "lanes", target, &all_lanes(target), &["first"]);
    }
}

#[test]
fn a_kernel_that_was_not_launched_did_not_run() {
    for target in TARGETS {
        for kernels in [&["first"][..], &["first", "second"]] {
            check("by_address", target, BY_ADDRESS, kernels);
        }
    }
}

/// A trap ends each wave at once: what it has counted by then, or reached, is in memory, and nothing that would come after.
#[test]
fn kernels_without_room_for_their_own_copies_share_some() {
    let kernels = ["first", "second", "third", "fourth"];
    check("crowded", "gfx942", &crowded(), &kernels);
}

#[test]
fn waves_that_trap_have_their_counts_and_marks_in_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &[u8]| {
        std::fs::write(place(name), text).expect("a test can write into its directory");
    };
    write("trapping.hip", TRAPPING.as_bytes());
    write("buffer", &[1; 4 * 256]);
    // Each launch is one wave.
    let launch = |n: u32| format!("launch _Z5firstPjj 1 1 1 32 1 1 p0 h{n:02x}000000\n");
    let spec = |all: &[u32]| {
        let launches: String = all.iter().map(|n| launch(*n)).collect();
        format!("buf {}\n{launches}", place("buffer").display())
    };
    for target in TARGETS {
        let object = device_only(clang(), &[target], 6)
            .arguments(["-O2"])
            .source(place("trapping.hip"))
            .output(&format!("trapping.{target}"));
        let object = std::fs::read(object).expect("the compiler's output");
        for all in [&[4][..], &[5, 6, 3]] {
            write("spec", spec(all).as_bytes());
            let plain = run_into_traps(&object, &place("spec"), true);
            let expected = traced(&object, &plain);
            for counting in [Counting::Exact, Counting::Reached] {
                let options = AmdgcnOptions {
                    counting,
                    ..AmdgcnOptions::default()
                };
                let made = instrument(&object, &options).expect("a new code object");
                let rewritten = run_into_traps(&made.code, &place("spec"), false);
                assert!(plain.buffers == rewritten.buffers, "{target} {all:?}");
                let (mut expected, mut found) = (expected.clone(), counted(&made.code, &rewritten));
                if counting == Counting::Reached {
                    for counts in expected.values_mut().chain(found.values_mut()) {
                        *counts = (counts.0.min(1), counts.1.min(1));
                    }
                }
                assert_eq!(found, expected, "{target} {all:?} {counting:?}");
            }
        }
    }
}

//! Texts with what instrumentation adds, and modules that it refuses.

use super::*;
use crate::format::ptx::Module;

const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// A module of one kernel with this body.
fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k(\n.param .u64 p)\n{{\n{body}}}\n")
}

fn counting(text: &str) -> Result<String, PtxRefusal> {
    instrument(&Module::parse(text).unwrap(), &PtxOptions::default())
}

#[test]
fn modules_that_cannot_count_are_rejected() {
    let message = |text: &str| counting(text).unwrap_err().to_string();
    let plain = kernel("ret;\n");
    assert_eq!(
        message(&plain.replace("sm_90", "sm_20")),
        "line 2 of the PTX: the target is sm_20, expected sm_30 or later"
    );
    assert_eq!(
        message(&plain.replace("size 64", "size 32")),
        "line 3 of the PTX: addresses have 32 bits, expected 64"
    );
    let counted = counting(&plain).unwrap();
    assert!(message(&counted).contains("so it is already instrumented"));
    let options = PtxOptions {
        version: 99,
        ..PtxOptions::default()
    };
    let found = instrument(&Module::parse(&plain).unwrap(), &options).unwrap_err();
    assert_eq!(
        found.to_string(),
        "a raw profile of version 99 has no records that rocov supports, expected 8 to 11"
    );
}

#[test]
fn functions_may_count_in_memory() {
    let text = format!(
        "{HEAD}.func f()\n{{\nL:\n@%p bra L;\nret;\n}}\n.entry k()\n{{\nL:\n@%p bra L;\ncall.uni f;\nret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    let options = PtxOptions {
        functions_in_memory: true,
        ..PtxOptions::default()
    };
    let changed = instrument(&module, &options).unwrap();
    let (function, kernel) = changed.split_at(changed.find(".entry").unwrap());
    let waits = |text: &str| text.contains(".reg .b64 %rocov_w0;");
    assert!(!waits(function) && waits(kernel), "{changed}");
    assert_eq!(function.matches("red.global.add.u64").count(), 2);
    assert!(waits(
        counting(&text).unwrap().split(".entry").next().unwrap()
    ));
}

/// Otherwise, ptxas lets lanes return one after the other, and fewer lanes vote together in the caller.
#[test]
fn lanes_meet_before_a_function_returns() {
    let text = format!(
        "{HEAD}.func f()\n{{\n@%p bra E;\nst.global.u32 [%a], 1;\nE:\nret;\n}}\n.entry k()\n{{\ncall.uni f;\nret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    for counting in [Counting::Exact, Counting::Reached] {
        let options = PtxOptions {
            counting,
            ..PtxOptions::default()
        };
        let changed = instrument(&module, &options).unwrap();
        let (function, kernel) = changed.split_at(changed.find(".entry").unwrap());
        let ends = |text: &str| {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let pairs = lines.windows(2).filter(|pair| pair[1] == "ret;");
            pairs.map(|pair| pair[0].to_owned()).collect::<Vec<_>>()
        };
        let meets = |line: &String| line.starts_with("bar.warp.sync ");
        let returns = ends(function);
        assert!(
            !returns.is_empty() && returns.iter().all(meets),
            "{changed}"
        );
        assert!(!ends(kernel).iter().any(meets), "{changed}");
    }
}

/// The text without what the instrumentation adds: its variables, lines with its names, and its scopes.
fn stripped(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut inner = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_own = ["rocov_", "__llvm_profile_raw_version", ".maxntid"];
        let is_own = is_own.iter().any(|own| line.contains(own));
        // A flush begins with a scope, and ends with one.
        inner |= line.starts_with("$rocov_exit");
        if !is_own && !inner {
            kept.push(line.to_owned());
        }
        inner &= line != "}";
    }
    kept
}

#[test]
fn everything_but_the_ends_stays() {
    let body = "\t.reg .pred %p<2>;\n\tsetp.eq.u32 %p1, %r1, 0; // why\n$L:\n\t@%p1 bra $L;\n\tst.global.u32 [%rd1], %r1;\n";
    let text = kernel(body);
    let plain: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    assert_eq!(stripped(&counting(&text).unwrap()), plain);
    // A sign parts these words, and a count comes between them.
    let text = kernel("$L:\n.loc 1 2 3@%p1 bra $L;\nret;\n");
    let text = counting(&text).unwrap();
    assert!(text.contains(".loc 1 2 3\n"), "{text}");
    Module::parse(&text).unwrap();
    // A module without code.
    let empty = format!("{HEAD}.global .u32 g;\n");
    assert_eq!(counting(&empty).unwrap(), empty);
}

#[test]
fn an_old_version_of_the_text_is_raised() {
    let raised = |version: &str, target: &str| {
        let text = kernel("ret;\n")
            .replace("8.8", version)
            .replace("sm_90", target);
        let text = counting(&text).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(raised("6.0", "sm_70"), ".version 6.2");
    assert_eq!(raised("6.0", "sm_80"), ".version 7.0");
    assert_eq!(raised("9.1", "sm_100a"), ".version 9.1");
    // Marks need the instructions of a later version only where lanes return to a caller.
    let marked = |text: String| {
        let text = text.replace("8.8", "6.0").replace("sm_90", "sm_60");
        let options = PtxOptions {
            counting: Counting::Reached,
            ..PtxOptions::default()
        };
        let text = instrument(&Module::parse(&text).unwrap(), &options).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    let function = ".func f()\n{\nret;\n}\n";
    assert_eq!(marked(kernel("ret;\n")), ".version 6.0");
    assert_eq!(
        marked(kernel("ret;\n").replace(".visible", &format!("{function}.visible"))),
        ".version 6.2"
    );
}

#[test]
fn blocks_that_run_together_share_a_bit() {
    let sets = |text: &str| {
        let text = counting(text).unwrap();
        let kernel = &text[text.find(".entry").unwrap()..];
        let lines = kernel.lines().map(str::trim);
        let sets = |line: &&str| {
            ["mov.b32 %rocov_b0, ", "or.b32 %rocov_b0, %rocov_b0, "]
                .iter()
                .any(|start| line.starts_with(start))
        };
        let values = lines
            .filter(sets)
            .filter_map(|line| line.rsplit(' ').next());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    // Each call runs the first block and the third, which need no bit, and some run the second.
    let body = "@%p bra L;\nmov.u32 %r, 1;\nL:\nmov.u32 %r, 2;\nret;\n";
    assert_eq!(sets(&kernel(body)), ["0;", "0x1;"]);
    // No thread comes back from the call, so its block is alone. The zeros after its counts are set come last.
    let text = kernel("call.uni f;\nmov.u32 %r, 1;\nret;\n");
    let text = text.replace(".visible", ".func f()\n{\nexit;\n}\n.visible");
    assert_eq!(sets(&text), ["0;", "0x1;", "0;", "0x2;"]);
}

/// A kernel whose threads may end in a function, with 40 blocks in a loop: too many for registers.
fn crowded() -> String {
    let blocks: String = (0..40)
        .map(|block| format!("@%p bra B{block};\nmov.u32 %r, {block};\nB{block}:\n"))
        .collect();
    let text = kernel(&format!("call.uni f;\nL:\n{blocks}@%q bra L;\nret;\n"));
    text.replace(".visible", ".func f()\n{\nexit;\n}\n.visible")
}

#[test]
fn blocks_in_loops_without_registers_share_the_place_of_their_counters() {
    let text = crowded();
    let module = Module::parse(&text).unwrap();
    let numbers = |registers: Option<u32>| {
        let mut options = PtxOptions::default();
        options
            .registers
            .extend(registers.map(|number| ("k".into(), number)));
        let text = instrument(&module, &options).unwrap();
        let kernel = text.split(".entry k").nth(1).unwrap().to_owned();
        let prepared = kernel
            .matches("mov.u64 %rocov_place, __rocov_copies_area")
            .count();
        assert_eq!(prepared, 1, "{kernel}");
        let added = kernel.matches("red.global.add.u64 [%rocov_place+").count();
        let registers =
            ["add.u64 %rocov_w", "add.u32 %rocov_n"].map(|code| kernel.matches(code).count());
        let registers = registers.iter().sum::<usize>();
        (added, added + registers > 80)
    };
    // There are 81 blocks in the loop. Without a limit, 32 have registers, and 16 if there is no room for any.
    assert_eq!(numbers(None), (49, true));
    assert_eq!(numbers(Some(64)), (65, true));
}

#[test]
fn loops_have_no_accesses_that_keep_threads_from_meeting() {
    let body: String = (0..8)
        .map(|number| {
            format!(
                "L{number}:\n@%p bra M{number};\nmov.u32 %r, 1;\nM{number}:\n@%q bra L{number};\n"
            )
        })
        .collect();
    let text = kernel(&format!("{body}ret;\n"));
    let module = Module::parse(&text).unwrap();
    let mut options = PtxOptions::default();
    options.registers.insert("k".into(), 64);
    let changed = instrument(&module, &options).unwrap();
    assert!(changed.contains("$rocov_full"), "{changed}");
    assert!(!changed.contains("volatile"), "{changed}");
}

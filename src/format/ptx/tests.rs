//! Blocks, lines and errors of texts whose blocks are counted by hand.

use std::fmt::Write;
use std::num::NonZeroU64;

use super::*;

const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// A module of one kernel with this body.
fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k(\n.param .u64 p)\n{{\n{body}}}\n")
}

fn blocks(text: &str) -> Vec<usize> {
    let module = Module::parse(text).unwrap();
    let blocks = module.functions[0].blocks.iter();
    blocks.map(|block| block.line - 7).collect()
}

fn error(text: &str) -> String {
    Module::parse(text).unwrap_err().to_string()
}

#[test]
fn blocks_begin_where_threads_may_part_or_meet() {
    for (body, expected) in [
        ("\tret;\n", &[0][..]),
        // A loop, and a jump that is the other way out of its block.
        (
            "mov.u32 %r1, 0;\n$A:\nadd.s32 %r1, %r1, 1;\n@%p1 bra $B;\nbra.uni $A;\n$B:\nret;\n",
            &[0, 2, 6],
        ),
        // A label between the two, to which another branch leads.
        (
            "@%p1 bra $B;\n$A:\nbra.uni $B;\n$B:\n@%p2 bra $A;\nret;\n",
            &[0, 2, 4, 5],
        ),
        // Labels for debug information alone.
        (
            "$T0:\nmov.u32 %r1, 0;\n$T1:\nmov.u32 %r2, 0;\n$T2:\nret;\n",
            &[1],
        ),
        // Guarded ends, and a guard that is none of a branch.
        (
            "@%p1 ret;\n@!%p1 exit;\n@%p2 trap;\n@%p1 mov.u32 %r1, 0;\nret;\n",
            &[0, 1, 2, 3],
        ),
        // A callee may end the thread.
        (
            "call.uni (r), f, (p0);\nld.param.b32 %r1, [r];\ncall f;\nret;\n",
            &[0, 1, 3],
        ),
        // A table of labels, one of them at the end of the body.
        (
            "brx.idx %r1, ts;\nts: .branchtargets $A, $B, $E;\n$A: mov.u32 %r1, 0;\n$B: ret;\n$E:\n",
            &[0, 2, 3],
        ),
        // Labels of inner scopes hide those of outer ones.
        (
            "{\nL: @%p1 bra D;\nbra L;\nD:\n}\n{\nL: @%p1 bra D;\nbra L;\nD:\n}\nret;\n",
            &[1, 6, 10],
        ),
        ("", &[]),
    ] {
        assert_eq!(blocks(&kernel(body)), expected, "{body}");
    }
}

#[test]
fn each_block_has_its_positions() {
    let text = format!(
        "{HEAD}.file 1 \"/src/a \\\"b\\\".cu\", 12, 34\n.func f;\n.entry k\n{{\n\
         .loc 1 4 2\nmov.u32 %r1, 0; /* one\n comment */ .loc 1 5 0 // two\nmov.u32 %r2, 0;\n\
         .loc 1 4 2\n@%p bra $L;\n.loc 1 0 0\nmov.u32 %r3, 0;\n\
         .loc 1 20 3, function_name $info+2, inlined_at 1 5 0\nmov.u32 %r4, 0;\n\
         .loc 1 30 1, function_name $other, inlined_at 1 20 3\n$L:\nret;\n}}\n\
         .section .debug_str\n{{\n$info:\n.b8 1,2,102,95\n.b8 111\n.b8 0\n$other: .b8 103\n.b8 0\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.files[&1], "/src/a \"b\".cu");
    let found = module.functions[0].blocks.iter().map(|block| {
        let mut all = String::new();
        for it in &block.positions {
            let name = it.function.as_deref().unwrap_or("-");
            let _ = write!(all, "{}:{} {name}", it.place.line, it.place.column);
            for site in &it.inlined_at {
                let name = site.function.as_deref().unwrap_or("-");
                let _ = write!(all, " at {}:{} {name}", site.place.line, site.place.column);
            }
            all.push(';');
        }
        all
    });
    let expected = [
        "4:2 -;5:0 -;",
        "20:3 f_o at 5:0 -;",
        "30:1 g at 20:3 f_o at 5:0 -;",
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(module.functions[0].line, 6);
}

#[test]
fn a_jump_where_ways_join_is_no_line() {
    // As nvcc -G writes the end of an `if` in an `if`: the first jump of lines 4 and 5 belongs to them.
    let text = kernel(
        ".loc 1 4 2\n@%p1 bra $B;\n.loc 1 5 2\nbra $B;\n$A:\nbra $C;\n$B:\nmov.u32 %r1, 0;\nbra $A;\n$C:\nret;\n",
    );
    let module = Module::parse(&text).unwrap();
    let found = module.functions[0].blocks.iter().map(|block| {
        let lines = block.positions.iter().map(|position| position.place.line);
        lines.collect::<Vec<_>>()
    });
    let expected = [vec![4, 5], vec![], vec![5], vec![5]];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn kernels_and_functions_with_a_body_are_found() {
    let text = format!(
        "{HEAD}.extern .func (.param .b32 r) printf (.param .b64 a, .param .b64 b);\n\
         .extern .shared .align 16 .b8 s[];\n.global .align 4 .u32 g[2] = {{1, 2}};\n\
         .weak .func (.param .b32 r) f(.param .b32 a) .noreturn {{ trap; }}\n\
         .visible .entry k(.param .u64 .ptr .align 1 p) .maxntid 128, 1, 1 .minnctapersm 2 .pragma \"x\"; \n{{ ret; }}"
    );
    let module = Module::parse(&text).unwrap();
    let found = module
        .functions
        .iter()
        .map(|function| (function.symbol, function.is_kernel));
    assert_eq!(found.collect::<Vec<_>>(), [("f", false), ("k", true)]);
    assert_eq!(
        (module.version, module.target, module.architecture()),
        ((8, 8), "sm_90", Some(90))
    );
    let hash = module.functions[1].hash;
    let other = text.replace("128, 1, 1", "256, 1, 1");
    assert_ne!(Module::parse(&other).unwrap().functions[1].hash, hash);
}

#[test]
fn the_text_requires_the_threads_of_a_block_or_of_a_cluster() {
    // By PTX ISA 11.2: `.maxntid` is a limit, and a cluster has so many blocks.
    for (directives, expected) in [
        ("", None),
        (".maxntid 128", None),
        (".reqntid 128", Some(128)),
        (".reqntid 8, 4, 2", Some(64)),
        (".minnctapersm 2 .reqntid 32,2 .maxnreg 64", Some(64)),
        (".reqntid 128 .reqnctapercluster 2, 1, 1", Some(256)),
        (".reqnctapercluster 4", None),
        (".reqntid 0", None),
        (
            ".reqntid 0xffffffffffffffff .reqnctapercluster 0xffffffffffffffff",
            None,
        ),
    ] {
        let text = format!("{HEAD}.visible .entry k() {directives} {{ ret; }}");
        let module = Module::parse(&text).unwrap();
        let found = module.functions[0].required_threads.map(NonZeroU64::get);
        assert_eq!(found, expected, "{directives}");
    }
    let text = format!("{HEAD}.visible .entry k() .reqntid {{ ret; }}");
    let error = Module::parse(&text).unwrap_err().to_string();
    assert!(
        error.contains("expected the size of one dimension, found {"),
        "{error}"
    );
}

#[test]
fn errors_name_the_line_and_the_thing() {
    for (body, expected) in [
        ("ret\n", "line 8 of the PTX: expected a semicolon, found }"),
        // Instructions that count have such numbers as operands.
        (
            "72:\nret;\n",
            "line 7 of the PTX: expected a label, found 72",
        ),
        (
            "%r1:\nret;\n",
            "line 7 of the PTX: expected a label, found %r1",
        ),
        ("@:\nret;\n", "line 7 of the PTX: expected a label, found @"),
        (
            "\nbra $N;\n",
            "line 8 of the PTX: $N is not a label in this scope",
        ),
        (
            "$A:\njump $A;\nret;\n",
            "line 8 of the PTX: jump names the label $A, expected bra, brx.idx or call",
        ),
        (
            ".maybe x;\n",
            "line 7 of the PTX: expected a directive of a function that rocov supports, found .maybe",
        ),
        (
            "$A:\n$A:\nret;\n",
            "line 8 of the PTX: the label $A is defined twice in this scope",
        ),
        (
            "mov.u32 {%r1, %r2;\n",
            "line 7 of the PTX: expected the matching closing bracket, found ;",
        ),
        (
            "brx %r1, $A;\n",
            "line 7 of the PTX: expected brx.idx, found brx",
        ),
        (
            "µ;\n",
            "line 7 of the PTX: expected ASCII text, found \"µ\"",
        ),
        (
            ".loc 1 x 0\n",
            "line 7 of the PTX: expected the number of a line, found x",
        ),
    ] {
        assert_eq!(error(&kernel(body)), expected, "{body}");
    }
    let twice = format!("{HEAD}.func f {{ ret; }}\n.func f {{ ret; }}");
    assert_eq!(
        error(&twice),
        "line 5 of the PTX: the function f has a second body"
    );
    assert_eq!(
        error(""),
        "line 1 of the PTX: expected .version, found the end of the text"
    );
    let open = format!("{HEAD}.func f {{ ret;");
    assert_eq!(
        error(&open),
        "line 4 of the PTX: expected a statement, found the end of the text"
    );
}

#[test]
fn each_module_begins_with_its_version() {
    let [one, other] = [
        "// a\n.version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"a .version\"\n",
        ".version 8.0\n.target sm_90\n.address_size 64\n// .version\n",
    ];
    assert_eq!(modules(one), [one]);
    assert_eq!(modules(&[one, other].concat()), [one, other]);
    assert_eq!(modules(""), [""]);
}

//! Operations in LLVM's intermediate language, of which the host's code or LLVM's constant folding computes the expected
//! values.

/// The numbers that an operation takes and returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Integer,
    Half,
    Bfloat,
    Single,
    Double,
}

/// The oracle of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oracle {
    /// The operation, compiled for the host.
    Host,
    /// The operation with constants, which LLVM computes.
    Folding,
    /// The operation on memory of an address space, compiled for the host.
    Memory(Space),
}

/// An address space of AMD's GPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Flat,
    Global,
    Lds,
    Scratch,
    Buffer,
}

impl Space {
    pub(crate) const ALL: [Self; 5] = [
        Self::Flat,
        Self::Global,
        Self::Lds,
        Self::Scratch,
        Self::Buffer,
    ];

    /// Its number in LLVM's AMDGPUUsage, "Address Spaces".
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Flat => 0,
            Self::Global => 1,
            Self::Lds => 3,
            Self::Scratch => 5,
            Self::Buffer => 7,
        }
    }
}

/// An operation on the 64-bit values `%a` to `%d`, or on memory at `%p`.
pub(crate) struct Operation {
    pub(crate) oracle: Oracle,
    pub(crate) inputs: Number,
    pub(crate) result: Number,
    /// The bits of one number of the result, of which there may be several.
    pub(crate) bits: u32,
    /// True if a zero must have the right sign.
    pub(crate) has_signed_zero: bool,
    /// The units in the last place by which the result may differ.
    pub(crate) ulps: u64,
    /// True if the operation also runs on uniform values, for which LLVM chooses scalar instructions.
    pub(crate) is_uniform: bool,
    /// The instructions. They leave the result in `%r`, of 64 bits.
    pub(crate) body: String,
    /// The declarations of functions that the body calls.
    pub(crate) declarations: Vec<String>,
}

/// Returns the numbers of a type, and the bits of one.
fn number(kind: &str) -> (Number, u32) {
    let element = kind.trim_start_matches("<2 x ").trim_end_matches('>');
    match element {
        "half" => (Number::Half, 16),
        "bfloat" => (Number::Bfloat, 16),
        "float" => (Number::Single, 32),
        "double" => (Number::Double, 64),
        integer => {
            let bits = integer.trim_start_matches('i').parse();
            (Number::Integer, bits.expect("an integer's bits"))
        }
    }
}

/// Returns the bits of a type.
fn width(kind: &str) -> u32 {
    number(kind).1 * if kind.starts_with('<') { 2 } else { 1 }
}

/// Instructions that make a value of a type from 64 bits.
fn taken(name: &str, kind: &str, from: &str) -> String {
    let bits = width(kind);
    let integer = format!("i{bits}");
    if bits == 64 {
        return format!("%{name} = bitcast i64 %{from} to {kind}\n");
    }
    format!(
        "%{name}.i = trunc i64 %{from} to {integer}\n%{name} = bitcast {integer} %{name}.i to {kind}\n"
    )
}

/// Instructions that make 64 bits, `%r`, of the value `%v` of a type.
fn given(kind: &str) -> String {
    let bits = width(kind);
    if bits == 64 {
        return format!("%r = bitcast {kind} %v to i64\n");
    }
    format!("%v.i = bitcast {kind} %v to i{bits}\n%r = zext i{bits} %v.i to i64\n")
}

/// An operation `%v` on `%x`, `%y`, `%z` and `%w`, which have the type `from`. The result has the type `to`.
fn plain(from: &str, to: &str, body: &str) -> Operation {
    let mut text = String::new();
    for (name, input) in [("x", "a"), ("y", "b"), ("z", "c"), ("w", "d")] {
        text += &taken(name, from, input);
    }
    text += body;
    text += "\n";
    text += &given(to);
    let (result, bits) = number(to);
    Operation {
        oracle: Oracle::Host,
        inputs: number(from).0,
        result,
        bits,
        // LLVM multiplies on gfx1250 by a multiply-add whose addend is +0.
        has_signed_zero: !["minnum", "maxnum", "amdgcn.sin", "fmul bfloat"]
            .iter()
            .any(|function| body.contains(function)),
        ulps: 0,
        is_uniform: true,
        body: text,
        declarations: Vec::new(),
    }
}

/// Calls a function of the first `count` operands.
fn called(function: &str, from: &str, to: &str, count: usize, more: &str) -> Operation {
    let operands: Vec<String> = ["x", "y", "z", "w"][..count]
        .iter()
        .map(|name| format!("{from} %{name}"))
        .collect();
    let extra = if more.is_empty() { "" } else { ", " };
    let body = format!(
        "%v = call {to} @{function}({}{extra}{more})",
        operands.join(", ")
    );
    let types = vec![from; count].join(", ");
    let more_types: Vec<&str> = more
        .split(", ")
        .filter_map(|operand| operand.split(' ').next())
        .filter(|kind| !kind.is_empty())
        .collect();
    let declaration = format!(
        "declare {to} @{function}({types}{extra}{})",
        more_types.join(", ")
    );
    Operation {
        declarations: vec![declaration],
        ..plain(from, to, &body)
    }
}

const INTEGERS: [&str; 4] = ["i16", "i32", "i64", "<2 x i16>"];
const REALS: [&str; 5] = ["half", "float", "double", "<2 x half>", "bfloat"];

/// The suffix of an intrinsic function for a type.
fn suffix(kind: &str) -> String {
    let element = kind.trim_start_matches("<2 x ").trim_end_matches('>');
    let short = match element {
        "half" => "f16",
        "bfloat" => "bf16",
        "float" => "f32",
        "double" => "f64",
        other => other,
    };
    if kind.starts_with('<') {
        format!("v2{short}")
    } else {
        short.to_owned()
    }
}

/// One step of integer arithmetic on two values: the instructions that leave it in `out`.
fn step(name: &str, kind: &str, out: &str, left: &str, right: &str) -> (String, Option<String>) {
    let mask = width(kind).min(if kind.starts_with('<') { 16 } else { 64 }) - 1;
    match name {
        "shl" | "lshr" | "ashr" => {
            let mask = if kind.starts_with('<') {
                format!("<i16 {mask}, i16 {mask}>")
            } else {
                mask.to_string()
            };
            let text = format!(
                "%{out}.m = and {kind} %{right}, {mask}\n%{out} = {name} {kind} %{left}, %{out}.m\n"
            );
            (text, None)
        }
        "not" => {
            let ones = if kind.starts_with('<') {
                "<i16 -1, i16 -1>"
            } else {
                "-1"
            };
            let text = format!(
                "%{out}.n = xor {kind} %{right}, {ones}\n%{out} = and {kind} %{left}, %{out}.n\n"
            );
            (text, None)
        }
        "add" | "sub" | "mul" | "and" | "or" | "xor" => {
            (format!("%{out} = {name} {kind} %{left}, %{right}\n"), None)
        }
        function => {
            let function = format!("llvm.{function}.{}", suffix(kind));
            (
                format!("%{out} = call {kind} @{function}({kind} %{left}, {kind} %{right})\n"),
                Some(format!("declare {kind} @{function}({kind}, {kind})")),
            )
        }
    }
}

const STEPS: [&str; 14] = [
    "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "not", "smin", "smax", "umin",
    "umax",
];

/// Steps that some target does at once.
const PAIRS: [(&str, &str); 18] = [
    ("add", "add"),
    ("add", "shl"),
    ("and", "and"),
    ("and", "or"),
    ("mul", "add"),
    ("or", "or"),
    ("shl", "add"),
    ("shl", "or"),
    ("xor", "add"),
    ("xor", "xor"),
    ("smin", "smin"),
    ("smin", "smax"),
    ("smax", "smin"),
    ("smax", "smax"),
    ("umin", "umin"),
    ("umin", "umax"),
    ("umax", "umin"),
    ("umax", "umax"),
];

fn integers() -> Vec<Operation> {
    let mut all = Vec::new();
    for kind in INTEGERS {
        let singles = STEPS
            .into_iter()
            .chain(["uadd.sat", "usub.sat", "sadd.sat", "ssub.sat"]);
        for name in singles {
            let (text, declaration) = step(name, kind, "v", "x", "y");
            let mut operation = plain(kind, kind, &text);
            operation.declarations.extend(declaration);
            all.push(operation);
        }
        for (first, second) in PAIRS.into_iter().filter(|_| kind != "i64") {
            let (one, first_declared) = step(first, kind, "t", "x", "y");
            let (two, second_declared) = step(second, kind, "v", "t", "z");
            let mut operation = plain(kind, kind, &(one + &two));
            operation.is_uniform = kind == "i32";
            operation.declarations.extend(first_declared);
            operation.declarations.extend(second_declared);
            all.push(operation);
        }
        for function in ["ctpop", "bitreverse"] {
            let name = format!("llvm.{function}.{}", suffix(kind));
            all.push(called(&name, kind, kind, 1, ""));
        }
        if !kind.starts_with('<') {
            for function in ["ctlz", "cttz", "abs"] {
                let name = format!("llvm.{function}.{kind}");
                all.push(called(&name, kind, kind, 1, "i1 false"));
            }
            all.push(called(&format!("llvm.bswap.{kind}"), kind, kind, 1, ""));
            for function in ["fshl", "fshr"] {
                let name = format!("llvm.{function}.{kind}");
                all.push(called(&name, kind, kind, 3, ""));
            }
            for operation in ["udiv", "urem", "sdiv", "srem"] {
                // No division by 0, nor of the least number by -1.
                let body = format!(
                    "%n = lshr {kind} %y, 3\n%e = or {kind} %n, 1\n%v = {operation} {kind} %x, %e"
                );
                all.push(plain(kind, kind, &body));
            }
        }
    }
    // Products of 64 and of 24 bits, and parts of products.
    for extension in ["zext", "sext"] {
        let wide = format!(
            "%l = {extension} i32 %x to i64\n%m = {extension} i32 %y to i64\n%p = mul i64 %l, %m\n"
        );
        all.push(plain("i32", "i64", &(wide.clone() + "%v = add i64 %p, 0")));
        all.push(plain("i32", "i64", &(wide.clone() + "%v = add i64 %p, %c")));
        let high = "%h = lshr i64 %p, 32\n%v = trunc i64 %h to i32";
        all.push(plain("i32", "i32", &(wide + high)));
        let shift = if extension == "zext" { "lshr" } else { "ashr" };
        let narrow = format!(
            "%l0 = shl i32 %x, 8\n%l = {shift} i32 %l0, 8\n%m0 = shl i32 %y, 8\n%m = {shift} i32 %m0, 8\n"
        );
        all.push(plain(
            "i32",
            "i32",
            &(narrow.clone() + "%v = mul i32 %l, %m"),
        ));
        let sum = "%p = mul i32 %l, %m\n%v = add i32 %p, %z";
        all.push(plain("i32", "i32", &(narrow.clone() + sum)));
        let high24 = format!(
            "%le = {extension} i32 %l to i64\n%me = {extension} i32 %m to i64\n%p = mul i64 %le, %me\n\
             %h = lshr i64 %p, 32\n%v = trunc i64 %h to i32"
        );
        all.push(plain("i32", "i32", &(narrow + &high24)));
        let sixteen = format!(
            "%l = {extension} i16 %x to i32\n%m = {extension} i16 %y to i32\n%p = mul i32 %l, %m\n\
             %t = trunc i64 %c to i32\n%v = add i32 %p, %t"
        );
        all.push(plain("i16", "i32", &sixteen));
        // Fields of constant and of variable places.
        for (place, bits) in [(3, 7), (8, 8), (16, 16), (0, 5)] {
            let body = format!(
                "%s = shl i32 %x, {}\n%v = {shift} i32 %s, {}",
                32 - place - bits,
                32 - bits
            );
            all.push(plain("i32", "i32", &body));
            let body = format!(
                "%s = shl i64 %x, {}\n%v = {shift} i64 %s, {}",
                64 - place - bits,
                64 - bits
            );
            all.push(plain("i64", "i64", &body));
        }
        for narrow in ["i8", "i16"] {
            for wide in ["i32", "i64"] {
                let body = format!(
                    "%n = trunc {wide} %x to {narrow}\n%v = {extension} {narrow} %n to {wide}"
                );
                all.push(plain(wide, wide, &body));
            }
        }
    }
    for (name, body) in [
        // Inserted and extracted bits.
        (
            "i32",
            "%m = xor i32 %x, -1\n%l = and i32 %y, %x\n%h = and i32 %z, %m\n%v = or i32 %l, %h",
        ),
        (
            "i64",
            "%m = xor i64 %x, -1\n%l = and i64 %y, %x\n%h = and i64 %z, %m\n%v = or i64 %l, %h",
        ),
        (
            "i32",
            "%s = and i32 %y, 31\n%o = shl i32 1, %s\n%m = sub i32 %o, 1\n%v = and i32 %m, %x",
        ),
        (
            "i32",
            "%s = and i32 %y, 31\n%o = shl i32 1, %s\n%m = sub i32 %o, 1\n%t = and i32 %z, 31\n%v = shl i32 %m, %t",
        ),
        (
            "i64",
            "%s = and i64 %y, 63\n%o = shl i64 1, %s\n%m = sub i64 %o, 1\n%t = and i64 %z, 63\n%v = shl i64 %m, %t",
        ),
        (
            "i32",
            "%s = and i32 %y, 31\n%o = shl i32 1, %s\n%v = or i32 %o, %x",
        ),
        (
            "i64",
            "%s = and i64 %y, 63\n%o = shl i64 1, %s\n%v = or i64 %o, %x",
        ),
        (
            "i32",
            "%s = and i32 %y, 31\n%o = shl i32 1, %s\n%m = xor i32 %o, -1\n%v = and i32 %m, %x",
        ),
        (
            "i32",
            "%s = and i32 %y, 31\n%f = lshr i32 %x, %s\n%v = and i32 %f, 63",
        ),
        (
            "i32",
            "%n = xor i32 %y, -1\n%t = xor i32 %x, %n\n%v = add i32 %t, 0",
        ),
        (
            "i64",
            "%n = xor i64 %y, -1\n%t = xor i64 %x, %n\n%v = add i64 %t, 0",
        ),
        ("i32", "%t = and i32 %x, %y\n%v = xor i32 %t, -1"),
        ("i64", "%t = and i64 %x, %y\n%v = xor i64 %t, -1"),
        ("i32", "%t = or i32 %x, %y\n%v = xor i32 %t, -1"),
        ("i64", "%t = or i64 %x, %y\n%v = xor i64 %t, -1"),
        ("i32", "%n = xor i32 %y, -1\n%v = or i32 %x, %n"),
        ("i64", "%n = xor i64 %y, -1\n%v = or i64 %x, %n"),
        ("i32", "%v = xor i32 %x, -1"),
        ("i64", "%v = xor i64 %x, -1"),
        (
            "i32",
            "%h = lshr i32 %x, 16\n%l = and i32 %y, -65536\n%v = or i32 %h, %l",
        ),
        (
            "i32",
            "%h = shl i32 %x, 16\n%l = and i32 %y, 65535\n%v = or i32 %h, %l",
        ),
        (
            "i32",
            "%h = lshr i32 %x, 16\n%l = shl i32 %y, 16\n%v = or i32 %h, %l",
        ),
        ("i64", "%s = shl i64 %x, 2\n%v = add i64 %s, %y"),
        ("i64", "%s = shl i64 %x, 1\n%v = add i64 %s, %y"),
        ("i64", "%s = shl i64 %x, 3\n%v = add i64 %s, %y"),
        ("i64", "%s = shl i64 %x, 4\n%v = add i64 %s, %y"),
        ("i32", "%s = shl i32 %x, 1\n%v = add i32 %s, %y"),
        ("i32", "%s = shl i32 %x, 2\n%v = add i32 %s, %y"),
        ("i32", "%s = shl i32 %x, 3\n%v = add i32 %s, %y"),
        ("i32", "%s = shl i32 %x, 4\n%v = add i32 %s, %y"),
        ("i32", "%v = add i32 %x, 1234"),
        ("i32", "%v = mul i32 %x, 1234"),
        ("i32", "%v = sub i32 0, %x"),
        ("i32", "%v = sub i32 77, %x"),
        ("i64", "%v = mul i64 %x, %y"),
        ("i64", "%v = add i64 %x, %y"),
        ("i64", "%v = sub i64 77, %x"),
    ] {
        all.push(plain(name, name, body));
    }
    // Sorted values.
    for sign in ["s", "u"] {
        for kind in ["i16", "i32"] {
            let [min, max] = ["min", "max"].map(|end| format!("llvm.{sign}{end}.{kind}"));
            let body = format!(
                "%lo = call {kind} @{min}({kind} %x, {kind} %y)\n%hi = call {kind} @{max}({kind} %x, {kind} %y)\n\
                 %t = call {kind} @{min}({kind} %hi, {kind} %z)\n%v = call {kind} @{max}({kind} %lo, {kind} %t)"
            );
            let mut operation = plain(kind, kind, &body);
            operation.declarations = [min, max]
                .map(|name| format!("declare {kind} @{name}({kind}, {kind})"))
                .into();
            all.push(operation);
        }
    }
    // Sums with carries.
    for operation in ["uadd", "usub", "sadd", "ssub", "umul", "smul"] {
        for kind in ["i32", "i64"] {
            let name = format!("llvm.{operation}.with.overflow.{kind}");
            let body = format!(
                "%t = call {{ {kind}, i1 }} @{name}({kind} %x, {kind} %y)\n\
                 %s = extractvalue {{ {kind}, i1 }} %t, 0\n%o = extractvalue {{ {kind}, i1 }} %t, 1\n\
                 %e = zext i1 %o to {kind}\n%f = mul {kind} %e, 77777\n%v = xor {kind} %s, %f"
            );
            let mut operation = plain(kind, kind, &body);
            operation.declarations =
                vec![format!("declare {{ {kind}, i1 }} @{name}({kind}, {kind})")];
            all.push(operation);
        }
    }
    all
}

fn comparisons() -> Vec<Operation> {
    let mut all = Vec::new();
    for kind in ["i16", "i32", "i64"] {
        for how in [
            "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
        ] {
            let body =
                format!("%k = icmp {how} {kind} %x, %y\n%v = select i1 %k, {kind} %z, {kind} %w");
            all.push(plain(kind, kind, &body));
        }
    }
    for kind in ["half", "float", "double"] {
        for how in [
            "oeq", "one", "olt", "ole", "ogt", "oge", "ueq", "une", "ult", "ule", "ugt", "uge",
            "ord", "uno",
        ] {
            let body =
                format!("%k = fcmp {how} {kind} %x, %y\n%v = select i1 %k, {kind} %z, {kind} %w");
            all.push(plain(kind, kind, &body));
        }
        for class in [1 | 2, 0x204, 0x108, 0x60, 0x90, 0x3f, 0x144] {
            let name = format!("llvm.is.fpclass.{}", suffix(kind));
            let body = format!(
                "%k = call i1 @{name}({kind} %x, i32 {class})\n%v = select i1 %k, {kind} %z, {kind} %w"
            );
            let mut operation = plain(kind, kind, &body);
            operation.declarations = vec![format!("declare i1 @{name}({kind}, i32 immarg)")];
            all.push(operation);
        }
    }
    // Two conditions, as masks.
    for join in ["and", "or", "xor"] {
        for inverse in ["", "%n = xor i1 %l, true\n"] {
            let second = if inverse.is_empty() { "l" } else { "n" };
            let body = format!(
                "%k = icmp slt i32 %x, %y\n%l = icmp ult i32 %z, %w\n{inverse}%j = {join} i1 %k, %{second}\n\
                 %v = select i1 %j, i32 %x, i32 %z"
            );
            all.push(plain("i32", "i32", &body));
        }
    }
    all
}

/// Branches and a call, of which LLVM makes no other code.
fn control() -> Vec<Operation> {
    let kept = "call void asm sideeffect \"\", \"~{memory}\"()";
    let mut all = Vec::new();
    for (kind, condition) in [
        ("i32", "icmp slt i32 %x, %y"),
        ("i32", "icmp uge i32 %x, %y"),
        ("float", "fcmp olt float %x, %y"),
        ("float", "fcmp uge float %x, %y"),
    ] {
        for labels in ["label %one, label %two", "label %two, label %one"] {
            let body = format!(
                "%k = {condition}\nbr i1 %k, {labels}\n\
                 one:\n{kept}\n%o = add i64 %c, 5\nbr label %end\n\
                 two:\n{kept}\n%t = xor i64 %d, 9\nbr label %end\n\
                 end:\n%v = phi i64 [ %o, %one ], [ %t, %two ]"
            );
            all.push(plain(kind, "i64", &body));
            let body = format!(
                "%k = {condition}\nbr i1 %k, {labels}\n\
                 one:\n{kept}\n%o = add i64 %c, 5\nbr label %two\n\
                 two:\n%v = phi i64 [ %o, %one ], [ %d, %BEFORE ]"
            );
            // A body starts in a block without a name.
            let body = format!(
                "br label %start\nstart:\n{}",
                body.replace("%BEFORE", "%start")
            );
            if labels.starts_with("label %one") {
                all.push(plain(kind, "i64", &body));
            }
        }
    }
    let mut call = plain("i64", "i64", "%v = call i64 @callee(i64 %x, i64 %y)");
    call.declarations.push(format!(
        "define internal i64 @callee(i64 %a, i64 %b) noinline {{\n{kept}\n%s = mul i64 %a, 77\n%v = add i64 %s, %b\nret i64 %v\n}}"
    ));
    all.push(call);
    all
}

fn reals() -> Vec<Operation> {
    let mut all = Vec::new();
    for kind in REALS {
        let end = suffix(kind);
        let exact = if kind == "bfloat" {
            &["fadd", "fsub", "fmul"][..]
        } else {
            &["fadd", "fsub", "fmul", "fdiv"]
        };
        for name in exact {
            all.push(plain(kind, kind, &format!("%v = {name} {kind} %x, %y")));
            let negated = format!("%n = fneg {kind} %y\n%v = {name} {kind} %x, %n");
            all.push(plain(kind, kind, &negated));
            let absolute = format!("llvm.fabs.{end}");
            let body =
                format!("%n = call {kind} @{absolute}({kind} %y)\n%v = {name} {kind} %x, %n");
            let mut operation = plain(kind, kind, &body);
            operation.declarations = vec![format!("declare {kind} @{absolute}({kind})")];
            all.push(operation);
        }
        all.push(plain(kind, kind, &format!("%v = fneg {kind} %x")));
        for name in [
            "fabs",
            "floor",
            "ceil",
            "trunc",
            "rint",
            "roundeven",
            "canonicalize",
            "round",
        ] {
            if kind == "bfloat" && name != "fabs" {
                continue;
            }
            all.push(called(&format!("llvm.{name}.{end}"), kind, kind, 1, ""));
        }
        all.push(called(&format!("llvm.copysign.{end}"), kind, kind, 2, ""));
        if kind == "bfloat" {
            continue;
        }
        for name in [
            "minnum",
            "maxnum",
            "minimum",
            "maximum",
            "minimumnum",
            "maximumnum",
        ] {
            let function = format!("llvm.{name}.{end}");
            all.push(called(&function, kind, kind, 2, ""));
            let ends = if name.ends_with("num") {
                ["minnum", "maxnum"]
            } else {
                ["minimum", "maximum"]
            };
            for outer in ends.into_iter().filter(|_| !name.ends_with("mumnum")) {
                let other = format!("llvm.{outer}.{end}");
                let body = format!(
                    "%t = call {kind} @{function}({kind} %x, {kind} %y)\n%v = call {kind} @{other}({kind} %t, {kind} %z)"
                );
                let mut operation = plain(kind, kind, &body);
                operation.is_uniform = false;
                operation.declarations = [&function, &other]
                    .map(|name| format!("declare {kind} @{name}({kind}, {kind})"))
                    .into();
                all.push(operation);
            }
        }
        if kind == "float" || kind == "double" {
            let fma = format!("llvm.fma.{end}");
            all.push(called(&fma, kind, kind, 3, ""));
            for third in ["%y", "1.25", "0x400921FB60000000"] {
                for second in ["%y", "0x400921FB60000000"] {
                    let body = format!(
                        "%v = call {kind} @{fma}({kind} %x, {kind} {second}, {kind} {third})"
                    );
                    let mut operation = plain(kind, kind, &body);
                    operation.declarations =
                        vec![format!("declare {kind} @{fma}({kind}, {kind}, {kind})")];
                    all.push(operation);
                }
            }
        }
        if !kind.starts_with('<') {
            all.push(called(&format!("llvm.sqrt.{end}"), kind, kind, 1, ""));
            let exponent = format!("llvm.ldexp.{end}.i32");
            let body = format!(
                "%n0 = trunc i64 %b to i32\n%n1 = shl i32 %n0, 24\n%n = ashr i32 %n1, 24\n\
                 %v = call {kind} @{exponent}({kind} %x, i32 %n)"
            );
            let mut operation = plain(kind, kind, &body);
            operation.declarations = vec![format!("declare {kind} @{exponent}({kind}, i32)")];
            all.push(operation);
            // The approximations.
            for (body, function) in [
                (format!("%v = fdiv afn arcp {kind} 1.0, %x"), None),
                (
                    format!("%v = call afn {kind} @llvm.sqrt.{end}({kind} %x)"),
                    Some("sqrt"),
                ),
                (
                    format!(
                        "%t = call afn contract {kind} @llvm.sqrt.{end}({kind} %x)\n%v = fdiv afn contract arcp {kind} 1.0, %t"
                    ),
                    Some("sqrt"),
                ),
                (
                    format!("%v = call afn {kind} @llvm.exp2.{end}({kind} %x)"),
                    Some("exp2"),
                ),
                (
                    format!("%v = call afn {kind} @llvm.log2.{end}({kind} %x)"),
                    Some("log2"),
                ),
            ] {
                if kind == "double" && function != Some("sqrt") {
                    continue;
                }
                let mut operation = plain(kind, kind, &body);
                operation.ulps = if kind == "double" { 1 << 28 } else { 4 };
                operation.declarations = function
                    .map(|name| format!("declare {kind} @llvm.{name}.{end}({kind})"))
                    .into_iter()
                    .collect();
                all.push(operation);
            }
        }
    }
    all
}

fn conversions() -> Vec<Operation> {
    let mut all = Vec::new();
    for real in ["half", "float", "double"] {
        for integer in ["i8", "i16", "i32", "i64"] {
            for name in ["uitofp", "sitofp"] {
                let body = format!(
                    "%n0 = zext i64 %a to i65\n%n = trunc i65 %n0 to {integer}\n%v = {name} {integer} %n to {real}"
                );
                let mut operation = plain("i64", real, &body);
                operation.is_uniform = integer == "i32";
                all.push(operation);
            }
            for name in ["fptoui", "fptosi"] {
                let function = format!("llvm.{name}.sat.{integer}.{}", suffix(real));
                let mut operation = called(&function, real, integer, 1, "");
                operation.is_uniform = integer == "i32";
                all.push(operation);
            }
        }
    }
    for place in [0, 8, 16, 24] {
        let body =
            format!("%h = lshr i32 %x, {place}\n%m = and i32 %h, 255\n%v = uitofp i32 %m to float");
        all.push(plain("i32", "float", &body));
    }
    for (from, to) in [
        ("half", "float"),
        ("half", "double"),
        ("float", "double"),
        ("bfloat", "float"),
        ("float", "half"),
        ("double", "float"),
        ("float", "bfloat"),
    ] {
        let name = if width(from) < width(to) {
            "fpext"
        } else {
            "fptrunc"
        };
        all.push(plain(from, to, &format!("%v = {name} {from} %x to {to}")));
    }
    for to in ["half", "bfloat"] {
        let body = format!(
            "%f = insertelement <2 x float> poison, float %x, i32 0\n%g = insertelement <2 x float> %f, float %y, i32 1\n\
             %v = fptrunc <2 x float> %g to <2 x {to}>"
        );
        all.push(plain("float", &format!("<2 x {to}>"), &body));
    }
    // Sums of products with halves.
    for (x, y, z) in [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)] {
        let part = |name: &str, from: &str, place: u32| {
            format!(
                "%{name}h = extractelement <2 x half> %{from}, i32 {place}\n%{name} = fpext half %{name}h to float\n"
            )
        };
        let parts = part("p", "x", x) + &part("q", "y", y) + &part("s", "z", z);
        let fma = "call float @llvm.fma.f32(float %p, float %q, float %s)";
        let declared = vec!["declare float @llvm.fma.f32(float, float, float)".to_owned()];
        let mut operation = plain("<2 x half>", "float", &format!("{parts}%v = {fma}"));
        operation.declarations.clone_from(&declared);
        all.push(operation);
        for place in [0, 1] {
            let body = format!(
                "{parts}%m = {fma}\n%n = fptrunc float %m to half\n%v = insertelement <2 x half> %w, half %n, i32 {place}"
            );
            let mut operation = plain("<2 x half>", "<2 x half>", &body);
            operation.declarations.clone_from(&declared);
            all.push(operation);
        }
    }
    all
}

/// Functions of constants that LLVM computes (ConstantFolding.cpp, AMDGPUInstCombineIntrinsic.cpp).
fn folded() -> Vec<Operation> {
    let mut all = Vec::new();
    let mut add = |operation: Operation| {
        all.push(Operation {
            oracle: Oracle::Folding,
            ..operation
        });
    };
    for kind in ["half", "float", "double"] {
        let end = suffix(kind);
        add(called(
            &format!("llvm.amdgcn.fract.{end}"),
            kind,
            kind,
            1,
            "",
        ));
        add(called(&format!("llvm.amdgcn.rcp.{end}"), kind, kind, 1, ""));
        add(called(
            &format!("llvm.amdgcn.frexp.mant.{end}"),
            kind,
            kind,
            1,
            "",
        ));
        let power = if kind == "half" { "i16" } else { "i32" };
        add(called(
            &format!("llvm.amdgcn.frexp.exp.{power}.{end}"),
            kind,
            power,
            1,
            "",
        ));
        let class = format!("llvm.amdgcn.class.{end}");
        let body = format!(
            "%m = trunc i64 %b to i32\n%k = call i1 @{class}({kind} %x, i32 %m)\n%v = select i1 %k, i32 77, i32 13"
        );
        let mut operation = plain(kind, "i32", &body);
        operation.declarations = vec![format!("declare i1 @{class}({kind}, i32)")];
        add(operation);
        let ldexp = format!("llvm.ldexp.{end}.i32");
        let body =
            format!("%n = trunc i64 %b to i32\n%v = call {kind} @{ldexp}({kind} %x, i32 %n)");
        let mut operation = plain(kind, kind, &body);
        operation.declarations = vec![format!("declare {kind} @{ldexp}({kind}, i32)")];
        add(operation);
        if kind != "double" {
            for name in ["sin", "cos", "fmed3"] {
                let count = if name == "fmed3" { 3 } else { 1 };
                add(called(
                    &format!("llvm.amdgcn.{name}.{end}"),
                    kind,
                    kind,
                    count,
                    "",
                ));
            }
        }
        let fma = format!("llvm.fma.{end}");
        add(called(&fma, kind, kind, 3, ""));
        for (second, third) in [("%y", "%y"), ("%y", "0xH3E00"), ("0xH4248", "%y")] {
            if kind == "half" {
                let body = format!("%v = call half @{fma}(half %x, half {second}, half {third})");
                let mut operation = plain(kind, kind, &body);
                operation.declarations = vec![format!("declare half @{fma}(half, half, half)")];
                add(operation);
            }
        }
    }
    add(called("llvm.fma.v2f16", "<2 x half>", "<2 x half>", 3, ""));
    for name in ["cubeid", "cubema", "cubesc", "cubetc"] {
        add(called(
            &format!("llvm.amdgcn.{name}"),
            "float",
            "float",
            3,
            "",
        ));
    }
    add(called("llvm.amdgcn.fmul.legacy", "float", "float", 2, ""));
    add(called(
        "llvm.amdgcn.cvt.pkrtz",
        "float",
        "<2 x half>",
        2,
        "",
    ));
    for name in ["perm", "ubfe.i32", "sbfe.i32"] {
        add(called(&format!("llvm.amdgcn.{name}"), "i32", "i32", 3, ""));
    }
    for (name, from, to) in [
        ("s.quadmask.i32", "i32", "i32"),
        ("s.quadmask.i64", "i64", "i64"),
        ("s.wqm.i32", "i32", "i32"),
        ("s.wqm.i64", "i64", "i64"),
        ("s.bitreplicate", "i32", "i64"),
    ] {
        add(called(&format!("llvm.amdgcn.{name}"), from, to, 1, ""));
    }
    all
}

/// Loads, stores and atomics at `%p`, 64 bytes of memory.
fn memory() -> Vec<Operation> {
    let mut all = Vec::new();
    for space in Space::ALL {
        let pointer = format!("ptr addrspace({})", space.number());
        let mut add = |body: String| {
            all.push(Operation {
                oracle: Oracle::Memory(space),
                inputs: Number::Integer,
                result: Number::Integer,
                bits: 64,
                has_signed_zero: true,
                ulps: 0,
                is_uniform: false,
                body: body.replace("PTR", &pointer),
                declarations: Vec::new(),
            });
        };
        for kind in ["i8", "i16", "i32"] {
            for extension in ["zext", "sext"] {
                add(format!(
                    "%q = getelementptr i8, PTR %p, i32 12\n%l = load {kind}, PTR %q\n%r = {extension} {kind} %l to i64"
                ));
            }
            add(format!(
                "%q = getelementptr i8, PTR %p, i32 20\n%t = trunc i64 %a to {kind}\nstore {kind} %t, PTR %q\n%r = add i64 0, 0"
            ));
            if kind != "i32" {
                add(format!(
                    "%q = getelementptr i8, PTR %p, i32 20\n%s = lshr i64 %a, 16\n%t = trunc i64 %s to {kind}\nstore {kind} %t, PTR %q\n%r = add i64 0, 0"
                ));
            }
        }
        // A half of a register, of which the other half stays.
        for kind in ["i8", "i16"] {
            for extension in ["zext", "sext"] {
                for place in [0, 1] {
                    let convert = if kind == "i8" {
                        format!("%h = {extension} i8 %l to i16\n")
                    } else if extension == "zext" {
                        "%h = or i16 %l, 0\n".to_owned()
                    } else {
                        continue;
                    };
                    add(format!(
                        "%q = getelementptr i8, PTR %p, i32 14\n%l = load {kind}, PTR %q\n{convert}%t = trunc i64 %a to i32\n\
                         %o = bitcast i32 %t to <2 x i16>\n%n = insertelement <2 x i16> %o, i16 %h, i32 {place}\n\
                         %e = bitcast <2 x i16> %n to i32\n%r = zext i32 %e to i64"
                    ));
                }
            }
        }
        for count in [1, 2, 3, 4] {
            for align in [4, 8, 16] {
                add(format!(
                    "%q = getelementptr i8, PTR %p, i32 16\n%l = load <{count} x i32>, PTR %q, align {align}\n\
                     %s = getelementptr i8, PTR %p, i32 32\nstore <{count} x i32> %l, PTR %s, align {align}\n%r = add i64 0, 0"
                ));
            }
        }
        // Two places at once.
        for (kind, first, second) in [("i32", 4, 44), ("i64", 8, 40)] {
            add(format!(
                "%q = getelementptr i8, PTR %p, i32 {first}\n%s = getelementptr i8, PTR %p, i32 {second}\n\
                 %l = load {kind}, PTR %q, align 8\n%m = load {kind}, PTR %s, align 8\n\
                 store {kind} %m, PTR %q, align 8\nstore {kind} %l, PTR %s, align 8\n%r = add i64 0, 0"
            ));
        }
        if space == Space::Scratch {
            continue;
        }
        for kind in ["i32", "i64"] {
            for name in [
                "xchg",
                "add",
                "sub",
                "and",
                "or",
                "xor",
                "max",
                "min",
                "umax",
                "umin",
                "uinc_wrap",
                "udec_wrap",
                "usub_cond",
            ] {
                // LLVM has no code for these in buffers.
                let is_new = name.starts_with("uinc")
                    || name.starts_with("udec")
                    || name.starts_with("usub");
                if is_new && space == Space::Buffer {
                    continue;
                }
                for used in [false, true] {
                    let value = format!(
                        "%x = trunc i64 %a to i32\n%n = sext i32 %x to i64\n%y = trunc i64 %n to {kind}\n"
                    );
                    let value = if kind == "i32" {
                        value
                    } else {
                        "%y = add i64 %a, 0\n".to_owned()
                    };
                    let result = if used {
                        if kind == "i32" {
                            "%r = zext i32 %o to i64"
                        } else {
                            "%r = add i64 %o, 0"
                        }
                    } else {
                        "%r = add i64 0, 0"
                    };
                    add(format!(
                        "%q = getelementptr i8, PTR %p, i32 8\n{value}\
                         %o = atomicrmw {name} PTR %q, {kind} %y syncscope(\"agent\") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0\n{result}"
                    ));
                }
            }
            for used in [false, true] {
                // Every other item's comparison succeeds.
                let narrow = if kind == "i32" {
                    "%m = trunc i64 %c to i32\n%y = trunc i64 %a to i32\n"
                } else {
                    "%m = add i64 %c, 0\n%y = add i64 %a, 0\n"
                };
                let result = if used {
                    if kind == "i32" {
                        "%r = zext i32 %t to i64"
                    } else {
                        "%r = add i64 %t, 0"
                    }
                } else {
                    "%r = add i64 0, 0"
                };
                add(format!(
                    "%q = getelementptr i8, PTR %p, i32 8\n{narrow}%now = load {kind}, PTR %q, align 8\n\
                     %odd = trunc i64 %a to i1\n%k = select i1 %odd, {kind} %now, {kind} %m\n\
                     %o = cmpxchg PTR %q, {kind} %k, {kind} %y syncscope(\"agent\") monotonic monotonic, align 8\n\
                     %t = extractvalue {{ {kind}, i1 }} %o, 0\n{result}"
                ));
            }
        }
        for (kind, bits) in [
            ("float", 32),
            ("double", 64),
            ("<2 x half>", 32),
            ("<2 x bfloat>", 32),
        ] {
            for name in ["fadd", "fmin", "fmax"] {
                if kind.starts_with('<') && name != "fadd" {
                    continue;
                }
                for used in [false, true] {
                    // Numbers that are sums of few powers of two, as all roundings and denormals agree on them.
                    let value = if bits == 64 {
                        "%i0 = and i64 %a, 1023\n%y = uitofp i64 %i0 to double\nstore double 3.5, PTR %q, align 8\n".to_owned()
                    } else if kind == "float" {
                        "%i0 = and i64 %a, 1023\n%y = uitofp i64 %i0 to float\nstore float 3.5, PTR %q, align 8\n".to_owned()
                    } else {
                        let element = if kind.contains("bfloat") {
                            "bfloat"
                        } else {
                            "half"
                        };
                        format!(
                            "%i0 = and i64 %a, 63\n%y0 = uitofp i64 %i0 to {element}\n%y1 = insertelement {kind} poison, {element} %y0, i32 0\n\
                             %y = insertelement {kind} %y1, {element} 2.0, i32 1\nstore {kind} <{element} 3.5, {element} 1.0>, PTR %q, align 8\n"
                        )
                    };
                    let result = if used {
                        format!(
                            "%ob = bitcast {kind} %o to i{bits}\n%ow = zext i{bits} %ob to i96\n%r = trunc i96 %ow to i64"
                        )
                    } else {
                        "%r = add i64 0, 0".to_owned()
                    };
                    add(format!(
                        "%q = getelementptr i8, PTR %p, i32 8\n{value}\
                         %o = atomicrmw {name} PTR %q, {kind} %y syncscope(\"agent\") monotonic, align 8, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0, !amdgpu.ignore.denormal.mode !0\n{result}"
                    ));
                }
            }
        }
    }
    all
}

/// All operations.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all = integers();
    all.extend(comparisons());
    all.extend(control());
    all.extend(reals());
    all.extend(conversions());
    all.extend(folded());
    all.extend(memory());
    all
}

//! The functions that a source declares as ones that do not return, and the macros that are a call which is never
//! reached.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use super::flow::is_word;

/// The names of functions and macros.
pub(super) type Names = BTreeSet<Arc<str>>;

/// Functions that a program never calls if it is right.
pub(super) const UNREACHABLE: [&str; 4] = [
    "__builtin_unreachable",
    "__builtin_trap",
    "__trap",
    "std::unreachable",
];
/// The attribute, as C++, C and GCC write it.
const ATTRIBUTES: [&[u8]; 3] = [b"noreturn", b"__noreturn__", b"_Noreturn"];
/// Words with parentheses between an attribute and the name of a function.
const SPECIFIERS: [&[u8]; 4] = [
    b"__attribute__",
    b"__declspec",
    b"__launch_bounds__",
    b"alignas",
];
/// Words that make the replacement of a macro more than a call.
const CONDITIONS: [&[u8]; 4] = [b"if", b"for", b"switch", b"else"];

/// The offsets at which `name` is called in the code of a line.
pub(super) fn uses(code: &[u8], name: &str) -> impl Iterator<Item = usize> {
    let found: Vec<_> = memmem::find_iter(code, name).collect();
    found.into_iter().filter(move |start| {
        let before = code[..*start].last();
        let behind = code[start + name.len()..].trim_ascii_start();
        !before.is_some_and(|byte| is_word(*byte)) && behind.starts_with(b"(")
    })
}

/// The names that `code`, without comments and strings, declares.
pub(super) fn declared(code: &[u8]) -> Names {
    let attributes = memmem::find_iter(code, b"oreturn");
    let functions = attributes.filter_map(|found| {
        let start = found
            - code[..found]
                .iter()
                .rev()
                .take_while(|byte| is_word(**byte))
                .count();
        let len = code[start..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        let attribute = &code[start..start + len];
        ATTRIBUTES
            .contains(&attribute)
            .then(|| function(code, start..start + len))?
    });
    let macros = memmem::find_iter(code, b"#define ").filter_map(|at| never_reached(&code[at..]));
    let names = functions.chain(macros);
    names
        .filter_map(|name| str::from_utf8(name).ok().map(Arc::from))
        .collect()
}

/// The name of the function that has an attribute.
fn function(code: &[u8], attribute: Range<usize>) -> Option<&[u8]> {
    let mut rest = &code[attribute.end..];
    let closing = rest
        .iter()
        .take_while(|byte| b"]) \n".contains(byte))
        .count();
    rest = &rest[closing..];
    if matches!(rest.first(), Some(b';' | b'{')) {
        // It is after the parameters.
        let start = code[..attribute.start]
            .iter()
            .rposition(|byte| matches!(byte, b';' | b'{' | b'}'));
        rest = &code[start.map_or(0, |start| start + 1)..attribute.start];
    }
    loop {
        let open = rest
            .iter()
            .position(|byte| matches!(byte, b'(' | b';' | b'{' | b'}'))?;
        if rest[open] != b'(' {
            return None;
        }
        let before = rest[..open].trim_ascii_end();
        let len = before
            .iter()
            .rev()
            .take_while(|byte| is_word(**byte))
            .count();
        let name = &before[before.len() - len..];
        if !SPECIFIERS.contains(&name) {
            return (!name.is_empty() && !name[0].is_ascii_digit()).then_some(name);
        }
        let mut depth = 0;
        let end = rest.iter().enumerate().skip(open).find(|(_, byte)| {
            depth += i32::from(**byte == b'(') - i32::from(**byte == b')');
            depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
}

/// The name of the macro that is defined here, if it is a call that is never reached.
fn never_reached(definition: &[u8]) -> Option<&[u8]> {
    let mut end = 0;
    for line in definition.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if !line.trim_ascii_end().ends_with(b"\\") {
            break;
        }
    }
    let rest = definition[b"#define ".len()..end].trim_ascii_start();
    let (name, replacement) = rest.split_at(rest.iter().take_while(|byte| is_word(**byte)).count());
    let is_call = UNREACHABLE
        .iter()
        .any(|call| uses(replacement, call).next().is_some());
    let mut words = replacement.split(|byte| !is_word(*byte));
    let is_conditional = words.any(|word| CONDITIONS.contains(&word))
        || replacement
            .iter()
            .any(|byte| matches!(byte, b'?' | b'&' | b'|'));
    (is_call && !is_conditional && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_declaration_is_found() {
        for code in [
            "[[noreturn]] void fail(int);",
            "[[noreturn]] __device__ void A::fail(int x) {",
            "__device__ [[noreturn]]\nvoid fail();",
            "__attribute__((noreturn)) void fail(int);",
            "__attribute__((noreturn, cold)) void fail(int);",
            "void f(); void fail(int) __attribute__((__noreturn__));",
            "_Noreturn void fail();",
            "[[noreturn]] __attribute__((device)) void fail();",
            "#define fail() __builtin_trap()\n",
            "#define fail(x) do { print(x); \\\n __builtin_unreachable(); } while (0)\n",
        ] {
            let expected = Names::from(["fail".into()]);
            assert_eq!(declared(code.as_bytes()), expected, "{code}");
        }
        for code in [
            "auto fail = [[noreturn]] [] {};",
            "int noreturn_value(int);",
            "#define CHECK(x) if (!(x)) __builtin_trap()\nvoid f();",
            "#define CHECK(x) ((x) ? 0 : (__builtin_trap(), 0))\n",
        ] {
            assert_eq!(declared(code.as_bytes()), Names::new(), "{code}");
        }
    }
}

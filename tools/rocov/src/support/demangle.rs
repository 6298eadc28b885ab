//! Demangles names of kernels: librocov leaves the long ones to the command.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// The largest depth of nesting of a name: templates of templates take five to eight levels each. This
/// many need less than 1 MiB of stack; a thread has 2.
const DEPTH: u32 = 512;

/// `scale(float*, int, float)` for `_Z5scalePfif`; `None` if the name is not mangled.
pub(crate) fn demangle(name: &str) -> Option<String> {
    // Types are mangled too: of a kernel `extern "C" i` the demangler would make `int`.
    let name = name.starts_with("_Z").then_some(name)?;
    let parsing = ParseOptions::default().recursion_limit(DEPTH);
    let writing = DemangleOptions::default().recursion_limit(DEPTH);
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    symbol.demangle_with_options(&writing).ok()
}

/// Demangles a name. Returns the name itself if it is not mangled.
pub(crate) fn shown(name: &str) -> String {
    demangle(name).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cxx_alone_are_demangled() {
        for (name, demangled) in [
            ("_Z5scalePfif", Some("scale(float*, int, float)")),
            (
                "_ZN12_GLOBAL__N_14foldIiEEvPT_",
                Some("void (anonymous namespace)::fold<int>(int*)"),
            ),
            ("scale", None),
            ("i", None),
            ("_Z", None),
            ("_Z5scal", None),
            ("", None),
        ] {
            assert_eq!(demangle(name).as_deref(), demangled, "{name:?}");
        }
        let nested = |depth: usize| format!("_Z1f{}i{}", "1aI".repeat(depth), "E".repeat(depth));
        let templates = format!("f({}int{}>)", "a<".repeat(60), "> ".repeat(59));
        assert_eq!(demangle(&nested(60)), Some(templates));
        assert_eq!(demangle(&nested(1 << 18)), None);
        // A name that was made to break demanglers may nest as deep as this.
        assert_eq!(demangle(&format!("_Z1f{}i", "P".repeat(1 << 20))), None);
    }
}

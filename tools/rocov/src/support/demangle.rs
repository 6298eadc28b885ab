//! Demangles names of kernels: librocov leaves the long ones to the command.

use std::thread;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use rocov::format::codeobject::TARGET_REGION;

/// The words between the function and the line of a target region.
pub(crate) const REGION: &str = ", target region";

/// The largest depth of nesting of a usual name: templates of templates take five to eight levels each. This
/// many need less than 1 MiB of stack; a thread has 2.
const DEPTH: u32 = 512;

/// The largest depth of nesting of any name: a thread with [`DEEP_STACK`] demangles the rare ones beyond [`DEPTH`].
const MOST_DEPTH: u32 = 32 * DEPTH;

/// The bytes of stack for them. Only what is used becomes memory.
const DEEP_STACK: usize = 64 << 20;

/// The most bytes of a name beyond [`DEPTH`]. A name that nests deeper than [`MOST_DEPTH`] may have more.
const MOST_BYTES: usize = 64 << 10;

/// `scale(float*, int, float)` for `_Z5scalePfif`, and `main, target region at line 9` for a kernel of
/// OpenMP; `None` if the name is not mangled.
pub(crate) fn demangle(name: &str) -> Option<String> {
    if let Some(region) = name.strip_prefix(TARGET_REGION) {
        return target_region(region);
    }
    with_options(name, |options| options)
}

/// Returns whether a user may call the function of this name `wanted`: its name, or its demangled name, with or without
/// return type and parameters.
pub(crate) fn is_called(name: &str, wanted: &str) -> bool {
    let is_wanted = |found: Option<String>| found.as_deref() == Some(wanted);
    name == wanted
        || is_wanted(demangle(name))
        || is_wanted(with_options(name, DemangleOptions::no_return_type))
        || is_wanted(with_options(name, DemangleOptions::no_params))
        || is_wanted(with_options(name, |options| {
            options.no_params().no_return_type()
        }))
}

fn with_options(name: &str, change: impl Fn(DemangleOptions) -> DemangleOptions) -> Option<String> {
    // Types are mangled too: of a kernel `extern "C" i` the demangler would make `int`.
    let name = name.starts_with("_Z").then_some(name)?;
    let options = |depth| change(DemangleOptions::default().recursion_limit(depth));
    if let Some(demangled) = up_to(name, DEPTH, &options(DEPTH)) {
        return Some(demangled);
    }
    // No shorter name nests so deep.
    if !(DEPTH as usize / 8..=MOST_BYTES).contains(&name.len()) {
        return None;
    }
    let options = options(MOST_DEPTH);
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(DEEP_STACK);
        let demangled = thread.spawn_scoped(scope, || up_to(name, MOST_DEPTH, &options));
        demangled.ok()?.join().ok()?
    })
}

/// Demangles a name that does not nest deeper than `depth`.
fn up_to(name: &str, depth: u32, options: &DemangleOptions) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(depth);
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    symbol.demangle_with_options(options).ok()
}

/// A target region by the rest of its name: `DEVICE_FILE_FUNCTION_lLINE`. The numbers of the source's device
/// and file differ from machine to machine. A second region of the line adds `_1`.
fn target_region(name: &str) -> Option<String> {
    let mut parts = name.splitn(3, '_');
    let is_number = |part: &str| u64::from_str_radix(part, 16).is_ok();
    let [device, file, place] = [parts.next()?, parts.next()?, parts.next()?];
    let (function, line) = place.rsplit_once("_l")?;
    let (line, again) = match line.split_once('_') {
        Some((line, again)) => (line, Some(again)),
        None => (line, None),
    };
    if ![device, file, line].into_iter().all(is_number) {
        return None;
    }
    let mut region = format!("{}{REGION} at line {line}", shown(function));
    if let Some(again) = again {
        region += &format!(" ({again})");
    }
    Some(region)
}

/// Demangles a name. Returns the name itself if it is not mangled.
pub(crate) fn shown(name: &str) -> String {
    demangle(name).unwrap_or_else(|| name.to_owned())
}

/// The first of these names, demangled, and the number of the others: for a message.
pub(crate) fn first_shown<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    /// The most names in a message.
    const MOST: usize = 8;
    let mut names = names.into_iter();
    let first = names.by_ref().take(MOST).map(|name| shown(name.as_ref()));
    let first = first.collect::<Vec<_>>().join("; ");
    match names.count() {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_several_names() {
        for (symbol, names) in [
            (
                "_Z5scalePfi",
                &["_Z5scalePfi", "scale(float*, int)", "scale"][..],
            ),
            (
                "_Z4workIfEvPT_",
                &[
                    "void work<float>(float*)",
                    "work<float>(float*)",
                    "void work<float>",
                    "work<float>",
                ],
            ),
            (
                "_ZN12_GLOBAL__N_14foldIiEEvPT_",
                &["(anonymous namespace)::fold<int>"],
            ),
            ("plain", &["plain"]),
        ] {
            for name in names {
                assert!(is_called(symbol, name), "{name}");
            }
            assert!(!is_called(symbol, "scal") && !is_called(symbol, "work"));
        }
    }

    #[test]
    fn names_of_cxx_alone_are_demangled() {
        for (name, demangled) in [
            ("_Z5scalePfif", Some("scale(float*, int, float)")),
            (
                "_ZN12_GLOBAL__N_14foldIiEEvPT_",
                Some("void (anonymous namespace)::fold<int>(int*)"),
            ),
            (
                "__omp_offloading_fe00_bc000e_main_l14",
                Some("main, target region at line 14"),
            ),
            (
                "__omp_offloading_10302_1a__Z5scalePfif_l7_1",
                Some("scale(float*, int, float), target region at line 7 (1)"),
            ),
            ("__omp_offloading_10302_1a_main", None),
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
        // As llvm-cxxfilt demangles them.
        let templates = format!("f({}int{}>)", "a<".repeat(300), "> ".repeat(299));
        assert_eq!(demangle(&nested(300)), Some(templates));
        assert_eq!(demangle(&nested(1 << 18)), None);
        // A name that was made to break demanglers may nest as deep as this.
        assert_eq!(demangle(&format!("_Z1f{}i", "P".repeat(1 << 20))), None);
    }
}

//! Annotated source, by that of llvm-cov.

use super::*;

/// The counts that tests give to functions by their names: some run, some do not, and one runs often.
fn count(name: &str, number: u64) -> u64 {
    match number {
        0 => 1_234_567 / (1 + name.len() as u64),
        number => (number + name.len() as u64) % 3,
    }
}

/// A template with four instances, one of which does not run, functions of a header, and a macro.
const SOURCE: &str = "\
#include \"header.h\"
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define KERNEL extern \"C\" __attribute__((global)) void
template <class T> __attribute__((device)) T folded(T value) {
  if (value > T(3) && value < T(9)) {
    return LARGER(value, T(5));
  }
#ifdef NEVER
  never();
#endif
  for (T at = 0; at < value; at += T(1)) { value -= T(2); }

  return value ? doubled(value) : T(1);
}
KERNEL kernel(int *value) {
  *value = folded(*value) + folded(short(*value)); if (*value) *value = 2;
  *value += int(folded(float(*value)));
}
KERNEL other(int *value) { *value = LARGER(*value, 4); } KERNEL last(char *value) {
  *value = folded(*value);
}
";

const HEADER: &str = "\
// Without a line end at the end.
template <class T> __attribute__((device)) T doubled(T value) { return value * T(2); }
__attribute__((device)) inline int unused(int value) { return value; }";

/// `llvm-cov show` of a device ELF, with these options.
fn llvm_cov(elf: &Path, profile: &Path, options: &[&OsStr]) -> Vec<u8> {
    let mut show = Command::new("llvm-cov-22");
    show.args(["show", "-Xdemangler", "llvm-cxxfilt-22", "-instr-profile"]);
    run(show.arg(profile).arg(elf).args(options)).stdout
}

/// The text with one way of colors. llvm-cov also colors the counts of lines with several regions.
fn plain(text: Vec<u8>) -> String {
    let mut plain = String::from_utf8(text).unwrap();
    for (found, simple) in [
        ("\x1b[0;", "\x1b["),
        // One color that begins again.
        ("\x1b[41m\x1b[0m", ""),
        ("\x1b[0m\x1b[41m", ""),
        // A color that ends on the next line, and one around a name without its colon.
        ("\n\x1b[0m", "\x1b[0m\n"),
        (":\x1b[0m\n", "\x1b[0m:\n"),
    ] {
        plain = plain.replace(found, simple);
    }
    let lines = plain.split_inclusive('\n');
    let lines = lines.map(|line| match line.split_once("\x1b[35m") {
        Some((start, rest)) => start.to_owned() + &rest.replacen("\x1b[0m", "", 1),
        None => line.to_owned(),
    });
    lines.collect()
}

#[test]
fn annotated_source_is_that_of_llvm_cov() {
    let place = Place::new();
    let source = place.path().join("source.hip");
    let header = place.path().join("header.h");
    fs::write(&source, SOURCE).unwrap();
    fs::write(&header, HEADER).unwrap();
    let elf = compile_source(&source, place.path(), "source.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    let raw = place.profile_path(&elf, "gfx90a", 0);
    let counts = |name: &str, number: u64| match name.contains("folded") && name.contains("IsE") {
        true => 0,
        false => count(name, number),
    };
    profile::write_counts(&elf, &counts, RAW_VERSION, &raw);
    let indexed = profile::indexed(&place.data(), "gfx90a");
    for (wanted, color) in [(&[][..], "never"), (&[&source], "never"), (&[], "always")] {
        let is_colored = format!("-use-color={}", color == "always");
        let mut options = vec![OsStr::new(&is_colored)];
        options.extend(wanted.iter().map(|part| part.as_os_str()));
        let expected = plain(llvm_cov(&elf, &indexed, &options));
        assert!(expected.contains("Unexecuted instantiation"), "{expected}");
        let mut command = place.command();
        command.arg(format!("--color={color}")).arg("--show");
        let output = command.args(wanted).output().unwrap();
        assert_eq!(stderr(&output), "");
        let found = plain(output.stdout);
        let (_, found) = found.split_once("\n\n").unwrap();
        assert_eq!(found, expected, "{wanted:?} {color}");
    }
}

/// Two code objects have one function in different forms, each with its own counts. llvm-cov takes the counts of
/// one for both, and warns of mismatched data.
#[test]
fn code_objects_that_compile_a_function_in_different_ways_are_both_shown() {
    let place = Place::new();
    let header = "static const int limit = 3;\nextern \"C\" __attribute__((device)) inline int clamped(int v) {\n  \
                  if (v > limit) return limit;\n#ifdef MORE\n  if (v < 0) return 0;\n#endif\n  return v;\n}\n";
    fs::write(place.path().join("header.h"), header).unwrap();
    for (name, more) in [("one", ""), ("two", "#define MORE 1\n")] {
        let source = place.path().join(format!("{name}.hip"));
        let text = format!(
            "{more}#include \"header.h\"\nextern \"C\" __attribute__((global)) void {name}(int *v) {{\n  \
             *v = clamped(*v);\n}}\n"
        );
        fs::write(&source, text).unwrap();
        let elf = compile_source(&source, place.path(), name, "gfx90a", &INSTRUMENTED);
        place.keep(&elf);
        place.profile(&elf, "gfx90a", 0, if more.is_empty() { 5 } else { 70 });
    }
    let output = place.report(&[&"--show", &"header.h"]);
    assert_eq!(stderr(&output), "");
    let found = stdout(&output);
    // Each counts its own calls: 5 + 70. Only one has the line of MORE.
    assert_eq!(shown_count(&found, "inline int clamped"), "75", "{found}");
    assert_eq!(shown_count(&found, "if (v < 0)"), "70", "{found}");
}

//! `include/rocov.h` says what `src/exports.rs` exports. After a change, make it anew with
//! `ROCOV_UPDATE=1 cargo test -p rocov-runtime --test header`. And it keeps what the headers of releases
//! have promised, of which `abi` has a copy for each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_committed_header_is_the_generated_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a good config");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/exports.rs"))
        .generate()
        .expect("exports.rs can be read");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = String::from_utf8(generated).expect("a header is text");
    let path = root.join("include/rocov.h");
    if std::env::var_os("ROCOV_UPDATE").is_some() {
        fs::write(&path, &generated).expect("the header can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is not what exports.rs makes; ROCOV_UPDATE=1 writes this:\n{generated}",
        path.display()
    );
}

/// What a header promises to programs that were compiled with it: each function with its types, and each
/// value of an enumeration.
fn promises(header: &str) -> BTreeSet<String> {
    let code = header.lines().map(|line| {
        let line = line.split("//").next().unwrap_or_default().trim();
        let is_code = !line.starts_with(['#', '*']) && !line.starts_with("/*");
        if is_code && line != "extern \"C\" {" {
            line
        } else {
            ""
        }
    });
    let code: Vec<_> = code.flat_map(str::split_whitespace).collect();
    let code = code.join(" ");
    let mut promises = BTreeSet::new();
    for statement in code.split(';').map(str::trim) {
        match statement.strip_prefix("typedef enum {") {
            Some(values) => {
                let (values, name) = values.split_once('}').expect("an enumeration ends");
                let values = values.split(',').map(str::trim);
                let values = values.filter(|value| !value.is_empty());
                promises.extend(values.map(|value| format!("{}: {value}", name.trim())));
            }
            // The end of `extern "C"` is none.
            None => promises.extend(statement.contains('(').then(|| statement.to_owned())),
        }
    }
    promises
}

/// The names in symbols.txt of a directory.
fn symbols(directory: &Path) -> BTreeSet<String> {
    let path = directory.join("symbols.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(String::from).collect()
}

/// Programs that were compiled for a release run with this librocov.
#[test]
fn nothing_of_a_release_is_taken_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = |path: PathBuf| promises(&fs::read_to_string(path).expect("a header"));
    let now = header(root.join("include/rocov.h"));
    let releases: Vec<_> = fs::read_dir(root.join("abi"))
        .expect("the releases' interfaces")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(!releases.is_empty());
    for release in releases {
        let promised = header(release.join("rocov.h"));
        assert!(promised.len() > 5, "{promised:?}");
        let gone: Vec<_> = promised.difference(&now).collect();
        assert!(gone.is_empty(), "{} has {gone:#?}", release.display());
        let exported = symbols(&release);
        let gone: Vec<_> = exported.difference(&symbols(root)).cloned().collect();
        assert!(gone.is_empty(), "{} exports {gone:?}", release.display());
    }
}

#[test]
fn what_breaks_programs_is_told_from_what_does_not() {
    const RELEASED: &str = "
        /* A header.
         */
        #ifndef ROCOV_H
        // A number.
        typedef enum {
          // Done.
          ROCOV_STATUS_OK = 0,
          ROCOV_STATUS_LOSS = 2,
        } RocovStatus;
        extern \"C\" {
        // Drains; all of it.
        RocovStatus rocov_drain(void);
        RocovStatus rocov_set_file(const char *pattern);
        }  // extern \"C\"";
    let keeps = |from: &str, to: &str| {
        assert!(RELEASED.contains(from));
        promises(RELEASED).is_subset(&promises(&RELEASED.replace(from, to)))
    };
    assert_eq!(promises(RELEASED).len(), 4);
    assert!(keeps("// Done.", "// As asked; all of it."));
    assert!(keeps("// Done.", "ROCOV_STATUS_NEW = 5,"));
    assert!(keeps(
        "rocov_drain(void);",
        "rocov_drain(void);\nvoid rocov_new(void);"
    ));
    assert!(keeps("const char *pattern", "const\nchar *pattern"));
    assert!(!keeps("LOSS = 2", "LOSS = 3"));
    assert!(!keeps("ROCOV_STATUS_LOSS = 2,", ""));
    assert!(!keeps("RocovStatus rocov_drain(void);", ""));
    assert!(!keeps("RocovStatus rocov_drain", "void rocov_drain"));
    assert!(!keeps(
        "const char *pattern",
        "const char *pattern, int more"
    ));
}

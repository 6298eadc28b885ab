//! The committed header `include/rocov.h` is the one that cbindgen makes of `src/enter/c_api.rs` and
//! `src/guest/status.rs`. After a change, make it anew with
//! `ROCOV_UPDATE=1 cargo test -p rocov-runtime --test header`.

use std::fs;
use std::path::Path;

#[test]
fn the_committed_header_is_the_generated_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a good config");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/guest/status.rs"))
        .with_src(root.join("src/enter/c_api.rs"))
        .generate()
        .expect("cbindgen reads the sources");
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
        "{} is out of date; ROCOV_UPDATE=1 writes this:\n{generated}",
        path.display()
    );
}

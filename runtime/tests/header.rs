//! The committed header `include/rocov.h` is the one that cbindgen makes of `src/enter/c_api.rs` and
//! `src/guest/status.rs`. `cargo xtask bless header` writes it.

use std::path::Path;

use rocov_tests::records;

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
    records::compare([("runtime/include/rocov.h", generated)]);
}

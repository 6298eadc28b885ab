//! What a kernel must not do ends with a message that says where, and then with what the real
//! runtime does on a GPU fault: an error or its abort. It never hangs.

use crate::support::artifacts::repository;
use crate::support::command::Ended;
use crate::support::compile::code_object_of;
use crate::support::gpu::Stack;

/// Runs a kernel of testdata/faults on two buffers; it may end in any way but well.
fn fails(name: &str, launch: &str) -> Ended {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = repository("testdata/faults")
        .join(name)
        .with_extension("hip");
    let object = code_object_of(
        &source,
        "gfx90a",
        "-O1",
        Stack::Debian12.code_object_version(),
        true,
    );
    let buffer = directory.path().join("input.bin");
    std::fs::write(&buffer, [0; 1024]).expect("a test can write into its directory");
    let spec = directory.path().join("spec");
    let buffer = buffer.display();
    std::fs::write(
        &spec,
        format!("buf {buffer}\nbuf {buffer}\nlaunch {launch}\n"),
    )
    .expect("a test can write into its directory");
    let ended = Stack::Debian12.run("gfx90a", &object, &spec, directory.path());
    assert!(!ended.status.success(), "{ended}");
    ended
}

#[test]
fn an_out_of_bounds_read_is_reported_with_its_place() {
    // 2^40 elements of 4 bytes beyond the buffer.
    let launch = "_Z19reads_out_of_boundsPKjPjy 1 1 1 64 1 1 p0 p1 h0000000000010000";
    let ended = fails("out_of_bounds", launch);
    ended.says(&[
        "_Z19reads_out_of_boundsPKjPjy",
        "workgroup",
        "wave",
        "pc 0x",
        "address 0x",
    ]);
}

#[test]
fn an_unmodelled_instruction_is_named() {
    let launch = "_Z16uses_matrix_corePf 1 1 1 64 1 1 p0";
    let ended = fails("unmodelled", launch);
    ended.says(&[
        "_Z16uses_matrix_corePf",
        "v_mfma_f32_4x4x1f32",
        "pc 0x",
        "code object",
    ]);
}

//! Every kernel of testdata/kernels gives one result on the interpreter, whatever the number of
//! threads that run it and the host's vector instructions: equal bytes in every buffer, and equal
//! counts.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::artifacts::{built, files_with_extension, repository};
use crate::support::command::{limited, run};
use crate::support::compile::code_object;
use crate::support::spec::expand;

const THREADS: [&str; 3] = ["1", "2", "7"];

#[test]
fn threads_and_vectors_give_one_result() {
    let listed = run(limited(built("amdgcn-run")).arg("--simd")).success();
    let levels: Vec<&str> = listed.stdout.lines().collect();
    assert!(!levels.is_empty(), "every processor has a level");
    let mut kernels = 0;
    for source in files_with_extension("testdata/kernels", "hip") {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        let object = code_object(&name, "gfx90a", "-O2", 5);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let template = repository("testdata/kernels")
            .join(&*name)
            .with_extension("spec");
        let spec = expand(&template, directory.path());
        let wanted = results(&object, &spec, "1", levels[0]);
        assert!(wanted.contains_key("dev.profraw"), "{name} counts nothing");
        assert!(wanted.len() > 1, "{name} writes no buffer");
        for level in &levels {
            for threads in THREADS {
                let found = results(&object, &spec, threads, level);
                assert!(
                    found == wanted,
                    "{name} on {threads} threads with {level} instructions differs from one \
                     thread with {} instructions",
                    levels[0]
                );
            }
        }
        kernels += 1;
    }
    assert!(kernels > 20, "there are {kernels} sources of kernels");
}

/// The files that a run writes.
fn results(object: &Path, spec: &Path, threads: &str, level: &str) -> BTreeMap<String, Vec<u8>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut interpreter = limited(built("amdgcn-run"));
    interpreter
        .args([object, spec, directory.path()])
        .env("AMDGCN_RUN_THREADS", threads)
        .env("AMDGCN_RUN_SIMD", level);
    run(&mut interpreter).success();
    let entries = std::fs::read_dir(directory.path()).expect("a readable directory");
    entries
        .map(|entry| {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let contents = std::fs::read(&path).expect("a readable file");
            (name.into_owned(), contents)
        })
        .collect()
}

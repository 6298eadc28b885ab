//! Device functions in programs whose host code is instrumented, too. LLVM's drain then copies only the records that the
//! host registers: those of kernels.

use super::{Program, Released, repository};

/// The work-items of each kernel.
const ITEMS: u64 = 64;

#[test]
fn device_functions_beside_instrumented_host_code() {
    let Some(released) = Released::find() else {
        return;
    };
    let source = repository("testdata/programs/released/called.hip");
    let object = released.compiled(&source, &["--host"], &[], "called.o");
    // Its host code refers to LLVM's drain. Under `rocov run`, rocov drains it.
    let file = released.linked_with_drain(&[object], &[], "called");
    let program = Program {
        with_llvms: file.clone(),
        without: file,
        released,
    };
    let kernels = [("first", ITEMS), ("second", ITEMS)];
    let functions = [("_Z6calledi", ITEMS), ("_Z7inlinedi", ITEMS)];
    program
        .both(&[])
        .have(&kernels, &[&kernels[..], &functions].concat());
}

//! The compilers that make CUDA code count.

use std::path::Path;

use tempfile::TempDir;

use crate::setup::{BIN_OF, HISTOGRAM, Setup, counters, counts_by, expect, profiles, step};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compilers::Compiler;
use crate::support::unpacked::asked;

/// The releases of clang with CUDA code that counts, and whether NVIDIA's fatbinary of the unpacked CUDA takes their
/// options.
const RELEASES: [(u32, bool); 3] = [(19, false), (22, true), (23, true)];

#[test]
fn each_compiler_makes_code_that_is_drained() {
    let Some(setup) = Setup::get() else { return };
    let Some(tools) = asked("bin", "cuda-12.9", "no compiler makes cubins") else {
        return;
    };
    let tools = Path::new(tools.trim_end());
    let root = tools.parent().expect("a toolkit has folders");
    for (release, has_fatbinary) in RELEASES {
        let Some(compiler) = Compiler::find(release) else {
            continue;
        };
        let place = TempDir::new().expect("a directory can be made");
        let within = |name: &str| place.path().join(name);
        let mut flags = compiler.rocov("flags");
        flags.args([
            "--offload-arch=sm_90",
            "--counters=llvm",
            "--clang",
            compiler.clang,
        ]);
        flags.arg(format!("--cuda-path={}", root.display()));
        let flags = run(&mut flags).success().stdout;
        let clang = || {
            let mut clang = limited(compiler.clang);
            clang.args(["-O1", "-Wno-unknown-cuda-version"]);
            clang.args(flags.split_whitespace());
            clang.arg(repository("testdata/cuda/kernels.cu")).arg("-o");
            clang
        };
        let (ptx, cubin, object) = (within("k.ptx"), within("k.cubin"), within("k.o"));
        run(clang().arg(&ptx).args(["--cuda-device-only", "-S"]))
            .success()
            .silently();
        let mut ptxas = limited(tools.join("ptxas"));
        run(ptxas.arg("-arch=sm_90").arg(&ptx).arg("-o").arg(&cubin)).success();

        let data = within("data");
        // The plugin adds to the names of some compilers.
        let variables = counters(&cubin);
        let plant = |function: &str, counts: &str| {
            let is_its = |name: &str| name.starts_with(&format!("__profc_{function}"));
            let variable = variables.iter().find(|(name, _)| is_its(name));
            format!("plant:{}:{counts}", variable.expect("it counts").0)
        };
        let all = [
            step("load", &cubin),
            plant(BIN_OF, "5,1,4"),
            plant(HISTOGRAM, "32,20,9"),
        ];
        setup.run(&data, &all).success().silently();
        let profdata = compiler.tool("llvm-profdata");
        let found = counts_by(profdata, &profiles(&data), place.path());
        expect(&found, &[(BIN_OF, &[5, 1, 4]), (HISTOGRAM, &[32, 20, 9])]);
        let mut report = compiler.rocov("report");
        let report = run(report.arg(&data)).success().stdout;
        assert!(report.contains("kernels.cu"), "clang {release}: {report}");

        if has_fatbinary {
            run(clang().arg(&object).arg("-c")).success().silently();
            let said = run(compiler.rocov("doctor").arg(&object)).stdout;
            assert!(
                said.contains("LLVM's own counters, coverage mapping"),
                "{said}"
            );
        }
    }
}

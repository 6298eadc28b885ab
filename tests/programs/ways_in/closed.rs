//! Libraries with kernels that the program closes: HIP unloads their code within `dlclose`, under
//! the dynamic linker's lock. On HIP 6.4, librocov's copies there are the first of the process.

use std::path::PathBuf;

use super::opened::loader;
use super::programs::assert_counts;
use crate::support::command::run;
use crate::support::gpu::{Stack, data};
use crate::support::program::{Program, TARGET};

const KERNELS: [&str; 2] = ["tally_one", "tally_two"];

/// A copy that waits for that lock takes 10 seconds and loses the counts of the run.
const RUNS: usize = 5;

pub(super) fn library(stack: Stack, kernel: &str) -> PathBuf {
    let kernel = format!("-DTALLY_KERNEL={kernel}");
    let flags = ["-shared", "-fPIC", kernel.as_str()];
    Program::build(stack, &["ways_in/tally.hip"], &[], &flags).file
}

#[test]
fn all_counts_come_home_on_every_stack_and_with_every_way_to_copy() {
    for stack in Stack::for_programs() {
        let libraries = KERNELS.map(|kernel| library(stack, kernel));
        // Without SDMA, kernels copy. With a large BAR, the host may.
        for (sdma, bar, runs) in [
            ("1", "large", RUNS),
            ("0", "large", 1),
            ("1", "small", 1),
            ("0", "small", 1),
        ] {
            for _ in 0..runs {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let data = data(directory.path());
                let mut command = stack.launcher(TARGET, &data);
                command.arg(loader()).args(["close", "local"]);
                command.args(&libraries).env("HSA_ENABLE_SDMA", sdma);
                command.env("ROCOV_MODELGPU_BAR", bar);
                let ended = run(&mut command).success().silently();
                assert_counts(&data, &KERNELS, &ended);
            }
        }
    }
}

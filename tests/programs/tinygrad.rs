//! tinygrad drives the GPU without ROCr: it opens `/dev/kfd` itself, and sends PM4 packets, or AQL packets if the GPU has
//! several XCCs. Its kernels are traced.

use std::path::Path;

use serde_json::Value;

use crate::support::artifacts::{built, python};
use crate::support::command::{limited, run};
use crate::support::unpacked::{asked, not_run};

/// clang 22's LLVM, with which tinygrad compiles its kernels.
const LLVM: &str = "/usr/lib/llvm-22/lib/libLLVM.so.1";

/// One kernel with three work-items, then many with thousands, whose sum is printed.
const PROGRAM: &str = r#"
from tinygrad import Tensor
print((Tensor([1, 2, 3], device="AMD") * 3 + 1).tolist())
print((Tensor(list(range(1000)), device="AMD") * 3 + 1).sum().item())
"#;

/// tinygrad's name of the first kernel, which writes three elements.
const KERNEL: &str = "E_3";

#[test]
fn kernels_of_tinygrad_are_traced() {
    let without = "tinygrad is not run";
    let Some(tinygrad) = asked("libraries", "tinygrad-0.14", without) else {
        return;
    };
    if !Path::new(LLVM).is_file() {
        not_run(&format!("tinygrad: {LLVM} is not there"));
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    for (target, queue) in [
        ("gfx942", None),
        ("gfx942", Some("0")),
        ("gfx950", None),
        ("gfx1100", None),
        ("gfx1100", Some("1")),
        ("gfx1201", None),
    ] {
        let data = place
            .path()
            .join(format!("{target}.{}", queue.unwrap_or("-")));
        let mut command = limited(built("rocov"));
        command.args(["run", "--trace", "--gpu", &format!("model:{target}"), "-o"]);
        command.arg(&data).arg("--").arg(python());
        command.args(["-B", "-c", PROGRAM]);
        command.env("PYTHONPATH", tinygrad.trim_end());
        command.env("LLVM_PATH", LLVM);
        command.env("DEV", "AMD:LLVM");
        command.env("CACHEDB", place.path().join("cache"));
        if let Some(queue) = queue {
            command.env("AMD_AQL", queue);
        }
        let ended = run(&mut command).success();
        // 3 (0 + ... + 999) + 1000.
        assert_eq!(ended.stdout, "[4, 7, 10]\n1499500\n", "{target}");

        let mut report = limited(built("rocov"));
        let report = run(report.arg("report").arg(&data).arg("--json"))
            .success()
            .silently();
        let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
        let functions = report["data"][0]["functions"]
            .as_array()
            .expect("functions");
        let count = |name: &str| {
            let found = functions.iter().find(|function| function["name"] == name);
            found.map(|function| function["count"].clone())
        };
        // A work-item for each element.
        assert_eq!(count(KERNEL), Some(3.into()), "{target}: {functions:?}");
        // The elements of the sum, and the sum.
        assert!(functions.len() >= 2, "{target}: {functions:?}");
    }
}

//! Kernels in a Python source, from counters in PTX to the reports of coverage.py.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::instrument::{Uncounted, data};
use crate::setup::step;
use crate::support::artifacts::{built, python, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::json::json;
use crate::support::unpacked::not_run;

/// A kernel whose line 9 no thread runs. Line 10 has no machine code.
const KERNELS: &str = "\
class triton:
    jit = staticmethod(lambda function: function)


@triton.jit
def kernel(p, n):
    i = n
    if i > 7:
        p[0] = i
    zero = 0
    p[1] = i + zero


@triton.jit
def never(p):
    p[0] = 1
";

/// The PTX that a compiler makes of it.
fn ptx(source: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .entry kernel(.param .u64 p)\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .b32 %r<2>;\n\t.loc 1 7 1\n\tmov.u32 %r1, %tid.x;\n\t.loc 1 8 1\n\
         \tsetp.gt.u32 %p1, %r1, 7;\n\t@%p1 bra $L;\n\t.loc 1 9 1\n\tadd.u32 %r1, %r1, 1;\n$L:\n\t.loc 1 11 1\n\tret;\n}}\n\
         .file 1 \"{source}\"\n"
    )
}

/// A directory with a source, and the counts of a run whose threads stay out of line 9. `None` if no GPU can be modelled.
struct Counted {
    place: TempDir,
    data: PathBuf,
}

impl Counted {
    fn new() -> Option<Self> {
        let uncounted = Uncounted::get()?;
        let place = data();
        let source = place.path().join("kernels.py");
        fs::write(&source, KERNELS).expect("it can be written");
        let text = ptx(&source.display().to_string());
        let file = uncounted.file("kernels.text", format!("{text}\0"));
        let steps = [step("load", &file), Uncounted::plant(&text, "32,0,32")];
        let data = place.path().join("counted");
        run(&mut uncounted.command(&data, &steps)).success();
        Some(Self { place, data })
    }

    /// coverage.py with the plugin. `None` if it is not installed.
    fn coverage(&self) -> Option<Command> {
        let mut coverage = limited(python());
        coverage.env("PYTHONPATH", repository("tools/python"));
        let mut imported = limited(python());
        let imports = imported.args(["-c", "import coverage"]);
        if !run(imports).status.success() {
            not_run("python3-coverage is not installed: coverage.py reports no counts of PTX");
            return None;
        }
        let settings = format!(
            "[run]\nplugins = rocov\n[rocov]\ndata = {}\n",
            self.data.display()
        );
        fs::write(self.place.path().join(".coveragerc"), settings).expect("it can be written");
        let folder = built("rocov").parent().expect("a folder").to_owned();
        coverage.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        coverage.current_dir(self.place.path());
        coverage.args(["-B", "-m", "coverage"]);
        Some(coverage)
    }

    /// Edits the source.
    fn edit(&self, text: &str) {
        fs::write(self.place.path().join("kernels.py"), text).expect("it can be written");
    }

    fn report(&self) -> Ended {
        let mut report = limited(built("rocov"));
        run(report.arg("report").arg(&self.data).arg("--lcov")).success()
    }
}

#[test]
fn coverage_py_reports_what_counters_in_ptx_tell() {
    let Some(counted) = Counted::new() else {
        return;
    };
    let commands: [&[&str]; 2] = [
        &["run", "--branch", "kernels.py"],
        &["json", "-q", "-o", "out.json"],
    ];
    for arguments in commands {
        let Some(mut coverage) = counted.coverage() else {
            return;
        };
        run(coverage.args(arguments)).success();
    }
    let out = fs::read_to_string(counted.place.path().join("out.json")).expect("it was written");
    let found = &json(out)["files"]["kernels.py"];
    assert_eq!(found["missing_lines"].to_string(), "[9,16]");
    assert_eq!(found["missing_branches"].to_string(), "[[8,9]]");

    // One line more, in front of all kernels.
    counted.edit(&format!("\n{KERNELS}"));
    let mut coverage = counted.coverage().expect("it is installed");
    run(coverage.args(["json", "-q", "-o", "out.json"])).says(&[
        "rocov: kernels.py: it has changed since it ran (line 7 had different text): run the tests again",
    ]);
}

#[test]
fn an_edit_after_the_run_is_reported_if_it_moves_or_changes_a_line_with_code() {
    let Some(counted) = Counted::new() else {
        return;
    };
    counted.report().silently();
    // Line 10 has no code, and more lines follow. Blanks at the ends of a line do not matter.
    counted.edit(
        &KERNELS
            .replace("zero = 0", "zero = 00  # edited")
            .replace("i = n\n", "i = n  \n"),
    );
    counted.report().silently();
    counted.edit(&format!("{KERNELS}\n\nprint()\n"));
    counted.report().silently();
    for (text, line) in [
        (format!("import os\n{KERNELS}"), 7),
        (KERNELS.replace("i > 7", "i > 8"), 8),
        (KERNELS.replace("    zero = 0\n", ""), 11),
        (
            KERNELS[..KERNELS.find("    p[1]").expect("it is there")].to_owned(),
            11,
        ),
    ] {
        counted.edit(&text);
        let says = format!(
            "kernels.py: stale: it has changed since it ran (line {line} had different text); remove the counts with `rocov \
             clean`, and run it again"
        );
        counted.report().says(&[&says]);
    }
}

//! The command and LLVM's tools on the counts of a cubin.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::setup::{BIN_OF, HISTOGRAM, Setup, profiles, step, steps};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::gpu::Stack;
use crate::support::profile::{cov, functions, merge, merged_of_arch, raw_profiles};
use crate::support::program::rocov_flags;
use crate::support::unpacked::asked;

/// The data of a program that has counted.
fn counted(setup: &Setup) -> TempDir {
    let data = TempDir::new().expect("a directory can be made");
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps([
        "plant:__profc__Z6bin_off:999,0,769",
        "plant:__profc__Z9histogramPKfiPj:1024,1000,999",
    ]));
    setup.run(data.path(), &all).success().silently();
    data
}

#[test]
fn reports_have_the_figures_of_llvm_cov() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let merged = data.path().join("merged.profdata");
    merge(&profiles(data.path()), &merged);
    let objects = data.path().join("objects");
    let elf = std::fs::read_dir(objects)
        .expect("an ELF is kept")
        .next()
        .expect("an ELF is kept")
        .expect("it can be listed")
        .path();
    let mut export = limited(cov());
    export.args(["export", "--format=lcov", "--instr-profile"]);
    let expected = run(export.arg(&merged).arg(&elf)).success().stdout;
    let lcov = data.path().join("lines.info");
    let mut report = limited(built("rocov"));
    report.args(["report", "--lcov", "-o"]).arg(&lcov);
    run(report.arg(data.path())).success();
    let ours = std::fs::read_to_string(lcov).expect("it was written");
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("DA:"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&ours), lines(&expected));
    assert!(lines(&ours).len() > 15, "{ours}");
}

/// The calls of `bin_of` come from the profile of sm_90, and no other code has them.
#[test]
fn clang_optimizes_by_the_profile_of_its_target() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let mut merge = limited(built("rocov"));
    merge.args(["merge", "--quiet", "--pgo"]);
    merge.arg(data.path().join("pgo")).arg(data.path());
    let printed = run(&mut merge).success().silently().stdout;
    let calls = r#""function_entry_count", i64 999}"#;
    let has_calls = |part: &str, target: &str| {
        let target = format!("--offload-arch={target}");
        let flags: Vec<&str> = printed
            .split_whitespace()
            .chain(["-O1", part, &target])
            .collect();
        setup.ir("kernels.cu", &flags).contains(calls)
    };
    assert!(has_calls("--cuda-device-only", "sm_90"), "{printed}");
    assert!(!has_calls("--cuda-device-only", "sm_80"), "{printed}");
    assert!(!has_calls("--cuda-host-only", "sm_90"), "{printed}");
}

#[test]
fn kernels_are_listed_with_their_registers() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let mut kernels = limited(built("rocov"));
    let listed = run(kernels.arg("kernels").arg(data.path()))
        .success()
        .stdout;
    assert!(
        listed.contains("histogram(float const*, int, unsigned int*)"),
        "{listed}"
    );
    let source = repository("testdata/cuda/kernels.cu");
    assert!(
        listed.contains(&*source.to_string_lossy()) || listed.contains("kernels.cu"),
        "{listed}"
    );
}

#[test]
fn a_report_counts_what_a_cubin_has_and_nothing_ran() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps(["exit:0"]));
    setup.run(data.path(), &all).success();
    let mut report = limited(built("rocov"));
    report.arg("report").arg(data.path());
    let text = run(report.arg("--object").arg(&setup.cubin))
        .success()
        .stdout;
    assert!(text.contains("kernels.cu"), "{text}");
    assert!(text.contains("sm_90: "), "{text}");
}

/// The counts of one run of `bin_of` and `histogram`, as planted.
const RUNS: [(&str, [u64; 3], [u64; 3]); 2] = [
    ("unit/a", [1, 1, 0], [32, 32, 1]),
    ("unit/b", [5, 0, 5], [32, 20, 9]),
];

/// The data of two tests, one in each process.
fn tested(setup: &Setup) -> TempDir {
    let data = TempDir::new().expect("a directory can be made");
    for (label, bin_of, histogram) in RUNS {
        let plant = |name: &str, counts: [u64; 3]| {
            format!(
                "plant:__profc_{name}:{}",
                counts.map(|count| count.to_string()).join(",")
            )
        };
        let mut command = limited(built("rocov"));
        command
            .args(["run", "--label", label, "-o"])
            .arg(data.path())
            .arg("--");
        let program = setup.program(&mut command, "steps");
        program.arg(step("load", &setup.cubin));
        program.args([plant(BIN_OF, bin_of), plant(HISTOGRAM, histogram)]);
        run(program).success().silently();
    }
    data
}

fn rocov(arguments: &[&dyn AsRef<OsStr>]) -> Ended {
    let mut rocov = limited(built("rocov"));
    run(rocov.args(arguments.iter().map(AsRef::as_ref)))
}

#[test]
fn tests_have_their_own_figures() {
    let Some(setup) = Setup::get() else { return };
    let data = tested(setup);
    let elf = the_file(&data.path().join("objects"));
    let report = rocov(&[&"report", &data.path(), &"--per-test"])
        .success()
        .stdout;
    for (label, ..) in RUNS {
        let profiles = raw_profiles(&data.path().join("profraw/labels").join(label));
        let merged = data.path().join("label.profdata");
        merge(&profiles, &merged);
        let mut export = limited(cov());
        export.args(["export", "--summary-only", "--instr-profile"]);
        let summary = run(export.arg(&merged).arg(&elf)).success().stdout;
        let (_, lines) = summary
            .rsplit_once("\"lines\":")
            .expect("a summary of lines");
        let (_, percent) = lines.split_once("\"percent\":").expect("a percentage");
        let percent: f64 = percent[..percent.find('}').expect("an end")]
            .parse()
            .expect("a number");
        let row = report
            .lines()
            .find(|line| line.starts_with(label))
            .unwrap_or_else(|| panic!("no {label}: {report}"));
        assert!(
            row.contains(&format!(" {percent:.2}% ")),
            "{row}: {percent}"
        );
    }
    let source = format!("{}:3", repository("testdata/cuda/kernels.cu").display());
    let which = rocov(&[&"which", &source, &data.path()]).success().stdout;
    let rows: Vec<Vec<&str>> = which
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[1..],
        [
            vec!["Test", "sm_90"],
            vec!["unit/a", "1"],
            vec!["unit/b", "5"]
        ]
    );
    let diff = rocov(&[
        &"diff",
        &data.path(),
        &"--label",
        &"unit/a",
        &"--label",
        &"unit/b",
    ])
    .success()
    .stdout;
    // Line 7 is the last of `bin_of`, lines 5 and 6 return early.
    for part in ["on sm_90: 7\n", "on sm_90: 5-6\n"] {
        assert!(diff.contains(part), "{diff}");
    }
}

#[test]
fn merged_profiles_have_the_sums() {
    let Some(setup) = Setup::get() else { return };
    let data = tested(setup);
    let merged = data.path().join("merged");
    rocov(&[&"merge", &data.path(), &"-o", &merged]).success();
    let found = functions(&merged.join("sm_90.profdata"));
    let counts = |name: &str| [&[found[name].calls], &found[name].blocks[..]].concat();
    let [one, other] = RUNS;
    let sum = |one: [u64; 3], other: [u64; 3]| [0, 1, 2].map(|n| one[n] + other[n]);
    assert_eq!(counts(BIN_OF), sum(one.1, other.1));
    assert_eq!(counts(HISTOGRAM), sum(one.2, other.2));
    let place = TempDir::new().expect("a directory can be made");
    let pooled = place.path().join("pooled");
    rocov(&[&"merge", &data.path(), &"--pooled", &pooled]).success();
    let table = |place: &Path| {
        let report = rocov(&[&"report", &place]).success().stdout;
        report
            .lines()
            .skip_while(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(table(&pooled), table(data.path()));
}

#[test]
fn kernels_have_the_resources_that_nvidias_tool_tells() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let Some(tools) = asked("bin", "cuda-12.9", "no tool tells of registers") else {
        return;
    };
    let mut cuobjdump = limited(Path::new(tools.trim_end()).join("cuobjdump"));
    let theirs = run(cuobjdump.arg("-res-usage").arg(&setup.cubin)).success();
    let theirs = format!("{}{}", theirs.stdout, theirs.stderr);
    let registers = |name: &str| {
        let (_, rest) = theirs.split_once(&format!("Function {name}:"))?;
        let (_, rest) = rest.split_once("REG:")?;
        rest.split_whitespace().next().map(str::to_owned)
    };
    let mut kernels = limited(built("rocov"));
    let listed = run(kernels.args(["kernels", "--mangled"]).arg(data.path()))
        .success()
        .stdout;
    let rows = listed
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut seen = 0;
    for row in rows {
        // The columns are ARCH and VGPRS first, KERNEL and SOURCE last.
        let name = row[row.len() - 2];
        assert_eq!(Some(row[1].to_owned()), registers(name), "{name}: {theirs}");
        seen += 1;
    }
    assert_eq!(seen, 3, "{listed}");
    rocov(&[&"export", &"--format", &"rocpd", &data.path()]).success();
    assert!(data.path().join("rocpd.db").exists());
}

#[test]
fn one_report_has_the_archs_of_both_makers() {
    let Some(setup) = Setup::get() else { return };
    let stack = Stack::for_target("gfx942");
    // The skip is already printed: a program needs a HIP that knows its target.
    if let Stack::Interpreter = stack {
        return;
    }
    let data = TempDir::new().expect("a directory can be made");
    let program = Compilation::on(stack)
        .arguments(stack.flags())
        .arguments(["-O1", "--offload-arch=gfx90a", "--offload-arch=gfx942"])
        .arguments(rocov_flags(stack, &["--counters=llvm"]))
        .reads([device_header(), repository("testdata/cuda/kernels.cu")])
        .source(repository("testdata/cuda/launch.hip"))
        .output("launch");
    let amd = ["gfx90a", "gfx942"];
    for arch in amd {
        run(stack.launcher(arch, data.path()).arg(&program)).success();
    }
    // NVIDIA's GPU gets the counts of one of AMD's, as LLVM reads them.
    let counted = functions(&merged_of_arch(data.path(), "gfx90a"));
    let plants = [BIN_OF, HISTOGRAM].map(|name| {
        let function = &counted[name];
        let counts: Vec<_> = [&[function.calls], &function.blocks[..]]
            .concat()
            .iter()
            .map(u64::to_string)
            .collect();
        format!("plant:__profc_{name}:{}", counts.join(","))
    });
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(plants);
    setup.run(data.path(), &all).success().silently();

    let of_arch = |arch: &str| {
        let report = rocov(&[&"report", &data.path(), &"--arch", &arch, &"--lcov"]);
        let lcov = report.success().stdout;
        let kernels = lcov
            .split("end_of_record")
            .find(|word| word.contains("kernels.cu"));
        let lines = kernels
            .expect("lines of the kernels")
            .lines()
            .filter(|line| line.starts_with("DA:"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = of_arch("sm_90");
    assert!(lines.contains(&"DA:3,999".to_owned()), "{lines:?}");
    for arch in amd {
        assert_eq!(of_arch(arch), lines, "{arch}");
    }
    let pages = data.path().join("pages");
    rocov(&[&"report", &data.path(), &"--html", &pages]).success();
    let page = std::fs::read_to_string(pages.join("index.html")).expect("a page");
    let text = rocov(&[&"report", &data.path()]).success().stdout;
    for arch in ["gfx90a", "gfx942", "sm_90"] {
        assert!(page.contains(&format!(">{arch}<")), "{arch}: {page}");
        assert!(
            text.contains(&format!("{arch}: 1 profile of 1 code object")),
            "{text}"
        );
    }
}

#[test]
fn a_process_that_is_killed_has_counted() {
    let Some(setup) = Setup::get() else { return };
    for how in [&["load:FILE"][..], &["library:FILE", "launch"]] {
        let data = TempDir::new().expect("a directory can be made");
        let file = setup.cubin.display().to_string();
        let mut all: Vec<String> = how.iter().map(|step| step.replace("FILE", &file)).collect();
        all.push("kill".to_owned());
        let ended = setup.run(data.path(), &all).with_status(137);
        assert!(
            ended.stderr.contains("was killed by SIGKILL before its"),
            "{ended}"
        );
    }
}

/// The only file of a directory.
fn the_file(directory: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(directory).expect("a directory");
    let file = files.next().expect("a file").expect("it can be listed");
    assert!(
        files.next().is_none(),
        "{} has several files",
        directory.display()
    );
    file.path()
}

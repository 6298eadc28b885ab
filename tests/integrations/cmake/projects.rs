//! Whole projects, whose tests run on the modelled GPU.

use std::collections::BTreeMap;
use std::fs;

use super::{PACKAGE, Prefix, Project, debian12, hip_compiler};
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, rocov_run, run};
use crate::support::cuda::toolkit;
use crate::support::json::json;
use crate::support::unpacked::not_run;

/// The tests that reach the only line with `text` in a source, and their counts.
fn reaching(project: &Project, source: &str, text: &str) -> BTreeMap<String, u64> {
    let lines = fs::read_to_string(project.path(source)).expect("a source");
    let mut found = (1..)
        .zip(lines.lines())
        .filter(|(_, line)| line.contains(text));
    let (line, _) = found.next().unwrap_or_else(|| panic!("{text} in {source}"));
    assert!(found.next().is_none(), "{text} is twice in {source}");
    let mut which = limited(built("rocov"));
    which.arg("which").arg(format!("{source}:{line}"));
    which.arg(project.data()).arg("--json");
    let found = json(run(&mut which).success().stdout);
    let tests = found["lines"][0]["tests"].as_array().expect("tests");
    let count = |test: &serde_json::Value| {
        let label = test["label"].as_str().expect("a label").to_owned();
        (label, test["counts"]["gfx90a"].as_u64().expect("a count"))
    };
    tests.iter().map(count).collect()
}

fn expected<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.map(|(test, count)| (test.to_owned(), count)).into()
}

/// Two lines in the project, and a preset. rocov is installed, and the package is found by the `PATH`.
#[test]
fn three_targets_count_each_for_its_tests() {
    let project = Project::from_folder("examples/libraries");
    let prefix = Prefix::new();
    let path = std::env::var("PATH").expect("a PATH");
    let toolkit = toolkit();
    let mut cmake = project.cmake();
    cmake.env(
        "PATH",
        format!("{}/bin:{path}", prefix.directory.path().display()),
    );
    cmake.args(["--preset", "coverage", "-DROCOV_GPU=model"]);
    cmake.args(hip_compiler("clang++-22"));
    match &toolkit {
        Some(toolkit) => {
            let nvcc = repository("testdata/cmake/cuda");
            cmake.env("CUDA_TOOLKIT", toolkit);
            cmake.args([
                "-DCMAKE_CUDA_COMPILER=clang++-22",
                "-DCMAKE_CUDA_ARCHITECTURES=90",
            ]);
            cmake.arg("-DCMAKE_CUDA_FLAGS=-Wno-unknown-cuda-version");
            cmake.arg(format!("-DCUDAToolkit_ROOT={}", nvcc.display()));
        }
        None => {
            cmake.arg("-DCMAKE_CUDA_COMPILER=");
        }
    }
    run(&mut cmake).success();
    let mut build = project.cmake();
    let ended = run(build.args(["--build", "--preset", "coverage"])).success();
    let page = project.path("build/coverage/index.html");
    assert!(page.is_file(), "{ended}");
    assert!(
        ended.stdout.contains(&format!("{}", page.display())),
        "{ended}"
    );

    // 2 values have no neighbours, and 1000 have two each, but for the first and the last.
    let tests_reaching = |source, text| reaching(&project, source, text);
    let copied = tests_reaching("on_amd.hip", "to[i] = from[i];");
    assert_eq!(copied, expected([("on_amd/edges", 2)]));
    let mean = tests_reaching("on_amd.hip", "to[i] = mean_at");
    assert_eq!(mean, expected([("on_amd/middle", 1000)]));
    let left = tests_reaching("mean.h", "sum += values[i - 1];");
    assert_eq!(left, expected([("on_amd/middle", 999)]));
    // 256 work-items a block, so that the last block is not full.
    let beyond = tests_reaching("on_amd.hip", "return; // beyond");
    assert_eq!(
        beyond,
        expected([("on_amd/edges", 254), ("on_amd/middle", 24)])
    );

    if toolkit.is_some() {
        let mut doctor = limited(built("rocov"));
        let library = project.path("build/libon_nvidia.so");
        let said = run(doctor.arg("doctor").arg(library)).stdout;
        let counts = |line: &str| line.contains("sm_90") && line.contains("coverage mapping");
        assert!(said.lines().any(counts), "{said}");
    }
    not_run("the tests of examples/libraries on an NVIDIA GPU");
}

/// GPU code of two static libraries that the program links, with the host's, and a target `coverage` that is the
/// project's.
#[test]
fn units_of_static_libraries_count() {
    let project = Project::from_folder("testdata/cmake/units");
    let mut cmake = project.configuration();
    cmake
        .args(hip_compiler("clang++-22"))
        .arg("-DROCOV_GPU=model");
    let configured = run(&mut cmake).success();
    let target = "the project has a target coverage: rocov's is rocov-coverage";
    assert!(configured.stdout.contains(target), "{configured}");
    let ended = project.build("rocov-coverage").success();
    let tests_reaching = |source, text| reaching(&project, source, text);
    assert_eq!(
        tests_reaching("half.hip", "return value / 2;"),
        expected([("halves", 5)])
    );
    assert_eq!(
        tests_reaching("two.hip", "value = 0; // never"),
        expected([])
    );
    assert_eq!(
        tests_reaching("two.hip", "half_of(value);"),
        expected([("halves", 5)])
    );
    // The host's code is in the program: run_two is one function of 3 lines.
    let (_, host) = ended
        .stdout
        .split_once("host: 1 profile")
        .expect("the host's table");
    let row: Vec<_> = host
        .lines()
        .find(|line| line.starts_with("two.hip"))
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!(row[7..10], ["3", "0", "100.00%"], "{ended}");
}

/// A project that knows nothing of rocov, by compilers that take the flags in different ways, through ccache.
#[test]
fn a_project_without_a_change_counts() {
    let ccache = run(limited("sh").args(["-c", "command -v ccache"]));
    let launcher = ccache.status.success().then(|| "ccache".to_owned());
    if launcher.is_none() {
        not_run("a CMake project through ccache: it is not installed");
    }
    for clang in ["clang++-15", "clang++-19", "clang++-22"] {
        let project = Project::with(
            "cmake_minimum_required(VERSION 3.20)\n\
             project(scale LANGUAGES CXX)\n\
             add_executable(scale scale.hip)\n\
             set_source_files_properties(scale.hip PROPERTIES LANGUAGE CXX COMPILE_OPTIONS \"-x;hip\")\n\
             target_link_options(scale PRIVATE --hip-link)\n\
             enable_testing()\n\
             add_test(NAME part COMMAND scale 100)\n",
        );
        fs::copy(
            repository("examples/cmake/scale.hip"),
            project.path("scale.hip"),
        )
        .expect("it can be copied");
        let mut cmake = project.cmake();
        cmake.args(["-S", ".", "-B", "build", "-DROCOV_GPU=model"]);
        // At -O0, code of clang 15 starts with a kernel that the model does not know.
        cmake.arg("-DCMAKE_BUILD_TYPE=Release");
        let include = repository(PACKAGE).join("rocov-build.cmake");
        cmake.arg(format!("-DCMAKE_PROJECT_INCLUDE={}", include.display()));
        cmake.arg(format!("-DROCOV_EXECUTABLE={}", built("rocov").display()));
        cmake.arg(format!("-DCMAKE_CXX_COMPILER={clang}"));
        cmake.arg(format!("-DCMAKE_CXX_FLAGS={}", flags_of(clang)));
        if let Some(launcher) = &launcher {
            cmake.arg(format!("-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"));
        }
        run(&mut cmake).success();
        let mut build = project.cmake();
        build.args(["--build", "build", "--target", "coverage"]);
        run(build.env("CCACHE_DIR", project.path("ccache"))).success();
        let counts = reaching(&project, "scale.hip", "values[i] *= 2.0f;");
        assert_eq!(counts, expected([("part", 100)]), "{clang}");
    }
}

/// A project that knows nothing of rocov, with 50 tests of GoogleTest. The last one aborts. `harness` is between the
/// program and GoogleTest.
#[test]
fn tests_of_a_project_without_a_change_have_labels() {
    let project = Project::with(
        "cmake_minimum_required(VERSION 3.20)\n\
         project(fifty LANGUAGES CXX)\n\
         find_package(GTest REQUIRED)\n\
         add_library(statistics SHARED statistics.hip calls.hip)\n\
         set_source_files_properties(statistics.hip calls.hip PROPERTIES LANGUAGE CXX COMPILE_OPTIONS \"-x;hip\")\n\
         target_link_options(statistics PRIVATE --hip-link)\n\
         add_library(harness INTERFACE)\n\
         target_link_libraries(harness INTERFACE $<BUILD_INTERFACE:GTest::gtest_main>)\n\
         add_executable(fifty fifty.cpp)\n\
         target_link_libraries(fifty harness statistics)\n",
    );
    for folder in ["testdata/sample", "testdata/programs/per_test"] {
        for name in [
            "statistics.hip",
            "statistics.h",
            "calls.hip",
            "calls.h",
            "fifty.cpp",
        ] {
            let source = repository(folder).join(name);
            if source.exists() {
                fs::copy(source, project.path(name)).expect("it can be copied");
            }
        }
    }
    let mut cmake = project.cmake();
    cmake.args(["-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"]);
    let include = repository(PACKAGE).join("rocov-build.cmake");
    cmake.arg(format!("-DCMAKE_PROJECT_INCLUDE={}", include.display()));
    cmake.arg(format!("-DROCOV_EXECUTABLE={}", built("rocov").display()));
    cmake.args(["-DROCOV_LABEL_TESTS=ON", "-DCMAKE_CXX_COMPILER=clang++-22"]);
    cmake.arg(format!("-DCMAKE_CXX_FLAGS={}", debian12()));
    run(&mut cmake).success();
    project.build("all").success();

    let mut command = rocov_run(Some("model"), &project.data());
    command
        .args(["env", "LAST_SIGNAL=6"])
        .arg(project.path("build/fifty"));
    let ended = run(&mut command).with_status(128 + 6);
    ended.says(&["after its last drain: later counts are lost"]);
    let reaching = reaching(&project, "statistics.hip", "partial[threadIdx.x] += ");
    let labels = (0..49).map(|number| format!("All/Fifty/Sum/{number}"));
    let counts = reaching.values().next().expect("a test");
    let expected = labels.map(|label| (label, *counts)).collect();
    assert_eq!(reaching, expected);
}

/// The flags for Debian 12's HIP. clang 15 takes one file of flags, in another form.
fn flags_of(clang: &str) -> String {
    let flags = debian12();
    match clang {
        "clang++-15" => flags.replace('=', " "),
        _ => flags,
    }
}

/// The target prints the gate that does not hold once. Each run starts with no counts.
#[test]
fn gates_and_failing_tests_fail_the_target() {
    let project = Project::from_folder("examples/cmake");
    let lists = project.path("CMakeLists.txt");
    let text = fs::read_to_string(&lists).expect("a file");
    let only_full = text.replace("add_test(NAME part_of_a_block COMMAND scale 100)", "");
    assert_ne!(text, only_full);
    fs::write(&lists, &only_full).expect("a file can be written");
    let configure = |more: &[&str]| {
        let mut cmake = project.configuration();
        cmake.args(["-DCMAKE_CXX_COMPILER=clang++-22", "-DROCOV_GPU=model"]);
        cmake.arg(format!("-DCMAKE_CXX_FLAGS={}", debian12()));
        run(cmake.args(more)).success();
    };
    configure(&["-DROCOV_REPORT_ARGUMENTS=--fail-under-lines;90"]);
    let ended = project.build("coverage");
    assert!(!ended.status.success(), "{ended}");
    let gate = "71.43% of lines ran";
    assert_eq!(ended.stderr.matches(gate).count(), 1, "{ended}");
    assert!(
        ended.stderr.contains("rocov report ended with 3"),
        "{ended}"
    );
    assert!(project.path("build/coverage/index.html").is_file());

    // Other formats take files of their own, and the table stays.
    for arguments in ["--lcov;-o;cov.info", "--lcov;cov.info;--json;cov.json"] {
        configure(&[&format!("-DROCOV_REPORT_ARGUMENTS={arguments}")]);
        let ended = project.build("coverage").success();
        assert!(ended.stdout.contains("gfx90a by test:"), "{ended}");
        let lcov = fs::read_to_string(project.path("cov.info")).expect("a tracefile");
        assert!(lcov.starts_with("TN:full_blocks\nSF:"), "{lcov}");
    }

    let failing = only_full
        + "add_test(NAME nothing COMMAND scale nothing)\nadd_test(NAME absent COMMAND false)\n";
    fs::write(&lists, failing).expect("a file can be written");
    configure(&["-DROCOV_REPORT_ARGUMENTS="]);
    let ended = project.build("coverage");
    assert!(!ended.status.success(), "{ended}");
    let reason = "ctest ended with 8, so the counts may not be those of all tests";
    assert!(ended.stderr.contains(reason), "{ended}");
    // The counts of the first run are gone: scale.hip's first line ran in one test only.
    let counts = reaching(&project, "scale.hip", "values[i] *= 2.0f;");
    assert_eq!(counts, expected([("full_blocks", 256)]), "{ended}");
}

//! The options that targets get, and what the package rejects. Nothing is built.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{PACKAGE, Prefix, Project};
use crate::support::artifacts::repository;
use crate::support::command::{Ended, limited, run};
use crate::support::json::json;

/// The words of the commands that compile these sources.
struct Commands(serde_json::Value);

impl Commands {
    /// Those of a project for clang 22.
    fn for_project(text: &str, arguments: &[&str]) -> Self {
        let project = Project::with(text);
        for source in ["a.cpp", "b.cpp", "c.c"] {
            fs::write(project.path(source), "").expect("a file can be written");
        }
        let mut cmake = project.configuration();
        cmake.args([
            "-DCMAKE_CXX_COMPILER=clang++-22",
            "-DCMAKE_C_COMPILER=clang-22",
        ]);
        cmake.arg("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON");
        // CMake need not try the compilers.
        cmake.args([
            "-DCMAKE_CXX_COMPILER_FORCED=ON",
            "-DCMAKE_C_COMPILER_FORCED=ON",
        ]);
        run(cmake.args(arguments)).success();
        let commands = fs::read(project.path("build/compile_commands.json"));
        let commands = json(commands.expect("the commands"));
        // The files of flags go with the project.
        Self(commands)
    }

    /// The options of rocov in the only command whose output has `part` in its path.
    fn rocovs(&self, part: &str) -> Vec<String> {
        let commands = self
            .0
            .as_array()
            .expect("commands")
            .iter()
            .map(|command| command["command"].as_str().expect("a command"));
        let found: Vec<_> = commands.filter(|command| command.contains(part)).collect();
        let [command] = &found[..] else {
            panic!("{} commands with {part}: {:?}", found.len(), self.0);
        };
        let words = command.split(' ').map(str::to_owned);
        let is_rocovs = |word: &String| word.contains("/rocov/") || word.contains("-fprofile-");
        words.filter(is_rocovs).collect()
    }
}

const PROJECT: &str = "cmake_minimum_required(VERSION 3.20)\n\
                       project(options LANGUAGES C CXX)\n\
                       find_package(rocov REQUIRED)\n\
                       add_library(one STATIC a.cpp b.cpp c.c)\n\
                       add_library(two STATIC a.cpp)\n";

#[test]
fn a_target_or_its_sources_get_the_flags() {
    let commands = Commands::for_project(&format!("{PROJECT}rocov_add_coverage(one)\n"), &[]);
    assert_eq!(commands.rocovs("one.dir/a.cpp.o").len(), 1);
    assert_eq!(commands.rocovs("one.dir/b.cpp.o").len(), 1);
    assert_eq!(commands.rocovs("one.dir/c.c.o"), [""; 0], "C is the host's");
    assert_eq!(commands.rocovs("two.dir/a.cpp.o"), [""; 0]);

    let text = format!("{PROJECT}rocov_add_coverage(one SOURCES b.cpp COUNTERS llvm HOST)\n");
    let commands = Commands::for_project(&text, &[]);
    assert_eq!(commands.rocovs("one.dir/a.cpp.o"), [""; 0]);
    assert_eq!(commands.rocovs("one.dir/b.cpp.o").len(), 1);
    assert_eq!(commands.rocovs("one.dir/c.c.o"), [""; 0]);
}

#[test]
fn host_code_counts_in_c_too() {
    let commands = Commands::for_project(&format!("{PROJECT}rocov_add_coverage(one HOST)\n"), &[]);
    let flags = commands.rocovs("one.dir/c.c.o");
    assert!(
        flags.contains(&"-fprofile-instr-generate".to_owned()),
        "{flags:?}"
    );
}

#[test]
fn an_interface_library_hands_the_flags_on() {
    let text = format!(
        "{PROJECT}add_library(headers INTERFACE)\n\
         add_library(alias ALIAS headers)\n\
         rocov_add_coverage(alias)\n\
         target_link_libraries(two PRIVATE headers)\n"
    );
    let commands = Commands::for_project(&text, &[]);
    assert_eq!(commands.rocovs("one.dir/a.cpp.o"), [""; 0]);
    assert_eq!(commands.rocovs("two.dir/a.cpp.o").len(), 1);
}

#[test]
fn an_installed_target_has_no_flags() {
    let project = Project::with(&format!(
        "{PROJECT}rocov_add_coverage(one HOST)\n\
         install(TARGETS one EXPORT targets)\n\
         install(EXPORT targets DESTINATION lib)\n"
    ));
    for source in ["a.cpp", "b.cpp", "c.c"] {
        fs::write(project.path(source), "").expect("a file can be written");
    }
    let mut cmake = project.configuration();
    cmake.args([
        "-DCMAKE_CXX_COMPILER=clang++-22",
        "-DCMAKE_C_COMPILER=clang-22",
    ]);
    run(&mut cmake).success();
    // The folder's name has a hash in later releases of CMake.
    let mut find = limited("find");
    find.arg(project.path("build/CMakeFiles/Export"));
    let found = run(find.args(["-name", "targets.cmake"])).success().stdout;
    let exported = fs::read_to_string(found.trim()).expect("the exported targets");
    assert!(
        exported.contains("add_library(one STATIC IMPORTED)"),
        "{exported}"
    );
    assert!(!exported.contains("rocov"), "{exported}");
}

/// hipcc is no clang, but says which clang it calls.
#[test]
fn the_clang_that_hipcc_calls_is_asked_for_its_flags() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let hipcc = directory.path().join("hipcc");
    // It would compile for the GPU of the machine, so it must not be the compiler that `rocov flags` asks.
    let script = "#!/bin/sh\n\
                  case \"$*\" in\n\
                    --version) echo 'HIP version: 7.0'; /usr/lib/llvm-22/bin/clang++ --version ;;\n\
                    *cuda-device-only*) exit 1 ;;\n\
                    *) exec clang++-22 \"$@\" ;;\n\
                  esac\n";
    fs::write(&hipcc, script).expect("a file can be written");
    fs::set_permissions(&hipcc, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let text = format!("{PROJECT}rocov_add_coverage(one)\n");
    let compiler = format!("-DCMAKE_CXX_COMPILER={}", hipcc.display());
    let commands = Commands::for_project(&text, &[&compiler]);
    assert_eq!(commands.rocovs("one.dir/a.cpp.o").len(), 1);
}

/// The commands of CMake's module FindHIP compile by scripts, which have no options of targets. rocALUTION uses them.
#[test]
fn the_scripts_of_find_hip_have_the_flags() {
    let modules = "/usr/lib/x86_64-linux-gnu/cmake/hip";
    assert!(
        fs::exists(format!("{modules}/FindHIP.cmake")).expect("a path"),
        "there is no FindHIP: tools/setup test"
    );
    let text = "cmake_minimum_required(VERSION 3.5...3.20)\n\
                project(scripts LANGUAGES CXX)\n\
                find_package(HIP REQUIRED MODULE)\n\
                list(APPEND HIP_HIPCC_FLAGS -O3)\n\
                set_source_files_properties(a.cpp PROPERTIES HIP_SOURCE_PROPERTY_FORMAT TRUE)\n\
                hip_add_library(one SHARED a.cpp)\n\
                hip_add_executable(two a.cpp)\n";
    for (host, link) in [("OFF", false), ("ON", true)] {
        let project = Project::with(text);
        fs::write(project.path("a.cpp"), "").expect("a file can be written");
        fs::create_dir(project.path("bin")).expect("a new directory");
        let clang = "/usr/lib/llvm-22/bin";
        for (name, script) in [
            (
                "hipcc",
                format!("echo 'HIP version: 7.0'; exec {clang}/clang++ \"$@\""),
            ),
            (
                "hipconfig",
                format!(
                    "case $1 in --platform) printf amd ;; --compiler) printf clang ;; -l) printf {clang} ;; *) printf 7.0.1-9999 ;; esac"
                ),
            ),
            ("hipcc_cmake_linker_helper", "exit 0".to_owned()),
        ] {
            let path = project.path("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let mut cmake = project.configuration();
        cmake.args([
            "-G",
            "Ninja",
            "-DROCOV_COVERAGE=ON",
            "-DCMAKE_HIP_ARCHITECTURES=OFF",
        ]);
        cmake.arg("-DCMAKE_CXX_COMPILER=g++");
        cmake.arg(format!("-DROCOV_HOST={host}"));
        cmake.arg(format!("-DCMAKE_MODULE_PATH={modules}"));
        cmake.arg(format!(
            "-DHIP_ROOT_DIR={}",
            project.directory.path().display()
        ));
        cmake.arg(format!(
            "-DCMAKE_PROJECT_INCLUDE={}/rocov-build.cmake",
            repository(PACKAGE).display()
        ));
        run(&mut cmake).success();

        let script = project.path("build/CMakeFiles/one.dir/one_generated_a.cpp.o.cmake");
        let script = fs::read_to_string(script).expect("FindHIP's script");
        let flags = |start: &str| -> String {
            let mut lines = script.lines().filter(|line| line.starts_with(start));
            lines.next().expect("the flags").to_owned()
        };
        assert!(flags("set(HIP_HIPCC_FLAGS ").contains("-O3"), "{script}");
        let words = flags("set(HIP_CLANG_FLAGS ");
        let file = words.split_once("--config=").expect(&words).1;
        let file = file.split([';', ')']).next().expect("a path");
        let file = fs::read_to_string(file).expect("the file of flags");
        assert!(file.contains("-fprofile-instr-generate"), "{file}");
        assert_eq!(
            file.contains("-Xarch_device -fcoverage-mapping"),
            !link,
            "{file}"
        );

        let ninja = fs::read_to_string(project.path("build/build.ninja")).expect("Ninja's file");
        let linking = ninja.split_once("build two: HIP").expect(&ninja).1;
        let linking = linking.split("\n\n").next().expect("a statement");
        assert!(linking.contains("/rocov/hipcc-"), "{linking}");
    }
}

#[test]
fn configurations_are_chosen() {
    let text = format!("{PROJECT}rocov_add_coverage(one CONFIGURATIONS Debug Coverage)\n");
    for (name, expected) in [("Coverage", 1), ("Debug", 1), ("Release", 0)] {
        let commands = Commands::for_project(&text, &[&format!("-DCMAKE_BUILD_TYPE={name}")]);
        assert_eq!(commands.rocovs("one.dir/a.cpp.o").len(), expected, "{name}");
    }
}

#[test]
fn one_switch_is_for_all_targets() {
    let commands = Commands::for_project(PROJECT, &[]);
    assert_eq!(commands.rocovs("two.dir/a.cpp.o"), [""; 0]);
    let commands = Commands::for_project(PROJECT, &["-DROCOV_COVERAGE=ON"]);
    let of_all = commands.rocovs("two.dir/a.cpp.o");
    assert_eq!(of_all.len(), 1);

    // A target has one set of flags: its own, if it differs.
    let text = format!("{PROJECT}rocov_add_coverage(one COUNTERS llvm)\n");
    let commands = Commands::for_project(&text, &["-DROCOV_COVERAGE=ON"]);
    let own = commands.rocovs("one.dir/a.cpp.o");
    assert_eq!(own.len(), 1);
    let name = |words: &[String]| words[0].rsplit('/').next().map(str::to_owned);
    assert_eq!(name(&commands.rocovs("two.dir/a.cpp.o")), name(&of_all));
    assert_ne!(name(&own), name(&of_all));

    let commands = Commands::for_project(&text, &["-DROCOV_COVERAGE=OFF"]);
    assert_eq!(commands.rocovs("one.dir/a.cpp.o"), [""; 0]);
}

/// Configures a project without languages.
fn configured(text: &str) -> Ended {
    let project = Project::with(&format!(
        "cmake_minimum_required(VERSION 3.20)\nproject(errors NONE)\n{text}\n"
    ));
    run(&mut project.configuration())
}

#[test]
fn errors_name_the_word_and_the_next_step() {
    for (line, message) in [
        (
            "rocov_add_coverage()",
            "rocov_add_coverage: no target is named: name one",
        ),
        (
            "rocov_add_coverage(absent)",
            "rocov_add_coverage: there is no target absent: call rocov_add_coverage after add_library or \
             add_executable, and check its options",
        ),
        (
            "add_library(it INTERFACE)\nrocov_add_coverage(it COUNTERS quick)",
            "rocov_add_coverage: COUNTERS is quick: it may be fast, llvm or reached",
        ),
        (
            "add_library(it INTERFACE)\nrocov_add_coverage(it COUNTERS)",
            "rocov_add_coverage: COUNTERS has no value: add one, or leave it out",
        ),
        (
            "add_library(it INTERFACE)\nset(ROCOV_COUNTERS slow)\nrocov_add_coverage(it)",
            "ROCOV_COUNTERS is slow: it may be fast, llvm or reached",
        ),
        (
            "rocov_add_coverage(rocov::headers)",
            "rocov_add_coverage: rocov::headers is imported, and this project does not compile it: name a target \
             that it compiles",
        ),
        (
            "add_custom_target(it)\nrocov_add_coverage(it)",
            "rocov_add_coverage: it is a custom target: name a library or an executable",
        ),
    ] {
        let ended = configured(&format!("find_package(rocov REQUIRED)\n{line}"));
        assert!(!ended.status.success(), "{ended}");
        // CMake wraps the lines of messages.
        let said: Vec<_> = ended.stderr.split_whitespace().collect();
        assert!(said.join(" ").contains(message), "{message}: {ended}");
    }
}

#[test]
fn the_package_has_the_version_of_the_crate() {
    let version = env!("CARGO_PKG_VERSION");
    let ended = configured("find_package(rocov REQUIRED)\nmessage(\"found ${rocov_VERSION}.\")");
    assert!(
        ended.stderr.contains(&format!("found {version}.")),
        "{ended}"
    );
    let parts: Vec<u32> = version
        .split('.')
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [major, minor, patch] = parts[..] else {
        panic!("{version} has 3 parts");
    };
    let taken = [
        format!("{major}"),
        format!("{major}.{minor}"),
        format!("{version} EXACT"),
        format!("{major}.{minor}...{major}.{}", minor + 1),
        format!("0...{version}"),
    ];
    for wanted in &taken {
        let ended = configured(&format!("find_package(rocov {wanted} REQUIRED)"));
        assert!(ended.status.success(), "{wanted}: {ended}");
    }
    let refused = [
        format!("{}", major + 1),
        format!("{major}.{}", minor + 1),
        format!("{major}.{minor}.{}", patch + 1),
        format!("0...<{version}"),
    ];
    for wanted in &refused {
        let ended = configured(&format!("find_package(rocov {wanted} REQUIRED)"));
        assert!(!ended.status.success(), "{wanted}: {ended}");
    }
}

#[test]
fn an_installation_gives_its_command_and_its_headers() {
    let prefix = Prefix::new();
    let project = Project::with(
        "cmake_minimum_required(VERSION 3.20)\n\
         project(places NONE)\n\
         find_package(rocov REQUIRED)\n\
         get_target_property(command rocov::rocov IMPORTED_LOCATION)\n\
         get_target_property(headers rocov::headers INTERFACE_INCLUDE_DIRECTORIES)\n\
         message(\"${command} ${headers}\")\n",
    );
    let mut cmake = project.cmake();
    cmake.args(["-S", ".", "-B", "build"]);
    let root = prefix.directory.path();
    let ended = run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", root.display()))).success();
    let places = format!("{0}/bin/rocov {0}/include\n", root.display());
    assert_eq!(ended.stderr, places, "{ended}");
}

//! The table of pages: the needs of each page here, and the uses of blocks that are not commands to run.

use super::blocks::Block;
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::unpacked::asked;

/// A page.
pub(super) struct Page {
    pub(super) path: &'static str,
    /// The trees that must be unpacked here.
    pub(super) needs: &'static [Need],
    /// The commands before those of the page.
    pub(super) setup: &'static str,
    /// Names in commands and files, and what stands for them here.
    pub(super) here: &'static [(&'static str, &'static str)],
    /// Patterns of what differs from run to run in outputs, and the text that stands for it.
    pub(super) varies: &'static [(&'static str, &'static str)],
    /// Parts of messages of rocov that come here, and that the page does not show.
    pub(super) messages: &'static [&'static str],
    /// The blocks that are not just commands to run.
    pub(super) marks: &'static [Mark],
}

impl Page {
    const NONE: Self = Self {
        path: "",
        needs: &[],
        setup: "",
        here: &[],
        varies: &[],
        messages: &[],
        marks: &[],
    };

    pub(super) fn mark_of(&self, block: &Block) -> Option<&'static Mark> {
        self.marks
            .iter()
            .find(|mark| block.text.starts_with(mark.starts))
    }
}

/// A tree that tools/stacks unpacks.
pub(super) enum Need {
    /// HIP 7.2.4, as `$HIP7_FLAGS` for clang 22, and `$HIP7` before a program.
    Hip7,
    /// clang 23, as `$CLANG23`, and `$CLANG23_FLAGS` for HIP 7.2.4.
    Clang23,
    /// OpenMP's runtime for the GPU, as `$OPENMP_FLAGS`.
    OpenMp,
}

impl Need {
    /// Settings for the session. `None` if it is not unpacked. Standard error then names it.
    pub(super) fn environment(&self) -> Option<String> {
        const WITHOUT: &str = "a page of the book is not tried";
        match self {
            Self::Hip7 => {
                let flags = asked("flags", "rocr-7.2.4", WITHOUT)?;
                let flags = flags.trim();
                Some(format!(
                    "HIP7_FLAGS='{flags}'\nHIP7=\"$REPOSITORY/tools/stacks run rocr-7.2.4 --\""
                ))
            }
            Self::Clang23 => {
                let clang = Compiler::find(23)?;
                let flags = Stack::hip_7()?.flags_for(clang);
                let flags: Vec<_> = flags.iter().map(|flag| flag.to_string_lossy()).collect();
                Some(format!(
                    "CLANG23={}\nCLANG23_FLAGS='{}'",
                    clang.clang,
                    flags.join(" ")
                ))
            }
            Self::OpenMp => {
                let flags = asked("flags", "openmp-22", WITHOUT)?;
                Some(format!("export OPENMP_FLAGS='{}'", flags.trim()))
            }
        }
    }
}

/// How a block is used.
pub(super) enum Use {
    /// Its commands run.
    Run,
    /// It cannot run on the machine of these tests, for this reason. rocov reads its command lines.
    Elsewhere(#[expect(dead_code, reason = "for the reader of the table")] &'static str),
    /// It is the end of this file.
    File(&'static str),
    /// It is what this command prints.
    PrintedBy(&'static str),
    /// The command before prints these lines.
    Output,
    /// The lines are in this file of the repository.
    PartOf(&'static str),
}

/// A block that is not just commands to run.
pub(super) struct Mark {
    /// The start of the block.
    pub(super) starts: &'static str,
    pub(super) used: Use,
    /// Commands before it.
    pub(super) before: &'static str,
    /// Commands after it.
    pub(super) then: &'static str,
    /// Words that its last command prints.
    pub(super) prints: &'static [&'static str],
}

impl Mark {
    /// That of a block that the table does not name.
    pub(super) const RUN: Self = Self::at("");

    const fn at(starts: &'static str) -> Self {
        Self {
            starts,
            used: Use::Run,
            before: "",
            then: "",
            prints: &[],
        }
    }

    const fn is(mut self, used: Use) -> Self {
        self.used = used;
        self
    }

    const fn elsewhere(self, reason: &'static str) -> Self {
        self.is(Use::Elsewhere(reason))
    }

    const fn before(mut self, commands: &'static str) -> Self {
        self.before = commands;
        self
    }

    const fn then(mut self, commands: &'static str) -> Self {
        self.then = commands;
        self
    }

    const fn prints(mut self, words: &'static [&'static str]) -> Self {
        self.prints = words;
        self
    }
}

const NO_NVIDIA: &str = "needs an NVIDIA GPU";

pub(super) static PAGES: &[Page] = &[
    Page {
        path: "README.md",
        // The libraries under test are built.
        setup: r"
stand_in cargo true
instrumented testdata/sample/*.hip -o sample
",
        marks: &[
            Mark::at("$ rocov run -- ./sample").then("rocov clean >/dev/null"),
            // 71 of the program's 90 lines run.
            Mark::at("hipcc ").then("rocov clean >/dev/null").prints(&["78.89%"]),
            // The comment of a line that never runs, with its count.
            Mark::at("tools/setup demo").prints(&["|      0|    return 0; // never"]),
            // The table of tests: the second runs all lines.
            Mark::at("cmake ").prints(&["part_of_a_block", "100.00%", "build/coverage/index.html"]),
            // 37 of 41 lines.
            Mark::at("clang++-22 --config").prints(&["90.24%"]),
            Mark::at("rocov run --instrument").elsewhere(NO_NVIDIA),
            Mark::at("rocov report --html pages")
                .prints(&["steps_kernel", "part_of_a_block"])
                .then("test -e pages/index.html -a -e merged/gfx90a.profdata"),
            Mark::at("- uses:").elsewhere("tests/integrations runs the action"),
            Mark::at("./tools/demo").elsewhere("CI runs both: they take minutes"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/quick-start.md",
        setup: "stand_in cargo true",
        marks: &[
            Mark::at("hipcc ").prints(&["78.89%"]).then("rocov clean >/dev/null"),
            Mark::at("clang++-22 ").prints(&["|      0|    return 0; // never"]),
            Mark::at("find_package(rocov").is(Use::PartOf("examples/cmake/CMakeLists.txt")),
            Mark::at("cmake ").prints(&["part_of_a_block", "100.00%", "build/coverage/index.html"]),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/bazel.md",
        here: &[("/home/me", "$HERE")],
        marks: &[
            Mark::at("cc_binary").elsewhere("no Bazel is here"),
            Mark::at("rocov flags").elsewhere("no Bazel is here"),
            Mark::at("#!/bin/sh")
                .before("TEST_TARGET=//math:sum; set -- ./sum")
                .elsewhere("no Bazel is here"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/builds.md",
        setup: r"
scale app.hip app
for run in 1 2 3; do rocov run -- ./app; done
sed -i 's/numbers/values/' app.hip
instrumented app.hip -o app
rocov run -- ./app
",
        varies: &[(r"\(\d\d:\d\d\)", "(TIME)")],
        marks: &[Mark::at("rocov: app: 2 builds").is(Use::PrintedBy("rocov report 2>&1 >/dev/null"))],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/changed-lines.md",
        needs: &[Need::Hip7],
        setup: r#"
mkdir src
sed '/float scaled/,/return scaled/c\  return rounded(value / scale);' testdata/programs/archs/quantise.hip >src/kernel.hip
git init -q -b main
git add src
commit before
git checkout -q -b change
cp testdata/programs/archs/quantise.hip src/kernel.hip
clang++-22 $HIP7_FLAGS $(rocov flags --clang clang++-22) --offload-arch=gfx90a --offload-arch=gfx942 -O1 src/kernel.hip -o app
for gpu in gfx90a gfx942; do rocov run --gpu "model:$gpu" -- $HIP7 ./app; done
"#,
        marks: &[],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/cmake.md",
        here: &[("PREFIX/lib/cmake/rocov", "$REPOSITORY/tools/cmake")],
        setup: r#"
cp examples/cmake/scale.hip my_kernels.hip
sed -e 's/scale/my_kernels/g' -e '/rocov/d' examples/cmake/CMakeLists.txt >CMakeLists.txt
git init -q
for copy in optional plain; do mkdir $copy; cp my_kernels.hip CMakeLists.txt $copy; done
export CXX=clang++ rocov_DIR=$REPOSITORY/tools/cmake
"#,
        marks: &[
            Mark::at("find_package(rocov REQUIRED)").is(Use::File("CMakeLists.txt")),
            Mark::at("$ cmake -B build\n")
                .prints(&["part_of_a_block", "100.00%", "build/coverage/index.html"]),
            Mark::at("find_package(rocov QUIET)")
                .is(Use::File("optional/CMakeLists.txt"))
                .then("cmake -S optional -B optional/build -DROCOV_COVERAGE=OFF >/dev/null"),
            Mark::at("Test ").elsewhere(NO_NVIDIA),
            Mark::at("rocov_add_coverage(TARGET").elsewhere("the form of a call"),
            Mark::at("$ cmake -B build -DCMAKE_PROJECT_INCLUDE")
                .before("cd plain")
                .then("cmake --build build --target coverage >/dev/null; test -e build/coverage/index.html; cd .."),
            Mark::at("$ cmake --preset")
                .elsewhere("tests/integrations runs the preset, with what stands for HIP as a language"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/compile.md",
        setup: r#"
cp examples/cmake/scale.hip app.hip
cp app.hip sort.hip
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.21)
set(CMAKE_HIP_COMPILER_ROCM_ROOT $ENV{REPOSITORY}/testdata/cmake/rocm)
set(CMAKE_HIP_ARCHITECTURES gfx90a)
project(app LANGUAGES HIP)
add_executable(app app.hip)
END
export HIPCXX=clang++ CCACHE_DIR=$HERE/ccache
"#,
        marks: &[
            Mark::at("$ rocov pass build").elsewhere("takes half a minute: tests/pass.rs of the command runs it"),
            Mark::at("$ clang++ $(rocov flags --clang clang++) --offload")
                .then("rocov run -o first -- ./app && rocov report first >/dev/null"),
            Mark::at("$ hipcc").then("rocov run -o second -- ./app && rocov report second >/dev/null"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/containers.md",
        marks: &[
            Mark::at("tools/dev/release").elsewhere("needs buildah: `tools/dev/release check container` runs it"),
            Mark::at("ADD rocov").elsewhere("lines of a Dockerfile"),
            Mark::at("podman run").elsewhere("needs podman and an AMD GPU"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/diff.md",
        setup: r#"
scale kernel.hip app
rocov run -o before -- ./app 256
for count in 256 100; do rocov run -o after -- ./app $count; done
for test in add scale; do rocov run --label unit/$test -- ./app; done
"#,
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/fleet.md",
        here: &[
            ("/fleet/coverage", "$HERE/fleet/coverage"),
            ("3f2a91c0b7", "$COMMIT"),
        ],
        varies: &[
            ("HERE/fleet", "/fleet"),
            (r"of commit [0-9a-f.]+", "of commit COMMIT"),
        ],
        setup: r#"
mkdir src
{ printf '//\n%.0s' {1..29}; cat examples/cmake/scale.hip; } >src/reduce.hip
git init -q
git add src
commit first
COMMIT=$(git rev-parse HEAD)
instrumented src/reduce.hip -o reduce
echo "add_test(full $HERE/reduce 256)" >CTestTestfile.cmake
"#,
        marks: &[
            Mark::at("$ ROCOV_PARTS= cargo install --path tools/rocov --features s3")
                .before("COMMIT=0123456789")
                .elsewhere("`tools/dev/fleet s3` runs a server of objects"),
            Mark::at("$ pip install duckdb").elsewhere("`tools/dev/fleet bench` runs DuckDB"),
            Mark::at("$ ROCOV_PARTS= cargo install --path tools/rocov --features query")
                .before("COMMIT=0123456789")
                .elsewhere("needs a feature that takes minutes to build: `tools/dev/fleet features`"),
            Mark::at("$ duckdb").elsewhere("`tools/dev/fleet bench` runs DuckDB"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/editors.md",
        setup: r"
scale app.hip app
rocov run -- ./app
",
        marks: &[
            Mark::at("$ tools/dev/release vsix").elsewhere("no VS Code is here"),
            Mark::at("$ rocov report --lcov").then("grep -q ^end_of_record lcov.info"),
            Mark::at("require(").elsewhere("no Neovim is here"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/formats.md",
        setup: r#"
cp examples/cmake/scale.hip app.hip
git init -q
git add app.hip
commit first
git update-ref refs/remotes/origin/main HEAD
sed -i 's/2.0f/2.0f * 1/' app.hip
git add app.hip
commit second
instrumented app.hip -o app
mkdir build
printf 'add_test(%s)\n' "full $HERE/app 256" "part $HERE/app 100" >build/CTestTestfile.cmake
export GITHUB_STEP_SUMMARY=$HERE/summary.md
for count in 256 100; do rocov run -- ./app $count; done
"#,
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/gates.md",
        setup: r#"
mkdir -p src/solver
cp examples/cmake/scale.hip src/solver/step.hip
git init -q
git add src
commit first
instrumented src/solver/step.hip -o app
rocov run -- ./app 256
"#,
        marks: &[
            Mark::at("[components.solver]")
                .is(Use::File("rocov.toml"))
                .then("rocov report | grep -q 'by component'"),
            Mark::at("Carried forward:").elsewhere("tests of the command have two architectures"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/hiprtc.md",
        needs: &[Need::Hip7],
        varies: &[("-IHERE/runtime/device", "-I/opt/rocov/include")],
        setup: r#"
clang++-22 $HIP7_FLAGS --offload-arch=gfx90a -std=c++17 testdata/programs/run_time/compiles.hip -lhiprtc -o compiles
printf '#!/bin/sh\nexec %s ./compiles\n' "$HIP7" >app
chmod +x app
"#,
        marks: &[
            Mark::at("$ export").then("rocov report >/dev/null"),
            Mark::at("std::vector")
                .before("printf '%s\\n' '#include <hip/hiprtc.h>' '#include <fstream>' '#include <string>' '#include <vector>' 'void f(hiprtcProgram program) {' >options.cpp")
                .is(Use::File("options.cpp"))
                .then("echo '}' >>options.cpp; clang++-22 -x hip $HIP7_FLAGS --cuda-host-only -fsyntax-only options.cpp"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/html.md",
        setup: "scale app.hip app; rocov run -- ./app 100",
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/instrument.md",
        marks: &[
            Mark::at("nvcc").elsewhere(NO_NVIDIA),
            Mark::at("rocov: 64 CUDA modules").elsewhere(NO_NVIDIA),
            Mark::at("rocov run --instrument --counters=reached").elsewhere(NO_NVIDIA),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/instrument-amd.md",
        setup: "cp examples/cmake/scale.hip app.hip",
        marks: &[
            Mark::at("$ hipcc").then("rocov report >/dev/null"),
            Mark::at("rocov: a code object of").elsewhere("needs a library for another GPU: tests/programs have one"),
            Mark::at("rocm_agent_enumerator").elsewhere("needs an AMD GPU"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/kernels.md",
        setup: r#"
instrumented testdata/sample/*.hip -o sample
rocov run -- ./sample
"#,
        varies: &[(r"(?m)^(gfx90a) +\d+ +\d+ ", "$1 REGISTERS ")],
        marks: &[Mark::at("ATTACH").elsewhere("needs a database of rocprofv3: tests/export of the command has one")],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/labels.md",
        setup: r#"
scale_library scale
cat >main.cpp <<'END'
int scale(int, char **);
extern "C" void run_the_test() { scale(1, nullptr); }
extern "C" void train_one_epoch() { scale(1, nullptr); }
END
"#,
        marks: &[Mark::at("#include").is(Use::File("statements.c")).then(
            r#"
{ grep '^#' statements.c; echo 'void run_the_test(void); void train_one_epoch(void); int main(void) {'
  grep -v '^#' statements.c; echo '}'; } >labels.c
clang-22 -Wall -Werror -Iruntime/include -c labels.c
g++ labels.o main.cpp -L. -lscale -Ltarget/release -lrocov -Wl,-rpath,$HERE:$HERE/target/release -o labels
rocov run -- ./labels
test "$(rocov report --per-test | grep -c '^scale \|^window\|^epoch 1')" -ge 1
"#,
        )],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/line-tables.md",
        needs: &[Need::Hip7],
        setup: r#"
sed 's,"../hip.h",<hip/hip_runtime.h>,' testdata/programs/traced/kernels.hip >kernels.hip
clang++-22 $HIP7_FLAGS --offload-arch=gfx90a -O1 -gline-tables-only kernels.hip -o kernels
rocov run --trace -- $HIP7 ./kernels
"#,
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/long-running.md",
        setup: r#"
instrumented testdata/programs/on_request/server.hip -o server-program
mkfifo requests
exec 9<>requests
cat >server <<'END'
#!/bin/sh
echo $$ >server.pid
exec ./server-program default <requests >answers
END
chmod +x server
# It is there when it has launched a kernel.
stand_in pgrep 'echo "launch 1" >requests; until [ -s answers ]; do sleep 0.05; done; cat server.pid'
# A launch in the window.
{ until grep -qs . server.pid && rocov status "$(cat server.pid)" --json 2>&1 | grep -q '"peak"'; do sleep 0.1; done
  echo "launch 1" >requests; } >/dev/null 2>&1 &
"#,
        here: &[("9780", "$(cat server.pid)")],
        varies: &[
            (r"process +\d+:", "process PID:"),
            ("HERE/rocov-data|/tmp/server/rocov-data", "DATA"),
        ],
        marks: &[Mark::at("$ rocov run").then("echo quit >requests; wait")],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/meson.md",
        setup: r#"
cp examples/cmake/scale.hip scale.cpp
echo "project('scale', 'cpp')" >meson.build
"#,
        marks: &[Mark::at("rocov = ").is(Use::File("meson.build"))],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/nvidia.md",
        marks: &[Mark::at("clang++-22").elsewhere(NO_NVIDIA)],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/openmp.md",
        needs: &[Need::OpenMp],
        setup: r#"
cp testdata/programs/openmp/regions.h .
sed 's, // [a-z]*$,,' testdata/programs/openmp/regions.cpp >regions.cpp
stand_in clang++ 'exec clang++-22 -mcode-object-version=5 --rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode "$@" $OPENMP_FLAGS'
"#,
        marks: &[
            Mark::at("   24|").is(Use::Output),
            Mark::at("ARCH ").is(Use::Output),
        ],
        varies: &[(r"(?m)^(gfx90a) +\d+ +\d+ ", "$1 REGISTERS ")],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/per-test.md",
        setup: r#"
instrumented -fPIC -shared -I testdata/sample testdata/sample/statistics.hip \
  testdata/programs/per_test/calls.hip -o libstatistics.so
instrumented examples/cmake/scale.hip -o scale
stand_in pip true
export PYTHONPATH=$HERE/tools/python/pytest-plugin PYTHONDONTWRITEBYTECODE=1 STATISTICS_LIBRARY=$HERE/libstatistics.so
export PYTEST_ADDOPTS="-p rocov_pytest -p no:cacheprovider testdata/programs/per_test"
"#,
        marks: &[
            Mark::at("#include <rocov_gtest.h>")
                .is(Use::File("labels.h"))
                .then("g++ -O1 -I runtime/include -I testdata/programs/per_test -include labels.h testdata/programs/per_test/suite.cpp \
                       libstatistics.so -Wl,-rpath,$HERE -lgtest_main -lgtest -o suite"),
            Mark::at("cmake -B build").elsewhere("tests/integrations configures such a project"),
            Mark::at("$ rocov run --gpu").before("rocov clean >/dev/null"),
            Mark::at("rocov report --label add").before(
                "rocov clean >/dev/null; for test in add unit/add unit/scale; do rocov run --label $test -- ./scale 100; done",
            ),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/pgo.md",
        setup: r#"
cp testdata/sample/debian12.* .
sed 's,"../hip.h",<hip/hip_runtime.h>,' testdata/programs/pgo/calibrate.hip >calibrate.hip
"#,
        varies: &[("/src/app", "HERE")],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/plugin.md",
        marks: &[
            Mark::at("$ rocov pass build").elsewhere("takes half a minute: tests/pass.rs of the command runs it"),
            Mark::at("$ ROCOV_PASS_CLANGS").elsewhere("needs ROCm's own packages"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/project-file.md",
        messages: &["matches no source"],
        marks: &[Mark::at("[run]").before("rm rocov.toml").is(Use::File("rocov.toml")).then(
            "scale app.hip app
rocov run --gpu model -- ./app 100
rocov report --html pages >/dev/null",
        )],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/python.md",
        setup: r#"
scale_library scale
stand_in python 'exec /usr/bin/python3 "$@"'
cat >train.py <<'END'
import ctypes
scale = ctypes.CDLL("./libscale.so")._Z5scaleiPPc
scale(1, None)
END
cat >module.py <<'END'
from train import scale

def load_data():
    scale(1, None)

class Loss:
    def backward(self):
        scale(1, None)

def model(batch):
    scale(1, None)

batch = None
END
export PYTHONPATH=$HERE/tools/python PYTHONDONTWRITEBYTECODE=1
"#,
        marks: &[Mark::at("import rocov").is(Use::File("module.py")).then(
            r#"
echo 'backward(Loss())' >>module.py
rocov run -o of-module -- python module.py
rocov report of-module --per-test >per-test
grep -q '^forward ' per-test && grep -q '^backward ' per-test
"#,
        )],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/python-kernels.md",
        marks: &[
            Mark::at("pip install rocov").elsewhere("tools/packaging/check installs the wheel"),
            Mark::at("[tool.coverage.run]").is(Use::File("pyproject.toml")),
            Mark::at("pytest --cov").elsewhere("the tests of the wheel run pytest-cov"),
            Mark::at("$ rocov run --instrument").elsewhere(NO_NVIDIA),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/python-kernels-details.md",
        marks: &[
            Mark::at("$ rocov run --instrument").elsewhere(NO_NVIDIA),
            Mark::at("rocov: /home/ada/kernels.py").elsewhere(NO_NVIDIA),
            Mark::at("$ rocov report --per program").elsewhere(NO_NVIDIA),
            Mark::at("rocov: 2 CUDA modules of CuPy").elsewhere(NO_NVIDIA),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/ranks.md",
        setup: r#"
scale app.hip app
for rank in 0 1; do rocov run -o rocov-data/$rank -- ./app; done
stand_in mpirun 'shift 2
export OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK
for OMPI_COMM_WORLD_RANK in 0 1 2; do "$@" || exit; done'
stand_in sbatch 'export SLURM_ARRAY_TASK_ID
case $1 in
--parsable) for SLURM_ARRAY_TASK_ID in $(seq 0 31); do sh "$2" >&2 || exit; done; echo 7 ;;
*) sh -c "${*: -1}" ;;
esac'
"#,
        marks: &[
            Mark::at("#!/bin/sh").is(Use::File("merge.sbatch")),
            Mark::at("array=").before("rm -r merged"),
            Mark::at("mpirun").before("rm -r merged pooled rocov-data"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/report.md",
        needs: &[Need::Hip7, Need::Clang23],
        setup: r#"
export HOME=$HERE
instrumented testdata/sample/*.hip -o sample
rocov run -- ./sample
"#,
        marks: &[
            Mark::at("$ rocov report --show src/kernel.hip").before(
                r#"
mkdir -p project/src
cp examples/cmake/scale.hip project/src/kernel.hip
cd project
git init -q
git add src
commit first
git tag v1.2
instrumented src/kernel.hip -o app
rocov run --gpu model -- ./app
echo >src/kernel.hip
"#,
            ).then("cd .."),
            Mark::at("rocov: /build/a/src").elsewhere("needs two checkouts: tests of the command make them"),
            Mark::at("$ rocov report --uniformity").before(
                r#"
rocov clean >/dev/null
$CLANG23 $CLANG23_FLAGS $(rocov flags --clang $CLANG23 --uniformity) --offload-arch=gfx942 -O1 testdata/programs/uniformity/shares.hip -o shares
rocov run --gpu model:gfx942 -- $HIP7 ./shares
"#,
            ),
            Mark::at("$ rocov report --markdown").before(
                r#"
rocov clean >/dev/null
cp testdata/programs/archs/quantise.hip .
clang++-22 $HIP7_FLAGS $(rocov flags --clang clang++-22) --offload-arch=gfx90a --offload-arch=gfx942 -O1 quantise.hip -o quantise
for gpu in gfx90a gfx942; do rocov run --gpu "model:$gpu" -- $HIP7 ./quantise; done
"#,
            ),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/run.md",
        setup: r#"
scale app.hip all_reduce
printf '#!/bin/sh\nexec ./all_reduce\n' >app
chmod +x app
"#,
        messages: &["nothing was drained"],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/therock.md",
        setup: r#"
scale_library rocfft -fcoverage-prefix-map=$HERE=/build/rocm-libraries
echo 'int rocfft(int, char **); int main(int count, char **words) { return rocfft(count, words); }' >main.cpp
g++ main.cpp -L. -lrocfft -Wl,-rpath,$HERE -o rocfft-test
mkdir tests-of-rocfft
echo "add_test(full $HERE/rocfft-test 256)" >tests-of-rocfft/CTestTestfile.cmake
export GITHUB_WORKSPACE=$HERE GITHUB_STEP_SUMMARY=$HERE/summary.md TEST_COMPONENT=rocfft SHARD=1 TEST_DIR=tests-of-rocfft
"#,
        messages: &["/clients/ matches no source"],
        marks: &[
            Mark::at("rocov report shards").before("unset LLVM_PROFILE_FILE; mkdir shards; mv coverage-report shards/1"),
            Mark::at("python examples/therock").elsewhere("tests/integrations/pipelines.rs runs it on an installed tree"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/architectures.md",
        needs: &[Need::Hip7],
        setup: r#"
stand_in llvm-cov 'exec llvm-cov-22 "$@"'
stand_in llvm-profdata 'exec llvm-profdata-22 "$@"'
"#,
        here: &[
            (
                "clang++ $(rocov flags --clang clang++) --offload-arch",
                "clang++-22 $(rocov flags --clang clang++-22) $HIP7_FLAGS --offload-arch",
            ),
            ("-- ./pick", "-- $HIP7 ./pick"),
        ],
        marks: &[
            Mark::at("// pick.hip").is(Use::File("pick.hip")),
            Mark::at("// first.hip").is(Use::File("first.hip")),
            Mark::at("// part.h").is(Use::File("part.h")),
            Mark::at("// one.hip").is(Use::File("one.hip")),
            Mark::at("// two.hip").is(Use::File("two.hip")),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/selftest.md",
        setup: r#"
printf '#!/bin/bash\nkept=()\nfor word; do\n  case $word in\n    -fprofile-*|-fcoverage-*) unset "kept[-1]" ;;\n    *) kept+=("$word") ;;\n  esac\ndone\nexec clang++-22 "${kept[@]}"\n' >wrapper
chmod +x wrapper
"#,
        varies: &[
            (r"(?m)^(ok       flags: -Xarch_device \S+) .*", "$1 ..."),
            (r"(?m)^(ok       compile: `\S+) .*", "$1 ...`"),
            (
                r"(?m)^(ok       instrumentation: gfx90a) .*(: front-end instrumentation, raw version 10,) .*(, coverage mapping)$",
                "$1 ...$2 ...$3",
            ),
            (r"profile of \S+ bytes", "profile of ... bytes"),
            (r"The command was .*", "The command was ..."),
        ],
        marks: &[
            Mark::at("$ rocov selftest --gpu model --clang clang++-22 --compiler ./wrapper")
                .before("set +e")
                .then("set -e"),
        ],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/trace.md",
        setup: "cp examples/cmake/scale.hip app.hip",
        marks: &[Mark::at("$ hipcc").then("rocov report >/dev/null")],
        ..Page::NONE
    },
    Page {
        path: "docs/src/guides/without-run.md",
        setup: r#"
cp examples/cmake/scale.hip app.hip
instrumented -c app.hip -o app.o
# As `rocov run --gpu model` does for its program.
app_on_model() { ROCOV_MODELGPU=gfx90a LD_PRELOAD=$HERE/target/release/librocov_modelgpu.so ./app; }
"#,
        here: &[("./app", "app_on_model")],
        marks: &[Mark::at("$ ROCP_TOOL_LIBRARIES").elsewhere("needs rocprofiler-sdk, which Debian does not have")],
        ..Page::NONE
    },
];

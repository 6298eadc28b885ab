//! The code objects for the decoder test: the device code of every HIP source that this
//! repository's tests run on the modelled GPU.

use std::path::{Path, PathBuf};

use modelgpu_amdgcn::Target;
use modelgpu_testing::{has_all_levels, repository, text, tool};

/// The needs of a source's compilation.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// Only the compiler.
    Nothing,
    /// HIP's headers and device libraries.
    Hip,
}

/// A source and a way to compile it.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) source: PathBuf,
    pub(crate) needs: Needs,
    pub(crate) target: Target,
    pub(crate) level: &'static str,
}

const LEVELS: &[&str] = &["-O0", "-O1", "-O2"];
/// HIP's headers take most of the compile time and are most of the code at -O0. To compile them
/// into every small program at every level would take minutes and show nothing new.
const ONE_LEVEL: &[&str] = &["-O1"];

const FOLDERS: [(&str, Needs, &[&str]); 8] = [
    ("testdata/kernels", Needs::Nothing, LEVELS),
    ("testdata/faults", Needs::Nothing, LEVELS),
    ("testdata/sample", Needs::Hip, LEVELS),
    ("testdata/programs/endings", Needs::Hip, ONE_LEVEL),
    ("testdata/programs/found", Needs::Hip, ONE_LEVEL),
    ("testdata/programs/upstream", Needs::Hip, ONE_LEVEL),
    (
        "tools/modelgpu/amdgcn/tests/compiled",
        Needs::Nothing,
        LEVELS,
    ),
    ("tools/modelgpu/kfd/tests/programs", Needs::Hip, LEVELS),
];

/// The targets that Debian 12's HIP compiles for.
const HIP_TARGETS: &[Target] = &[Target::Gfx90a, Target::Gfx942];
/// The other ones.
const MORE_TARGETS: &[Target] = &[
    Target::Gfx1100,
    Target::Gfx950,
    Target::Gfx1201,
    Target::Gfx908,
    Target::Gfx906,
    Target::Gfx1250,
    Target::Gfx1030,
];

/// The objects, the slowest to compile first. A source that includes HIP has one of its levels in turn, on one of
/// HIP's targets. A source without HIP has its levels on one of HIP's targets after the other, and one level on one
/// of the other targets too. If `ROCOV_TEST_LEVELS` is `all`, each has all targets at each level: compilers take nearly
/// all of the time.
pub(crate) fn objects() -> Vec<Object> {
    let has_all = has_all_levels();
    let mut objects = Vec::new();
    for (folder, needs, levels) in FOLDERS.into_iter().rev() {
        for (place, source) in hip_sources(folder).into_iter().enumerate() {
            for (number, level) in levels.iter().copied().enumerate() {
                let more = match needs {
                    Needs::Nothing => MORE_TARGETS,
                    Needs::Hip => &[],
                };
                // One source has data-parallel primitives that RDNA lacks, another one matrix products.
                let is_for_cdna =
                    source.ends_with("compiled/waves.hip") || source.ends_with("mfma.hip");
                let more: Vec<Target> = more
                    .iter()
                    .copied()
                    .filter(|target| {
                        !is_for_cdna || matches!(target, Target::Gfx950 | Target::Gfx908)
                    })
                    .collect();
                let is_level = place % levels.len() == number;
                let is_turn = [is_level || matches!(needs, Needs::Nothing), is_level];
                for (targets, is_turn) in [HIP_TARGETS, &more].into_iter().zip(is_turn) {
                    for (turn, target) in targets.iter().copied().enumerate() {
                        if has_all || is_turn && (place + number) % targets.len() == turn {
                            let source = source.clone();
                            objects.push(Object {
                                source,
                                needs,
                                target,
                                level,
                            });
                        }
                    }
                }
            }
        }
    }
    objects
}

fn hip_sources(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository(folder));
    let entries = entries.unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut sources: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hip"))
        // Thousands of copies of one statement: no new instruction, and a third of the time of all compilations.
        .filter(|path| !path.ends_with("many_counters.hip"))
        .collect();
    sources.sort();
    assert!(!sources.is_empty(), "no HIP source in {folder}");
    sources
}

impl Object {
    /// The object's name in a message.
    pub(crate) fn name(&self) -> String {
        let Self { target, level, .. } = self;
        format!("{} {target} {level}", self.source.display())
    }

    /// Compiles the device code into the file `output`.
    pub(crate) fn compile(&self, output: &Path) {
        let target = format!("--offload-arch={}", self.target);
        let header = repository("runtime/device/rocov_device.h");
        let kernels = repository("testdata/kernels");
        let mut arguments = vec![
            "-x",
            "hip",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-std=c++17",
            self.level,
            "-mcode-object-version=4",
            "-fprofile-instr-generate",
            "-fcoverage-mapping",
            "-fprofile-update=atomic",
            // One program may contain a source several times, under different numbers.
            "-DUNIT=1",
            // The kernels' own small header, for kernels in other folders.
            "-I",
            text(&kernels),
            "-include",
            text(&header),
        ];
        // Debian 12's HIP does not run on gfx942, and its device libraries have no constants for
        // it. But its headers and bitcode compile with gfx90a's constants. Those constants only
        // choose between instructions of the library, which is all that counts here.
        let config = format!(
            "--config={}",
            text(&repository("testdata/sample/debian12.cfg"))
        );
        match self.needs {
            Needs::Nothing => arguments.extend(["-nogpuinc", "-nogpulib"]),
            Needs::Hip => arguments.extend([config.as_str(), "--no-offload-arch=all"]),
        }
        arguments.extend([target.as_str(), text(&self.source), "-o", text(output)]);
        tool("clang++-22", &arguments);
    }
}

//! Compiles programs of NVIDIA/cuda-samples, with the flags of their own release builds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::{limited, run};
use crate::support::compile::{Compilation, clang};
use crate::{Pack, TARGET, Way, fresh};

/// The folder of a program in a checkout, and its arguments: those that keep the host's own computation short.
/// Each needs only CUDA's runtime, and ends with a status or a message that tells whether its results are right.
pub(crate) const PROGRAMS: [(&str, &str); 15] = [
    ("0_Introduction/matrixMul", ""),
    ("2_Concepts_and_Techniques/convolutionSeparable", ""),
    ("2_Concepts_and_Techniques/dct8x8", ""),
    ("2_Concepts_and_Techniques/eigenvalues", ""),
    ("2_Concepts_and_Techniques/histogram", ""),
    ("2_Concepts_and_Techniques/reduction", ""),
    ("2_Concepts_and_Techniques/scalarProd", ""),
    ("2_Concepts_and_Techniques/scan", ""),
    ("2_Concepts_and_Techniques/sortingNetworks", ""),
    ("5_Domain_Specific/BlackScholes", ""),
    (
        "5_Domain_Specific/FDTD3d",
        "--dimx=256 --dimy=256 --dimz=256",
    ),
    (
        "5_Domain_Specific/SobolQRNG",
        "--vectors=100000 --dimensions=1000",
    ),
    ("5_Domain_Specific/binomialOptions", ""),
    ("5_Domain_Specific/fastWalshTransform", ""),
    ("5_Domain_Specific/quasirandomGenerator", ""),
];

impl Pack {
    /// Compiles the programs of a checkout, in each way of counting.
    pub(crate) fn samples(&self, checkout: &Path) {
        for (folder, arguments) in PROGRAMS {
            let program = Program::new(checkout, folder);
            let directory = fresh(&format!("samples/{}", program.name));
            fs::write(directory.join("arguments"), arguments).expect("a file can be written");
            for way in Way::ALL {
                self.link(&program, way, &directory.join(way.name()));
            }
            program.copy_data(&directory);
        }
    }

    fn link(&self, program: &Program, way: Way, output: &Path) {
        let mut link = limited(clang());
        link.arg("-s").args(
            program
                .sources
                .iter()
                .map(|source| self.object(program, source, way)),
        );
        // A preloaded library can only come before a shared runtime. tools/dev/hardware puts the libraries into
        // the root of the pack.
        link.arg("-L").arg(self.cuda.join("lib"));
        link.args(["-l:libcudart.so.12", "-Wl,-rpath,$ORIGIN/../.."]);
        run(link.arg("-o").arg(output)).success();
    }

    /// A source as an object file. Only device code counts.
    fn object(&self, program: &Program, source: &Path, way: Way) -> PathBuf {
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        let host = |compilation: Compilation| {
            program
                .includes(compilation)
                .arguments(["-c", "-std=c++17", "-w"])
        };
        if source.extension().is_none_or(|extension| extension != "cu") {
            return host(Compilation::usual())
                .arguments(["-I".into(), self.cuda.join("include")])
                .source(source)
                .output(&name);
        }
        let device = program.includes(self.ptx()).arguments(["-w"]);
        let ptx = way
            .in_device_code(device)
            .source(source)
            .output(&format!("{name}.{TARGET}.{}", way.name()));
        let beside = |extension: &str| PathBuf::from(format!("{}.{extension}", ptx.display()));
        let cubin = beside("cubin");
        self.assemble(&ptx, &cubin);
        let fat = beside("fatbin");
        let mut fatbinary = limited(self.cuda.join("bin/fatbinary"));
        let image = format!(
            "--image3=kind=elf,sm={},file={}",
            TARGET.trim_start_matches("sm_"),
            cubin.display()
        );
        fatbinary.args(["--64", &image, "--create"]).arg(&fat);
        run(&mut fatbinary).success();
        host(Compilation::usual())
            .arguments(["-x", "cuda", "--cuda-host-only"])
            .arguments(["--cuda-path=".to_owned() + &self.cuda.to_string_lossy()])
            .arguments(["-Wno-unknown-cuda-version"])
            .arguments(["-Xclang", "-fcuda-include-gpubinary", "-Xclang"])
            .source(fat)
            .source(source)
            .output(&format!("{name}.{}.o", way.name()))
    }
}

/// A program of a checkout.
struct Program {
    name: String,
    folder: PathBuf,
    common: PathBuf,
    sources: Vec<PathBuf>,
}

impl Program {
    fn new(checkout: &Path, folder: &str) -> Self {
        let folder = checkout.join("Samples").join(folder);
        let inner = folder.join("src");
        let listed = if inner.is_dir() { &inner } else { &folder };
        let entries = fs::read_dir(listed)
            .unwrap_or_else(|error| panic!("cannot list {}: {error}", listed.display()));
        let mut sources: Vec<PathBuf> = entries
            .map(|entry| entry.expect("a folder can be listed").path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "cu" || extension == "cpp")
            })
            .collect();
        sources.sort();
        Self {
            name: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            common: checkout.join("Common"),
            folder,
            sources,
        }
    }

    fn includes(&self, compilation: Compilation) -> Compilation {
        compilation
            .arguments(["-O3", "-I"])
            .arguments([&self.folder])
            .arguments(["-I".into(), self.folder.join("inc")])
            .arguments(["-I".into(), self.common.clone()])
    }

    /// Copies the files that the program reads. It looks for them in a folder `data` next to itself.
    fn copy_data(&self, directory: &Path) {
        let Ok(files) = fs::read_dir(self.folder.join("data")) else {
            return;
        };
        let copy = directory.join("data");
        fs::create_dir_all(&copy).expect("the folder of the pack can be written");
        for file in files {
            let file = file.expect("a folder can be listed");
            fs::copy(file.path(), copy.join(file.file_name())).expect("a file can be copied");
        }
    }
}

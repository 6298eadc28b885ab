//! CUDA programs and fat binaries as files: what `rocov extract`, `rocov show`, `rocov doctor` and `rocov report` say of
//! them. Nothing is run.

use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::drain::ZeroWriter;
use rocov::format::profraw::RawProfile;
use rocov::settings::Keeping;
use rocov::store::layout::DataLayout;
use tempfile::TempDir;

use crate::support::artifacts::{built, names, repository};
use crate::support::command::{limited, run};
use crate::support::compile::device_only;
use crate::support::cuda::{assembled, counting, to_ptx, toolkit};
use crate::support::profile::{merge, raw_profiles};

/// The options of `fatbinary` for each way of compression.
const WAYS: [&[&str]; 4] = [
    &["--compress=false"],
    &["--compress-all", "--compress-mode=speed"],
    &["--compress-all", "--compress-mode=size"],
    &["--compress-all", "--ident=a/source.cu", "--cmdline=-O3"],
];

const SOURCE: &str = "testdata/programs/code_objects/cuda.cu";

/// PTX and cubins of cuda.cu.
struct Images {
    toolkit: PathBuf,
    directory: TempDir,
    ptx: PathBuf,
    cubins: Vec<PathBuf>,
}

impl Images {
    /// `None` if CUDA is not unpacked.
    fn new(counts: bool) -> Option<Self> {
        let toolkit = toolkit()?;
        let directory = tempfile::tempdir().expect("a directory");
        let ptx = |target: &str| {
            let compilation = to_ptx(&toolkit, target, "-O1");
            let compilation = if counts {
                counting(compilation)
            } else {
                compilation
            };
            let compilation = compilation.source(repository(SOURCE));
            compilation.output(&format!("cuda.{target}"))
        };
        let cubin = |target: &str| {
            let arch = format!("-arch={target}");
            let ptx = ptx(target);
            assembled(&toolkit, "ptxas-13", &ptx, &[&arch], directory.path()).0
        };
        let cubins = ["sm_90a", "sm_80"].map(cubin).to_vec();
        Some(Self {
            ptx: ptx("sm_90"),
            cubins,
            toolkit,
            directory,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn tool(&self, name: &str) -> Command {
        limited(self.toolkit.join("bin").join(name))
    }

    /// A fat binary of all images.
    fn fat_binary(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let image = |kind: &str, sm: &str, path: &Path| {
            format!("--image3=kind={kind},sm={sm},file={}", path.display())
        };
        let mut fatbinary = self.tool("fatbinary");
        fatbinary
            .arg("--64")
            .arg("--create")
            .arg(&path)
            .args(options);
        fatbinary.arg(image("elf", "90", &self.cubins[0]));
        fatbinary.arg(image("elf", "80", &self.cubins[1]));
        fatbinary.arg(image("ptx", "90", &self.ptx));
        run(&mut fatbinary).success();
        path
    }

    /// An object file with `fat_binary`, as clang embeds it.
    fn object(&self, fat_binary: &Path) -> PathBuf {
        let (source, object) = (self.path("host.s"), self.path("host.o"));
        let text = format!(
            ".section .nv_fatbin,\"a\"\n.p2align 3\nfat: .incbin \"{}\"\n\
             .section .nvFatBinSegment,\"aw\"\n.p2align 3\n.long 0x466243b1, 1\n.quad fat, 0\n",
            fat_binary.display()
        );
        std::fs::write(&source, text).expect("a file can be written");
        let mut clang = limited("clang-22");
        run(clang.arg("-c").arg(&source).arg("-o").arg(&object)).success();
        object
    }
}

fn rocov(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Command {
    let mut rocov = limited(built("rocov"));
    rocov.args(arguments.iter().map(AsRef::as_ref));
    rocov
}

/// The contents of all files in a directory with this extension, in an order of their own.
fn contents(directory: &Path, extension: &str) -> Vec<Vec<u8>> {
    let names = names(directory).into_iter();
    let files = names.filter(|name| name.ends_with(extension));
    let mut contents: Vec<_> = files
        .map(|file| std::fs::read(directory.join(file)).expect("a file"))
        .collect();
    contents.sort_unstable();
    contents
}

#[test]
fn extract_gives_what_nvidias_tools_packed() {
    let Some(images) = Images::new(true) else {
        return;
    };
    let mut cubins: Vec<_> = images
        .cubins
        .iter()
        .map(|cubin| std::fs::read(cubin).expect("a cubin"))
        .collect();
    cubins.sort_unstable();
    for (number, options) in WAYS.iter().enumerate() {
        let fat_binary = images.fat_binary(&format!("{number}.fatbin"), options);
        // fatbinary blanks comments in PTX, so cuobjdump tells what it packed.
        let theirs = images.path(&format!("{number}.theirs"));
        std::fs::create_dir(&theirs).expect("a new directory");
        let mut cuobjdump = images.tool("cuobjdump");
        cuobjdump
            .current_dir(&theirs)
            .args(["-xptx", "all"])
            .arg(&fat_binary);
        run(&mut cuobjdump).success();
        let ptx = contents(&theirs, ".ptx");
        assert_eq!(ptx.len(), 1, "{options:?}");
        for file in [fat_binary.clone(), images.object(&fat_binary)] {
            let ours = images.path("ours");
            run(&mut rocov(&[&"extract", &file, &"-o", &ours]))
                .success()
                .silently();
            assert!(contents(&ours, ".elf") == cubins, "{options:?}");
            let found = contents(&ours, ".ptx");
            assert_eq!(found.len(), 1);
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes)
                    .trim_end_matches(['\0', '\n'])
                    .to_owned()
            };
            assert_eq!(text(&found[0]), text(&ptx[0]), "{options:?}");
            std::fs::remove_dir_all(&ours).expect("the directory was made");
        }
        let listed = run(&mut rocov(&[&"extract", &"--list", &fat_binary]))
            .success()
            .stdout;
        let targets: Vec<_> = listed
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(targets, ["compute_90", "sm_90a", "sm_80"]);
    }
}

#[test]
fn show_names_kernels_and_what_counts() {
    let Some(images) = Images::new(true) else {
        return;
    };
    let fat_binary = images.fat_binary("fat", &[]);
    let said = run(&mut rocov(&[&"show", &fat_binary])).success().stdout;
    for part in [
        "CUDA fat binary of",
        "--sm_90a: ",
        "3 kernels, instrumented",
        "--compute_90: ",
        "PTX, instrumented",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = run(&mut rocov(&[&"show", &images.cubins[0]]))
        .success()
        .stdout;
    for part in [
        "target        sm_90a",
        "instrumented  yes",
        "registers  shared",
        "spilling<60>(float*, int)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn doctor_tells_code_of_nvcc_from_code_that_counts() {
    let (Some(plain), Some(counting)) = (Images::new(false), Images::new(true)) else {
        return;
    };
    let doctor = |images: &Images| {
        let object = images.object(&images.fat_binary("fat", &[]));
        run(&mut rocov(&[&"doctor", &object])).stdout
    };
    let said = doctor(&plain);
    assert!(said.contains("2 code objects, none instrumented"), "{said}");
    let remedy = "compile it with clang, not nvcc, and with the flags that `rocov flags --offload-arch=sm_90a` prints";
    assert!(said.contains(remedy), "{said}");
    let said = doctor(&counting);
    assert!(!said.contains("not instrumented"), "{said}");
    assert!(
        said.contains("raw version 10, LLVM's own counters, coverage mapping"),
        "{said}"
    );
}

#[test]
fn doctor_knows_ptx_that_the_driver_compiles() {
    for (counts, expected) in [(false, "not instrumented"), (true, ": instrumented")] {
        let Some(images) = Images::new(counts) else {
            return;
        };
        let path = images.path("ptx.fatbin");
        let mut fatbinary = images.tool("fatbinary");
        fatbinary.arg("--64").arg("--create").arg(&path);
        fatbinary.arg(format!(
            "--image3=kind=ptx,sm=90,file={}",
            images.ptx.display()
        ));
        run(&mut fatbinary).success();
        let said = run(&mut rocov(&[&"doctor", &path])).stdout;
        let line = said
            .lines()
            .find(|line| line.contains("PTX for compute_90"));
        assert!(line.is_some_and(|line| line.contains(expected)), "{said}");
    }
}

/// The counts of lines in a tracefile of lcov.
fn lines(tracefile: &str) -> Vec<&str> {
    let lines = tracefile.lines();
    lines.filter(|line| line.starts_with("DA:")).collect()
}

/// Planted counts, and the same source for an AMD GPU, whose ELF llvm-cov reads.
#[test]
fn a_report_on_a_fat_binary_has_the_lines_of_llvm_cov() {
    let Some(images) = Images::new(true) else {
        return;
    };
    let agent = Agent {
        handle: 0,
        index: 0,
        name: "sm_90".to_owned(),
        isa: None,
        uuid: None,
        node: None,
    };
    let cubin = std::fs::read(&images.cubins[0]).expect("a cubin");
    let device = AtRest::new(agent, "a cubin".to_owned(), cubin).expect("a cubin");
    let data = images.path("data");
    let keeping = Keeping::default();
    let written = ZeroWriter::new(DataLayout::from_data(&data), keeping, 0).write(&device);
    assert!(
        written.outcome.losses.is_empty(),
        "{:?}",
        written.outcome.losses
    );
    let profiles = raw_profiles(&data);
    let [profile] = &profiles[..] else {
        panic!("{profiles:?}");
    };
    let mut raw = std::fs::read(profile).expect("a profile");
    let counters = RawProfile::parse(&raw)
        .expect("a profile")
        .sections
        .counters;
    // Each is more than all later ones together, so that no difference of counts is negative. llvm-profdata takes no
    // counts from 2^56 on.
    for (number, word) in raw[counters].chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(1_u64 << 50 >> number).to_le_bytes());
    }
    std::fs::write(profile, raw).expect("the profile can be written");

    let elf = device_only("clang++-22", &["gfx90a"], 5)
        .arguments(["-O1", "-Xclang", "-fprofile-instrument=clang"])
        .arguments(["-Xclang", "-fcoverage-mapping"])
        .source(repository(SOURCE))
        .output("cuda.gfx90a");
    let merged = images.path("merged.profdata");
    merge(&profiles, &merged);
    let mut llvm_cov = limited("llvm-cov-22");
    llvm_cov.args(["export", "-format=lcov"]).arg(elf);
    let theirs = run(llvm_cov.arg("-instr-profile").arg(&merged))
        .success()
        .stdout;

    let object = images.object(&images.fat_binary("fat", &["--compress-all"]));
    let mut report = rocov(&[
        &"report",
        &data,
        &"--object",
        &object,
        &"--lcov",
        &"--as-llvm-cov",
    ]);
    let ours = run(&mut report).success().stdout;
    assert!(lines(&theirs).len() > 20, "{theirs}");
    assert_eq!(lines(&ours), lines(&theirs), "{ours}");
}

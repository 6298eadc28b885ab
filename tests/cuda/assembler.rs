//! The stand-in for ptxas, called as Triton does (`triton/backends/nvidia/compiler.py`). NVIDIA's ptxas is the real one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Object;
use object::read::elf::ElfFile64;
use tempfile::TempDir;

use crate::instrument::{Uncounted, data, identities, lines, numbered};
use crate::setup::{counters, counts, profiles, step};
use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};

/// A folder of Triton for one kernel, and a place for a cache.
struct Assembly {
    uncounted: Uncounted,
    place: TempDir,
}

impl Assembly {
    /// `None` if there is no ptxas.
    fn new(change: impl FnOnce(&str) -> String) -> Option<Self> {
        let uncounted = Uncounted::get()?;
        let place = data();
        fs::write(place.path().join("kernel.ptx"), change(&uncounted.text))
            .expect("it can be written");
        Some(Self { uncounted, place })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// The PTX as Triton has written it.
    fn text(&self) -> String {
        fs::read_to_string(self.path("kernel.ptx")).expect("it was written")
    }

    fn stand_in(&self, cache: &Path) -> Command {
        let mut command = limited(built("rocov-ptxas"));
        command.env("ROCOV_PTXAS", self.uncounted.tool("ptxas"));
        command.env("ROCOV_CACHE", cache);
        command
    }

    /// Has `assembler` make a cubin with this name.
    fn assemble(&self, mut assembler: Command, cubin: &str) -> Ended {
        self.assemble_by(&mut assembler, cubin)
    }

    fn assemble_by(&self, assembler: &mut Command, cubin: &str) -> Ended {
        assembler.args(["-lineinfo", "-v", "--gpu-name=sm_90"]);
        assembler.arg(self.path("kernel.ptx"));
        run(assembler.arg("-o").arg(self.path(cubin)))
    }

    /// Has the real assembler do so.
    fn really(&self, cubin: &str) -> Ended {
        self.assemble(limited(self.uncounted.tool("ptxas")), cubin)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("it was made")
    }
}

/// The lines that rocov has printed, and those of others.
fn split(ended: &Ended) -> (Vec<&str>, Vec<&str>) {
    let lines = ended.stderr.lines();
    lines.partition(|line| line.starts_with("rocov: "))
}

#[test]
fn a_kernel_of_triton_counts_and_keeps_its_ptx() {
    let with_lines = |text: &str| {
        let at = text.find("ld.param").expect("it has parameters");
        format!(
            "{}.loc 1 7 0\n\t{}\n.file 1 \"kernel.py\"\n",
            &text[..at],
            &text[at..]
        )
    };
    let Some(assembly) = Assembly::new(with_lines) else {
        return;
    };
    let ours = assembly
        .assemble(assembly.stand_in(&assembly.cache()), "kernel.cubin")
        .success();
    // Triton prints what ptxas tells of registers.
    let (rocovs, others) = split(&ours);
    assert!(rocovs.is_empty(), "{ours}");
    assert!(others.iter().any(|line| line.contains("Used ")), "{ours}");
    let mut left: Vec<_> = fs::read_dir(assembly.place.path())
        .expect("it can be listed")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["cache", "kernel.cubin", "kernel.ptx"]);
    let text = assembly.text();
    let (plant, expected) = numbered(&text);
    let all: usize = expected.iter().map(|(_, blocks)| blocks.len()).sum();
    let cubin = assembly.path("kernel.cubin");
    let found: Vec<u64> = counters(&cubin).iter().map(|(_, count)| *count).collect();
    assert_eq!(found, [all as u64]);
    let bytes = assembly.bytes("kernel.cubin");
    let elf = ElfFile64::<object::LittleEndian>::parse(&*bytes).expect("a cubin");
    assert!(elf.section_by_name(".debug_line").is_some());

    let data = data();
    let mut command = assembly
        .uncounted
        .command(data.path(), &[step("data", &cubin), plant.clone()]);
    let ended = run(command.env("ROCOV_CACHE", assembly.cache())).success();
    assert_eq!(lines(&ended, "uncounted").len(), 0, "{ended}");
    let found = counts(&profiles(data.path()), data.path());
    for (name, blocks) in &expected {
        assert_eq!(&found[name], blocks, "{name}");
    }
    let objects = data.path().join("objects");
    let kept = objects.join(format!("sm_90.{}.ptx", identities(&objects, ".ptx")[0]));
    assert_eq!(fs::read_to_string(kept).expect("it is kept"), text);
    let mut report = limited(built("rocov"));
    let report = run(report.args(["report", "--lcov"]).arg(data.path())).success();
    assert!(report.stdout.contains("kernel.py\n"), "{report}");
    assert!(report.stdout.contains("DA:7,"), "{report}");
}

#[test]
fn failures_of_the_assembler_are_its_own() {
    for change in [
        |text: &str| text.replacen("ret;", "mov.u32 %none, 1;\n\tret;", 1),
        |text: &str| text.replace(".target sm_90", ".target sm_100"),
        |text: &str| text.replacen("ret;", "bra nowhere;", 1),
        |_: &str| "no PTX".to_owned(),
        |_: &str| String::new(),
    ] {
        let Some(assembly) = Assembly::new(change) else {
            return;
        };
        let real = assembly.really("real.cubin");
        let ours = assembly.assemble(assembly.stand_in(&assembly.cache()), "ours.cubin");
        assert!(!real.status.success(), "{real}");
        assert_eq!(ours.status.code(), real.status.code(), "{ours}");
        assert_eq!(
            (&ours.stdout, &ours.stderr),
            (&real.stdout, &real.stderr),
            "{ours}"
        );
        assert!(!assembly.path("ours.cubin").exists());
        assert!(!assembly.cache().exists());
    }
}

#[test]
fn calls_without_ptx_are_the_real_ones() {
    let Some(assembly) = Assembly::new(str::to_owned) else {
        return;
    };
    for arguments in [&["--version"][..], &["--help"], &["--no-such-option"], &[]] {
        let real = run(limited(assembly.uncounted.tool("ptxas")).args(arguments));
        let ours = run(assembly.stand_in(&assembly.cache()).args(arguments));
        assert_eq!(ours.status.code(), real.status.code(), "{ours}");
        assert_eq!(ours.stdout, real.stdout, "{ours}");
        assert_eq!(ours.stderr, real.stderr, "{ours}");
    }
}

#[test]
fn a_kernel_that_cannot_be_kept_is_assembled_without_counters() {
    let Some(assembly) = Assembly::new(str::to_owned) else {
        return;
    };
    assembly.really("ours.cubin").success();
    let real = assembly.bytes("ours.cubin");
    fs::remove_file(assembly.path("ours.cubin")).expect("it was made");
    // No directory can be made below a file, whoever the user is.
    let closed = assembly.path("kernel.ptx").join("cache");
    let ours = assembly
        .assemble(assembly.stand_in(&closed), "ours.cubin")
        .success();
    let (rocovs, _) = split(&ours);
    assert_eq!(rocovs.len(), 1, "{ours}");
    assert!(
        rocovs[0].starts_with(
            "rocov: this PTX has no counters: rocov cannot save it for the report: cannot"
        ),
        "{ours}"
    );
    assert!(rocovs[0].contains("ROCOV_CACHE"), "{ours}");
    assert_eq!(assembly.bytes("ours.cubin"), real);
    // Without a cache at all, Triton's kernels are its own.
    let mut without = assembly.stand_in(&closed);
    for name in ["ROCOV_CACHE", "XDG_CACHE_HOME", "HOME"] {
        without.env_remove(name);
    }
    let ours = assembly.assemble(without, "ours.cubin").success();
    assert!(split(&ours).0.is_empty(), "{ours}");
    assert_eq!(assembly.bytes("ours.cubin"), real);
}

#[test]
fn ptx_that_counts_by_clang_stays_as_it_is() {
    let counted = |uncounted: &Uncounted| {
        fs::read_to_string(uncounted.setup.cubin.with_extension("ptx")).expect("it was made")
    };
    let Some(assembly) = Uncounted::get().and_then(|uncounted| {
        let text = counted(&uncounted);
        Assembly::new(|_| text)
    }) else {
        return;
    };
    assembly.really("ours.cubin").success();
    let real = assembly.bytes("ours.cubin");
    let ours = assembly
        .assemble(assembly.stand_in(&assembly.cache()), "ours.cubin")
        .success();
    assert!(split(&ours).0.is_empty(), "{ours}");
    assert_eq!(assembly.bytes("ours.cubin"), real);
}

/// JAX's compiler calls `bin/ptxas` below `CUDA_ROOT`, asks for its version first, and gives PTX in files without an extension.
#[test]
fn a_kernel_of_jax_counts() {
    let Some(assembly) = Assembly::new(str::to_owned) else {
        return;
    };
    let folder = assembly.path("toolkit/bin");
    fs::create_dir_all(&folder).expect("it can be made");
    symlink(built("rocov-ptxas"), folder.join("ptxas")).expect("it can be made");
    let stand_in = || {
        let mut command = limited(folder.join("ptxas"));
        command.env("ROCOV_CACHE", assembly.cache());
        let real = assembly.uncounted.tool("ptxas");
        let mut path = real.parent().expect("a folder").as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        command.env("PATH", path);
        // This is the one of Triton.
        command.env("ROCOV_PTXAS", "/none/ptxas");
        command
    };
    let mut version = stand_in();
    let version = run(version.arg("--version")).success().stdout;
    assert!(version.contains("Cuda compilation tools"), "{version}");
    let input = assembly.path("tempfile-1");
    fs::write(&input, assembly.text()).expect("it can be written");
    let mut command = stand_in();
    command
        .arg(&input)
        .arg("-o")
        .arg(assembly.path("jax.cubin"));
    run(command.args(["-arch=sm_90", "--warn-on-spills", "-v"])).success();
    let found = counters(&assembly.path("jax.cubin"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!assembly.path("tempfile-1.rocov.ptx").exists());
}

#[test]
fn an_assembler_that_cannot_be_run_is_named() {
    let Some(assembly) = Assembly::new(str::to_owned) else {
        return;
    };
    let mut command = assembly.stand_in(&assembly.cache());
    command.env("ROCOV_PTXAS", "/none/ptxas");
    assembly
        .assemble(command, "ours.cubin")
        .with_status(1)
        .says(&["rocov: cannot run /none/ptxas: ", "set ROCOV_PTXAS"]);
    let mut command = limited("env");
    command.args(["-u", "ROCOV_PTXAS", "PATH=/none"]);
    assembly
        .assemble_by(command.arg(built("rocov-ptxas")), "ours.cubin")
        .with_status(1)
        .says(&["rocov: cannot find the real ptxas: set ROCOV_PTXAS to its path\n"]);
}

/// `rocov run --instrument` names the stand-in and a directory of its own, and keeps that small.
#[test]
fn triton_gets_a_directory_with_a_limit() {
    let place = data();
    let kernel = place.path().join("triton/0.1.0-1/KEY/kernel.cubin");
    let started = |most: &str| {
        fs::create_dir_all(kernel.parent().expect("a folder")).expect("it can be made");
        fs::write(&kernel, [0; 2000]).expect("it can be written");
        let mut command = limited(built("rocov"));
        command.args(["run", "--instrument", "-o"]);
        command.arg(place.path().join("data"));
        command.args([
            "--",
            "sh",
            "-c",
            "echo $TRITON_CACHE_DIR $TRITON_PTXAS_PATH",
        ]);
        command.env("ROCOV_CACHE", place.path());
        run(command.env("ROCOV_CACHE_MAX", most)).success()
    };
    let ended = started("1K");
    let (results, assembler) = ended.stdout.trim().split_once(' ').expect("two paths");
    assert!(Path::new(results).starts_with(place.path().join("triton")));
    assert!(Path::new(results).is_dir());
    assert_eq!(
        fs::canonicalize(assembler).expect("it is there"),
        built("rocov-ptxas")
    );
    assert!(!kernel.exists());
    started("1M");
    assert!(kernel.exists());
    started("much").says(&[
        "rocov: ROCOV_CACHE_MAX: \"much\" is not valid, so rocov uses",
        "rocov uses 1G",
    ]);
}

/// PyTorch's compiler has a cache of its own, CuPy makes PTX if it is asked to, and JAX takes the assembler of the toolkit in
/// `CUDA_ROOT`. The user's own values stay. cuTile's compiler, a program that Python starts, fails with that toolkit.
#[test]
fn libraries_of_python_make_code_that_can_be_counted() {
    let place = data();
    let started = |user: &[(&str, &str)]| {
        let mut command = limited(built("rocov"));
        command.args(["run", "--instrument", "-o"]);
        const NAMES: [&str; 6] = [
            "TRITON_CACHE_DIR",
            "TORCHINDUCTOR_CACHE_DIR",
            "CUPY_CACHE_DIR",
            "CUPY_COMPILE_WITH_PTX",
            "TILELANG_CACHE_DIR",
            "CUDA_ROOT",
        ];
        let python = format!(
            "import os, subprocess\nprint(*map(os.environ.get, {NAMES:?}), flush=True)\n\
             subprocess.run(['sh', '-c', 'echo ${{CUDA_ROOT-none}}'])"
        );
        command.arg(place.path().join("data"));
        // Python is started by another program, as in most scripts.
        let shell = r#""$0" -c "$1"; echo "${CUDA_ROOT-none}""#;
        command.args(["--", "sh", "-c", shell]);
        command.arg(rocov_tests::artifacts::python()).arg(python);
        command.env("ROCOV_CACHE", place.path());
        for name in NAMES {
            command.env_remove(name);
        }
        run(command.envs(user.iter().copied())).success().stdout
    };
    let own = started(&[]);
    let triton = own.split(' ').next().expect("a path");
    let toolkit = format!("{triton}/toolkit");
    assert_eq!(
        own,
        format!(
            "{triton} {triton}/inductor {triton}/cupy 1 {triton}/tilelang {toolkit}\nnone\nnone\n"
        )
    );
    let assembler = fs::canonicalize(Path::new(&toolkit).join("bin/ptxas"));
    assert_eq!(assembler.expect("it is there"), built("rocov-ptxas"));
    let user = started(&[
        ("TORCHINDUCTOR_CACHE_DIR", "/mine"),
        ("CUPY_CACHE_DIR", "/my-cupy"),
        ("CUPY_COMPILE_WITH_PTX", "0"),
        ("TILELANG_CACHE_DIR", "/my-tilelang"),
        ("CUDA_ROOT", "/my-toolkit"),
    ]);
    assert_eq!(
        user,
        format!("{triton} /mine /my-cupy 0 /my-tilelang /my-toolkit\n/my-toolkit\n/my-toolkit\n")
    );
}

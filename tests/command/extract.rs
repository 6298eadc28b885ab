//! `rocov extract` on all that clang and its tools put device code into: what comes out is what went
//! in, byte for byte, and what LLVM's own tools take out.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rocov_tests::artifacts::built;
use rocov_tests::cli::device::{compile, compile_bundle, compile_with, embed};
use rocov_tests::cli::{failure, profile, rocov, run, stderr, stdout};

const ARCHS: [&str; 2] = ["gfx90a", "gfx942"];

/// The device ELFs of the kernel for [`ARCHS`], made by clang of `version` by themselves.
fn device_elfs(directory: &Path, version: u32) -> [PathBuf; 2] {
    let clang = format!("clang++-{version}");
    ARCHS.map(|arch| compile_with(&clang, directory, &format!("{arch}.elf"), arch, &[]))
}

fn extract(directory: &Path, arguments: &[&dyn AsRef<OsStr>]) -> Output {
    let mut command = rocov();
    command.current_dir(directory).arg("extract");
    command.args(arguments.iter().map(AsRef::as_ref));
    command.output().unwrap()
}

/// Extracts `file`, and compares what comes out with `elfs`, which are for [`ARCHS`].
fn assert_holds(file: &Path, elfs: &[PathBuf; 2]) {
    let out = tempfile::tempdir().unwrap();
    let output = extract(out.path(), &[&file, &"-o", &"out"]);
    assert_eq!(stderr(&output), "", "{}", file.display());
    assert_eq!(output.status.code(), Some(0));
    let mut expected: Vec<_> = ARCHS
        .iter()
        .zip(elfs)
        .map(|(arch, elf)| format!("out/{arch}.{}.elf", profile::identity(elf)))
        .collect();
    for (path, elf) in expected.iter().zip(elfs) {
        let extracted = fs::read(out.path().join(path)).unwrap();
        assert!(extracted == fs::read(elf).unwrap(), "{path}");
    }
    let said = stdout(&output);
    let mut said: Vec<_> = said.lines().collect();
    said.sort_unstable();
    expected.sort_unstable();
    assert_eq!(said, expected, "{}", file.display());
}

/// The kernel for [`ARCHS`] in one bundle.
fn bundled(directory: &Path, version: u32, flags: &[&str], format: Option<&str>) -> PathBuf {
    let path = directory.join("kernel.hipfb");
    let mut command = rocov_tests::cli::device::compiler(&format!("clang++-{version}"));
    command.args(ARCHS.map(|arch| format!("--offload-arch={arch}")));
    command.args(["--gpu-bundle-output", "-c", "-o"]).arg(&path);
    command.env_remove("COMPRESSED_BUNDLE_FORMAT_VERSION");
    command.envs(format.map(|version| ("COMPRESSED_BUNDLE_FORMAT_VERSION", version)));
    run(command.args(flags));
    path
}

#[test]
fn bundles_of_clang_hold_what_it_compiled() {
    for (version, flags, format, start) in [
        (19, "--no-offload-compress", None, &b"__CLANG"[..]),
        (22, "--no-offload-compress", None, b"__CLANG"),
        (19, "--offload-compress", None, b"CCOB\x02\0\x01\0"),
        (22, "--offload-compress", Some("2"), b"CCOB\x02\0\x01\0"),
        (22, "--offload-compress", None, b"CCOB\x03\0\x01\0"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let elfs = device_elfs(directory.path(), version);
        let bundle = bundled(directory.path(), version, &[flags], format);
        assert!(fs::read(&bundle).unwrap().starts_with(start), "{version}");
        assert_holds(&bundle, &elfs);
        assert_holds(&embed(&bundle, directory.path()), &elfs);
    }
}

#[test]
fn clang_offload_bundler_takes_out_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let elfs = device_elfs(directory.path(), 22);
    for options in [
        &[][..],
        &["-compress"],
        &["-compress", "-compression-level=19"],
    ] {
        let bundle = directory.path().join("bundle");
        let targets = "-targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx90a,\
                       hip-amdgcn-amd-amdhsa--gfx942";
        run(Command::new("clang-offload-bundler-22")
            .args(["-type=o", "-bundle-align=4096", "-input=/dev/null", targets])
            .args(elfs.iter().map(|elf| format!("-input={}", elf.display())))
            .arg(format!("-output={}", bundle.display()))
            .args(options));
        assert_holds(&bundle, &elfs);
        for (arch, elf) in ARCHS.iter().zip(&elfs) {
            let taken = directory.path().join("taken");
            run(Command::new("clang-offload-bundler-22")
                .args(["-type=o", "-unbundle"])
                .arg(format!("-targets=hip-amdgcn-amd-amdhsa--{arch}"))
                .arg(format!("-input={}", bundle.display()))
                .arg(format!("-output={}", taken.display())));
            assert_eq!(fs::read(taken).unwrap(), fs::read(elf).unwrap());
        }
    }
}

/// The section `name` of `file`.
fn section(file: &Path, name: &str) -> Vec<u8> {
    let contents = fs::read(file).unwrap();
    let file = object::File::parse(&*contents).unwrap();
    let section =
        object::Object::section_by_name(&file, name).unwrap_or_else(|| panic!("no section {name}"));
    object::ObjectSection::data(&section).unwrap().to_vec()
}

#[test]
fn clang_offload_packager_takes_out_the_same() {
    for version in [15, 19, 22] {
        let directory = tempfile::tempdir().unwrap();
        let elfs = device_elfs(directory.path(), 22);
        let packager = format!("clang-offload-packager-{version}");
        let binary = directory.path().join("binary");
        let images = ARCHS.iter().zip(&elfs).map(|(arch, elf)| {
            let file = elf.display();
            format!("--image=file={file},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip")
        });
        run(Command::new(&packager).arg("-o").arg(&binary).args(images));
        assert_holds(&binary, &elfs);

        // As the compiler puts it into the host's code.
        let host = directory.path().join("host.o");
        let assembly = directory.path().join("host.s");
        let source = format!(
            ".section .llvm.offloading,\"e\",@llvm_offloading\n.p2align 3\n.incbin \"{}\"\n",
            binary.display()
        );
        fs::write(&assembly, source).unwrap();
        run(Command::new("clang-22")
            .arg("-c")
            .arg(&assembly)
            .arg("-o")
            .arg(&host));
        assert_eq!(
            section(&host, ".llvm.offloading"),
            fs::read(&binary).unwrap()
        );
        assert_holds(&host, &elfs);
        let listed = stdout(&run(Command::new("llvm-objdump-22")
            .arg("--offloading")
            .arg(&host)));
        assert_eq!(listed.matches("OFFLOADING IMAGE").count(), 2, "{listed}");

        for (arch, elf) in ARCHS.iter().zip(&elfs) {
            let taken = directory.path().join("taken");
            let image = format!(
                "--image=file={},triple=amdgcn-amd-amdhsa,arch={arch}",
                taken.display()
            );
            if version > 15 {
                run(Command::new(&packager).arg(&binary).arg(image));
                assert_eq!(fs::read(taken).unwrap(), fs::read(elf).unwrap());
            }
        }
    }
}

/// Compiles the kernel with host code, which needs nothing of HIP's to be compiled.
fn compile_whole(directory: &Path, flags: &[&str]) -> PathBuf {
    let source = directory.join("whole.hip");
    fs::write(
        &source,
        "struct dim3 { unsigned x, y, z; };\n\
         extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);\n\
         __attribute__((global)) void kernel(int *value) { *value *= 2; }\n",
    )
    .unwrap();
    let object = directory.join("whole.o");
    run(Command::new("clang++-22")
        .args([
            "-x",
            "hip",
            "-nogpuinc",
            "-nogpulib",
            "-O1",
            "-fuse-cuid=none",
        ])
        .args(["--offload-arch=gfx90a", "--offload-arch=gfx942", "-c"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .args(flags));
    object
}

/// Targets of the device ELFs in `file`.
fn targets(file: &Path) -> Vec<String> {
    let listed = stdout(&run(rocov().args(["extract", "--list"]).arg(file)));
    let mut targets: Vec<_> = listed
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .map(str::to_owned)
        .collect();
    targets.sort_unstable();
    targets
}

#[test]
fn host_objects_of_both_offload_drivers_hold_them() {
    let directory = tempfile::tempdir().unwrap();
    for driver in ["--no-offload-new-driver", "--offload-new-driver"] {
        for compress in ["--no-offload-compress", "--offload-compress"] {
            let object = compile_whole(directory.path(), &[driver, compress]);
            assert_eq!(targets(&object), ARCHS, "{driver} {compress}");
            // Linked, and stripped of all that can be stripped.
            let library = directory.path().join("library.so");
            let link = |path: &Path| {
                run(Command::new("ld.lld-22")
                    .args(["-shared", "-o"])
                    .arg(path)
                    .arg(&object))
            };
            link(&library);
            assert_eq!(targets(&library), ARCHS, "{driver} {compress}");
            let strip = Command::new("llvm-objcopy-22")
                .args(["--strip-all", "--strip-sections"])
                .arg(&library)
                .output();
            assert!(strip.unwrap().status.success());
            assert_eq!(targets(&library), ARCHS, "{driver} {compress}, stripped");
        }
    }
}

#[test]
fn code_that_is_still_to_be_linked_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let object = compile_whole(directory.path(), &["--offload-new-driver", "-fgpu-rdc"]);
    let output = extract(directory.path(), &[&object]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 2, "{said}");
    let reason = "is LLVM bitcode, which the linker turns into a code object";
    assert!(said.lines().all(|line| line.contains(reason)), "{said}");

    let object = compile_whole(directory.path(), &["--no-offload-new-driver", "-fgpu-rdc"]);
    let message = failure(&extract(directory.path(), &[&object]), 1);
    let reason = "no device code: only device code that is not linked yet (-fgpu-rdc, nvcc -rdc=true); link it, and \
    name the program or library\n";
    assert!(message.ends_with(reason), "{message}");

    let library = directory.path().join("library.a");
    run(Command::new("ar").arg("rc").arg(&library).arg(&object));
    let message = failure(&extract(directory.path(), &[&library]), 1);
    assert!(
        message.contains("a static library; extract its members first"),
        "{message}"
    );
}

#[test]
fn a_code_object_is_taken_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let elf = compile(directory.path(), "kernel.elf", "gfx90a", &[]);
    let output = extract(directory.path(), &[&elf]);
    let name = format!("gfx90a.{}.elf", profile::identity(&elf));
    assert_eq!(
        stdout(&output),
        format!("./{name}\n"),
        "{}",
        stderr(&output)
    );
    let extracted = fs::read(directory.path().join(name)).unwrap();
    assert_eq!(extracted, fs::read(elf).unwrap());
}

#[test]
fn targets_are_chosen_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = compile_bundle(directory.path(), &["gfx90a:xnack-", "gfx942"], &[]);
    let output = extract(
        directory.path(),
        &[&bundle, &"--target", &"gfx90a*", &"--list"],
    );
    let listed = stdout(&output);
    let columns: Vec<_> = listed.split_whitespace().collect();
    let [target, identity, size, "bytes"] = columns[..] else {
        panic!("{listed}")
    };
    assert_eq!(target, "gfx90a:xnack-");
    let out = directory.path().join("out");
    assert!(!out.exists());
    extract(
        directory.path(),
        &[&bundle, &"--target", &"gfx90a*", &"-o", &"out"],
    );
    let names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert_eq!(names.len(), 1);
    let name = names[0].file_name().into_string().unwrap();
    assert_eq!(name, format!("gfx90a-xnack-.{identity}.elf"));
    assert_eq!(names[0].metadata().unwrap().len().to_string(), size);

    let none = extract(directory.path(), &[&bundle, &"--target", &"gfx1*"]);
    let message = failure(&none, 1);
    assert!(message.contains("no device ELF for gfx1* in"), "{message}");
    assert!(
        message.ends_with("use --target with one of its targets: gfx90a:xnack-, gfx942\n"),
        "{message}"
    );
    let usage = extract(directory.path(), &[&bundle, &"--target", &"["]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn a_file_with_the_same_contents_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let elf = compile(directory.path(), "kernel.elf", "gfx90a", &[]);
    let name = directory
        .path()
        .join(format!("gfx90a.{}.elf", profile::identity(&elf)));
    extract(directory.path(), &[&elf]);
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&name).unwrap());
    let first = inode();
    extract(directory.path(), &[&elf]);
    assert_eq!(inode(), first);
    fs::write(&name, "damaged").unwrap();
    extract(directory.path(), &[&elf]);
    assert_eq!(fs::read(&name).unwrap(), fs::read(&elf).unwrap());
}

#[test]
fn what_is_whole_in_a_damaged_file_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = compile_bundle(directory.path(), &ARCHS, &["--no-offload-compress"]);
    let whole = fs::read(&bundle).unwrap();
    fs::write(&bundle, &whole[..whole.len() - 100]).unwrap();
    let output = extract(directory.path(), &[&bundle, &"--list"]);
    let message = failure(&output, 1);
    assert!(
        message.contains("the image hipv4-amdgcn-amd-amdhsa--gfx942 of the"),
        "{message}"
    );
    assert!(stdout(&output).starts_with("gfx90a "));

    for (file, reason) in [
        (Path::new("/bin/true"), "no .hip_fatbin, .nv_fatbin"),
        (Path::new("/dev/null"), "is not a file"),
        (Path::new("/nowhere"), "does not exist: check the path"),
    ] {
        let message = failure(&extract(directory.path(), &[&file]), 1);
        assert!(message.contains(reason), "{message}");
    }
}

/// A compressed bundle of version 3 whose header says that it unpacks to `unpacked` bytes.
fn compressed(unpacked: u64, packed: &[u8]) -> Vec<u8> {
    let mut bundle = b"CCOB\x03\0\x01\0".to_vec();
    for word in [32 + packed.len() as u64, unpacked, 0] {
        bundle.extend(word.to_le_bytes());
    }
    bundle.extend_from_slice(packed);
    bundle
}

#[test]
fn bombs_take_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bomb");
    // A zstd frame with a window of 1 MiB and 16 GiB of one byte in blocks of 128 KiB, which is far
    // from as many as its header could say.
    let mut bomb = b"\x28\xb5\x2f\xfd\0\x50".to_vec();
    bomb.extend(b"\x02\0\x10x".repeat(16 << 13));
    bomb.extend(b"\x03\0\0x");
    for (unpacked, packed, reason) in [
        (
            4 << 30,
            &b"\x28\xb5\x2f\xfd"[..],
            "cannot be unpacked as zstd",
        ),
        (10 << 20, &bomb, "unpacks to more than 10485760 bytes"),
    ] {
        fs::write(&file, compressed(unpacked, packed)).unwrap();
        let limited = Command::new("sh")
            .args(["-c", "ulimit -v 100000; exec \"$0\" extract --list \"$1\""])
            .arg(built("rocov"))
            .arg(&file)
            .output();
        let message = failure(&limited.unwrap(), 1);
        assert!(message.contains(reason), "{message}");
    }
}

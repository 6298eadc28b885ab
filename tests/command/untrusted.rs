//! Files that somebody has made to take all memory or time, or to make a command wait for ever: each costs a line.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, FlushCompress};
use rocov::format::profraw::RawProfile;
use rocov_tests::cli::device::{INSTRUMENTED, compile, compile_bundle, embed};
use rocov_tests::cli::place::Place;
use rocov_tests::cli::{rocov, stderr, stdout};

const GIB: u64 = 1 << 30;

/// Runs a command with at most `memory` bytes of address space and `seconds` of processor time, which ends it by a
/// signal. Wall-clock time has a limit too, far beyond: a command that waits for ever takes no processor time.
fn limited(command: &mut Command, memory: u64, seconds: u64) -> Output {
    let limit = move |what, most: u64| {
        let most = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: the limit outlives the call, which is allowed between fork and exec.
        unsafe { libc::setrlimit(what, &raw const most) };
    };
    // SAFETY: the closure only makes system calls.
    unsafe {
        command.pre_exec(move || {
            limit(libc::RLIMIT_AS, memory);
            limit(libc::RLIMIT_CPU, seconds);
            Ok(())
        });
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(300);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// A command that ended with `status`, and reported it in few lines.
fn ends(command: &mut Command, memory: u64, seconds: u64, status: i32) -> String {
    let output = limited(command, memory, seconds);
    let said = stderr(&output);
    let what = format!("{command:?}: {:?}: {said}", output.status);
    assert_eq!(output.status.code(), Some(status), "{what}");
    assert!(said.lines().count() <= 10 && said.len() < 10_000, "{what}");
    assert!(!said.contains("panicked"), "{what}");
    said
}

fn uleb128(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A compressed list of names that is `pattern` again and again, `size` MiB in all. It has no checksum, which is read
/// last.
fn list(pattern: &[u8], size: u64) -> Vec<u8> {
    let piece = pattern.repeat((1 << 20) / pattern.len());
    let mut block = Vec::with_capacity(1 << 16);
    // After a full flush, a block does not depend on what is before it.
    Compress::new(Compression::best(), false)
        .compress_vec(&piece, &mut block, FlushCompress::Full)
        .unwrap();
    let blocks = block.repeat(size as usize);
    let packed = [b"\x78\x01", &blocks[..], b"\x03\0", &[0; 4]].concat();
    let size = size * piece.len() as u64;
    [uleb128(size), uleb128(packed.len() as u64), packed].concat()
}

/// A raw profile like `whole`, with other names.
fn with_names(whole: &[u8], names: &[u8]) -> Vec<u8> {
    /// The place of the size of the names in the header of version 10 (`InstrProfData.inc`).
    const NAMES_SIZE: usize = 9 * 8;
    let profile = RawProfile::parse(whole).unwrap();
    let old = profile.sections.names.clone();
    assert_eq!(
        whole[NAMES_SIZE..][..8],
        (old.len() as u64).to_le_bytes(),
        "the header has the size there"
    );
    let mut file = whole[..old.start].to_vec();
    file[NAMES_SIZE..][..8].copy_from_slice(&(names.len() as u64).to_le_bytes());
    file.extend(names);
    file.resize(file.len().next_multiple_of(8), 0);
    file.extend(&whole[old.end.next_multiple_of(8)..]);
    file
}

#[test]
fn names_that_unpack_to_gigabytes_cost_their_own_profile() {
    const MEMORY: u64 = GIB;
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let whole = fs::read(place.profile(&elf, "gfx90a", 0, 7)).unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("whole.profraw"), &whole).unwrap();
    let quarter = list(&[0], 256);
    let distinct = {
        let mut names = Vec::new();
        for number in 0..1200_u32 {
            let name = format!("{number:08}").into_bytes();
            let name = [name, vec![b'x'; (1 << 20) - 16]].concat();
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&name).unwrap();
            let packed = encoder.finish().unwrap();
            names.extend(uleb128(name.len() as u64));
            names.extend(uleb128(packed.len() as u64));
            names.extend(packed);
        }
        names
    };
    for (what, names) in [
        ("one list of zeros", list(&[0], 4096)),
        ("lists of zeros", quarter.repeat(16)),
        ("a billion empty names", list(&[1], 1000)),
        ("names of a byte", list(b"a\x01", 500)),
        ("distinct long names", distinct),
    ] {
        let hostile = at("hostile.profraw");
        fs::write(&hostile, with_names(&whole, &names)).unwrap();
        let merge = |arguments: &[&str]| {
            let mut command = rocov();
            command.current_dir(place.path()).arg("merge");
            command.args(arguments);
            command
        };
        let alone = ["hostile.profraw", "-o", "alone.profdata"];
        let said = ends(&mut merge(&alone), MEMORY, 60, 1);
        assert!(said.contains("hostile.profraw"), "{what}: {said}");
        assert!(said.contains("names"), "{what}: {said}");
        // One bad profile never ends the merge of others.
        let both = ["hostile.profraw", "whole.profraw", "-o", "both.profdata"];
        for (mode, status) in [("any", 1), ("all", 0), ("warn", 0)] {
            let mode = format!("--failure-mode={mode}");
            let arguments = [&both[..], &[&mode]].concat();
            let said = ends(&mut merge(&arguments), MEMORY, 60, status);
            assert!(said.contains("hostile.profraw"), "{what}: {said}");
            let show = rocov_tests::cli::run(
                Command::new("llvm-profdata-22")
                    .arg("show")
                    .arg(at("both.profdata")),
            );
            assert!(stdout(&show).contains("Total functions: "), "{what}");
            fs::remove_file(at("both.profdata")).unwrap();
        }
    }
}

/// Makes a pipe that nobody writes to.
fn pipe(path: &Path) {
    rocov_tests::cli::run(Command::new("mkfifo").arg(path));
}

#[test]
fn what_is_no_regular_file_is_no_input() {
    let place = Place::new();
    let at = |name: &str| place.path().join(name);
    pipe(&at("pipe"));
    symlink("/dev/zero", at("zero")).unwrap();
    File::create(at("sparse"))
        .unwrap()
        .set_len(20 * GIB)
        .unwrap();
    for name in ["pipe", "zero", "sparse"] {
        for (arguments, status) in [
            ("show FILE", 1),
            ("extract FILE", 1),
            ("extract --list FILE", 1),
            ("doctor FILE", 1),
            ("report --object FILE", 1),
            ("diff FILE FILE", 1),
            ("merge FILE -o merged.profdata", 1),
            ("merge -f FILE -o merged.profdata", 1),
            ("report rocov-data --diff FILE", 1),
            ("report FILE", 1),
            ("kernels FILE", 1),
        ] {
            let words = arguments
                .split(' ')
                .map(|word| if word == "FILE" { name } else { word });
            let mut command = rocov();
            command.args(words).current_dir(place.path());
            // Mapping a file needs address space of its size.
            let said = ends(&mut command, 64 * GIB, 20, status);
            assert!(
                !said.is_empty() || arguments.starts_with("doctor"),
                "{arguments} {name}"
            );
        }
    }
}

#[test]
fn a_data_directory_with_pipes_devices_and_endless_files_is_read() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let put: [fn(&Path); 3] = [
        pipe,
        |path| symlink("/dev/zero", path).unwrap(),
        |path| File::create(path).unwrap().set_len(20 * GIB).unwrap(),
    ];
    let registry = place.data().join("registry");
    fs::create_dir(&registry).unwrap();
    let identity = rocov_tests::cli::profile::identity(&elf);
    let entries: [PathBuf; 4] = [
        place.profile_path(&elf, "gfx90a", 1),
        place.data().join("1.profraw"),
        registry.join("1.kernels.json"),
        place.data().join(format!("objects/gfx90a.{identity}.elf")),
    ];
    for put in put {
        for entry in &entries {
            place.profile(&elf, "gfx90a", 0, 7);
            place.keep(&elf);
            let _ = fs::remove_file(entry);
            put(entry);
            for arguments in [
                &["report", "rocov-data"][..],
                &["kernels", "rocov-data"],
                &[
                    "merge",
                    "rocov-data",
                    "-o",
                    "m.profdata",
                    "--failure-mode=all",
                ],
                &["show", "rocov-data"],
                &["clean", "--dry-run", "rocov-data"],
            ] {
                let mut command = rocov();
                command.args(arguments).current_dir(place.path());
                let output = limited(&mut command, 64 * GIB, 20);
                let said = stderr(&output);
                let status = output.status.code();
                let what = format!("{arguments:?}, {}: {status:?} {said}", entry.display());
                assert!(status.is_some_and(|code| code <= 3), "{what}");
                assert!(!said.contains("panicked"), "{what}");
            }
            fs::remove_file(entry).unwrap();
        }
    }
}

/// An entry of the cache of device code decides which code a report lacks.
#[test]
fn a_planted_entry_of_the_cache_is_ignored_and_written_anew() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 7);
    let bundle = compile_bundle(place.path(), &["gfx90a"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    let cache = tempfile::tempdir().unwrap();
    let report = || {
        let mut command = rocov();
        command.args(["report", "rocov-data", "--json", "--object"]);
        command.arg(&program).current_dir(place.path());
        command.env("XDG_CACHE_HOME", cache.path());
        let output = limited(&mut command, 64 * GIB, 60);
        let status = output.status.code();
        assert!(status.is_some_and(|code| code <= 1), "{status:?}");
        (status, stdout(&output), stderr(&output))
    };
    let before = report();
    let directory = cache.path().join("rocov/device-code");
    let entries: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [entry] = &entries[..] else {
        panic!("{entries:?}")
    };
    let whole = fs::read_to_string(entry).unwrap();
    assert!(whole.contains("\"offset\":8192"), "{whole}");
    let without_hash =
        |code: &str| format!("{{\"rocov_device_code\":4,\"hash\":\"\",\"code\":{code}}}");
    let nothing = "{\"containers\":[],\"ptx\":[]}";
    let put: Vec<Box<dyn Fn()>> = vec![
        Box::new(|| fs::write(entry, without_hash(nothing)).unwrap()),
        Box::new(|| {
            let earlier = format!("{{\"rocov_device_code\":3,\"code\":{nothing}}}");
            fs::write(entry, earlier).unwrap();
        }),
        Box::new(|| {
            let moved = whole.replace("\"offset\":8192", "\"offset\":8200");
            fs::write(entry, moved).unwrap();
        }),
        Box::new(|| fs::write(entry, &whole[..whole.len() / 2]).unwrap()),
        Box::new(|| pipe(entry)),
        Box::new(|| symlink("/dev/zero", entry).unwrap()),
        Box::new(|| File::create(entry).unwrap().set_len(20 * GIB).unwrap()),
        Box::new(|| {
            fs::write(entry, &whole).unwrap();
            // Only root can give files away.
            let _ = chown(entry, Some(4242), None);
        }),
    ];
    for (number, put) in put.iter().enumerate() {
        fs::remove_file(entry).unwrap();
        put();
        assert_eq!(report(), before, "{number}");
        let found = fs::metadata(entry).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o600, "{number}");
        assert_eq!(fs::read_to_string(entry).unwrap(), whole, "{number}");
    }
}

#[test]
fn a_host_file_with_sections_anywhere_is_a_line() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    let whole = fs::read(&program).unwrap();
    let header = section_header(&whole, b".hip_fatbin");
    let behind = whole.len() as u64 + 1000;
    // The offset and the size in a section header.
    for (offset, size) in [
        (behind, 0),
        (u64::MAX, 0),
        (behind, 1),
        (u64::MAX, u64::MAX),
    ] {
        let mut file = whole.clone();
        file[header + 24..][..8].copy_from_slice(&offset.to_le_bytes());
        file[header + 32..][..8].copy_from_slice(&size.to_le_bytes());
        fs::write(&program, file).unwrap();
        for arguments in [
            &["show"][..],
            &["extract", "--list"],
            &["extract"],
            &["doctor"],
            &["report", "--object"],
        ] {
            let mut command = rocov();
            command.args(arguments).arg(&program);
            ends(command.current_dir(place.path()), 64 * GIB, 20, 1);
        }
    }
}

/// The place of the header of a section (ELF-64: `e_shoff`, `e_shnum`, `e_shstrndx`, `sh_name`, `sh_offset`).
fn section_header(elf: &[u8], name: &[u8]) -> usize {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let mut headers = (0..half(60)).map(|index| word(40) + 64 * index);
    let names = word(word(40) + 64 * half(62) + 24);
    let is_it = |header: &usize| {
        let at = names + word(*header) % (1 << 32);
        elf[at..].starts_with(name) && elf[at + name.len()] == 0
    };
    headers.find(is_it).unwrap()
}

//! The inputs that a user can name.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rocov_tests::artifacts::built;
use rocov_tests::cli::{failure, run, stderr};

use crate::merge::Place;

/// A place with profiles of one code object, of counts 1, 10 and 100, in `a`, `a/b` and `c`.
fn three() -> (Place, [PathBuf; 3]) {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    let files = [("a", 1), ("a/b", 10), ("c", 100)];
    let write = |(directory, count)| place.profile(directory, &elf, 4711, count);
    let files = files.map(write);
    (place, files)
}

/// The sum of the inputs.
fn sum(place: &Place, inputs: &[&str]) -> u64 {
    place.merged(&[inputs, &["-o", "out.profdata"]].concat());
    place.calls("out.profdata")
}

#[test]
fn directories_with_those_below_files_and_globs() {
    let (place, files) = three();
    assert_eq!(sum(&place, &["a"]), 11);
    assert_eq!(sum(&place, &["a", "c"]), 111);
    assert_eq!(sum(&place, &["."]), 111);
    assert_eq!(sum(&place, &[files[0].to_str().unwrap(), "c"]), 101);
    assert_eq!(sum(&place, &["*/*.profraw"]), 101);
    assert_eq!(sum(&place, &["**/b", "[c]"]), 110);
}

#[test]
fn a_directory_that_leads_back_to_itself_is_entered_once() {
    let (place, _) = three();
    symlink("..", place.path("a/b/up")).unwrap();
    symlink("../c", place.path("a/c")).unwrap();
    assert_eq!(sum(&place, &["a"]), 111);
}

#[test]
fn a_pipe_in_a_directory_is_not_waited_for() {
    let (place, _) = three();
    run(Command::new("mkfifo").arg(place.path("a/pipe.profraw")));
    let mut merge = Command::new("timeout");
    merge.arg("60").arg(built("rocov"));
    merge
        .current_dir(place.0.path())
        .args(["merge", "a", "-o", "out.profdata"]);
    run(&mut merge);
    assert_eq!(place.calls("out.profdata"), 11);
}

#[test]
fn a_list_has_comments_and_all_kinds_of_inputs() {
    let (place, files) = three();
    let list = format!(
        "# ranks\n\n  a/*.profraw\t\n1,{}\r\nc\n",
        files[1].display()
    );
    fs::write(place.path("list"), &list).unwrap();
    for option in ["-f", "--input-files"] {
        assert_eq!(sum(&place, &[option, "list"]), 111);
    }
    let mut command = place.command(&["-q", "-f", "-", "-o", "piped.profdata"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(place.calls("piped.profdata"), 111);
}

#[test]
fn lists_that_are_refused() {
    let (place, _) = three();
    fs::write(place.path("list"), "2,a\n").unwrap();
    for (list, message) in [
        (
            "list",
            "rocov: `2,a` has a weight, but rocov adds up profiles without weights: remove the weight, or make it 1\n"
                .to_owned(),
        ),
        (
            "missing",
            format!(
                "rocov: cannot use the list missing: missing does not exist in {}; check the path\n",
                place.path("").display().to_string().trim_end_matches('/')
            ),
        ),
    ] {
        let output = place.merge(&["-f", list, "-o", "out"]);
        assert_eq!(failure(&output, 1), message);
    }
}

#[test]
fn a_file_that_is_given_twice_counts_once() {
    let (place, files) = three();
    let file = files[0].to_str().unwrap();
    let mut command = place.command(&["a", "a/../a", file, "a/*.profraw", "-o", "out.profdata"]);
    let output = run(&mut command);
    assert_eq!(place.calls("out.profdata"), 11);
    let said = stderr(&output);
    let expected = "rocov: 2 profiles given more than once, counted once, such as ";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn no_inputs_at_all() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("list"), "# nothing\n").unwrap();
    let output = place.merge(&["-o", "out"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for arguments in [["empty", "-oout"], ["-flist", "-oout"]] {
        let message = failure(&place.merge(&arguments), 1);
        assert!(
            message.contains("no profile in the inputs; name "),
            "{message}"
        );
        let mut warned = place.command(&arguments);
        let output = run(warned.arg("--failure-mode=warn"));
        assert_eq!(stderr(&output), message);
    }
    assert!(!place.path("out").exists());
}

#[test]
fn an_arch_is_chosen() {
    let (place, _) = three();
    let other = place.elf("gfx942");
    place.profile("c", &other, 1, 1000);
    assert_eq!(sum(&place, &[".", "--arch", "gfx90a"]), 111);
    assert_eq!(sum(&place, &[".", "--arch", "gfx942"]), 1000);
    let message = failure(&place.merge(&[".", "--arch", "gfx1100", "-o", "out"]), 1);
    assert_eq!(
        message,
        "rocov: nothing written: no profile belongs to gfx1100; choose one of these with --arch: gfx90a, gfx942\n"
    );
}

#[test]
fn an_indexed_profile_is_refused() {
    let (place, _) = three();
    sum(&place, &["a"]);
    let output = place.merge(&["out.profdata", "c", "-o", "out"]);
    let said = stderr(&output);
    let expected = "rocov: left out: cannot merge out.profdata: it is an indexed profile; name the raw profiles that \
    it was made from, or merge it with llvm-profdata\n";
    assert!(said.starts_with(expected), "{said}");
    fs::remove_dir_all(place.path("out")).unwrap();
    // It is where many are, and is not in the way there.
    assert_eq!(sum(&place, &["."]), 111);
}

/// Jenkins names directories like this.
#[test]
fn brackets_of_a_directory_that_exists_are_no_pattern() {
    let (place, _) = three();
    fs::rename(place.path("a"), place.path("cov-[1]")).unwrap();
    assert_eq!(sum(&place, &["cov-[1]/*.profraw"]), 1);
    assert_eq!(sum(&place, &["cov-[1]/*/*.profraw"]), 10);
    let absolute = place.path("cov-[1]/b/*.profraw");
    assert_eq!(sum(&place, &[absolute.to_str().unwrap()]), 10);
    // A directory of this name goes first.
    fs::rename(place.path("c"), place.path("cov-1")).unwrap();
    assert_eq!(sum(&place, &["cov-[1]/*.profraw"]), 1);
    assert_eq!(sum(&place, &["cov-[12]/*.profraw"]), 100);
}

#[test]
fn a_profile_whose_binary_id_is_longer_than_all_is_rejected() {
    let (place, files) = three();
    // As in LLVM's large-binary-id-size.test.
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[16..24].copy_from_slice(&16_u64.to_le_bytes());
    let head: Vec<u8> = bytes.drain(..128.min(bytes.len())).collect();
    let header = rocov::format::profraw::Version::from_word(u64::from_le_bytes(
        head[8..16].try_into().unwrap(),
    ));
    let size = header.unwrap().layout().header_bytes();
    let mut damaged = head[..size].to_vec();
    damaged.extend(0x1000_u64.to_le_bytes());
    damaged.extend([1; 8]);
    damaged.extend(&head[size..]);
    damaged.extend(bytes);
    fs::write(&files[0], damaged).unwrap();
    let mut merge = Command::new("llvm-profdata-22");
    merge
        .arg("merge")
        .arg(&files[0])
        .arg("-o")
        .arg(place.path("theirs"));
    let theirs = String::from_utf8(merge.output().unwrap().stderr).unwrap();
    assert!(
        theirs.contains("not enough data to read binary id data"),
        "{theirs}"
    );
    let mut command = rocov_tests::cli::rocov();
    command
        .current_dir(place.0.path())
        .args(["merge", "a", "-o", "out.profdata"]);
    let said = stderr(&command.output().unwrap());
    assert!(
        said.contains("raw profile has a binary id of 4096 bytes, expected 1 to 8"),
        "{said}"
    );
}

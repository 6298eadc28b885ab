//! The lines that notes in a journal lead to.

use rocov::support::diagnostic::Diagnostic;

use super::*;

/// The end of a run of `./app`, which is process 7.
fn ending(wait_status: i32) -> Ending<'static> {
    Ending {
        program: OsStr::new("./app"),
        pid: 7,
        status: ExitStatus::from_raw(wait_status),
        has_gpu: true,
        has_snapshots: false,
        has_zeros: false,
        has_profiles: &|| false,
        misfit: &|| None,
    }
}

/// The line after a run with these notes, of which `./app` is process 7.
fn line(notes: &str, wait_status: i32, change: impl Fn(&mut Ending<'_>)) -> String {
    let mut ending = ending(wait_status);
    change(&mut ending);
    let notes = Notes::parse(&notes.replace(", ", "\n"));
    notes
        .closing_line(&ending, |process| process.pid == 99)
        .map(|message| message.to_string())
        .unwrap_or_default()
}

#[test]
fn what_became_of_the_counters_is_one_line() {
    const SEGV: i32 = libc::SIGSEGV;
    const EXIT_139: i32 = 139 << 8;
    let snapshots = "`rocov run --snapshot-every 1s` drains while a program runs";
    for (notes, status, expected) in [
        ("7 hip, 7 counts, 7 wrote, 7 ended", 0, String::new()),
        ("7 hip, 7 counts, 7 wrote, 7 ended", EXIT_139, String::new()),
        ("8 counts, 8 wrote, 8 ended, 9 hip", 0, String::new()),
        ("7 counts, 7 neighbour", SEGV, String::new()),
        ("99 counts, 7 counts, 7 wrote, 7 ended", 0, String::new()),
        (
            "7 hip, 7 counts",
            SEGV,
            format!(
                "`./app` was killed by SIGSEGV before its counters were drained: they are lost; \
                 {snapshots}"
            ),
        ),
        (
            "7 counts, 7 wrote",
            libc::SIGKILL,
            format!(
                "`./app` was killed by SIGKILL after its last drain: later counts are lost; {snapshots}"
            ),
        ),
        (
            "8 counts",
            EXIT_139,
            format!(
                "process 8 was killed by SIGSEGV before its counters were drained: they are lost; \
                 {snapshots}"
            ),
        ),
        (
            "8 counts, 9 counts, 10 counts",
            1 << 8,
            format!(
                "process 8 ended before its counters were drained: they are lost, as are those of \
                 2 other processes; {snapshots}"
            ),
        ),
        (
            "7 counts, 7 wrote, 7 lost, 7 ended",
            0,
            "counts are lost: see the lines above".to_owned(),
        ),
        (
            "7 hip, 7 loaded, 7 ended",
            0,
            "nothing was drained: no process loaded instrumented GPU code; compile it with the flags that `rocov \
             flags` prints, or have hipRTC compile it with the flags that `rocov flags --hiprtc` prints, and run \
             `rocov doctor ./app`; to keep the current flags, use `rocov run --instrument` or `rocov run --trace --gpu \
             model`"
                .to_owned(),
        ),
        (
            "7 hip, 7 loaded, 7 skipped, 7 ended",
            0,
            "nothing was drained: ROCOV_ONLY and ROCOV_SKIP leave out all GPU code that was loaded; \
             change or unset them"
                .to_owned(),
        ),
        (
            "7 hip",
            SEGV,
            "nothing was drained: `./app` was killed by SIGSEGV before it loaded instrumented GPU code; fix \
             that first"
                .to_owned(),
        ),
        (
            "",
            0,
            "nothing was drained: no process used a GPU; check the command and its arguments".to_owned(),
        ),
    ] {
        assert_eq!(line(notes, status, |_| {}), expected, "{notes}");
    }
    assert_eq!(
        line("", 0, |run| run.has_gpu = false),
        "nothing was drained: no process used a GPU, and this machine has none (no /dev/kfd, no /dev/nvidiactl); run \
         the program on a machine with a GPU, or use --gpu model if its code is for AMD GPUs"
    );
    assert_eq!(
        line("7 hip", 1 << 8, |run| run.has_gpu = false),
        "nothing was drained: this machine has no GPU (no /dev/kfd); `rocov run --gpu model` runs \
         the program on a modelled one"
    );
    assert_eq!(line("", 0, |run| run.has_profiles = &|| true), "");
    for wait_status in [SEGV, 1 << 8] {
        let other = line("7 hip", wait_status, |run| {
            run.misfit = &|| Some(Diagnostic::new("code for gfx906", "compile it"));
            run.has_zeros = true;
        });
        assert_eq!(other, "nothing was drained: code for gfx906; compile it");
    }
    let zeros = |notes| line(notes, 0, |run| run.has_zeros = true);
    assert_eq!(
        zeros("7 hip, 7 ended, 7 registry /data/registry/7.kernels.json"),
        "no instrumented kernel was launched: this run adds only zeros to the report; check the \
         command and its arguments"
    );
    assert_eq!(zeros("7 hip, 7 counts, 7 wrote, 7 ended"), "");
    let shorter = line("7 counts, 7 wrote", SEGV, |run| run.has_snapshots = true);
    assert!(
        shorter.ends_with("lost; a shorter `--snapshot-every` loses less"),
        "{shorter}"
    );
}

#[test]
fn registries_are_paths_to_the_end_of_the_line() {
    let journal = Journal::new().unwrap();
    let lines: &[u8] = b"7 hip\n7 registry /d/a b.kernels.json\n8 registry /d/\xff\n7 ended\n8 reg";
    fs::write(journal.path(), lines).unwrap();
    let paths = journal.registries().unwrap();
    let expected = ["/d/a b.kernels.json".as_bytes(), b"/d/\xff"]
        .map(|path| PathBuf::from(OsStr::from_bytes(path)));
    assert_eq!(paths, BTreeSet::from(expected));
}

#[test]
fn reports_tell_of_mistakes_and_of_ends_without_a_drain() {
    let text = "7 counts\n7 wrote\n7 mistake kernel a: a data race\n7 stuck kernel b: no progress\n\
                7 mistake kernel a: a data race\n\
                8 counts\n8 stuck kernel b: no progress\n8 stuck kernel b: no progress\n\
                8 goes-on kernel b: no progress\n8 ended\n\
                9 mistake kernel a: a data race\n99 counts\n99 mistake kernel a: a data race\n";
    // Number 99 still runs.
    let told = Notes::parse(text).noted(&ending(libc::SIGINT), |process| process.pid == 99);
    let noted = |pid, notes: &[&str]| Noted {
        pid,
        word: ProcessWord::default(),
        command: Vec::new(),
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    };
    let cut_off = "it was killed by SIGINT after its last drain: later counts are lost; `rocov run \
                   --snapshot-every 1s` drains while a program runs";
    let stuck = "kernel b: no progress";
    let expected = [
        noted(7, &[cut_off, "kernel a: a data race", stuck]),
        noted(8, &[stuck]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_status_of_a_shell_is_that_of_one_process() {
    let killed = |text: &str| {
        let told = Notes::parse(text).noted(&ending(137 << 8), |_| false);
        let said = told.into_iter().flat_map(|process| process.notes);
        said.map(|note| note.contains("SIGKILL"))
            .collect::<Vec<_>>()
    };
    assert_eq!(killed("8 counts\n"), [true]);
    assert_eq!(killed("8 counts\n9 counts\n"), [false; 2]);
    // The program itself has this status.
    assert_eq!(killed("7 counts\n9 counts\n"), [true, false]);
}

#[test]
fn a_process_that_was_cut_off_is_named_by_its_command_and_label() {
    let snapshots = "`rocov run --snapshot-every 1s` drains while a program runs";
    for (notes, status, who) in [
        (
            "8 program unit/loop\t./loop\t-n\ttwo words, 8 counts",
            1 << 8,
            "`./loop -n 'two words'` (process 8, label unit/loop) ended",
        ),
        (
            "8 program \t./loop, 8 counts",
            libc::SIGTERM,
            "`./loop` (process 8) ended",
        ),
        // The wrapper has become the program.
        (
            "7 program add\t./crash, 7 counts",
            libc::SIGABRT,
            "`./crash` (label add) was killed by SIGABRT",
        ),
        (
            "7 program \t/bin/sh, 7 hip, 7 program \t./crash, 7 counts",
            libc::SIGABRT,
            "`./crash` was killed by SIGABRT",
        ),
    ] {
        let expected =
            format!("{who} before its counters were drained: they are lost; {snapshots}");
        assert_eq!(line(notes, status, |_| {}), expected);
    }
    let said = line("8 program \t./used, 8 hip, 8 ended", 0, |_| {});
    assert!(said.contains("run `rocov doctor ./used`"), "{said}");
}

#[test]
fn code_that_ran_uncounted_is_one_line_for_each_file() {
    let notes = |text: &str| Notes::parse(text).uncounted();
    assert!(notes("7 cuda\n7 counts").is_empty());
    assert_eq!(
        notes("7 uncounted 1\tmodule\tlib x.so\tit has no PTX: compile it"),
        ["a CUDA module of lib x.so runs uncounted: it has no PTX: compile it"]
    );
    let text = "7 uncounted 2\tmodule\tb\tno PTX\n8 uncounted 3\tmodule\tb\tno PTX\n8 uncounted 1\tmodule\tb\ta cubin\n\
                9 uncounted 4\tmodule\ta\told\n9 uncounted 1\tobject\ta\tit is damaged: build it again";
    assert_eq!(
        notes(text),
        [
            "4 CUDA modules of a run uncounted: old",
            "6 CUDA modules of b run uncounted in 2 processes: no PTX; `rocov run -v` prints 1 other reason",
            "a code object of a runs uncounted: it is damaged: build it again",
        ]
    );
}

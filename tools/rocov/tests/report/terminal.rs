//! The messages of a report, and its look on a terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::*;

/// A place with a report whose profile of another code object is left out.
fn with_stranger() -> Place {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    let profile = place.profile(&elf, "gfx90a", 0, 1);
    fs::copy(profile, place.data().join("gfx90a.abcd.0.1.profraw")).unwrap();
    place
}

#[test]
fn a_quiet_report_says_nothing_but_errors_and_gates() {
    let place = with_stranger();
    let loud = place.report(&[]);
    assert!(stderr(&loud).contains("left out: "), "{}", stderr(&loud));
    let quiet = place.report(&[&"--quiet"]);
    assert_eq!(stderr(&quiet), "");
    assert_eq!(quiet.status.code(), Some(0));
    assert_eq!(stdout(&quiet), stdout(&loud));
    let gate = place.report(&[&"-q", &"--fail-under-lines=100"]);
    assert_eq!(gate.status.code(), Some(3));
    let said = stderr(&gate);
    assert!(
        said.lines().all(|line| line.starts_with("rocov: gate: ")),
        "{said}"
    );
    failure(&place.report(&[&"-q", &"--arch=gfx1100"]), 1);
}

/// A place with three sources in folders: of 4, 2 and 1 functions of one line, of which 1, 2 and 0 ran.
fn with_three_sources() -> Place {
    let place = Place::new();
    let folder = place.path().join("library/kernels/elementwise");
    fs::create_dir_all(&folder).unwrap();
    let kernel = |name: &str| format!("extern \"C\" __attribute__((global)) void {name}() {{}}\n");
    for (name, functions, ran) in [
        (
            "library/kernels/elementwise/many.hip",
            &["a", "b", "c", "d"][..],
            1,
        ),
        ("library/whole.hip", &["e", "f"], 2),
        ("none.hip", &["g"], 0),
    ] {
        let path = place.path().join(name);
        let text: String = functions.iter().map(|name| kernel(name)).collect();
        fs::write(&path, text).unwrap();
        let elf = format!("{}.elf", functions[0]);
        let elf = compile_source(&path, place.path(), &elf, "gfx90a", &INSTRUMENTED);
        let count = |name: &str, _: u64| u64::from(functions[..ran].contains(&name));
        let profile = place.profile_path(&elf, "gfx90a", 0);
        profile::write_counts(&elf, &count, RAW_VERSION, &profile);
        place.keep(&elf);
    }
    place
}

/// The names in the first column of a table, without the total.
fn names(table: &str) -> Vec<String> {
    let rows = table.lines().filter(|line| line.contains(".hip"));
    rows.map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_table_fits_the_terminal_and_a_pipe_has_all_of_it() {
    let place = with_three_sources();
    let plain = stdout(&place.report(&[]));
    assert_eq!(stdout(&run(place.command().env("COLUMNS", "40"))), plain);
    let unicode = [("LC_ALL", "C.UTF-8")];
    for (columns, name, has_bar) in [
        ("200", "library/kernels/elementwise/many.hip", true),
        ("100", "library/kernels/elementwise/many.hip", false),
        ("80", "library/…/many.hip", false),
        ("40", "library/…/many.hip", false),
        ("30", "…/many.hip", false),
    ] {
        let variables = [unicode[0], ("COLUMNS", columns)];
        let table = on_a_terminal(&place, "--color=never", &variables);
        let widest = table
            .lines()
            .skip(1)
            .map(|line| line.trim_end().chars().count())
            .max();
        assert!(widest <= columns.parse().ok(), "{columns}: {table}");
        assert_eq!(names(&table)[0], name, "{columns}: {table}");
        let row = table.lines().find(|line| line.starts_with(name)).unwrap();
        // 1 of 4 lines.
        assert!(row.contains("25.00%"), "{table}");
        assert_eq!(
            row.contains("█████░░░░░░░░░░░░░░░"),
            has_bar,
            "{columns}: {table}"
        );
    }
    // A short name needs less room than its columns.
    let variables = [unicode[0], ("COLUMNS", "70")];
    let table = on_a_terminal(&place, "--color=never --include=none.hip", &variables);
    let widest = table
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    assert!(widest <= Some(70), "{table}");
    let ascii = on_a_terminal(
        &place,
        "--color=never",
        &[("LC_ALL", "C"), ("COLUMNS", "200")],
    );
    assert!(ascii.contains(" 25.00% #####---------------"), "{ascii}");
}

/// The number of characters of the widest line.
fn widest(text: &str) -> usize {
    let lengths = text.lines().map(|line| line.trim_end().chars().count());
    lengths.max().unwrap()
}

#[test]
fn missing_lines_fit_the_terminal_too() {
    let place = with_three_sources();
    let many: String = (0..40)
        .map(|number| format!("extern \"C\" __attribute__((global)) void k{number}() {{}}\n\n"))
        .collect();
    let path = place.path().join("holes.hip");
    fs::write(&path, many).unwrap();
    let elf = compile_source(&path, place.path(), "holes.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 0);
    place.keep(&elf);
    let all: Vec<_> = (0..40).map(|number| (2 * number + 1).to_string()).collect();
    let all = all.join(", ");
    let plain = stdout(&place.report(&[&"--show-missing"]));
    assert!(plain.contains(&all), "{plain}");
    for columns in [200, 120, 80, 60, 46] {
        let columns = columns.to_string();
        let variables = [("LC_ALL", "C.UTF-8"), ("COLUMNS", &*columns)];
        let table = on_a_terminal(&place, "--color=never --show-missing", &variables);
        let table = table.split_once("\r\n\r\n").unwrap().1;
        let width = columns.parse().unwrap();
        assert!(widest(table) <= width, "{columns}: {table}");
        let row = table
            .lines()
            .find(|line| line.starts_with("holes.hip"))
            .unwrap();
        let missing = row.rsplit_once("   ").unwrap().1.trim_end();
        let listed = missing.strip_suffix(", …").unwrap();
        assert!(
            all.starts_with(listed) && listed.len() > 5,
            "{columns}: {row}"
        );
        // The rule is as long as the table.
        let rule = table.lines().find(|line| line.starts_with("---")).unwrap();
        assert_eq!(rule.trim_end().len(), widest(table), "{columns}: {table}");
    }
}

#[test]
fn a_terminal_may_know_its_columns_only() {
    let place = with_three_sources();
    let report = format!(
        "stty rows 0 cols 50; {} report -q --color=never",
        env!("CARGO_BIN_EXE_rocov")
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &report, "/dev/null"])
        .env_remove("COLUMNS");
    script.env("TERM", "xterm").current_dir(place.path());
    let table = stdout(&run(&mut script));
    assert!(widest(&table) <= 50, "{table}");
}

#[test]
fn files_are_sorted_as_the_user_asks() {
    let place = with_three_sources();
    let (many, whole, none) = (
        "library/kernels/elementwise/many.hip",
        "library/whole.hip",
        "none.hip",
    );
    for (order, expected) in [
        ("name", [many, whole, none]),
        ("worst", [none, many, whole]),
        ("missed", [many, none, whole]),
        ("uncovered-percent", [none, many, whole]),
    ] {
        let table = stdout(&place.report(&[&format!("--sort={order}")]));
        assert_eq!(names(&table), expected, "{order}: {table}");
        assert!(
            table
                .trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("TOTAL")
        );
    }
}

#[test]
fn a_watched_report_is_printed_again_when_the_data_changes() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 1);
    let mut command = place.command();
    let mut watching = command
        .arg("--watch")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut total_of = |heading: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        assert_eq!(
            lines.find(|line| line.starts_with("gfx90a: ")).unwrap(),
            heading
        );
        lines.find(|line| line.starts_with("TOTAL")).unwrap()
    };
    let first = total_of("gfx90a: 1 profile of 1 code object");
    place.profile(&elf, "gfx90a", 1, 1);
    assert_eq!(total_of("gfx90a: 2 profiles of 1 code object"), first);
    // SAFETY: plain system call on a child that has not been waited for.
    let sent = unsafe { libc::kill(watching.id().cast_signed(), libc::SIGINT) };
    assert_eq!(sent, 0);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
    assert_eq!(lines.count(), 0);
}

#[test]
fn a_watched_report_ends_when_nobody_reads_it() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 1);
    let mut command = place.command();
    let watching = command.arg("--watch").stdout(Stdio::piped()).spawn();
    let mut watching = watching.unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("TOTAL")));
    drop(lines);
    let is_over = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        watching.try_wait().unwrap().is_some()
    });
    if !is_over {
        watching.kill().unwrap();
    }
    let status = watching.wait().unwrap();
    assert_eq!((is_over, status.code()), (true, Some(0)));
}

/// The output of `rocov report ARGUMENTS` on a terminal.
fn on_a_terminal(place: &Place, arguments: &str, variables: &[(&str, &str)]) -> String {
    let report = format!("{} report -q {arguments}", env!("CARGO_BIN_EXE_rocov"));
    let mut script = Command::new("script");
    script.args(["-qec", &report, "/dev/null"]);
    // In CI, colors are wanted whatever the terminal is.
    for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        script.env_remove(variable);
    }
    script.env("TERM", "xterm");
    script.envs(variables.iter().copied());
    stdout(&run(script.current_dir(place.path())))
}

#[test]
fn colors_are_for_terminals_and_for_those_who_want_them() {
    let place = with_stranger();
    let is_colored = |text: &str| text.contains("\x1b[");
    for arguments in ["", "--show"] {
        assert!(
            is_colored(&on_a_terminal(&place, arguments, &[])),
            "{arguments}"
        );
        for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            let text = on_a_terminal(&place, arguments, &[variable]);
            assert!(!is_colored(&text), "{arguments} {variable:?}");
        }
        let never = format!("--color=never {arguments}");
        assert!(
            !is_colored(&on_a_terminal(&place, &never, &[])),
            "{arguments}"
        );
    }
    // All counters are 1, so 8 of 10 lines ran, and one of two branches.
    let colored = stdout(&place.report(&[&"-q", &"--color=always"]));
    for text in [
        "\x1b[32m100.00%\x1b[0m",
        "\x1b[33m80.00%\x1b[0m",
        "\x1b[31m50.00%\x1b[0m",
    ] {
        assert!(
            colored.replace(' ', "").contains(text),
            "{text:?}: {colored:?}"
        );
    }
    let plain = stdout(&place.report(&[&"-q"]));
    assert!(!is_colored(&plain));
    let mut without = colored;
    for code in ["\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"] {
        without = without.replace(code, "");
    }
    assert_eq!(without, plain);
    let file = place.path().join("table.txt");
    run(place
        .command()
        .arg("--output")
        .arg(&file)
        .env("CLICOLOR_FORCE", "1"));
    assert_eq!(fs::read_to_string(file).unwrap(), plain);
}

//! The messages of a report, and its look on a terminal.

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

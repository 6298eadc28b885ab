//! The kernels and loads at addresses.

use rocov_tests::cli::registry::{
    DESCRIPTOR, ENTRY, LOAD_BYTES, code_object, document, kernel, load, write,
};

use super::*;

/// Loaded at 1, gone at 2, another there at 3; elsewhere a second process.
fn reused(place: &Place) {
    let first = code_object("aa", vec![kernel("other", 0), kernel(SCALE, 1)]);
    let second = code_object("bb", vec![kernel(FILL, 0)]);
    let loads = vec![
        load(&first, 0x7f00_0000, 1, Some(2)),
        load(&second, 0x7f00_0000, 3, None),
    ];
    write(&document(7, &[first.clone(), second], loads), &place.data());
    let loads = vec![load(&first, 0x7f00_0000, 1, None)];
    write(&document(8, &[first], loads), &place.data());
}

/// The rows of the table without the heading, as words.
fn rows(output: &Output) -> Vec<Vec<String>> {
    let table = stdout(output);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    table.lines().skip(1).map(words).collect()
}

#[test]
fn an_address_is_what_it_was_at_the_moment() {
    let place = Place::new();
    reused(&place);
    let fill = format!("{:#x}", 0x7f00_0000 + DESCRIPTOR);
    let scale = format!("{:#x}", 0x7f00_0000 + DESCRIPTOR + 0x40);
    let at = |address: &str, generation: &str| {
        let arguments = [
            "--mangled",
            "--pid",
            "7",
            "--address",
            address,
            "--generation",
            generation,
        ];
        command(&place, &arguments).output().unwrap()
    };
    let found = rows(&at(&scale, "1")).concat().join(" ");
    assert_eq!(found, format!("{scale} node7 7 0 1 to 1 aa 0x80 {SCALE}"));
    let found = rows(&at(&fill, "3")).concat().join(" ");
    assert_eq!(found, format!("{fill} node7 7 0 3 on bb 0x40 {FILL}"));

    // In a code object, and of no kernel.
    let found = rows(&at(&scale, "9")).concat().join(" ");
    assert_eq!(found, format!("{scale} node7 7 0 3 on bb 0x80 -"));

    // After the unload and before the next load: the raw value.
    let output = at(&fill, "2");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        rows(&output).concat().join(" "),
        format!("{fill} - - - - - - -")
    );
}

#[test]
fn without_a_moment_all_that_it_was_is_printed() {
    let place = Place::new();
    reused(&place);
    let entry = format!("{:x}", 0x7f00_0000 + ENTRY);
    let beyond = format!("{:#x}", 0x7f00_0000 + LOAD_BYTES);
    let output = command(&place, &["--address", &entry, "--address", &beyond]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "one is not known");
    let rows: Vec<_> = rows(&output).iter().map(|row| row.join(" ")).collect();
    let entry = format!("0x{entry}");
    let expected = [
        format!("{entry} node7 7 0 1 to 1 aa 0x1000 other, first instruction"),
        format!("{entry} node7 7 0 3 on bb 0x1000 {FILL_NAME}, first instruction"),
        format!("{entry} node7 8 0 1 on aa 0x1000 other, first instruction"),
        format!("{beyond} - - - - - - -"),
    ];
    assert_eq!(rows, expected);

    let output = run(&mut command(
        &place,
        &["--address", &entry, "--json", "--pid", "7"],
    ));
    let json = json(&output);
    let answer = &json["addresses"][0];
    assert_eq!(answer["address"], *entry);
    let load = &answer["loads"][1];
    for (field, value) in [
        ("pid", Value::from(7)),
        ("generation", 3.into()),
        ("unload", Value::Null),
        ("elf_address", "0x1000".into()),
        ("name", FILL.into()),
        ("display_name", FILL_NAME.into()),
        ("is", "entry".into()),
        ("uri", "file:///app/bb#offset=4096&size=4000".into()),
    ] {
        assert_eq!(load[field], value, "{field}");
    }
}

#[test]
fn an_address_is_hexadecimal() {
    let place = Place::new();
    reused(&place);
    for arguments in [
        &["--address", "0xg"][..],
        &["--generation", "1"],
        &["--pid", "1"],
    ] {
        let output = command(&place, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

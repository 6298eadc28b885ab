//! `rocov kernels` on registries, device ELFs and profiles that the tests make up.

mod address;
mod listing;
mod measured;

use std::process::{Command, Output};

use rocov_tests::cli::place::Place;
use rocov_tests::cli::{rocov, run, stderr, stdout};
use serde_json::Value;

/// The symbols of tests/data/kernels.hip and the names that people know.
const SCALE: &str = "_Z5scalePff";
const FILL: &str = "_Z4fillIiEvPT_S0_";
const SCALE_NAME: &str = "scale(float*, float)";
const FILL_NAME: &str = "void fill<int>(int*, int)";

/// `rocov kernels` in a place.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = rocov();
    command.current_dir(place.path()).arg("kernels");
    command.args(arguments);
    command
}

/// The table, of which nothing is wrong.
fn table(place: &Place, arguments: &[&str]) -> String {
    let output = run(&mut command(place, arguments));
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

/// The names in the table, in order.
fn names(place: &Place, arguments: &[&str]) -> Vec<String> {
    let table = table(place, &[&["--mangled"], arguments].concat());
    let column = table.find("KERNEL").unwrap();
    let name = |line: &str| line[column..].split(' ').next().unwrap().to_owned();
    table.lines().skip(1).map(name).collect()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

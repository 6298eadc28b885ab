//! Adds raw profiles of one code object up: `cargo run --example merge -- sum.profraw a.profraw b.profraw`.

use std::error::Error;
use std::{env, fs};

use rocov::format::profraw::Sum;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = env::args_os().skip(1);
    let output = paths.next().ok_or("name the file to write")?;
    let first = paths.next().ok_or("name raw profiles")?;
    let mut sum = Sum::new(fs::read(first)?)?;
    for path in paths {
        sum.add(&fs::read(path)?)?;
    }
    fs::write(output, sum.bytes())?;
    Ok(())
}

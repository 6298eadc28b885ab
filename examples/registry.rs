//! Prints each load in a kernel registry: `cargo run --example registry -- data/registry/7.kernels.json`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::{env, fs};

use rocov::format::registry::model::Document;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("name a registry")?;
    let document = Document::parse(&fs::read(path)?)?;
    for process in &document.processes {
        for load in &process.loads {
            println!("process {}: {} at {:#x}", process.pid, load.uri, load.base);
            for kernel in &load.kernels {
                println!("  {} at {:#x}", kernel.name, kernel.object);
            }
        }
    }
    Ok(())
}

//! Lists the kernels in a program, a library, a bundle or a device ELF:
//! `cargo run --example kernels -- ./app`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::{env, fs};

use rocov::format::bundle;
use rocov::format::codeobject::CodeObject;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("name a file")?;
    let file = fs::read(path)?;
    for image in bundle::images(&file) {
        let image = image?;
        let code_object = CodeObject::parse(&*image.bytes)?;
        println!("{} for {}", image.identity, code_object.target()?);
        for kernel in code_object.kernels()? {
            let source = kernel.source.as_deref().unwrap_or("unknown source");
            println!("  {} ({source}): {} VGPRs", kernel.name, kernel.vgprs);
        }
    }
    Ok(())
}

//! `rocov kernels --address`: finds the kernel or load at a device address, at a moment or ever.

use anyhow::Result;
use rocov::format::registry::model::{Document, LoadRecord, ProcessRecord};
use serde::Serialize;

use super::schema::VERSION;
use crate::cli::{Address, KernelsArguments};
use crate::support::demangle::demangle;
use crate::term::print;
use crate::term::table::{Heading, table};

/// The output of `--json`.
#[derive(Serialize)]
struct AddressAnswers<'a> {
    /// [`VERSION`].
    rocov_kernels: u32,
    /// The answers, in the order of the arguments.
    addresses: Vec<AddressAnswer<'a>>,
}

#[derive(Serialize)]
struct AddressAnswer<'a> {
    /// The address, as text: `0x7f31c0de0040`.
    address: String,
    /// The loads that it was in; none if it is not known.
    loads: Vec<AddressLoad<'a>>,
}

/// A load that an address was in.
#[derive(Serialize)]
struct AddressLoad<'a> {
    pid: u32,
    host: &'a str,
    /// Generation of the load.
    generation: u64,
    /// Generation of its end.
    unload: Option<u64>,
    agent: usize,
    code_object: Option<&'a str>,
    uri: &'a str,
    /// The offset from the first address of the load, in bytes.
    offset: u64,
    /// The address in the ELF, as text.
    elf_address: String,
    /// Symbol of the kernel that is there.
    name: Option<&'a str>,
    /// The name of the kernel for people.
    display_name: Option<String>,
    /// `object` for the kernel object (descriptor), `entry` for the first instruction.
    is: Option<&'static str>,
}

/// Prints the loads at the addresses. Returns whether all addresses are known.
pub(super) fn print(document: &Document, arguments: &KernelsArguments) -> Result<bool> {
    let answer = |Address(address): &Address| AddressAnswer {
        address: format!("{address:#x}"),
        loads: found(document, *address, arguments),
    };
    let addresses: Vec<_> = arguments.address.iter().map(answer).collect();
    let all_are_known = addresses.iter().all(|answer| !answer.loads.is_empty());
    if arguments.json {
        print::json(&AddressAnswers {
            rocov_kernels: VERSION,
            addresses,
        })?;
    } else {
        let rows: Vec<_> = addresses
            .iter()
            .flat_map(|answer| rows(answer, arguments.mangled))
            .collect();
        print::text(table(&HEADINGS, &rows).as_bytes())?;
    }
    Ok(all_are_known)
}

/// The loads that had `address` in the given generation, or at any time if none is given.
fn found<'a>(
    document: &'a Document,
    address: u64,
    arguments: &KernelsArguments,
) -> Vec<AddressLoad<'a>> {
    let is_asked_for = |process: &&ProcessRecord| {
        let pid = arguments.pid;
        pid.is_none_or(|pid| pid == process.pid)
    };
    let loads = |process: &'a ProcessRecord| {
        let loads: Vec<_> = match arguments.generation {
            Some(generation) => process.lookup(address, generation).into_iter().collect(),
            None => process
                .loads
                .iter()
                .filter(|load| load.holds(address))
                .collect(),
        };
        loads.into_iter().map(move |load| (process, load))
    };
    let processes = document.processes.iter().filter(is_asked_for);
    processes
        .flat_map(loads)
        .map(|(process, load)| AddressLoad::new(process, load, address))
        .collect()
}

impl<'a> AddressLoad<'a> {
    fn new(process: &'a ProcessRecord, load: &'a LoadRecord, address: u64) -> Self {
        let kernel = load.kernel_at(address);
        let is_object = kernel.is_some_and(|kernel| kernel.object == address);
        Self {
            pid: process.pid,
            host: &process.host,
            generation: load.generation,
            unload: load.unload.map(|end| end.generation),
            agent: load.agent,
            code_object: load.code_object.as_deref(),
            uri: &load.uri,
            offset: address - load.base,
            elf_address: format!("{:#x}", address.wrapping_sub(load.delta)),
            name: kernel.map(|kernel| kernel.name.as_str()),
            display_name: kernel.and_then(|kernel| demangle(&kernel.name)),
            is: kernel.map(|_| if is_object { "object" } else { "entry" }),
        }
    }
}

const HEADINGS: [Heading<'_>; 8] = [
    heading("ADDRESS", false),
    heading("HOST", false),
    heading("PID", true),
    heading("AGENT", true),
    heading("GENERATIONS", false),
    heading("CODE OBJECT", false),
    heading("OFFSET", true),
    heading("KERNEL", false),
];

const fn heading(text: &'static str, is_number: bool) -> Heading<'static> {
    Heading { text, is_number }
}

/// The rows of one address. An unknown address has one row with the address only.
fn rows(answer: &AddressAnswer<'_>, mangled: bool) -> Vec<Vec<String>> {
    let unknown = || "-".to_owned();
    if answer.loads.is_empty() {
        let mut row = vec![unknown(); HEADINGS.len()];
        row[0].clone_from(&answer.address);
        return vec![row];
    }
    let row = |found: &AddressLoad<'_>| {
        let name = found.name.map(|name| match &found.display_name {
            Some(display) if !mangled => display.clone(),
            _ => name.to_owned(),
        });
        vec![
            answer.address.clone(),
            found.host.to_owned(),
            found.pid.to_string(),
            found.agent.to_string(),
            match found.unload {
                Some(end) => format!("{} to {}", found.generation, end - 1),
                None => format!("{} on", found.generation),
            },
            found.code_object.map_or_else(unknown, str::to_owned),
            format!("{:#x}", found.offset),
            match (name, found.is) {
                (Some(name), Some("entry")) => format!("{name}, first instruction"),
                (name, _) => name.unwrap_or_else(unknown),
            },
        ]
    };
    answer.loads.iter().map(row).collect()
}

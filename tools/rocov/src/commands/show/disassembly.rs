//! Prints the disassembly of a function, with what a trace has counted of each instruction, or its PTX with the counts of
//! basic blocks.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rocov::format::blocks::Kind;
use rocov::format::blocks::trace::{Executed, at, functions};
use rocov::format::codeobject::{CodeObject, name_ref};
use rocov::format::ptx::{Module, modules};
use rocov::support::diagnostic::fail;

use crate::cli::ShowArguments;
use crate::coverage::line_table::read_elf;
use crate::data::DataListing;
use crate::data::components::Components;
use crate::llvm::{LlvmTools, Tools};
use crate::profdata::{BinaryCounts, CountKind, MergedObject, MergedProfiles};
use crate::support::demangle::{is_called, shown};
use crate::support::failure::failure;
use crate::support::mmap;
use crate::support::printable::printable_code;
use crate::system::command;
use crate::term::exit_status::CommandResult;
use crate::term::print;
use crate::term::warnings::Warnings;

/// Prints the disassembly of the function `wanted` in each code object of the data directories that has it.
///
/// # Errors
///
/// Fails if no code object has it, if it was neither traced nor counted in PTX, or if llvm-objdump is not here or fails.
pub(super) fn show(arguments: &ShowArguments, wanted: &str) -> CommandResult {
    let data = Warnings::printing(|warnings| {
        DataListing::open(&arguments.files, warnings)?
            .complete(false, warnings)?
            .for_report(&[], &[], warnings)
    })?;
    let mut installed = LlvmTools::find_any(None)?;
    let all = Components::default();
    let mut matched =
        Warnings::printing(|warnings| data.match_elfs(&[], &all, &mut installed, warnings))?;
    let merged = Warnings::printing(|warnings| {
        MergedProfiles::merge_data(&mut matched, &data, &installed, warnings)
    })?;
    let mut text = String::new();
    let is_counted = |object: &&MergedObject<'_>| {
        let kinds = [CountKind::Trace, CountKind::Ptx];
        kinds.iter().any(|kind| object.kinds.contains(kind))
    };
    let any_is_counted = merged.objects().any(|object| is_counted(&object));
    // Code that was counted in another way has nothing to show next to code that was.
    for object in merged
        .objects()
        .filter(|object| !any_is_counted || is_counted(object))
    {
        let added = match object.ptx.as_deref() {
            Some(ptx) if object.kinds.contains(&CountKind::Ptx) => {
                add_ptx(&mut text, object, ptx, wanted)
            }
            _ => {
                let tools = installed.newest();
                tools.and_then(|tools| add(&mut text, object, wanted, tools))
            }
        };
        added.with_context(|| format!("cannot disassemble {}", object.name()))?;
    }
    if text.is_empty() && merged.objects().any(|object| lists(object, wanted)) {
        return Err(failure!(
            "{wanted} was inlined, so its instructions are in the functions that call it";
            "name one of these"
        )
        .into());
    }
    if text.is_empty() {
        return Err(failure!(
            "no code object in {data} contains a function {wanted}";
            "`rocov kernels` prints the names of kernels"
        )
        .into());
    }
    let lines: Vec<_> = text
        .lines()
        .map(|line| printable_code(line.as_bytes()))
        .flat_map(|line| [line, b"\n"[..].into()])
        .collect();
    print::text(&lines.concat())?;
    Ok(0)
}

/// Adds the functions in the PTX of a code object that are called `wanted`. The first instruction of each basic block has the
/// number of threads that entered it.
fn add_ptx(text: &mut String, object: &MergedObject<'_>, ptx: &Path, wanted: &str) -> Result<()> {
    let contents = mmap::map(ptx)?;
    let source = str::from_utf8(&contents).with_context(|| ptx.display().to_string())?;
    for source in modules(source) {
        let module = Module::parse(source)?;
        let called = module
            .functions
            .iter()
            .filter(|function| is_called(function.symbol, wanted));
        for function in called {
            let Some(counters) = counters(object, function.key()) else {
                fail!(
                    "{} has no counts of its PTX", shown(function.symbol);
                    "run the program with `rocov run --instrument`"
                );
            };
            let lines = function.blocks.iter().map(|block| block.line);
            let blocks: HashMap<usize, u64> = lines.zip(counters.iter().copied()).collect();
            // The text of a function begins before its name does, in the line of its directive.
            let start = function.text.as_ptr().addr() - source.as_ptr().addr();
            let first = source[..start].matches('\n').count() + 1;
            begin(text, object, function.symbol)?;
            writeln!(text, "{:>11}  PTX", "threads")?;
            for (line, number) in function.text.lines().zip(first..) {
                let count = blocks.get(&number).map(u64::to_string);
                let line = format!("{:>11}  {line}", count.unwrap_or_default());
                writeln!(text, "{}", line.trim_end())?;
            }
        }
    }
    Ok(())
}

/// Adds the functions of a code object that are called `wanted`.
fn add(text: &mut String, object: &MergedObject<'_>, wanted: &str, tools: &Tools) -> Result<()> {
    let contents = mmap::map(&object.elf)?;
    let elf = CodeObject::parse(&contents[..])?;
    for function in functions(&elf)? {
        if !is_called(function.name, wanted) {
            continue;
        }
        let name = Kind::Trace.record_name(function.name);
        let key = (name_ref(name.as_bytes()), Kind::Trace.hash(function.code));
        let Some(counters) = counters(object, key) else {
            fail!(
                "{} has no trace", shown(function.name);
                "run the program with `rocov run --instrument` or `rocov run --trace`"
            );
        };
        let lines = disassembled(&object.elf, function.name, tools)?;
        begin(text, object, function.name)?;
        writeln!(text, "{:>9} {:>11}  instruction", "waves", "lanes")?;
        for line in lines.lines() {
            match address(line) {
                Some(address) => {
                    let offset = address.wrapping_sub(function.address);
                    // llvm-objdump continues up to the next function.
                    if offset >= function.code.len() as u64 {
                        break;
                    }
                    let Executed { waves, lanes } = at(counters, offset).unwrap_or_default();
                    writeln!(text, "{waves:>9} {lanes:>11}  {}", line.trim())?;
                }
                // Before the instructions of a line comes its place in the source.
                None if line.starts_with("; /") => writeln!(text, "{:>21}  {line}", "")?,
                None => {}
            }
        }
    }
    Ok(())
}

/// Returns whether the line table of a code object has the function `wanted`. If the code has no such function by itself, it was
/// inlined.
fn lists(object: &MergedObject<'_>, wanted: &str) -> bool {
    let contents = mmap::map(&object.elf).ok();
    let listed = contents.and_then(|contents| read_elf(&contents, &object.elf).ok());
    let functions = listed.map(|elf| elf.functions).unwrap_or_default();
    // The compiler may have left out the namespace.
    let plain = wanted.rsplit("::").next().unwrap_or(wanted);
    let is_wanted = |name: &str| is_called(name, wanted) || name == plain;
    functions
        .iter()
        .any(|function| is_wanted(&function.description.name))
}

/// The counters of the record with this key, if the code object has it.
fn counters<'a>(object: &'a MergedObject<'_>, key: (u64, u64)) -> Option<&'a [u64]> {
    match &object.counts {
        BinaryCounts::Summed(counts) => Some(&counts.functions.get(&key)?.counters),
        BinaryCounts::Indexed(_) => None,
    }
}

/// Begins the text of a function.
fn begin(text: &mut String, object: &MergedObject<'_>, symbol: &str) -> Result<()> {
    let separator = if text.is_empty() { "" } else { "\n" };
    let name = object.name();
    writeln!(text, "{separator}{} in {name}:", shown(symbol))?;
    Ok(())
}

/// The output of llvm-objdump for a function of an ELF.
fn disassembled(elf: &Path, symbol: &str, tools: &Tools) -> Result<String> {
    let objdump = tools.objdump().with_context(|| {
        format!(
            "no llvm-objdump next to {}: install LLVM's tools, such as the package llvm-{}",
            tools.profdata.display(),
            tools.llvm
        )
    })?;
    let mut objdump = Command::new(objdump);
    objdump.args(["--disassemble", "--line-numbers"]);
    objdump
        .arg(format!("--disassemble-symbols={symbol}"))
        .arg(elf);
    let output = command::output(&mut objdump)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The address in a line of an instruction: `s_endpgm // 000000001950: BF810000`.
fn address(line: &str) -> Option<u64> {
    let (_, comment) = line.rsplit_once("// ")?;
    let (address, _) = comment.split_once(':')?;
    u64::from_str_radix(address, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_instructions_have_an_address() {
        let line = "\tv_mov_b32_e32 v0, 0            // 000000001954: 7E000280 ";
        assert_eq!(address(line), Some(0x1954));
        for other in ["", "; /a/b.hip:7", "0000000000001900 <_Z1kPf>:"] {
            assert_eq!(address(other), None, "{other}");
        }
    }
}

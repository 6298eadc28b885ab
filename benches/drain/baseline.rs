//! What LLVM's own drain does, to measure against.
//!
//! Reproduced is the sequence of calls of compiler-rt's `InstrProfilingPlatformROCmHSA.cpp` and
//! `InstrProfilingPlatformROCm.cpp`, as merged into LLVM in 2026 (llvm/llvm-project#203056, main at
//! 8fd476b84386), one process exit long:
//!
//! - the segment descriptors of the loader, counted, then fetched;
//! - each against a linear list of the pairs of agent and executable that were seen;
//! - every symbol of each pair, with its kind, length of its name, and, where that fits, name and
//!   address;
//! - the bounds table, then a linear list of the bounds that were drained, then the table once more;
//! - one copy for each section that is not empty, each into memory of its own;
//! - the sections put together, pointers adjusted, and one file, overwritten and written through a
//!   small buffer;
//! - the bounds once more along the list.
//!
//! Left out, in its favour: HIP, through which it copies, is not in between; header and padding of
//! the file are reckoned, the host's binary ids not looked for.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rocov::sections::TABLE_SYMBOL;

/// The runtime's functions that it calls.
pub(crate) trait Runtime {
    /// Handles and names of the GPU agents.
    fn agents(&self) -> Vec<(u64, String)>;
    /// Agent and executable of each loaded segment.
    fn segments(&self) -> Vec<(u64, u64)>;
    /// Calls back for each symbol that `executable` has on `agent`.
    fn each_symbol(&self, executable: u64, agent: u64, visit: &mut dyn FnMut(u64));
    /// Whether a symbol is a variable.
    fn is_variable(&self, symbol: u64) -> bool;
    /// Length of a symbol's name.
    fn name_len(&self, symbol: u64) -> usize;
    /// A symbol's name.
    fn name(&self, symbol: u64, len: usize) -> Vec<u8>;
    /// A variable's address.
    fn address(&self, symbol: u64) -> u64;
    /// One copy out of the device, and the wait for it.
    fn copy(&self, address: u64, into: &mut [u8]);
}

/// Buffer of a C stream.
const STREAM: usize = 4096;
/// Bytes of a data record, and where its counters' address is.
const RECORD: usize = 64;
const COUNTER_POINTER: usize = 16;
/// Bytes of a header.
const HEADER: usize = 16 * 8;

type Bounds = [u64; 3];

/// Drains everything that is loaded into `directory`. Returns the number of files.
pub(crate) fn drain(runtime: &dyn Runtime, directory: &Path) -> usize {
    let agents = runtime.agents();
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    let mut drained: Vec<Bounds> = Vec::new();
    for pair in runtime.segments() {
        if pairs.contains(&pair) {
            continue;
        }
        pairs.push(pair);
        let (agent, executable) = pair;
        let Some((_, arch)) = agents.iter().find(|(handle, _)| *handle == agent) else {
            continue;
        };
        runtime.each_symbol(executable, agent, &mut |symbol| {
            if let Some(table) = table(runtime, symbol) {
                let name = format!("{arch}.hsa{}.app.profraw", drained.len());
                drain_one(runtime, table, &mut drained, &directory.join(name));
            }
        });
    }
    drained.len()
}

/// The address of the bounds table, if `symbol` is it.
fn table(runtime: &dyn Runtime, symbol: u64) -> Option<u64> {
    if !runtime.is_variable(symbol) {
        return None;
    }
    let len = runtime.name_len(symbol);
    if len != TABLE_SYMBOL.len() || runtime.name(symbol, len) != TABLE_SYMBOL.as_bytes() {
        return None;
    }
    Some(runtime.address(symbol))
}

fn drain_one(runtime: &dyn Runtime, table: u64, drained: &mut Vec<Bounds>, path: &Path) {
    let [names, _, counters, _, data, _, _] = words(runtime, table);
    let bounds = [data, counters, names];
    if drained.contains(&bounds) {
        return;
    }
    let [names, names_end, counters, counters_end, data, data_end, _] = words(runtime, table);
    let copy = |start: u64, end: u64| {
        let mut bytes = vec![0; (end - start) as usize];
        if !bytes.is_empty() {
            runtime.copy(start, &mut bytes);
        }
        bytes
    };
    let records = copy(data, data_end);
    let counts = copy(counters, counters_end);
    let text = copy(names, names_end);

    let mut together = vec![0; records.len() + counts.len() + text.len()];
    together[..records.len()].copy_from_slice(&records);
    together[records.len()..][..counts.len()].copy_from_slice(&counts);
    together[records.len() + counts.len()..].copy_from_slice(&text);
    for place in (0..records.len()).step_by(RECORD) {
        let field = &mut together[place + COUNTER_POINTER..][..8];
        let pointer = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
        let at = (data + place as u64).wrapping_add(pointer) - counters;
        let moved = (records.len() as u64 + at).wrapping_sub(place as u64);
        field.copy_from_slice(&moved.to_le_bytes());
    }
    let mut file = BufWriter::with_capacity(STREAM, File::create(path).expect("a file"));
    let padding = together.len().next_multiple_of(8) - together.len();
    let parts: [&[u8]; 3] = [&[0; HEADER], &together, &[0; 8][..padding]];
    for part in parts {
        file.write_all(part).expect("room on the disk");
    }
    file.flush().expect("room on the disk");
    if !drained.contains(&bounds) {
        drained.push(bounds);
    }
}

/// Copies the table: start and stop of names, counters and data, and the version's address.
fn words(runtime: &dyn Runtime, table: u64) -> [u64; 7] {
    let mut bytes = [0; 56];
    runtime.copy(table, &mut bytes);
    std::array::from_fn(|word| {
        u64::from_le_bytes(bytes[8 * word..][..8].try_into().expect("8 bytes"))
    })
}

//! The registry as a database in ROCm's rocpd schema, which rocprofv3 fills, too. A query can join the two
//! databases by the URIs of code objects and the names of kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use rocov::format::codeobject::Kernel;
use rocov::format::registry::model::{
    CodeObjectRecord, Document, KernelAddress, LoadRecord, ProcessRecord,
};
use rusqlite::{Connection, Statement, Transaction, params};
use serde_json::json;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::rocpd_schema::{TABLES, VERSION};
use crate::cli::ExportArguments;
use crate::data::zeros::Completion;
use crate::data::{DATABASE, DataListing};
use crate::support::atomic;
use crate::support::demangle::demangle;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// The end of a kernel's name in the runtime, which uses the symbol of its descriptor.
const DESCRIPTOR_SUFFIX: &str = ".kd";

/// Targets that have vector and accumulation registers in one file, so that a code object's number
/// of vector registers is of both.
const UNIFIED: [&str; 3] = ["gfx90a", "gfx94", "gfx95"];

/// Writes the database of a data directory.
pub(super) fn export(arguments: &ExportArguments) -> CommandResult {
    let directory = arguments.directory();
    let registry = Warnings::printing(|warnings| {
        DataListing::open(&[directory], warnings)?.merged_registry(&Completion::default())
    })?;
    for error in &registry.unread {
        print::message(explained(error).within("left out"));
    }
    print::warn(registry.about_groups().as_slice());
    let is_partial = !registry.unread.is_empty();
    let document = &registry.document;
    let output = arguments
        .output
        .clone()
        .unwrap_or_else(|| directory.join(DATABASE));
    let write = |path: &Path| {
        write(document, path).with_context(|| format!("cannot write {}", output.display()))
    };
    if arguments.force {
        atomic::replace(&output, write)?;
    } else {
        atomic::create(&output, write)?;
    }
    let loads = document.processes.iter().flat_map(|process| &process.loads);
    let kernels = loads.clone().map(|load| load.kernels.len()).sum();
    let line = format!(
        "{}: {} with {} and {}\n",
        output.display(),
        count(document.processes.len(), "process"),
        count(loads.count(), "loaded code object"),
        count(kernels, "kernel symbol"),
    );
    print::text(line.as_bytes())?;
    Ok(if is_partial { FAILED } else { 0 })
}

/// Writes the database to the empty file at `path`.
///
/// # Errors
///
/// Fails if SQLite cannot.
fn write(document: &Document, path: &Path) -> Result<()> {
    let mut database = Connection::open(path)?;
    // The file is put in its place when it is whole: nothing is to be rolled back, and no journal
    // may lie about.
    database.execute_batch("PRAGMA journal_mode = OFF; PRAGMA foreign_keys = ON;")?;
    let transaction = database.transaction()?;
    let guid = guid(document);
    let suffix = format!("_{}", guid.replace('-', "_"));
    for table in TABLES {
        transaction.execute_batch(&table.statements(&guid, &suffix))?;
    }
    let mut writer = Writer::new(&transaction, &suffix, document)?;
    for (tag, value) in [
        ("schema_version", VERSION),
        ("uuid", &suffix),
        ("guid", &guid),
    ] {
        writer.metadata.execute(params![tag, value])?;
    }
    for process in &document.processes {
        writer.process(process)?;
    }
    drop(writer);
    transaction.commit()?;
    database.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// A UUID of version 8, which is free to choose: of the contents, so that one registry always gives
/// one database.
fn guid(document: &Document) -> String {
    let hash = xxh3_128(&document.to_json());
    let hash = hash & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let digits = format!("{hash:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

/// SQLite's integers are signed; addresses keep their bits.
fn bits(number: u64) -> i64 {
    number.cast_signed()
}

/// Fills the tables.
struct Writer<'a> {
    metadata: Statement<'a>,
    string: Statement<'a>,
    node: Statement<'a>,
    process: Statement<'a>,
    agent: Statement<'a>,
    code_object: Statement<'a>,
    kernel_symbol: Statement<'a>,
    transaction: &'a Transaction<'a>,
    records: BTreeMap<&'a str, &'a CodeObjectRecord>,
    strings: BTreeSet<String>,
    nodes: BTreeMap<&'a str, i64>,
    pids: BTreeSet<i64>,
    /// The largest process id, and then the ids that are given beyond.
    last_pid: i64,
}

/// The owner of a row: the `id`s of a node and a process.
#[derive(Clone, Copy)]
struct Owner {
    nid: i64,
    pid: i64,
}

impl<'a> Writer<'a> {
    fn new(transaction: &'a Transaction<'a>, suffix: &str, document: &'a Document) -> Result<Self> {
        let insert = |table: &str, columns: &str| {
            let values = vec!["?"; columns.split(',').count()].join(", ");
            transaction.prepare(&format!(
                "INSERT INTO \"rocpd_{table}{suffix}\" ({columns}) VALUES ({values})"
            ))
        };
        let records = document.code_objects.iter();
        Ok(Self {
            metadata: insert("metadata", "tag, value")?,
            string: insert("string", "string")?,
            node: insert("info_node", "hash, machine_id, system_name, hostname")?,
            process: insert(
                "info_process",
                "id, nid, pid, init, start, command, extdata",
            )?,
            agent: insert(
                "info_agent",
                "nid, pid, type, absolute_index, type_index, name, vendor_name, extdata",
            )?,
            code_object: insert(
                "info_code_object",
                "nid, pid, agent_id, uri, load_base, load_size, load_delta, storage_type, extdata",
            )?,
            kernel_symbol: insert(
                "info_kernel_symbol",
                "nid, pid, code_object_id, kernel_name, display_name, kernel_object, \
                 kernarg_segment_size, kernarg_segment_alignment, group_segment_size, \
                 private_segment_size, sgpr_count, arch_vgpr_count, accum_vgpr_count, extdata",
            )?,
            transaction,
            records: records
                .map(|record| (record.identity.as_str(), record))
                .collect(),
            strings: BTreeSet::new(),
            nodes: BTreeMap::new(),
            pids: BTreeSet::new(),
            last_pid: document
                .processes
                .iter()
                .map(|process| process.pid)
                .max()
                .unwrap_or(0)
                .into(),
        })
    }

    fn process(&mut self, process: &'a ProcessRecord) -> Result<()> {
        let owner = Owner {
            nid: self.node(&process.host)?,
            pid: self.process_id(process.pid),
        };
        let start = bits(process.start);
        let extdata = json!({ "epoch": process.epoch });
        self.process.execute(params![
            owner.pid,
            owner.nid,
            process.pid,
            start,
            start,
            process.command.join(" "),
            extdata.to_string(),
        ])?;
        let mut agents = BTreeMap::new();
        for agent in &process.agents {
            self.string(&agent.name)?;
            let extdata = json!({ "isa": agent.isa, "uuid": agent.uuid });
            self.agent.execute(params![
                owner.nid,
                owner.pid,
                "GPU",
                agent.node,
                bits(agent.index as u64),
                agent.name,
                "AMD",
                extdata.to_string(),
            ])?;
            agents.insert(agent.index, self.transaction.last_insert_rowid());
        }
        for load in &process.loads {
            self.load(owner, agents.get(&load.agent).copied(), load)?;
        }
        Ok(())
    }

    /// The name of its host identifies a node.
    fn node(&mut self, host: &'a str) -> Result<i64> {
        if let Some(id) = self.nodes.get(host) {
            return Ok(*id);
        }
        let hash = bits(xxh3_64(host.as_bytes()));
        self.node.execute(params![hash, host, "Linux", host])?;
        let id = self.transaction.last_insert_rowid();
        self.nodes.insert(host, id);
        Ok(id)
    }

    /// The process id, as rocprofv3 has it, unless a process of another host or time has the same.
    fn process_id(&mut self, pid: u32) -> i64 {
        let pid = i64::from(pid);
        if self.pids.insert(pid) {
            return pid;
        }
        self.last_pid += 1;
        self.last_pid
    }

    fn string(&mut self, text: &str) -> Result<()> {
        if self.strings.insert(text.to_owned()) {
            self.string.execute(params![text])?;
        }
        Ok(())
    }

    fn load(&mut self, owner: Owner, agent: Option<i64>, load: &LoadRecord) -> Result<()> {
        let identity = load.code_object.as_deref();
        let record = identity.and_then(|identity| self.records.get(identity).copied());
        self.string(&load.uri)?;
        let is_file = load.uri.starts_with("file:");
        let extdata = json!({
            "generation": load.generation,
            "time": load.time,
            "unload_generation": load.unload.map(|end| end.generation),
            "unload_time": load.unload.map(|end| end.time),
            "executable": format!("{:#x}", load.executable),
            "identity": load.code_object,
            "target": record.map(|record| &record.target),
            "file": record.and_then(|record| record.file.as_ref()),
            "profile": load.profile,
        });
        self.code_object.execute(params![
            owner.nid,
            owner.pid,
            agent,
            load.uri,
            bits(load.base),
            bits(load.size),
            bits(load.delta),
            if is_file { "FILE" } else { "MEMORY" },
            extdata.to_string(),
        ])?;
        let code_object = self.transaction.last_insert_rowid();
        let kernels: BTreeMap<_, _> = record
            .iter()
            .flat_map(|record| &record.kernels)
            .map(|kernel| (kernel.name.as_str(), kernel))
            .collect();
        for address in &load.kernels {
            let kernel = kernels.get(address.name.as_str()).copied();
            let target = record.map_or("", |record| &record.target);
            self.kernel_symbol(owner, code_object, address, kernel, target)?;
        }
        Ok(())
    }

    fn kernel_symbol(
        &mut self,
        owner: Owner,
        code_object: i64,
        address: &KernelAddress,
        kernel: Option<&Kernel>,
        target: &str,
    ) -> Result<()> {
        let name = format!("{}{DESCRIPTOR_SUFFIX}", address.name);
        let display_name = kernel
            .and_then(|kernel| kernel.display_name.clone())
            .or_else(|| demangle(&address.name))
            .unwrap_or_else(|| address.name.clone());
        self.string(&name)?;
        self.string(&display_name)?;
        let extdata = kernel.map_or(json!({}), |kernel| {
            json!({
                "entry": format!("{:#x}", address.entry),
                "wavefront_size": kernel.wavefront_size,
                "max_workgroup_size": kernel.max_workgroup_size,
                "sgpr_spills": kernel.sgpr_spills,
                "vgpr_spills": kernel.vgpr_spills,
                "instrumented": kernel.instrumented,
                "source": kernel.source,
            })
        });
        self.kernel_symbol.execute(params![
            owner.nid,
            owner.pid,
            code_object,
            name,
            display_name,
            bits(address.object),
            kernel.map(|kernel| kernel.kernarg_size),
            kernel.map(|kernel| kernel.kernarg_align),
            kernel.map(|kernel| kernel.group_size),
            kernel.map(|kernel| kernel.private_size),
            kernel.map(|kernel| kernel.sgprs),
            kernel.map(|kernel| arch_vgprs(kernel, target)),
            kernel.map(|kernel| kernel.agprs),
            extdata.to_string(),
        ])?;
        Ok(())
    }
}

/// Vector registers without accumulation registers.
fn arch_vgprs(kernel: &Kernel, target: &str) -> u32 {
    if UNIFIED.iter().any(|unified| target.starts_with(unified)) {
        kernel.vgprs.saturating_sub(kernel.agprs)
    } else {
        kernel.vgprs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_a_uuid_of_the_contents() {
        let mut document = Document::default();
        let empty = guid(&document);
        assert_eq!(guid(&document), empty);
        let parts: Vec<_> = empty.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert!(empty[14..].starts_with('8'), "{empty}");
        assert!("89ab".contains(&empty[19..20]), "{empty}");
        document.rocov_registry += 1;
        assert_ne!(guid(&document), empty);
    }

    #[test]
    fn vector_registers_are_without_accumulation_registers() {
        let kernel = Kernel {
            vgprs: 48,
            agprs: 16,
            ..Kernel::default()
        };
        for (target, vgprs) in [("gfx90a:xnack-", 32), ("gfx942", 32), ("gfx908", 48)] {
            assert_eq!(arch_vgprs(&kernel, target), vgprs, "{target}");
        }
    }
}

//! Describes registries: the loads, and the files next to them that they name.

use std::collections::BTreeSet;
use std::path::Path;

use rocov::diagnostic;
use rocov::format::codeobject::Identity;
use rocov::format::registry::model::{
    CodeObjectRecord, Document, GroupRecord, LoadRecord, ProcessRecord,
};
use rocov::support::diagnostic::Remedy;

use super::description::Description;
use crate::data::paths_start;
use crate::support::mmap::map;
use crate::term::plural::count;
use crate::term::remedy::explained;

/// The next step after a record that does not match the other records, or the files.
const AGAIN: &str = "run the program again, into an empty data directory";

pub(super) fn describe(path: &Path, file: &[u8]) -> Description {
    let mut description = Description::default();
    let document = match Document::parse(file) {
        Ok(document) => document,
        Err(error) => {
            description.damaged(error.diagnostic());
            return description;
        }
    };
    description.line(
        1,
        format_args!(
            "registry, schema version {}: {}, {}",
            document.rocov_registry,
            count(document.code_objects.len(), "code object"),
            count(document.processes.len(), "process record"),
        ),
    );
    let directory = &paths_start(path);
    for code_object in &document.code_objects {
        describe_code_object(&mut description, code_object, directory);
    }
    let identities: BTreeSet<_> = document
        .code_objects
        .iter()
        .map(|code_object| code_object.identity.as_str())
        .collect();
    for process in &document.processes {
        describe_process(&mut description, process, &identities, directory);
    }
    for group in &document.groups {
        describe_group(&mut description, group, &identities);
    }
    description
}

fn describe_code_object(
    description: &mut Description,
    record: &CodeObjectRecord,
    directory: &Path,
) {
    let instrumented = if record.instrumented {
        ", instrumented"
    } else {
        ""
    };
    let file = record.file.as_deref().unwrap_or("not kept");
    description.line(
        1,
        format_args!(
            "code object {} for {}: {}, {}{instrumented}, {file}",
            record.identity,
            record.target,
            count(record.size as usize, "byte"),
            count(record.kernels.len(), "kernel"),
        ),
    );
    if let Some(damage) = &record.damage {
        description
            .damaged(diagnostic!("code object {}: {damage}", record.identity; "build it again"));
    }
    let Some(file) = &record.file else { return };
    let identity = map(&directory.join(file)).and_then(|elf| Ok(Identity::from_image(&elf)?));
    match identity {
        Ok(identity) if identity.as_str() == record.identity => {}
        Ok(identity) => description.damaged(diagnostic!(
            "{file} is code object {identity}, expected {}", record.identity; "{AGAIN}"
        )),
        Err(error) => description.damaged(explained(&error).within(file)),
    }
}

fn describe_process(
    description: &mut Description,
    process: &ProcessRecord,
    identities: &BTreeSet<&str>,
    directory: &Path,
) {
    let (pid, host, command) = (process.pid, &process.host, process.command.join(" "));
    description.line(1, format_args!("process {pid} on {host}: {command}"));
    for agent in &process.agents {
        let isa = agent
            .isa
            .as_deref()
            .unwrap_or("of an unknown instruction set");
        description.line(
            2,
            format_args!("GPU {}: {}, {isa}", agent.index, agent.name),
        );
    }
    if let Some(code) = &process.device_code {
        for file in &code.files {
            let build = file.build.as_deref().unwrap_or("without a build id");
            description.line(
                2,
                format_args!("file with device code: {}, {build}", file.path),
            );
        }
    }
    for said in process.stops.iter().chain(&process.notes) {
        description.line(2, format_args!("{said}"));
    }
    for never in &process.never_loaded {
        description.line(
            2,
            format_args!(
                "never loaded on GPU {}: {} in {}",
                never.agent,
                count(never.code_objects.len(), "code object"),
                never.file
            ),
        );
    }
    for load in &process.loads {
        describe_load(description, load);
        if let Some(identity) = &load.code_object
            && !identities.contains(identity.as_str())
        {
            description.damaged(diagnostic!(
                "load {} of process {pid} is of code object {identity}, which is not listed",
                load.generation; "{AGAIN}"
            ));
        }
        if !process.agents.iter().any(|agent| agent.index == load.agent) {
            description.damaged(diagnostic!(
                "load {} of process {pid} is on GPU {}, which is not listed",
                load.generation, load.agent; "{AGAIN}"
            ));
        }
        if let Some(profile) = &load.profile
            && !directory.join(profile).exists()
        {
            description.damaged(diagnostic!(
                "{profile}, the profile of load {} of process {pid}, does not exist",
                load.generation; "{AGAIN}"
            ));
        }
    }
}

fn describe_group(description: &mut Description, group: &GroupRecord, identities: &BTreeSet<&str>) {
    let processes = group
        .processes
        .iter()
        .map(|process| process.runs.len())
        .sum();
    let command = group.command.join(" ");
    description.line(
        1,
        format_args!(
            "{} on {}: {}",
            count(processes, "process"),
            count(group.processes.len(), "host"),
            command
        ),
    );
    for load in &group.loads {
        let code_object = load.code_object.as_deref().unwrap_or("unknown");
        description.line(
            2,
            format_args!(
                "code object {code_object} on GPU {}: {}",
                load.agent,
                count(usize::try_from(load.times).unwrap_or(usize::MAX), "load")
            ),
        );
        if let Some(identity) = &load.code_object
            && !identities.contains(identity.as_str())
        {
            description.damaged(diagnostic!(
                "a group has loads of code object {identity}, which is not listed"; "{AGAIN}"
            ));
        }
    }
}

fn describe_load(description: &mut Description, load: &LoadRecord) {
    let code_object = load.code_object.as_deref().unwrap_or("unknown");
    let unload = load
        .unload
        .map(|event| format!(", unloaded at {}", event.generation));
    let profile = load.profile.as_ref().map(|profile| format!(", {profile}"));
    description.line(
        2,
        format_args!(
            "load {} on GPU {}: code object {code_object} at {:#x}, {}{}{}",
            load.generation,
            load.agent,
            load.base,
            count(load.size as usize, "byte"),
            unload.unwrap_or_default(),
            profile.unwrap_or_default(),
        ),
    );
}

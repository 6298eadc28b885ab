//! One document for many processes, with groups in the place of processes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::format::registry::groups::Groups;
use crate::format::registry::json;
use crate::format::registry::json::DocumentError;
use crate::format::registry::merge::Merged;
use crate::format::registry::model::{GroupRecord, ProcessRecord, VERSION};

/// The document as text.
#[derive(Serialize)]
struct Text<'a> {
    rocov_registry: u32,
    code_objects: Vec<&'a RawValue>,
    processes: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupRecord>,
}

/// The groups of a document.
#[derive(Deserialize)]
struct GroupsPart {
    #[serde(default)]
    groups: Vec<GroupRecord>,
}

/// Documents of many processes as one, with a [`GroupRecord`] for all processes that ran one build on like GPUs.
///
/// librocov makes no such document: the code that reads records whole is a tenth of its size.
#[derive(Debug, Default)]
pub struct Grouped {
    /// The code objects, and processes that are no part of a group.
    merged: Merged,
    groups: Groups,
    /// True if it leaves processes as they are.
    keeps_processes: bool,
}

impl Grouped {
    /// An empty document that keeps the record of each process. It has only the groups of documents that are added.
    #[must_use]
    pub fn for_processes() -> Self {
        Self {
            keeps_processes: true,
            ..Self::default()
        }
    }

    /// Adds everything in the document `text`. A process that is in a group does not count again.
    ///
    /// # Errors
    /// Fails if `text` is not a document of this version. It then adds no process.
    pub fn add(&mut self, text: &[u8]) -> Result<(), DocumentError> {
        let part: GroupsPart = serde_json::from_slice(text)?;
        self.merged.add(text)?;
        if !self.keeps_processes {
            let processes = std::mem::take(&mut self.merged.processes);
            let processes = processes.values();
            let processes = processes.map(|record| serde_json::from_str(record.get()));
            let processes: Vec<ProcessRecord> = processes.collect::<Result<_, _>>()?;
            for process in processes {
                self.groups.add_process(process);
            }
        }
        for group in part.groups {
            self.groups.add_group(group);
        }
        Ok(())
    }

    /// Returns whether the document is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merged.is_empty() && self.groups.is_empty()
    }

    /// The text of the document.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let Merged {
            code_objects,
            processes,
        } = &self.merged;
        json::to_text(&Text {
            rocov_registry: VERSION,
            code_objects: code_objects
                .values()
                .map(|code_object| &**code_object)
                .collect(),
            processes: processes.values().map(|process| &**process).collect(),
            groups: self.groups.records(),
        })
    }
}

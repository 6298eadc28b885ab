//! Notes about a process of a run, in its registry.

use std::path::Path;

use rocov::format::registry::model::{Document, MAX_STOPS, ProcessRecord};
use rocov::store::{RegistryError, change_or_make_registry};

/// Adds the notes of `process`, which has ended, to the registry at `path`. `process` has no loads, and a start that
/// is not after its own. If it has left no record, this one describes it.
///
/// # Errors
///
/// Fails if the registry cannot be read or written.
pub(crate) fn add(path: &Path, mut process: ProcessRecord) -> Result<(), RegistryError> {
    process.notes.truncate(MAX_STOPS);
    let new = Document {
        processes: vec![process.clone()],
        ..Document::default()
    };
    change_or_make_registry(path, &new, |mut document| {
        let records = document.processes.iter_mut().filter(|record| {
            (record.pid, &record.host) == (process.pid, &process.host)
                && record.start >= process.start
        });
        match records.max_by_key(|record| record.start) {
            Some(known) => {
                known.notes.extend(process.notes);
                known.notes.truncate(MAX_STOPS);
            }
            None => document.processes.push(process),
        }
        document
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rocov::store::{RegistryChange, change_registry};

    use super::*;

    #[test]
    fn notes_go_to_the_process_of_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry/7.kernels.json");
        let process = |start, notes: &[&str]| ProcessRecord {
            pid: 7,
            host: "node7".into(),
            start,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..ProcessRecord::default()
        };
        // The first process of this number has left no registry, the next one a record.
        add(&path, process(5, &["killed"])).unwrap();
        change_registry(&path, |mut document| {
            document.processes.push(process(20, &[]));
            RegistryChange::Replace(document)
        })
        .unwrap();
        add(&path, process(10, &["a race"])).unwrap();
        add(&path, process(30, &["killed again"])).unwrap();
        let document = Document::parse(&fs::read(&path).unwrap()).unwrap();
        let expected = [
            process(5, &["killed"]),
            process(20, &["a race"]),
            process(30, &["killed again"]),
        ];
        assert_eq!(document.processes, expected);
    }
}

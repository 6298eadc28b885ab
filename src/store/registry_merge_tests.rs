use super::document;
use super::tests::{document_of, layout, process, registry};
use crate::format::registry::merge;
use crate::format::registry::model::Document;

fn merged(theirs: &Document, ours: &Document) -> Document {
    let text = merge(&theirs.to_json(), &ours.to_json()).expect("two documents");
    Document::parse(&text).expect("a document")
}

#[test]
fn a_process_that_writes_again_replaces_its_own_record() {
    let mut pool = document_of(7, 100);
    pool = merged(&pool, &document_of(8, 50));
    let mut later = registry(100);
    later.unloaded_all(200);
    let later = document(&later, &process(7), &layout(), |_| None);
    let expected = later.processes[0].clone();
    pool = merged(&pool, &later);
    assert_eq!(pool.processes.len(), 2);
    assert_eq!(pool.processes[1], expected);
    // A process that keeps no device ELFs does not remove those of others.
    assert_eq!(pool.code_objects[0].file.as_deref(), Some("objects/31.elf"));
}

/// Process numbers and start times repeat, on other hosts and over time.
#[test]
fn processes_are_told_apart_by_number_host_and_start() {
    let mut elsewhere = document_of(7, 100);
    elsewhere.processes[0].host = "node8".into();
    let mut pool = document_of(7, 100);
    for other in [elsewhere, document_of(7, 101), document_of(8, 100)] {
        pool = merged(&pool, &other);
    }
    let keys: Vec<_> = pool
        .processes
        .iter()
        .map(|process| (process.start, process.pid, &*process.host))
        .collect();
    let expected = [
        (100, 7, "node7"),
        (100, 7, "node8"),
        (100, 8, "node7"),
        (101, 7, "node7"),
    ];
    assert_eq!(keys, expected);
}

#[test]
fn sixty_four_processes_make_one_text_in_whatever_order_they_come() {
    let merged = |order: &mut dyn Iterator<Item = u32>| {
        let mut pool = Document::default();
        for pid in order {
            pool = merged(&pool, &document_of(pid, 1000 - u64::from(pid)));
        }
        assert_eq!((pool.processes.len(), pool.code_objects.len()), (64, 2));
        pool.to_json()
    };
    let text = merged(&mut (1..=64));
    assert_eq!(text, merged(&mut (1..=64).rev()));
    assert_eq!(
        text,
        merged(&mut (1..=64).map(|number| (number * 37) % 64 + 1))
    );
}

/// A merge keeps fields that a later version adds to a record.
#[test]
fn records_of_others_stay_as_they_are() {
    let theirs = String::from_utf8(document_of(7, 100).to_json()).unwrap();
    let theirs = theirs.replace(r#""pid":7"#, r#""pid":7,"colour":"red""#);
    let ours = document_of(8, 200).to_json();
    let text = String::from_utf8(merge(theirs.as_bytes(), &ours).unwrap()).unwrap();
    assert_eq!(
        text.matches(r#""pid":7,"colour":"red""#).count(),
        1,
        "{text}"
    );
    assert_eq!(Document::parse(text.as_bytes()).unwrap().processes.len(), 2);
}

#[test]
fn what_is_no_document_is_refused() {
    let ours = document_of(8, 200).to_json();
    let whole = String::from_utf8(document_of(7, 100).to_json()).unwrap();
    for text in [
        "mine".to_owned(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace("rocov_registry\":1", "rocov_registry\":2"),
        whole.replace("\"start\"", "\"began\""),
    ] {
        assert!(merge(text.as_bytes(), &ours).is_err(), "{text}");
    }
}

#[test]
fn the_same_code_for_another_target_is_another_code_object() {
    let mut pool = document_of(7, 100);
    let mut other = document_of(8, 100);
    for elf in &mut other.code_objects {
        elf.target = "gfx942".into();
    }
    pool = merged(&pool, &other);
    let found: Vec<_> = pool
        .code_objects
        .iter()
        .map(|elf| (&*elf.identity, &*elf.target))
        .collect();
    let expected = [
        ("31", "gfx90a"),
        ("31", "gfx942"),
        ("32", "gfx90a"),
        ("32", "gfx942"),
    ];
    assert_eq!(found, expected);
}

//! Text from the environment, the runtime and the control socket: name patterns, filters, sizes,
//! times, signals, labels, URIs, targets, requests.
#![no_main]

use std::path::{Component, Path};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rocov::control::{Answer, REQUEST_MAX, Request, socket_path};
use rocov::discover::filter::Filter;
use rocov::format::codeobject::{FileUri, Identity, runs_on, sanitize_target};
use rocov::settings::{Interval, SnapshotSignal, parse_bytes, parse_wait};
use rocov::store::{Expansion, LABELS, Label, ProfileName};

const DIRECTORY: &str = "/data";

fuzz_target!(|words: (&str, &str)| {
    let (one, other) = words;
    let values = Expansion {
        pid: 4711,
        word: "q3ovk2ya".parse().expect("a word"),
        host: other.into(),
        tmpdir: "/tmp".into(),
    };
    if let Ok(name) = ProfileName::parse(one, &values, Path::new(DIRECTORY)) {
        let identity = Identity::from_sections([other.as_bytes()]);
        let profile = name.for_load(other, &identity, 0);
        let file = profile.file_name().expect("a profile has a name");
        let file = file.to_string_lossy();
        assert!(file.starts_with(&sanitize_target(other)), "{file}");
        assert!(file.contains(identity.as_str()), "{file}");
        assert!(name.for_registry().starts_with(name.layout().side()));
    }
    let name = ProfileName::parse("%h/%p", &values, Path::new(DIRECTORY)).expect("a good pattern");
    let identity = Identity::from_sections([other.as_bytes()]);
    let profile = name.for_load("gfx90a", &identity, 0);
    let directory = profile.parent().expect("a profile has a directory");
    let below = directory.strip_prefix(DIRECTORY).expect("below it");
    let mut names = below.components();
    assert!(
        matches!(
            (names.next(), names.next()),
            (Some(Component::Normal(_)), None)
        ),
        "{below:?}"
    );
    if let Ok(filter) = Filter::new(one, other) {
        let _ = filter.admits(Some(Path::new(other)));
    }
    label(one);
    control(one, other);
    control(other, one);
    let _ = (parse_bytes(one), FileUri::parse(one), runs_on(one, other));
});

/// Settings of snapshots, signals and requests: an accepted value reads back as it is written.
fn control(one: &str, other: &str) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    if let Ok(wait) = parse_wait(one) {
        assert!(wait <= DAY, "{wait:?}");
    }
    if let Ok(interval) = one.parse::<Interval>() {
        assert!(
            (Duration::from_millis(10)..=DAY).contains(&interval.0),
            "{interval}"
        );
        assert_eq!(interval.to_string().parse(), Ok(interval));
    }
    if let Ok(signal) = one.parse::<SnapshotSignal>() {
        assert_eq!(signal.to_string().parse(), Ok(signal));
    }
    if let Ok(Some(directory)) = socket_path::directory(one.as_ref(), Some(other.as_ref()), 4711) {
        assert!(directory.is_absolute(), "{directory:?}");
        assert!(socket_path::socket(&directory, 1).starts_with(&directory));
    }
    if let Ok(request) = Request::parse(one) {
        let line = request.to_string();
        assert!(line.len() < REQUEST_MAX && !line.contains('\n'), "{line:?}");
        assert_eq!(Request::parse(&line), Ok(request));
    }
    let _ = Answer::parse(one);
}

/// A label, and names that may lie on disk among the directories of labels.
fn label(text: &str) {
    if let Some(label) = Label::from_directory(Path::new(text)) {
        let directory = label.directory();
        let is_normal = |component| matches!(component, Component::Normal(_));
        assert!(directory.starts_with(LABELS) && directory.components().all(is_normal));
        let _ = label.to_string();
    }
    let Ok(label) = text.parse::<Label>() else {
        return;
    };
    assert_eq!(label.to_string(), text, "it reads as it was given");
    let directory = label.directory();
    let below = directory
        .strip_prefix(LABELS)
        .expect("a directory of labels");
    let names: Vec<_> = below.iter().collect();
    assert_eq!(
        names.len(),
        text.split('/').count(),
        "a directory for each name"
    );
    assert!(names.iter().all(|name| name.len() <= 255), "{below:?}");
    assert_eq!(
        Label::from_directory(below),
        Some(label),
        "it is found again"
    );
}

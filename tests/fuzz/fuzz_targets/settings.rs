//! Words of the environment and of the runtime: name patterns, filters, sizes, URIs, targets.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rocov::codeobject::{FileUri, Identity, runs_on, sanitize_target};
use rocov::filter::Filter;
use rocov::output::{Expansion, ProfileName};
use rocov::registry::parse_bytes;

const DIRECTORY: &str = "/data";

fuzz_target!(|words: (&str, &str)| {
    let (one, other) = words;
    let values = Expansion {
        pid: 4711,
        host: "node7".into(),
        tmpdir: "/tmp".into(),
    };
    if let Ok(name) = ProfileName::parse(one, &values, Path::new(DIRECTORY)) {
        let identity = Identity::of_sections([other.as_bytes()]);
        let profile = name.for_load(other, &identity, 0);
        let file = profile.file_name().expect("a profile has a name");
        let file = file.to_string_lossy();
        assert!(file.starts_with(&sanitize_target(other)), "{file}");
        assert!(file.contains(identity.as_str()), "{file}");
        assert!(name.for_registry().starts_with(name.directory()));
    }
    if let Ok(filter) = Filter::new(one, other) {
        let _ = filter.admits(Some(Path::new(other)));
    }
    let _ = (parse_bytes(one), FileUri::parse(one), runs_on(one, other));
});

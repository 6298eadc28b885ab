//! Patterns and the paths that they expand to.

use super::*;

fn name(pattern: &str) -> Result<ProfileName, PatternError> {
    let values = Expansion {
        pid: 42,
        host: "node7".into(),
        tmpdir: "/tmp".into(),
        ..Expansion::default()
    };
    ProfileName::parse(pattern, &values, Path::new("/data dir"))
}

#[test]
fn no_host_name_leads_out_of_the_directory() {
    for (host, expected) in [
        ("node-7.site_a", "/d/node-7.site_a/x"),
        ("../../outside", "/d/.._.._outside/x"),
        ("/etc", "/d/_etc/x"),
        ("a b\0\u{e9}", "/d/a_b__/x"),
        ("..", "/d/_/x"),
        (".", "/d/_/x"),
        ("", "/d/_/x"),
    ] {
        let values = Expansion {
            host: host.into(),
            ..Expansion::default()
        };
        let name = ProfileName::parse("%h/x.profraw", &values, Path::new("/d")).unwrap();
        let identity = Identity::from_sections([b"x".as_slice()]);
        let profile = name.for_load("gfx90a", &identity, 0);
        let expected = Path::new(expected);
        assert_eq!(profile.parent(), expected.parent(), "{host:?}");
        let registry = expected.strip_prefix("/d").unwrap();
        let registry = Path::new("/.rocov/d/registry").join(registry);
        let registry = registry.with_file_name("x.kernels.json");
        assert_eq!(name.for_registry(), registry, "{host:?}");
    }
}

fn path(pattern: &str) -> String {
    let identity = Identity::from_sections([b"x".as_slice()]);
    let path = name(pattern)
        .unwrap()
        .for_load("gfx90a:xnack-", &identity, 3);
    path.to_str().unwrap().replace(identity.as_str(), "ID")
}

#[test]
fn specifiers_stand_for_what_llvm_says() {
    assert_eq!(
        path("%t/run-%h-%p/100%%.profraw"),
        "/tmp/run-node7-42/gfx90a-xnack-.ID.3.100%.profraw"
    );
    assert_eq!(
        path("plain.profraw"),
        "/data dir/gfx90a-xnack-.ID.3.plain.profraw"
    );
    assert_eq!(path("d/%b"), "/data dir/d/gfx90a-xnack-.ID.3.ID");
    assert_eq!(path("%b/x-%b"), "/data dir/ID/gfx90a-xnack-.ID.3.x-ID");
}

#[test]
fn a_registry_lies_in_the_side_of_the_profiles() {
    let registry = |pattern: &str| name(pattern).unwrap().for_registry();
    for (pattern, expected) in [
        ("%t/%p.profraw", "/tmp.rocov/registry/42.kernels.json"),
        ("raw-%m", "/.rocov/data dir/registry/raw-0.kernels.json"),
        ("./a.b", "/.rocov/data dir/registry/a.b.kernels.json"),
        ("../%p", "/.rocov/registry/42.kernels.json"),
        (
            "d/%b.profraw",
            "/data dir/d.rocov/registry/all.kernels.json",
        ),
        (
            "d/.//%p/e/x-%h",
            "/data dir/d.rocov/registry/42/e/x-node7.kernels.json",
        ),
        ("d/e-%p/x", "/data dir/d.rocov/registry/e-42/x.kernels.json"),
        ("d%%/x", "/data dir/d%.rocov/registry/x.kernels.json"),
        ("%b/x", "/.rocov/data dir/registry/all/x.kernels.json"),
        ("/x", "/.rocov/registry/x.kernels.json"),
        (".profraw", "/.rocov/data dir/registry/.kernels.json"),
    ] {
        assert_eq!(registry(pattern), Path::new(expected), "{pattern}");
    }
    let directory = |pattern: &str| name(pattern).unwrap().layout().directory().to_owned();
    assert_eq!(directory("d/%p/x"), Path::new("/data dir/d"));
    assert_eq!(directory("x"), Path::new("/data dir"));
}

#[test]
fn a_data_directory_has_the_names_that_are_its_own() {
    let data = Path::new("/data");
    let name = |pattern: &str| name(pattern).unwrap().in_data(data);
    for (pattern, expected) in [
        ("/data/profraw/%p.profraw", "/data/registry/42.kernels.json"),
        (
            "/data/profraw/a/%p/x.profraw",
            "/data/registry/a/42/x.kernels.json",
        ),
        ("/data/%p.profraw", "/data.rocov/registry/42.kernels.json"),
        (
            "/data/profraws/%p",
            "/data/profraws.rocov/registry/42.kernels.json",
        ),
    ] {
        assert_eq!(
            name(pattern).for_registry(),
            Path::new(expected),
            "{pattern}"
        );
    }
    let identity = Identity::from_sections([b"x".as_slice()]);
    let name = name("/data/profraw/%p.profraw");
    let profile = name.for_load("gfx90a", &identity, 0);
    let sections = name.for_sections(&profile, 3);
    let expected = format!("/data/sections/gfx90a.{identity}.0.42.3.sections");
    assert_eq!(sections, Path::new(&expected));
}

#[test]
fn profiles_of_a_label_lie_below_and_registries_do_not() {
    let label = "unit tests/add".parse().ok();
    let labelled = name("d/%p.profraw").unwrap().with_label(label.clone());
    assert_eq!(labelled.label(), label.as_ref());
    let identity = Identity::from_sections([b"x".as_slice()]);
    let profile = labelled.for_load("gfx90a", &identity, 0);
    let below = format!("d/labels/unit%20tests/add/gfx90a.{identity}.0.42.profraw");
    assert_eq!(profile, Path::new("/data dir").join(below));
    let registry = Path::new("/data dir/d.rocov/registry/42.kernels.json");
    assert_eq!(labelled.for_registry(), registry);
}

#[test]
fn profiles_of_zeros_have_one_name_in_all_processes() {
    let identity = Identity::from_sections([b"x".as_slice()]);
    for (pattern, expected) in [
        ("d/%p.profraw", "d/gfx90a.ID.0.zero.profraw"),
        ("d/raw-%4m", "d/gfx90a.ID.0.zero"),
        ("%b/a.b", "ID/gfx90a.ID.0.zero.b"),
    ] {
        let label = "unit tests/add".parse().ok();
        let zeros = name(pattern).unwrap().with_label(label).for_zeros();
        assert!(!zeros.is_pooled());
        let profile = zeros.for_load("gfx90a", &identity, 0);
        let expected = expected.replace("ID", identity.as_str());
        assert_eq!(profile, Path::new("/data dir").join(expected), "{pattern}");
        let base = profile.to_str().unwrap().rsplit(".0.").next().unwrap();
        assert!(is_of_zeros(base), "{base}");
    }
    assert!(!is_of_zeros("4711.profraw") && !is_of_zeros("zeros.profraw"));
}

#[test]
fn pools_are_chosen_by_process() {
    assert_eq!(
        path("a-%m.profraw"),
        "/data dir/gfx90a-xnack-.ID.3.a-0.profraw"
    );
    assert_eq!(
        path("a-%4m.profraw"),
        "/data dir/gfx90a-xnack-.ID.3.a-2.profraw"
    );
    let identity = Identity::from_sections([b"x".as_slice()]);
    let pool = name("d/%4m/%b-%m.profraw").unwrap();
    let profile = pool.for_build(Some("0f3c"), "gfx90a", &identity, 3);
    let expected = "/data dir/d/0f3c_2/gfx90a.ID.3.ID-0f3c_0.profraw";
    let expected = expected.replace("ID", identity.as_str());
    assert_eq!(profile, Path::new(&expected), "each build has its own");
    let registry = "/data dir/d.rocov/registry/2/all-0.kernels.json";
    assert_eq!(
        pool.for_registry(),
        Path::new(registry),
        "and all share a registry"
    );
    assert!(name("%m").unwrap().is_pooled());
    assert!(!name("%p").unwrap().is_pooled());
}

#[test]
fn others_are_named() {
    let unknown = |pattern: &str, found: &str| {
        let expected = PatternError::Unknown {
            found: found.into(),
            pattern: pattern.to_owned(),
        };
        assert_eq!(name(pattern), Err(expected));
    };
    unknown("a-%q.profraw", "%q");
    unknown("%12m", "%1");
    unknown("%0m", "%0");
    unknown("x%", "%");
    unknown("%é", "%é");
    assert_eq!(
        name("x%c"),
        Err(PatternError::Continuous {
            pattern: "x%c".into()
        })
    );
    for pattern in ["", "d/", "%b/"] {
        assert_eq!(
            name(pattern),
            Err(PatternError::NoFileName {
                pattern: pattern.into()
            })
        );
    }
}

#[test]
fn a_name_with_a_process_id_has_the_word_of_the_process_too() {
    let values = Expansion {
        pid: 42,
        word: "q3ovk2ya".parse().unwrap(),
        ..Expansion::default()
    };
    let identity = Identity::from_sections([b"x".as_slice()]);
    for (pattern, profile, registry) in [
        ("%p.profraw", "42-q3ovk2ya.profraw", "42-q3ovk2ya"),
        ("%p/x.profraw", "x-q3ovk2ya.profraw", "x-q3ovk2ya"),
        ("x-%p", "x-42-q3ovk2ya", "x-42-q3ovk2ya"),
        ("%p.d/%b", "ID-q3ovk2ya", "all-q3ovk2ya"),
        ("x.profraw", "x.profraw", "x"),
        ("%h-%b.profraw", "_-ID.profraw", "_-all"),
        ("%p-%m.profraw", "42-0.profraw", "42-0"),
    ] {
        let name = ProfileName::parse(pattern, &values, Path::new("/d")).unwrap();
        let path = name.for_load("gfx90a", &identity, 0);
        let file = path.file_name().unwrap().to_str().unwrap();
        let found = file.replace(identity.as_str(), "ID");
        assert_eq!(found, format!("gfx90a.ID.0.{profile}"), "{pattern}");
        let place = name.for_registry();
        assert!(
            place.ends_with(format!("{registry}.kernels.json")),
            "{place:?}"
        );
        let has_word = profile.contains(&values.word.to_string());
        assert_eq!(name.is_of_one_process(), has_word, "{pattern}");
        let parts = ProfileNameParts::parse(file).unwrap();
        let of_llvm = profile
            .replace("-q3ovk2ya", "")
            .replace("ID", identity.as_str());
        assert_eq!(parts.name_of_llvm(), of_llvm);
        assert!(!name.for_zeros().is_of_one_process());
    }
}

#[test]
fn what_names_no_file_is_refused() {
    for pattern in [
        "", "/", "d/", ".", "..", "d/.", "d/..", "%p/", "d/%p/.", "%t/",
    ] {
        let error = name(pattern).unwrap_err();
        assert!(error.names_no_file(), "{pattern}: {error}");
    }
    for pattern in ["...", "d/.x", "%p", "%b", "%p.", "x."] {
        assert!(name(pattern).is_ok(), "{pattern}");
    }
    let find = |pattern: &str| ProfileName::find(pattern, &Expansion::default(), Path::new("/dev"));
    for pattern in ["/dev/null", "null", "./null", "/dev/%%/../null"] {
        assert!(find(pattern).unwrap().is_nowhere(), "{pattern}");
    }
    for (pattern, found) in [
        ("/dev/full", "a device"),
        ("full", "a device"),
        ("/usr", "a directory"),
    ] {
        let said = find(pattern).unwrap_err().diagnostic().to_string();
        let expected = format!(
            "the profile name {pattern:?} is {found}: name a file such as cov/%p.profraw, or /dev/null to write no \
            profiles"
        );
        assert_eq!(said, expected);
    }
    assert!(
        !find("/dev/shm/rocov-no-such/x.profraw")
            .unwrap()
            .is_nowhere()
    );
}

//! The registry and the device ELFs next to the profiles: correct, and never at the cost of counts.

use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};
use rocov::discover::Loader;
use rocov::discover::filter::Filter;
use rocov::drain::{Outcome, Session};
use rocov::format::codeobject::Identity;
use rocov::format::registry::model::{Document, ProcessRecord};
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::{Keeper, Process, ProfileName};
use rocov::support::diagnostic::Remedy;

use crate::files::Mounted;
use crate::support::fake_device::FakeDevice;
use crate::support::profile::raw_profiles;
use crate::{FIRST, SECOND, VECADD, collatz, counts, loaded, merged, output, profile_name, vecadd};

const ALL: Keeping = Keeping {
    document: DocumentWhen::Auto,
    objects: ObjectsKept::Instrumented,
    objects_max: u64::MAX,
};

fn process(pid: u32) -> Process {
    Process {
        pid,
        host: "node7".into(),
        command: vec!["app".into()],
        epoch: 0,
    }
}

/// A drain with the files next to it.
fn drain(session: &mut Session, device: &FakeDevice, name: &ProfileName) -> Outcome {
    let mut outcome = session.drain(device, name);
    outcome.not_kept.extend(session.keep(name));
    outcome
}

fn session(keeping: Keeping, name: &ProfileName) -> Session {
    Session::default().with_keeper(Keeper::new(keeping, process(7), name))
}

fn document(path: &Path) -> Document {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Document::parse(&text).expect("a whole document")
}

/// The document next to profiles of this name, which has one process.
fn the_process(name: &ProfileName) -> (Document, ProcessRecord) {
    let document = document(&name.for_registry());
    let [process] = document.processes.as_slice() else {
        panic!("one process: {:?}", document.processes)
    };
    let process = process.clone();
    (document, process)
}

fn no_complaint(outcome: &Outcome) {
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert!(outcome.not_kept.is_empty(), "{:?}", outcome.not_kept);
}

/// Device addresses of a kernel's descriptor and code, from the ELF's symbols.
fn addresses(image: &[u8], kernel: &str, base: u64) -> (u64, u64) {
    let elf = ElfFile64::<LittleEndian>::parse(image).expect("an ELF");
    let at = |name: &str| {
        let symbol = elf
            .dynamic_symbols()
            .find(|dynamic_symbol| dynamic_symbol.name() == Ok(name));
        base + symbol.expect("a kernel has two symbols").address()
    };
    (at(&format!("{kernel}.kd")), at(kernel))
}

#[test]
fn a_load_is_written_with_its_profile_and_its_elf() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    let mut session = session(ALL, &name);
    no_complaint(&session.loaded(&device, FIRST).unwrap());
    no_complaint(&session.loaded(&device, SECOND).unwrap());
    no_complaint(&session.unloading(&device, SECOND, &name));
    let base = device.base(FIRST);
    no_complaint(&drain(&mut session, &device, &name));

    let (document, process) = the_process(&name);
    assert_eq!(process.agents[0].name, "gfx90a");
    assert_eq!(
        process.agents[0].uuid.as_deref(),
        Some("GPU-0000000000000000")
    );
    assert_eq!(document.code_objects.len(), 2);
    let [one, other] = process.loads.as_slice() else {
        panic!("two loads: {:?}", process.loads)
    };
    assert_eq!((one.generation, other.generation), (1, 2));
    assert_eq!(other.unload.map(|end| end.generation), Some(3));
    assert_eq!(
        (one.unload, one.base, one.executable),
        (None, base, FIRST.0)
    );
    assert!(process.start == one.time && one.time <= other.time);
    for (load, image) in [(one, vecadd()), (other, collatz())] {
        let identity = Identity::from_image(&image).unwrap().to_string();
        assert_eq!(load.code_object.as_ref(), Some(&identity));
        let profile = load.profile.as_ref().expect("a profile");
        assert!(
            profile.starts_with(&format!("profraw/gfx90a.{identity}.0.")),
            "{profile}"
        );
        assert!(directory.path().join(profile).exists());
        let code_object = document
            .code_objects
            .iter()
            .find(|code_object| code_object.identity == identity);
        let code_object = code_object.expect("its record");
        assert!(code_object.instrumented);
        assert_eq!(
            (code_object.target.as_str(), code_object.clang),
            ("gfx90a", Some(22))
        );
        assert_eq!(code_object.size, image.len() as u64);
        let file = code_object.file.as_ref().expect("a kept ELF");
        assert_eq!(*file, format!("objects/gfx90a.{identity}.elf"));
        assert_eq!(fs::read(directory.path().join(file)).unwrap(), image);
    }
    let kernel = one
        .kernels
        .iter()
        .find(|kernel| kernel.name == VECADD)
        .expect("the kernel");
    let expected = addresses(&vecadd(), VECADD, base);
    assert_eq!((kernel.object, kernel.entry), expected);
    let at = one.kernel_at(kernel.object);
    assert_eq!(at.map(|kernel| kernel.name.as_str()), Some(VECADD));
}

#[test]
fn what_is_left_out_of_the_drain_is_in_the_registry() {
    let (directory, name) = output();
    let keeper = Keeper::new(ALL, process(7), &name);
    let filter = Filter::new("", "*").unwrap();
    let mut session = Session::filtered(filter).with_keeper(keeper);
    let device = loaded();
    let loader = Loader {
        file: Some(PathBuf::from("/usr/bin/app")),
        is_hip: false,
    };
    let outcome = session.loaded_by(&device, FIRST, &loader).unwrap();
    assert_eq!((outcome.pairs, outcome.skipped, outcome.found), (1, 1, 0));
    drain(&mut session, &device, &name);
    assert!(raw_profiles(directory.path()).is_empty());
    let (document, process) = the_process(&name);
    assert!(document.code_objects[0].instrumented);
    assert_eq!(process.loads[0].profile, None);
}

#[test]
fn an_elf_out_of_reach_leaves_a_load_without_kernels() {
    let (directory, name) = output();
    let mut device = loaded();
    device.images_gone = true;
    device.count(FIRST, VECADD, &[8, 7]);
    let mut session = session(ALL, &name);
    no_complaint(&drain(&mut session, &device, &name));
    let (document, process) = the_process(&name);
    assert!(document.code_objects.is_empty());
    let load = &process.loads[0];
    assert_eq!((load.code_object.as_ref(), load.kernels.len()), (None, 0));
    assert!(load.profile.is_some());
    assert_eq!(counts(&merged(directory.path()), VECADD), [8, 7]);
}

#[test]
fn nothing_is_written_that_is_not_asked_for() {
    let files = |keeping: Keeping| {
        let (directory, name) = output();
        let device = loaded();
        let mut session = session(keeping, &name);
        session.loaded(&device, FIRST).unwrap();
        no_complaint(&drain(&mut session, &device, &name));
        let has = |file: &Path| file.exists();
        (
            has(&name.for_registry()),
            has(&directory.path().join("objects")),
        )
    };
    let none = Keeping {
        document: DocumentWhen::None,
        objects: ObjectsKept::None,
        ..ALL
    };
    assert_eq!(files(none), (false, false));
    let objects = ObjectsKept::All;
    assert_eq!(files(Keeping { objects, ..none }), (false, true));
    let document = DocumentWhen::Always;
    assert_eq!(files(Keeping { document, ..none }), (true, false));
    assert_eq!(files(ALL), (true, true));
}

#[test]
fn a_document_that_has_not_changed_is_not_written_again() {
    let (_directory, name) = output();
    let device = loaded();
    let mut session = session(ALL, &name);
    drain(&mut session, &device, &name);
    fs::remove_file(name.for_registry()).unwrap();
    device.count(FIRST, VECADD, &[1, 1]);
    drain(&mut session, &device, &name);
    assert!(!name.for_registry().exists());
    session.unloading(&device, FIRST, &name);
    drain(&mut session, &device, &name);
    assert!(name.for_registry().exists());
}

/// The cost of a write at each unload grows with the file, so only the second, fourth, eighth and
/// so on writes.
#[test]
fn a_program_that_loads_and_unloads_writes_now_and_then() {
    let (_directory, name) = output();
    let mut device = loaded();
    let mut session = session(ALL, &name);
    let mut writes = 0;
    for _ in 0..300 {
        session.loaded(&device, FIRST).unwrap();
        no_complaint(&session.unloading(&device, FIRST, &name));
        device.unload(FIRST);
        device.load(FIRST, 0, &vecadd());
        writes += u32::from(fs::remove_file(name.for_registry()).is_ok());
    }
    assert!((8..=10).contains(&writes), "{writes} writes");
    session.keep(&name);
    assert_eq!(the_process(&name).1.loads.len(), 300);
}

#[test]
fn elfs_are_where_the_profiles_go() {
    let (directory, name) = output();
    let device = loaded();
    let mut session = session(ALL, &name);
    session.loaded(&device, FIRST).unwrap();
    let elsewhere = profile_name(&directory.path().join("else/where"), "app.profraw");
    no_complaint(&drain(&mut session, &device, &elsewhere));
    let (document, process) = the_process(&elsewhere);
    let there = elsewhere.layout().side();
    let file = document.code_objects[0].file.as_ref().expect("a kept ELF");
    assert_eq!(fs::read(there.join(file)).unwrap(), vecadd());
    let profile = process.loads[0].profile.as_ref().expect("a profile");
    assert!(there.join(profile).exists());
    assert!(!name.for_registry().exists(), "no drain went there");
}

#[test]
fn an_elf_that_is_there_stays_and_anything_else_is_replaced() {
    let (directory, name) = output();
    let identity = Identity::from_image(&vecadd()).unwrap();
    let path = directory
        .path()
        .join(format!("objects/gfx90a.{identity}.elf"));
    fs::create_dir(path.parent().unwrap()).unwrap();
    let mut damaged = vecadd();
    damaged[0x800] ^= 1;
    let cut = vecadd()[..4000].to_vec();
    for stale in [damaged, cut, collatz(), b"x".to_vec()] {
        fs::write(&path, stale).unwrap();
        let outcome = session(ALL, &name).loaded(&loaded(), FIRST).unwrap();
        no_complaint(&outcome);
        assert_eq!(fs::read(&path).unwrap(), vecadd());
    }
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    session(ALL, &name).loaded(&loaded(), FIRST).unwrap();
    let after = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(before, after, "it was there");
    let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "no temporary file is left");
}

#[test]
fn elfs_past_the_limit_are_not_kept_which_is_said_once() {
    let (directory, name) = output();
    let objects_max = vecadd().len() as u64;
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    let mut session = session(Keeping { objects_max, ..ALL }, &name);
    no_complaint(&session.loaded(&device, FIRST).unwrap());
    let outcome = session.loaded(&device, SECOND).unwrap();
    let [complaint] = outcome.not_kept.as_slice() else {
        panic!("{:?}", outcome.not_kept)
    };
    let identity = Identity::from_image(&collatz()).unwrap();
    let size = collatz().len();
    assert_eq!(
        complaint.diagnostic().to_string(),
        format!(
            "the device ELF of code object {identity} is not kept: with its {size} bytes, the kept ELFs would exceed \
            {objects_max} bytes; raise ROCOV_OBJECTS_MAX (reported once)"
        )
    );
    no_complaint(&session.loaded(&device, SECOND).unwrap());
    drain(&mut session, &device, &name);
    let (document, _) = the_process(&name);
    let kept = document
        .code_objects
        .iter()
        .filter(|code_object| code_object.file.is_some());
    assert_eq!(kept.count(), 1);
    assert_eq!(raw_profiles(directory.path()).len(), 2);
}

#[test]
fn a_full_disk_costs_what_is_kept_and_no_counts() {
    let disk = Mounted::new("size=16k");
    fs::write(disk.path().join("filler"), vec![0; 16 << 10]).unwrap();
    let kept = profile_name(disk.path(), "app.profraw");
    let (directory, name) = output();
    let device = loaded();
    device.count(FIRST, VECADD, &[3, 2]);
    let mut session = session(ALL, &kept);
    let seen = session.loaded(&device, FIRST).unwrap();
    assert_eq!((seen.found, seen.losses.len()), (1, 0), "{:?}", seen.losses);
    // It waits for a drain, which may find room.
    assert!(seen.not_kept.is_empty(), "{:?}", seen.not_kept);
    let missed = session.drain(&device, &kept).not_kept;
    let [complaint] = missed.as_slice() else {
        panic!("{missed:?}")
    };
    let line = complaint.diagnostic().to_string();
    assert!(line.starts_with("the device ELF of code object "), "{line}");
    assert!(
        line.contains("No space left on device (os error 28); pass the file that ran to `rocov report --object`"),
        "{line}"
    );
    let complaints = session.keep(&kept);
    let [complaint] = complaints.as_slice() else {
        panic!("{complaints:?}")
    };
    let line = complaint.diagnostic().to_string();
    let expected = format!(
        "cannot write the registry: cannot write {}/",
        disk.path().display()
    );
    assert!(line.starts_with(&expected), "{line}");

    let outcome = drain(&mut session, &device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(counts(&merged(directory.path()), VECADD), [3, 2]);
}

#[test]
fn a_directory_in_the_way_costs_what_is_kept_and_no_counts() {
    let (directory, name) = output();
    let identity = Identity::from_image(&vecadd()).unwrap();
    let elf = directory
        .path()
        .join(format!("objects/gfx90a.{identity}.elf"));
    fs::create_dir_all(elf).unwrap();
    fs::create_dir_all(name.for_registry()).unwrap();
    let device = loaded();
    device.count(FIRST, VECADD, &[3, 2]);
    let outcome = drain(&mut session(ALL, &name), &device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(outcome.not_kept.len(), 2, "{:?}", outcome.not_kept);
    assert_eq!(counts(&merged(directory.path()), VECADD), [3, 2]);
}

#[test]
fn processes_share_a_pool() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    for pid in [12, 11, 13] {
        let device = loaded();
        let keeper = Keeper::new(ALL, process(pid), &name);
        let mut session = Session::default().with_keeper(keeper);
        no_complaint(&drain(&mut session, &device, &name));
        no_complaint(&session.unloading(&device, FIRST, &name));
        assert!(session.keep(&name).is_empty());
    }
    let document = document(&directory.path().join("registry/app-0.kernels.json"));
    let pids: Vec<u32> = document
        .processes
        .iter()
        .map(|process| process.pid)
        .collect();
    assert_eq!(pids, [12, 11, 13], "by start");
    assert!(
        document
            .processes
            .iter()
            .all(|process| process.loads[0].unload.is_some())
    );
    assert_eq!(document.code_objects.len(), 1);
    assert_eq!(raw_profiles(directory.path()).len(), 1);
}

#[test]
fn a_pool_that_is_none_is_left_alone_and_named() {
    for (text, why) in [
        (
            "{\"rocov_registry\": 99}",
            "registry of schema version 99, expected 1",
        ),
        ("{\"rocov_registry\": 1, ", "not a registry, or damaged: "),
        ("mine", "not a registry, or damaged: "),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), "app-%m.profraw");
        let pool = name.for_registry();
        fs::create_dir(pool.parent().unwrap()).unwrap();
        fs::write(&pool, text).unwrap();
        let mut device = loaded();
        let mut session = session(ALL, &name);
        let outcome = drain(&mut session, &device, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        let [complaint] = outcome.not_kept.as_slice() else {
            panic!("{:?}", outcome.not_kept)
        };
        let line = complaint.diagnostic().to_string();
        let expected = format!("cannot add to {}: {why}", pool.display());
        assert!(line.starts_with(&expected), "{line}");
        let pid = std::process::id();
        let beside = pool.with_file_name(format!("app-0.{pid}.kernels.json"));
        assert!(
            line.ends_with(&format!(
                "; the registry is in {}; move {} away",
                beside.display(),
                pool.display()
            )),
            "{line}"
        );
        assert_eq!(fs::read_to_string(&pool).unwrap(), text);
        assert_eq!(document(&beside).processes[0].loads.len(), 1);

        // rocov prints this once, and writes there from then on.
        device.load(SECOND, 0, &collatz());
        no_complaint(&drain(&mut session, &device, &name));
        assert_eq!(document(&beside).processes[0].loads.len(), 2);
    }
}

/// All processes that have one name add to one registry, whatever the order of their writes.
#[test]
fn processes_of_one_name_share_a_registry() {
    let (_directory, name) = output();
    let with_session = |pid| {
        let keeper = Keeper::new(ALL, process(pid), &name);
        (loaded(), Session::default().with_keeper(keeper))
    };
    let (device, mut first) = with_session(11);
    drain(&mut first, &device, &name);
    assert!(first.keep(&name).is_empty());
    let (other, mut second) = with_session(12);
    drain(&mut second, &other, &name);
    assert!(second.keep(&name).is_empty());
    // The first one has changed, and writes its record again.
    no_complaint(&first.unloading(&device, FIRST, &name));
    assert!(first.keep(&name).is_empty());
    let document = document(&name.for_registry());
    let pids: Vec<u32> = document
        .processes
        .iter()
        .map(|process| process.pid)
        .collect();
    assert_eq!(pids, [11, 12], "by start");
    let profiles = document
        .processes
        .iter()
        .map(|process| process.loads[0].profile.clone());
    let profiles: std::collections::BTreeSet<_> = profiles.collect();
    assert_eq!(profiles.len(), 2, "each has a profile: {profiles:?}");
}

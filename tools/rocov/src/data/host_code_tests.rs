//! The code in a container that an agent takes.

use super::*;

fn container(images: &[(&str, Option<&str>)]) -> CodeContainer {
    let images = images.iter().map(|(target, identity)| CodeImage {
        target: (*target).to_owned(),
        identity: Some(identity.unwrap_or("zz").to_owned()),
        counts: identity.is_some(),
    });
    CodeContainer {
        offset: 4096,
        images: images.collect(),
    }
}

fn agent(name: &str, isa: Option<&str>) -> AgentRecord {
    AgentRecord {
        index: 0,
        name: name.to_owned(),
        isa: isa.map(str::to_owned),
        uuid: None,
        node: None,
    }
}

/// The CUDA C++ Programming Guide, "Binary Compatibility", and nvcc's manual, "Fatbinaries".
#[test]
fn an_nvidia_gpu_takes_the_latest_code() {
    let images = [
        ("sm_75", Some("aa")),
        ("sm_80", Some("bb")),
        ("sm_86", Some("cc")),
        ("sm_90", Some("dd")),
        ("sm_90a", None),
    ];
    let container = container(&images);
    for (gpu, expected) in [
        ("sm_80", &["bb"][..]),
        ("sm_89", &["cc"]),
        // Its own code does not count.
        ("sm_90", &[]),
        ("sm_120", &[]),
    ] {
        // A modelled GPU counts nothing of it.
        for counted in [Counted::WithCounters, Counted::Traced] {
            let taken: Vec<_> = container
                .taken_by(&agent(gpu, None), counted)
                .iter()
                .map(|image| image.identity)
                .collect();
            assert_eq!(taken, expected, "{gpu} {counted:?}");
        }
    }
}

/// LLVM's AMDGPUUsage: a processor runs the code of its generic one, and every feature that the target names
/// must be set alike. A loader prefers the processor's own code.
#[test]
fn an_agent_takes_what_its_loader_would_take() {
    let isa = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-";
    let known = agent("gfx942", Some(isa));
    let unknown = agent("gfx942", None);
    for (images, of_known, of_unknown) in [
        (&[("gfx942", Some("aa"))][..], &["aa"][..], &["aa"][..]),
        (&[("gfx90a", Some("aa"))], &[], &[]),
        (&[("gfx942:xnack+", Some("aa"))], &[], &["aa"]),
        (&[("gfx942:xnack-", Some("aa"))], &["aa"], &["aa"]),
        (&[("gfx9-4-generic", Some("aa"))], &["aa"], &["aa"]),
        (
            &[("gfx9-4-generic", Some("aa")), ("gfx942", Some("bb"))],
            &["bb"],
            &["bb"],
        ),
        // The loader takes this one's own code, which has no counters.
        (
            &[("gfx9-4-generic", Some("aa")), ("gfx942", None)],
            &[],
            &[],
        ),
    ] {
        let container = container(images);
        for (agent, expected) in [(&known, of_known), (&unknown, of_unknown)] {
            let taken: Vec<_> = container
                .taken_by(agent, Counted::WithCounters)
                .iter()
                .map(|image| image.identity)
                .collect();
            assert_eq!(taken, expected, "{images:?} {agent:?}");
        }
    }
}

#[test]
fn a_traced_run_counts_code_without_counters() {
    let agent = agent("gfx942", Some("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"));
    let images = [("gfx90a", None), ("gfx942", None), ("gfx942", Some("aa"))];
    let container = container(&images);
    let taken = |counted| container.taken_by(&agent, counted).into_iter();
    let taken = |counted| {
        taken(counted)
            .map(|image| image.identity)
            .collect::<Vec<_>>()
    };
    assert_eq!(taken(Counted::WithCounters), ["aa"]);
    assert_eq!(taken(Counted::Traced), ["zz", "aa"]);
}

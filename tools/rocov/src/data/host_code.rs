//! The device code in a host file: its code objects, and those of them that a GPU would load.

use anyhow::{Context, Result};
use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::format::bundle::{self, Container, Content, Packing};
use rocov::format::codeobject::cuda::{self, with_sections};
use rocov::format::codeobject::{CodeObject, is_generic, runs_on};
use rocov::format::registry::model::AgentRecord;
use serde::{Deserialize, Serialize};

/// The number of bytes that the compressed bundles of one file may unpack to. rocov skips the rest of them.
const MAX_UNPACKED: u64 = 1 << 30;

/// The device code of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostCode {
    /// The containers that have code objects, by offset.
    containers: Vec<CodeContainer>,
}

/// A container of device code, such as the bundle of a translation unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CodeContainer {
    /// Its offset in the file.
    offset: usize,
    images: Vec<CodeImage>,
}

/// A code object in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CodeImage {
    /// Processor and features, such as `gfx90a:xnack-`.
    target: String,
    /// Its identity, if that is known.
    identity: Option<String>,
    /// True if it has counters.
    counts: bool,
}

/// The code objects whose executions a run has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Those with counters.
    WithCounters,
    /// All for AMD GPUs, as the device counts what it executes.
    Traced,
}

/// A code object that a run would have counted, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CountingCode<'a> {
    /// The offset of its container in the file.
    pub(crate) container: usize,
    pub(crate) identity: &'a str,
}

impl HostCode {
    /// Looks at all containers in the file with the bytes `file`. HIP cannot load the code of a damaged one
    /// either, so that is skipped.
    pub(crate) fn of(file: &[u8]) -> Self {
        let containers = bundle::containers(file).unpacking_at_most(MAX_UNPACKED);
        let containers = containers.filter_map(|container| CodeContainer::of(&container.ok()?));
        Self {
            containers: containers.collect(),
        }
    }

    /// The `counted` code objects that `agent` could load.
    pub(crate) fn taken_by(
        &self,
        agent: &AgentRecord,
        counted: Counted,
    ) -> impl Iterator<Item = CountingCode<'_>> {
        let containers = self.containers.iter();
        containers.flat_map(move |container| container.taken_by(agent, counted))
    }
}

impl CodeContainer {
    /// Returns a container, if it has code.
    fn of(container: &Container<'_>) -> Option<Self> {
        let images = container.images.iter().filter_map(|image| {
            let is_code = image.content() == Content::CodeObject;
            let elf = with_sections(&image.bytes);
            let elf = CodeObject::parse(&*elf).ok().filter(|_| is_code)?;
            let is_alone = container.packing == Packing::Alone;
            let own_target = || elf.target().ok().filter(|_| is_alone);
            let target = image.target.clone().or_else(own_target)?;
            Some(CodeImage {
                target,
                identity: image.identity().ok().map(|it| it.to_string()),
                counts: elf.profile_sections().are_instrumented(),
            })
        });
        let images: Vec<_> = images.collect();
        (!images.is_empty()).then_some(Self {
            offset: container.offset,
            images,
        })
    }

    /// The `counted` code objects that `agent` could load. Leaves out those for generic processors if there is one
    /// for its own, and cubins for other architectures than the latest.
    fn taken_by(&self, agent: &AgentRecord, counted: Counted) -> Vec<CountingCode<'_>> {
        let taken = self.images.iter().filter(|it| takes(agent, &it.target));
        let taken: Vec<_> = taken.collect();
        let has_own = taken.iter().any(|image| !is_generic(&image.target));
        let rank = |image: &&CodeImage| cuda::rank(&image.target);
        let highest = taken.iter().map(rank).max().flatten();
        let chosen = taken
            .into_iter()
            .filter(|image| !(has_own && is_generic(&image.target)) && rank(image) == highest);
        let is_counted =
            |image: &&CodeImage| image.counts || counted == Counted::Traced && highest.is_none();
        let counting = chosen.filter(is_counted);
        let counting = counting.filter_map(|image| image.identity.as_deref());
        counting
            .map(|identity| CountingCode {
                container: self.offset,
                identity,
            })
            .collect()
    }
}

/// Takes code objects out of the container at `offset` of the file with the bytes `file`: those with these
/// identities, as if these agents had them, and counted them so.
///
/// # Errors
///
/// Fails if the container cannot be read, or lacks one of them.
pub(crate) fn at_rest(
    file: &[u8],
    offset: usize,
    wanted: &[(&str, &Agent, Counted)],
) -> Result<Vec<AtRest>> {
    let container = bundle::container_at(file, offset)?;
    let images = container.images.iter();
    let images = images.filter_map(|image| Some((image.identity().ok()?, image)));
    let images: Vec<_> = images.collect();
    let found = wanted.iter().map(|(identity, agent, counted)| {
        let (_, image) = images
            .iter()
            .find(|(it, _)| it.as_str() == *identity)
            .with_context(|| format!("code object {identity} is not there any more"))?;
        let uri = format!("code object {identity}");
        let at_rest = AtRest::new((*agent).clone(), uri, image.bytes.to_vec())?;
        Ok(match counted {
            Counted::WithCounters => at_rest,
            Counted::Traced => at_rest.traced(),
        })
    });
    found.collect()
}

/// Returns whether `agent` could load code for `target`. Features that are not known may match the target.
fn takes(agent: &AgentRecord, target: &str) -> bool {
    match &agent.isa {
        Some(isa) => runs_on(target, isa),
        None => target
            .split(':')
            .next()
            .is_some_and(|processor| runs_on(processor, &agent.name)),
    }
}

#[cfg(test)]
mod tests {
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
                let taken = container.taken_by(&agent(gpu, None), counted);
                let taken: Vec<_> = taken.iter().map(|it| it.identity).collect();
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
                let taken = container.taken_by(agent, Counted::WithCounters);
                let taken: Vec<_> = taken.iter().map(|it| it.identity).collect();
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
        let taken = |counted| taken(counted).map(|it| it.identity).collect::<Vec<_>>();
        assert_eq!(taken(Counted::WithCounters), ["aa"]);
        assert_eq!(taken(Counted::Traced), ["zz", "aa"]);
    }
}

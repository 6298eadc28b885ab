//! The device code in a host file: its code objects, its PTX with lines, and what of both a GPU would load.

use anyhow::{Context, Result};
use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::format::bundle::{self, Container, Content, Image, Packing, runs_ptx};
use rocov::format::codeobject::cuda::{self, with_sections};
use rocov::format::codeobject::{CodeObject, is_generic, runs_on};
use rocov::format::ptx::{Module, is_instrumented};
use rocov::format::registry::model::AgentRecord;
use serde::{Deserialize, Serialize};

use super::ptx::Ptx;

/// The number of bytes that the compressed bundles of one file may unpack to. rocov skips the rest of them.
const MAX_UNPACKED: u64 = 1 << 30;

/// The device code of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostCode {
    /// The containers that have code objects, by offset.
    containers: Vec<CodeContainer>,
    /// The PTX with lines and without counters of CUDA fat binaries, by the offsets of these. rocov makes such code count
    /// when the driver loads it.
    ptx: Vec<CodePtx>,
}

/// PTX in a fat binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CodePtx {
    /// The offset of the fat binary in the file.
    container: usize,
    /// The `.target` without `sm_`, such as `90a`.
    architecture: String,
    /// The identity of the code object that rocov makes of it.
    identity: String,
    /// The names and the hashes of its functions.
    functions: Vec<FunctionKey>,
}

/// The hash of the name of a function's record, and the hash of the function's text.
pub(crate) type FunctionKey = (u64, u64);

/// PTX that a GPU would load, and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadablePtx<'a> {
    /// The offset of its fat binary in the file.
    pub(crate) container: usize,
    /// The identity of the code object that rocov makes of it.
    pub(crate) identity: &'a str,
    /// Its functions.
    pub(crate) functions: &'a [FunctionKey],
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
        let mut code = Self::default();
        for container in containers.flatten() {
            code.containers.extend(CodeContainer::of(&container));
            code.ptx.extend(ptx_of(&container));
        }
        code
    }

    /// Returns whether the file with the bytes `file` has a container in each place that this names.
    pub(crate) fn fits(&self, file: &[u8]) -> bool {
        let of_code = self.containers.iter().map(|it| it.offset);
        let of_ptx = self.ptx.iter().map(|it| it.container);
        of_code
            .chain(of_ptx)
            .all(|offset| bundle::starts_at(file, offset))
    }

    /// The processors that code objects with counters are for.
    pub(crate) fn processors(&self) -> impl Iterator<Item = &str> {
        let images = self
            .containers
            .iter()
            .flat_map(|container| &container.images);
        let counting = images.filter(|image| image.counts);
        counting.filter_map(|image| image.target.split(':').next())
    }

    /// The identities of all PTX.
    pub(crate) fn ptx_identities(&self) -> impl Iterator<Item = &str> {
        self.ptx.iter().map(|it| it.identity.as_str())
    }

    /// The PTX that the driver would compile for `agent`: that of each fat binary for the latest architecture that the
    /// agent runs. None if the agent is no GPU of NVIDIA.
    pub(crate) fn ptx_taken_by(
        &self,
        agent: &AgentRecord,
    ) -> impl Iterator<Item = LoadablePtx<'_>> {
        let gpu = architecture(&agent.name);
        let of_one = self.ptx.chunk_by(|a, b| a.container == b.container);
        of_one.filter_map(move |all| {
            let gpu = gpu?;
            let fits = all
                .iter()
                .filter(|it| runs_ptx(gpu.into(), &it.architecture));
            let number = |it: &&CodePtx| {
                let digits = it
                    .architecture
                    .trim_end_matches(|it: char| it.is_ascii_alphabetic());
                digits.parse::<u64>().unwrap_or_default()
            };
            let taken = fits.max_by_key(number)?;
            Some(LoadablePtx {
                container: taken.container,
                identity: &taken.identity,
                functions: &taken.functions,
            })
        })
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

/// The number of an architecture of NVIDIA: 90 for `sm_90`.
fn architecture(name: &str) -> Option<u32> {
    name.strip_prefix("sm_")?.parse().ok()
}

/// The PTX of a fat binary that has lines, and no counters of clang.
fn ptx_of(container: &Container<'_>) -> Vec<CodePtx> {
    if !matches!(container.packing, Packing::FatBinary { .. }) {
        return Vec::new();
    }
    let texts = container.images.iter().filter_map(ptx_text);
    let with_lines = texts.filter(|text| has_lines(text) && !is_instrumented(text));
    let nobody = Agent {
        handle: 0,
        index: 0,
        name: String::new(),
        isa: None,
        uuid: None,
        node: None,
    };
    let found = with_lines.filter_map(|text| {
        let module = Module::parse(text).ok()?;
        Some(CodePtx {
            container: container.offset,
            architecture: bundle::ptx_architecture(text.as_bytes())?,
            identity: never_compiled(&nobody, &module)
                .ok()?
                .identity()
                .to_string(),
            functions: function_keys(&module),
        })
    });
    found.collect()
}

/// Returns whether PTX tells of lines. fatbinary takes out the white space before a directive.
fn has_lines(text: &str) -> bool {
    [".loc ", ".loc\t"].iter().any(|it| text.contains(it))
}

/// The functions of PTX.
pub(crate) fn function_keys(module: &Module<'_>) -> Vec<FunctionKey> {
    module.functions.iter().map(|it| it.key()).collect()
}

/// The PTX of an image. `None` if it is something else.
fn ptx_text<'a>(image: &'a Image<'_>) -> Option<&'a str> {
    str::from_utf8(Ptx::of(image)?.text).ok()
}

/// PTX that was never compiled, as if `agent` had it loaded.
fn never_compiled(agent: &Agent, module: &Module<'_>) -> Result<AtRest> {
    Ok(AtRest::of_ptx(agent.clone(), "PTX".to_owned(), module)?)
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

/// Takes code objects and PTX out of the container at `offset` of the file with the bytes `file`: those with these
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
        let image = images.iter().find(|(it, _)| it.as_str() == *identity);
        let Some((_, image)) = image else {
            let texts = container.images.iter().filter_map(ptx_text);
            let modules = texts.filter_map(|text| Module::parse(text).ok());
            let mut made = modules.filter_map(|module| never_compiled(agent, &module).ok());
            return made
                .find(|it| it.identity().as_str() == *identity)
                .with_context(|| format!("code object {identity} is not there any more"));
        };
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

//! The device code in a host file: its code objects, its PTX with lines, and what of both a GPU would load.

use anyhow::{Context, Result};
use rocov::device::Agent;
use rocov::device::elf_file::AtRest;
use rocov::format::bundle::{self, Container, Containers, Content, Image, Packing, runs_ptx};
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
    pub(crate) fn parse(file: &[u8]) -> Self {
        Self::from_containers(bundle::containers(file))
    }

    /// Looks at the containers of the host file with this name in the kpack archive with the bytes `file`.
    pub(crate) fn parse_archive(file: &[u8], host: &str) -> Self {
        Self::from_containers(bundle::containers(file).of_host(host))
    }

    fn from_containers(containers: Containers<'_>) -> Self {
        let containers = containers.unpacking_at_most(MAX_UNPACKED);
        let mut code = Self::default();
        for container in containers.flatten() {
            code.containers
                .extend(CodeContainer::from_container(&container));
            code.ptx.extend(ptx_of(&container));
        }
        code
    }

    /// Returns whether the file with the bytes `file` has a container in each place that this names.
    pub(crate) fn fits(&self, file: &[u8]) -> bool {
        let of_code = self.containers.iter().map(|container| container.offset);
        let of_ptx = self.ptx.iter().map(|ptx| ptx.container);
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
        self.ptx.iter().map(|ptx| ptx.identity.as_str())
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
                .filter(|ptx| runs_ptx(gpu.into(), &ptx.architecture));
            let number = |ptx: &&CodePtx| {
                let digits = ptx
                    .architecture
                    .trim_end_matches(|c: char| c.is_ascii_alphabetic());
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

/// Returns whether PTX names lines. fatbinary takes out the white space before a directive.
fn has_lines(text: &str) -> bool {
    [".loc ", ".loc\t"]
        .iter()
        .any(|directive| text.contains(directive))
}

/// The functions of PTX.
pub(crate) fn function_keys(module: &Module<'_>) -> Vec<FunctionKey> {
    module
        .functions
        .iter()
        .map(|function| function.key())
        .collect()
}

/// The PTX of an image. `None` if it is something else.
fn ptx_text<'a>(image: &'a Image<'_>) -> Option<&'a str> {
    str::from_utf8(Ptx::from_image(image)?.text).ok()
}

/// PTX that was never compiled, as if `agent` had it loaded.
fn never_compiled(agent: &Agent, module: &Module<'_>) -> Result<AtRest> {
    Ok(AtRest::from_ptx(agent.clone(), "PTX".to_owned(), module)?)
}

impl CodeContainer {
    /// Returns a container, if it has code.
    fn from_container(container: &Container<'_>) -> Option<Self> {
        let images = container.images.iter().filter_map(|image| {
            let is_code = image.content() == Content::CodeObject;
            let elf = with_sections(&image.bytes);
            let elf = CodeObject::parse(&*elf).ok().filter(|_| is_code)?;
            let is_alone = container.packing == Packing::Alone;
            let own_target = || elf.target().ok().filter(|_| is_alone);
            let target = image.target.clone().or_else(own_target)?;
            Some(CodeImage {
                target,
                identity: image.identity().ok().map(|identity| identity.to_string()),
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
        let taken: Vec<_> = self
            .images
            .iter()
            .filter(|image| takes(agent, &image.target))
            .collect();
        let has_own = taken.iter().any(|image| !is_generic(&image.target));
        let rank = |image: &&CodeImage| cuda::rank(&image.target);
        let highest = taken.iter().map(rank).max().flatten();
        let chosen = taken
            .into_iter()
            .filter(|image| !(has_own && is_generic(&image.target)) && rank(image) == highest);
        let is_counted =
            |image: &&CodeImage| image.counts || counted == Counted::Traced && highest.is_none();
        let counting = chosen
            .filter(is_counted)
            .filter_map(|image| image.identity.as_deref());
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
    let images: Vec<_> = container
        .images
        .iter()
        .filter_map(|image| Some((image.identity().ok()?, image)))
        .collect();
    let found = wanted.iter().map(|(identity, agent, counted)| {
        let image = images.iter().find(|(file, _)| file.as_str() == *identity);
        let Some((_, image)) = image else {
            let texts = container.images.iter().filter_map(ptx_text);
            let modules = texts.filter_map(|text| Module::parse(text).ok());
            let mut made = modules.filter_map(|module| never_compiled(agent, &module).ok());
            return made
                .find(|image| image.identity().as_str() == *identity)
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
#[path = "host_code_tests.rs"]
mod tests;

//! Profiles of zeros for code that was never loaded (`ROCOV_ZERO=1`).
//!
//! HIP loads a code object when one of its kernels is first launched. One that is never used
//! leaves no profile, and a report does not know of its functions. Here they are looked for in the
//! objects of the process, as it ends.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::sync::Mutex;

use rocov::at_rest::AtRest;
use rocov::codeobject::bundle::images;
use rocov::codeobject::{CodeObject, runs_on};
use rocov::device::{Agent, Device};
use rocov::drain::{Outcome, Session};
use rocov::hsa::HsaDevice;
use rocov::output::ProfileName;

use crate::objects::{self, Object, fat_binary};
use crate::{config, log};

/// The agents of the process, one of each instruction set: HSA may be gone when it ends.
static AGENTS: Mutex<Vec<Agent>> = Mutex::new(Vec::new());

/// Remembers the agents, once, if they will be needed.
pub(crate) fn note_agents(device: &HsaDevice) {
    let Ok(mut agents) = AGENTS.lock() else {
        return;
    };
    if agents.is_empty() && config::zero() {
        *agents = device.agents().unwrap_or_default();
        let mut known = BTreeSet::new();
        agents.retain(|agent| known.insert(agent.isa.clone().unwrap_or(agent.name.clone())));
    }
}

/// Writes a profile of zeros for each code object in the objects of the process that an agent
/// could have loaded, unless a file of its name is there: as that is so for those that were
/// loaded, nothing needs to be known of them. Their device ELFs are kept as those of loaded ones.
pub(crate) fn write_zeros(session: &mut Session, name: &ProfileName, report: impl Fn(&Outcome)) {
    let agents = AGENTS.lock().map(|agents| agents.clone());
    let agents = agents.unwrap_or_default();
    if agents.is_empty() {
        return;
    }
    for file in objects::all().iter().map(Object::mapped_file) {
        if !session.filter().admits(Some(&file)) {
            continue;
        }
        match fat_binary::of_file(&file) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                for outcome in of_bundles(session, &bytes, &file, &agents, name) {
                    report(&outcome);
                }
            }
            Err(error) => cannot_look(&file, &error),
        }
    }
}

/// What became of each code object in `bytes`, the bundles of `file`.
fn of_bundles(
    session: &mut Session,
    bytes: &[u8],
    file: &Path,
    agents: &[Agent],
    name: &ProfileName,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for image in images(bytes) {
        let elf = match image {
            Ok(image) => image.bytes,
            Err(error) => {
                cannot_look(file, &error);
                continue;
            }
        };
        for agent in agents.iter().filter(|agent| takes(agent, &elf)) {
            let uri = format!("{}, never loaded", file.display());
            match AtRest::new(agent.clone(), uri, elf.to_vec()) {
                Ok(device) => outcomes.push(session.drain_unloaded(&device, name)),
                Err(error) => cannot_look(file, &error),
            }
        }
    }
    outcomes
}

fn cannot_look(file: &Path, error: &dyn Display) {
    log::warn(format_args!(
        "cannot look for code that was not used in {}: {error}",
        file.display()
    ));
}

/// Whether `agent` could load the code object `elf`.
fn takes(agent: &Agent, elf: &[u8]) -> bool {
    let target = CodeObject::parse(elf).and_then(|elf| elf.target());
    let isa = agent.isa.as_deref().unwrap_or(&agent.name);
    target.is_ok_and(|target| runs_on(&target, isa))
}

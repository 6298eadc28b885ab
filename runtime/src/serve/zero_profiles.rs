//! Profiles of zeros for code that was never launched.
//!
//! HIP loads a code object when one of its kernels is first launched. An unused code object leaves no
//! profile, and a report does not know its functions. So librocov looks through the fat binaries of the
//! process: those of a library when it is closed, all others when the process ends. A code object gets a
//! profile of zeros if it is instrumented, an agent could have loaded it, and none has.
//! `ROCOV_ZERO=0` leaves it out.
//!
//! Most of a large program is not instrumented. librocov reads the ELF header and the section names of
//! such a code object in memory, and prints nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rocov::device::elf_file::AtRest;
use rocov::device::hsa::HsaDevice;
use rocov::device::{Agent, Device};
use rocov::format::bundle::{BundleError, Container, Image, containers};
use rocov::format::codeobject::{CodeObject, is_generic, runs_on};

use super::fat_binaries;
use super::report::{log_files, report_missing};
use super::state::{State, with_state};
use crate::elect::interposer::has_offload_runtime;
use crate::guest::elf_objects::maps::Maps;
use crate::guest::elf_objects::{self, device_code};
use crate::guest::journal::{self, Note};
use crate::guest::{environment, log, settings, topology};

/// The number of bytes of compressed bundles that a process may still unpack.
static ROOM: AtomicU64 = AtomicU64::new(256 << 20);

/// The agents of the process, one for each instruction set. HSA may be gone when the process ends.
static AGENTS: Mutex<Vec<Agent>> = Mutex::new(Vec::new());

/// Remembers the agents, once, if they will be needed.
pub(super) fn note_agents(device: &HsaDevice) {
    let Ok(mut agents) = AGENTS.lock() else {
        return;
    };
    if agents.is_empty() && settings::zero() {
        *agents = one_of_each(device.agents().unwrap_or_default());
    }
}

/// Writes zeros for a library that is being closed. Its bundle is at the start of `bytes`.
pub(super) fn of_closed(bytes: &[u8]) {
    write(bytes, 1, &|| file_of(bytes));
}

/// Writes zeros when the process ends. If librocov came in behind HIP or later, it does not know the
/// fat binaries, and looks for them in the objects that are loaded now, as for the code of OpenMP.
pub(super) fn of_process() {
    if !settings::zero() {
        return;
    }
    let are_known = fat_binaries::each(|bytes| write(bytes, 1, &|| file_of(bytes)));
    let hip = (!are_known).then_some(device_code::HIP);
    let openmp = has_offload_runtime().then_some(device_code::OPENMP);
    let kinds: Vec<_> = hip.into_iter().chain(openmp).collect();
    if kinds.is_empty() {
        return;
    }
    for object in elf_objects::all() {
        for kind in &kinds {
            if let Some(bytes) = device_code::in_object(&object, *kind) {
                write(bytes, usize::MAX, &|| Some(object.mapped_file()));
            }
        }
    }
}

/// Writes zeros for the first `most` bundles in `bytes`, which are in `file`.
fn write(bytes: &[u8], most: usize, file: &dyn Fn() -> Option<PathBuf>) {
    let agents = agents();
    if agents.is_empty() {
        return;
    }
    let room = ROOM.load(Ordering::Relaxed);
    let mut containers = containers(bytes).unpacking_at_most(room);
    for container in containers.by_ref().take(most) {
        match container {
            Ok(container) => write_container(&container, &agents, file),
            // HIP cannot load such a bundle either. Most likely it holds no instrumented code.
            Err(error) => log_unreadable(file, &error),
        }
    }
    ROOM.store(containers.room(), Ordering::Relaxed);
}

fn write_container(
    container: &Container<'_>,
    agents: &[Agent],
    file: &dyn Fn() -> Option<PathBuf>,
) {
    for agent in agents {
        let mut images = taken(container, agent).peekable();
        if images.peek().is_none() {
            continue;
        }
        let Some(file) = file() else { return };
        let file: Arc<Path> = file.into();
        with_state(|state| {
            if state.look_and_stand_down() || !state.session.filter().admits(Some(&file)) {
                return;
            }
            for image in images {
                write_image(state, image, agent, &file);
            }
        });
    }
}

fn write_image(state: &mut State, image: &Image<'_>, agent: &Agent, file: &Arc<Path>) {
    let uri = format!("{}, never launched", file.display());
    match AtRest::new(agent.clone(), uri, image.bytes.to_vec()) {
        Ok(device) => {
            journal::note(Note::Zero);
            let outcome = state.session.drain_never_loaded(&device, file, &state.name);
            report_missing(&outcome);
            log_files(&outcome);
        }
        Err(error) => log::warn(format_args!(
            "cannot write zeros for the code in {} that was never launched: {error}; reports lack this code: run \
             the program again",
            file.display()
        )),
    }
}

/// Returns the instrumented code objects of a container that `agent` could load. Leaves out those for
/// generic processors if there is one for its own.
fn taken<'a>(
    container: &'a Container<'_>,
    agent: &'a Agent,
) -> impl Iterator<Item = &'a Image<'a>> {
    let all = container.images.iter();
    let taken: Vec<_> = all
        .filter(|image| takes(agent, image.target.as_deref().unwrap_or_default()))
        .collect();
    let is_of_generic = |image: &Image<'_>| image.target.as_deref().is_some_and(is_generic);
    let has_own = taken.iter().any(|image| !is_of_generic(image));
    let taken = taken.into_iter();
    taken.filter(move |image| !(has_own && is_of_generic(image)) && counts(&image.bytes))
}

/// Returns whether `agent` could load code for `target`. Features that are not known may match the
/// target.
fn takes(agent: &Agent, target: &str) -> bool {
    match &agent.isa {
        Some(isa) => runs_on(target, isa),
        None => target
            .split(':')
            .next()
            .is_some_and(|processor| runs_on(processor, &agent.name)),
    }
}

/// Returns whether the code object `elf` is instrumented.
fn counts(elf: &[u8]) -> bool {
    CodeObject::parse(elf).is_ok_and(|elf| elf.profile_sections().are_instrumented())
}

/// Returns the agents that the process has seen. If it has loaded nothing, returns those that HSA would
/// show it.
fn agents() -> Vec<Agent> {
    static OF_MACHINE: OnceLock<Vec<Agent>> = OnceLock::new();
    let seen = AGENTS.lock().map(|agents| agents.clone());
    let seen = seen.unwrap_or_default();
    if !seen.is_empty() {
        return seen;
    }
    let of_machine = OF_MACHINE.get_or_init(|| {
        let visible = environment::variable("ROCR_VISIBLE_DEVICES");
        let visible = visible.map(|visible| visible.to_string_lossy().into_owned());
        one_of_each(topology::agents(visible.as_deref()))
    });
    of_machine.clone()
}

fn one_of_each(mut agents: Vec<Agent>) -> Vec<Agent> {
    let mut known = BTreeSet::new();
    agents.retain(|agent| known.insert(agent.isa.clone().unwrap_or(agent.name.clone())));
    agents
}

/// Returns the file that contains `bytes`, under its old name if it was removed.
fn file_of(bytes: &[u8]) -> Option<PathBuf> {
    Maps::read().file_at(bytes.as_ptr() as usize)
}

fn log_unreadable(file: &dyn Fn() -> Option<PathBuf>, error: &BundleError) {
    let file = file().unwrap_or_default();
    log::verbose(format_args!(
        "cannot look for code that was never launched in {}: {error}",
        file.display()
    ));
}

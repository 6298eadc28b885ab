//! Profiles of zeros for code that was never launched.
//!
//! HIP loads a code object when one of its kernels is first launched. One that is never used leaves
//! no profile, and a report does not know of its functions. So librocov looks through the fat binaries of the
//! process, those of a library when it is closed and all others as the process ends. A code object
//! gets a profile of zeros if it counts, an agent could have loaded it, and none has.
//! `ROCOV_ZERO=0` leaves it out.
//!
//! Most of a large program is not instrumented. librocov reads the ELF header and the section names of
//! such a code object in memory, and prints nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rocov::at_rest::AtRest;
use rocov::codeobject::bundle::{BundleError, Container, Image, containers};
use rocov::codeobject::{CodeObject, is_generic, runs_on};
use rocov::device::{Agent, Device};
use rocov::hsa::HsaDevice;

use crate::journal::{self, Note};
use crate::lifecycle::{self, State};
use crate::objects::{self, fat_binary};
use crate::{caller, config, election, fat_binaries, log, process, topology};

/// How many bytes of compressed bundles a process unpacks in all, to look into them.
static ROOM: AtomicU64 = AtomicU64::new(256 << 20);

/// The agents of the process, one of each instruction set: HSA may be gone when it ends.
static AGENTS: Mutex<Vec<Agent>> = Mutex::new(Vec::new());

/// Remembers the agents, once, if they will be needed.
pub(crate) fn note_agents(device: &HsaDevice) {
    let Ok(mut agents) = AGENTS.lock() else {
        return;
    };
    if agents.is_empty() && config::zero() {
        *agents = one_of_each(device.agents().unwrap_or_default());
    }
}

/// A library is being closed, whose bundle `bytes` start with.
pub(crate) fn of_closed(bytes: &[u8]) {
    if process::may_use_hsa() && !process::is_privileged() && election::may_drain() {
        write(bytes, 1, &|| file_of(bytes));
    }
}

/// The process ends. If its fat binaries are not known, as librocov came in behind HIP or later, they
/// are looked for in the objects that are there now.
pub(crate) fn of_process() {
    if !config::zero() {
        return;
    }
    let are_known = fat_binaries::each(|bytes| write(bytes, 1, &|| file_of(bytes)));
    if !are_known {
        for object in objects::all() {
            if let Some(bytes) = fat_binary::of_object(&object) {
                write(bytes, usize::MAX, &|| Some(object.mapped_file()));
            }
        }
    }
}

/// Writes what is to be written of the first `most` bundles in `bytes`, which are in `file`.
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
            // Of a bundle that cannot be read, HIP can load nothing either.
            Err(error) => cannot_look(file, &error),
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
        lifecycle::with_state(|state| {
            if state.stands_aside() || !state.session.filter().admits(Some(&file)) {
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
            lifecycle::report_missing(&outcome);
            for file in &outcome.files {
                log::verbose(format_args!("wrote {}", file.display()));
            }
        }
        Err(error) => log::warn(format_args!(
            "code in {} that was never launched is not counted as zero: {error}",
            file.display()
        )),
    }
}

/// The code objects of a container that count, and that `agent` could load: of those for generic
/// processors none, if there is one for its own.
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

/// Returns whether `agent` could load code for `target`. If its features are not known, they may be as the
/// target wants them.
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

/// The agents that the process has seen, or, if it has loaded nothing, those that HSA would show it.
fn agents() -> Vec<Agent> {
    static OF_MACHINE: OnceLock<Vec<Agent>> = OnceLock::new();
    let seen = AGENTS.lock().map(|agents| agents.clone());
    let seen = seen.unwrap_or_default();
    if !seen.is_empty() {
        return seen;
    }
    let of_machine = OF_MACHINE.get_or_init(|| {
        let visible = config::variable("ROCR_VISIBLE_DEVICES");
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

/// The file that the memory `bytes` is mapped from, or was before it was removed.
fn file_of(bytes: &[u8]) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    caller::file_at(bytes.as_ptr() as usize, &maps)
}

/// Says it to those who want to know: most likely, the code counts nothing.
fn cannot_look(file: &dyn Fn() -> Option<PathBuf>, error: &BundleError) {
    let file = file().unwrap_or_default();
    log::verbose(format_args!(
        "cannot look for code that was never launched in {}: {error}",
        file.display()
    ));
}

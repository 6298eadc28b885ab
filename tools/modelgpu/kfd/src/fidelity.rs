//! The evidence for the executed opcodes (`ROCOV_MODELGPU_FIDELITY`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use modelgpu_amdgcn::{Evidence, LastBits, Target};

use crate::config::Destination;
use crate::log;
use crate::sys;

/// The opcodes that kernels have executed, by target.
pub(crate) struct Fidelity {
    fd: RawFd,
    executed: Mutex<BTreeMap<&'static str, (Target, BTreeSet<&'static str>)>>,
}

impl Fidelity {
    /// Starts to collect. If the destination cannot be opened, prints a message and returns `None`.
    pub(crate) fn open(destination: &Destination) -> Option<Self> {
        Some(Self {
            fd: log::open(destination, "the file for the evidence of opcodes")?,
            executed: Mutex::default(),
        })
    }

    /// Adds the opcodes of a dispatch.
    pub(crate) fn add(&self, target: Target, mnemonics: BTreeSet<&'static str>) {
        let mut executed = self.executed.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, all) = executed
            .entry(target.name())
            .or_insert_with(|| (target, BTreeSet::new()));
        all.extend(mnemonics);
    }

    /// Writes the opcodes of each target, in one write, so that the lines of a process stay together.
    pub(crate) fn write(&self) {
        let executed = self.executed.lock().unwrap_or_else(PoisonError::into_inner);
        let text: String = executed
            .values()
            .map(|(target, mnemonics)| described(*target, mnemonics))
            .collect();
        sys::write(self.fd, text.as_bytes());
    }
}

/// The lines of a target: each opcode under its best evidence, and those whose last bits the hardware may round in
/// another way.
fn described(target: Target, mnemonics: &BTreeSet<&'static str>) -> String {
    let best = |name: &&&'static str| match Evidence::recorded(target, name).unwrap_or_default() {
        Evidence { silicon: true, .. } => "agrees with a GPU",
        Evidence { compiler: true, .. } => "agrees with LLVM",
        Evidence {
            arithmetic: true, ..
        } => "agrees with arithmetic",
        _ => "follows AMD's guides only",
    };
    let last_bits = |name: &&&'static str| match LastBits::from_mnemonic(name) {
        Some(LastBits::Order) => "a GPU may add in another order",
        Some(LastBits::Approximation) => "a GPU may round differently",
        None => "",
    };
    let mut text = format!("{target}: {} opcodes executed\n", mnemonics.len());
    for what in [
        "agrees with a GPU",
        "agrees with LLVM",
        "agrees with arithmetic",
        "follows AMD's guides only",
        "a GPU may add in another order",
        "a GPU may round differently",
    ] {
        let is_it = |name: &&&'static str| best(name) == what || last_bits(name) == what;
        let names: Vec<&str> = mnemonics.iter().filter(is_it).copied().collect();
        // Writes to a string cannot fail.
        let _ = match names.len() {
            0 => writeln!(text, "{target}: {what}: none"),
            count => writeln!(text, "{target}: {what}: {count}: {}", names.join(" ")),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_listed_by_their_best_evidence() {
        let executed = ["s_endpgm", "v_add_f32", "v_dot2_f32_f16", "v_rcp_f32"];
        let text = described(Target::Gfx90a, &executed.into());
        let wanted = "\
gfx90a: 4 opcodes executed
gfx90a: agrees with a GPU: none
gfx90a: agrees with LLVM: 3: s_endpgm v_add_f32 v_rcp_f32
gfx90a: agrees with arithmetic: none
gfx90a: follows AMD's guides only: 1: v_dot2_f32_f16
gfx90a: a GPU may add in another order: 1: v_dot2_f32_f16
gfx90a: a GPU may round differently: 1: v_rcp_f32
";
        assert_eq!(text, wanted);
    }
}

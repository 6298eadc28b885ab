//! A fault in one call, its allowed cost, and the check of its cost.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rocov::drain::Session;

use crate::fixture::{ALL, Place, Undisturbed, WITHOUT_ELF, WITHOUT_SYMBOLS, device, name_in};
use crate::scripted::{Call, Fault, Times};
use crate::ways::{Left, UNLOADED, Unforeseen, Way};

/// The allowed cost of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Costs {
    /// Nothing: the drain has the call's information from elsewhere, or repeats the call.
    Nothing,
    /// The code object of the call, if its ELF is gone: no other source has its information.
    WithoutElf,
    /// Only a code object without another source: its symbols are unknown to the loader. Without
    /// its ELF it seems to count nothing.
    Unknown,
    /// Like `Unknown`, but the system lacks a resource, and a message reports it.
    Shortage,
    /// The parts of the executable that the call is about.
    Executable,
    /// The first executable of the drain.
    First,
    /// All code that the drain had not seen before.
    Unseen,
    /// All later copies.
    Copies,
    /// The cause is unknown: the code object's counts may be wrong or missing.
    Anything,
}
/// A fault and its properties.
pub(crate) struct Case<'a> {
    pub(crate) undisturbed: &'a Undisturbed,
    pub(crate) way: Way,
    pub(crate) call: Call,
    pub(crate) number: usize,
    pub(crate) fault: Fault,
    pub(crate) times: Times,
    pub(crate) costs: Costs,
}

impl Case<'_> {
    /// Drains with the fault, and again without it.
    pub(crate) fn run(&self, unforeseen: &mut Unforeseen) {
        let device = RefCell::new(device());
        let device = self.way.on(&device);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let name = name_in(directory.path(), "app.profraw");
        let mut session = Session::default();
        device.arm(self.call, self.number, self.fault, self.times);
        let left = self
            .way
            .drain(&mut session, &device, &name, directory.path());
        let what = format!(
            "{:?} {} {:?} {:?}, {:?}: {:#?}",
            self.call, self.number, self.fault, self.times, self.way, left.lines
        );
        let struck = device.struck();
        assert!(!struck.is_empty(), "nothing went wrong: {what}");
        let lost = left.lost(self.undisturbed);
        self.check(&left, &lost, &struck, &what);
        unforeseen.see(&left, self.undisturbed);

        // After the fault, a drain is complete for all code that is still loaded.
        device.disarm();
        let again = self
            .way
            .drain_again(&mut session, &device, &name, directory.path());
        unforeseen.see(&again, self.undisturbed);
        for place in again.lost(self.undisturbed) {
            let is_gone =
                lost.contains(&place) && self.way.is_hooked && UNLOADED.contains(&place.0);
            let is_unknown = !matches!(self.costs, Costs::Nothing | Costs::Copies)
                && struck.iter().any(|struck| is_about(*struck, place));
            assert!(is_gone || is_unknown, "{place:?} is lost for good: {what}");
        }
    }

    /// Code objects without the fault have lost nothing; one line names each code object with it.
    fn check(&self, left: &Left, lost: &BTreeSet<Place>, struck: &[Option<Place>], what: &str) {
        for place in lost {
            let is_struck = struck.iter().any(|struck| is_about(*struck, *place));
            assert!(is_struck, "{place:?} is lost: {what}");
        }
        if self.costs == Costs::Anything {
            return;
        }
        // One line reports the loss of several code objects for one reason.
        let units: BTreeSet<Place> = match self.costs {
            Costs::WithoutElf | Costs::Copies => lost.clone(),
            _ => lost
                .iter()
                .map(|(executable, _)| (*executable, 0))
                .collect(),
        };
        let expected = match self.costs {
            Costs::Nothing => 0,
            Costs::Unseen => 1,
            _ => units.len(),
        };
        match self.costs {
            Costs::Unknown => assert!(left.lines.len() <= expected, "{lost:?}, {what}"),
            _ => assert_eq!(left.lines.len(), expected, "{lost:?}, {what}"),
        }
        let failures = left.outcome.failures();
        assert!(failures <= expected, "{failures}: {what}");
        for line in &left.lines {
            assert!(
                line.contains("counts are lost: ") && !line.contains('\n'),
                "{what}"
            );
            if let (Fault::Io(number), Costs::Shortage) = (self.fault, self.costs) {
                assert!(line.contains(&format!("(os error {number}); ")), "{what}");
            }
            if let Fault::Status(status) = self.fault {
                let failed = format!("{} failed with status {status:#x}", self.call.name());
                assert!(line.contains(&format!("{failed}; ")), "{failed}: {what}");
            }
        }
        if self.times == Times::FromThenOn {
            return;
        }
        let all: BTreeSet<Place> = self.undisturbed.of.keys().copied().collect();
        match self.costs {
            Costs::Nothing => assert!(lost.is_empty(), "{lost:?}, {what}"),
            Costs::Unknown | Costs::Shortage => {
                assert!(
                    lost.iter().all(|(place, _)| *place == WITHOUT_SYMBOLS),
                    "{what}"
                );
            }
            Costs::WithoutElf => assert!(
                lost.iter().all(|(place, _)| *place == WITHOUT_ELF),
                "{what}"
            ),
            // The drain reads again what it could not read at the load.
            _ if self.way.is_hooked => assert!(lost.is_empty(), "{lost:?}, {what}"),
            Costs::Executable => assert_eq!(units.len(), 1, "{what}"),
            Costs::First => assert!(units.iter().eq([&(ALL[0], 0)]), "{lost:?}, {what}"),
            Costs::Unseen => assert_eq!(*lost, all, "{what}"),
            Costs::Copies | Costs::Anything => {}
        }
    }
}

/// Returns whether a call about `struck` may affect `place`.
fn is_about(struck: Option<Place>, (executable, agent): Place) -> bool {
    struck.is_none_or(|(struck_executable, on)| {
        struck_executable == executable && (on == 0 || on == agent)
    })
}

//! The times of labels, windows and dumps.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Duration;

use rocov::device::Device;
use rocov::drain::{Idle, Scope, Session};
use rocov::store::ProfileName;

use crate::EVEN;
use crate::clock::{Time, median, micros, millis, timed};
use crate::fake::{Fake, Prices};
use crate::loads::session;

/// Prints the times of requests with these numbers of loaded code objects, at a price of 20 us for
/// every copy. The requests are a dump after all have counted, a window with all of them, and a
/// label after one has counted, after none has, and while the queues show that nothing can have
/// run.
pub(crate) fn measure(image: &[u8], counts: &[usize]) {
    println!("\nrequests, in memory, 20 us for every copy");
    println!("    n   dump ms  window ms  label us: one counted  none counted  nothing ran");
    for count in counts {
        let prices = Prices {
            copy: EVEN,
            flowing: EVEN,
            query: Duration::ZERO,
        };
        let fake = Fake::new(image, *count, 1, prices);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (session, name) = session(directory.path());
        let mut program = Program {
            fake: &fake,
            session,
            name,
        };
        for executable in fake.executables().expect("executables") {
            let loaded = program.session.loaded(&fake, executable);
            loaded.expect("it is loaded");
        }
        let dump = program.time(*count, |program| program.mark("dump"));
        let window = program.time(*count, |program| {
            program.session.go_on_in(Scope::LeftOut);
            program.mark_as(Scope::LeftOut, &Idle::new());
            program.session.go_on_in(Scope::Unlabelled);
            program.fake.launch(*count);
            program.mark_as(Scope::Unlabelled, &Idle::new());
            program.session.drain(program.fake, &program.name);
        });
        let one = program.time(1, |program| program.mark("one"));
        let none = program.time(0, |program| program.mark("none"));
        // The agent has the handle 0.
        let idle = Idle::from([(0, 1)]);
        program.mark_as(Scope::Unlabelled, &idle);
        let nothing = median(99, || program.mark_as(Scope::Unlabelled, &idle));
        println!(
            "{count:>5} {:>9.2} {:>10.2} {:>22.1} {:>13.1} {:>12.1}",
            millis(dump.wall),
            millis(window.wall),
            micros(one.wall),
            micros(none.wall),
            micros(nothing),
        );
    }
}

/// A program with loaded code objects.
struct Program<'a> {
    fake: &'a Fake,
    session: Session,
    name: ProfileName,
}

impl Program<'_> {
    /// The time of `work` after a launch of this number of code objects: the least of several,
    /// because the first makes directories and files.
    fn time(&mut self, launched: usize, mut work: impl FnMut(&mut Self)) -> Time {
        let fake = self.fake;
        let times = (0..5).map(|_| {
            fake.launch(launched);
            fake.take_spent();
            timed(|| Some(fake.take_spent()), || work(self)).1
        });
        times.min_by_key(|time| time.wall).expect("some")
    }

    fn mark(&mut self, label: &str) {
        let label = label.parse().expect("a label");
        self.mark_as(Scope::Labelled(label), &Idle::new());
    }

    fn mark_as(&mut self, scope: Scope, idle: &Idle) {
        let outcome = self.session.mark(self.fake, &self.name, scope, idle);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    }
}

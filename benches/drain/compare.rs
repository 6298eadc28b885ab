//! A drain compared with copies and writes only.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocov::device::{Device, DeviceError, DeviceRange, Executable, Take, TakeParts};
use rocov_tests::delegate::{AsDevice, Delegate};

use crate::clock::{best, millis, timed};
use crate::loads::session;

/// Times are the best of several drains, each with files in a new directory. "to floor" is rocov's
/// time divided by the floor's; "reads" are copies for each code object.
pub(crate) const HEADS: &str = "    n  rocov ms     (cpu)   floor ms  to floor  reads";

/// Prints the times to drain `executables`, and of copies and writes without any logic. Calls of a
/// runtime in memory have prices, which `spent` returns.
pub(crate) fn compare(
    executables: &[Executable],
    device: &dyn Device,
    spent: impl Fn() -> Option<Duration>,
) {
    const TIMES: usize = 3;
    let counting = Counting {
        device,
        reads: Cell::new(0),
    };
    let mut plan = Plan::default();
    let ours = best(TIMES, |directory| {
        let (mut session, name) = session(directory);
        for executable in executables {
            session.loaded(device, *executable).expect("it is loaded");
        }
        spent();
        counting.reads.set(0);
        let (outcome, time) = timed(&spent, || session.drain(&AsDevice(&counting), &name));
        assert_eq!(
            outcome.files.len(),
            executables.len(),
            "{:?}",
            outcome.losses
        );
        plan = Plan::new(&outcome.files, executables, device);
        time
    });
    let floor = best(TIMES, |directory| {
        spent();
        timed(&spent, || plan.carry_out(device, directory)).1
    });
    println!(
        "{:>5} {:>9.2} ({:>7.2}) {:>10.2} {:>9.2} {:>6.2}",
        executables.len(),
        millis(ours.wall),
        millis(ours.cpu),
        millis(floor.wall),
        ours.wall.as_secs_f64() / floor.wall.as_secs_f64(),
        counting.reads.get() as f64 / executables.len() as f64,
    );
}

/// The copies and writes without any logic.
#[derive(Default)]
struct Plan {
    ranges: Vec<DeviceRange>,
    files: Vec<Vec<u8>>,
}

impl Plan {
    fn new(files: &[PathBuf], executables: &[Executable], device: &dyn Device) -> Self {
        let files: Vec<Vec<u8>> = files
            .iter()
            .map(|file| fs::read(file).expect("a profile"))
            .collect();
        let range = |executable: &Executable| {
            let loaded = device.code_objects(*executable).expect("it is loaded");
            // As many bytes as a drain writes, except for the header; the contents do not matter.
            let DeviceRange { start, len } = loaded[0].segment;
            let len = len.min(files[0].len() as u64);
            DeviceRange { start, len }
        };
        Self {
            ranges: executables.iter().map(range).collect(),
            files,
        }
    }

    fn carry_out(&self, device: &dyn Device, directory: &Path) {
        let write = |place: usize| {
            let [new, path] =
                ["tmp", "profraw"].map(|extension| directory.join(format!("{place}.{extension}")));
            fs::write(&new, &self.files[place]).expect("room on the disk");
            fs::rename(&new, &path).expect("the same directory");
        };
        let whole: Vec<_> = self.ranges.iter().map(|range| vec![*range]).collect();
        let read = device.read_parts(&whole, &mut |place, _| write(place));
        device.read_each(&self.ranges[read..], &mut |place, copied| {
            copied.expect("device memory");
            write(read + place);
        });
    }
}

/// A device that counts copies.
struct Counting<'a> {
    device: &'a dyn Device,
    reads: Cell<usize>,
}

impl Delegate for Counting<'_> {
    fn device(&self) -> &dyn Device {
        self.device
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.reads.set(self.reads.get() + 1);
        self.device.read(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        let copied = ranges.iter().filter(|range| range.len > 0);
        self.reads.set(self.reads.get() + copied.count());
        self.device.read_each(ranges, take);
    }

    fn read_parts(&self, loads: &[Vec<DeviceRange>], take: &mut TakeParts<'_>) -> usize {
        let read = self.device.read_parts(loads, take);
        self.reads.set(self.reads.get() + read);
        read
    }
}

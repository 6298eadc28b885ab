//! Every call of a drain to the device interface, with every status: at the first, a middle and the
//! last call, in a drain at the exit and after earlier unloads, with copies together and one by
//! one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rocov::device::{Agent, DeviceRange, LoadedCodeObject, Symbol};
use rocov::drain::Session;

use crate::case::{Case, Costs};
use crate::figure;
use crate::fixture::{ALL, Undisturbed, device};
use crate::scripted::{Call, Fault, Scripted, Times};
use crate::ways::{Unforeseen, Way};

/// All statuses of hsa.h and hsa_ext_amd.h but success, and one that no release has.
fn statuses() -> impl Iterator<Item = u32> {
    let amd = 40..=46;
    std::iter::once(1)
        .chain(amd)
        .chain(0x1000..=0x1026)
        .chain([0xdead_beef])
}

/// Runs `faults` in the first, a middle and the last call. Returns their number.
fn run_all(
    call: Call,
    costs: Costs,
    faults: &[Fault],
    times: Times,
    undisturbed: &Undisturbed,
    unforeseen: &mut Unforeseen,
) -> usize {
    let mut survived = 0;
    for way in Way::all() {
        let calls = way.calls().get(&call).copied().unwrap_or(0);
        let numbers: BTreeSet<usize> = match calls {
            0 => continue,
            _ => [0, calls / 2, calls - 1].into(),
        };
        for number in numbers {
            for fault in faults {
                let case = Case {
                    undisturbed,
                    way,
                    call,
                    number,
                    fault: *fault,
                    times,
                    costs,
                };
                case.run(unforeseen);
                survived += 1;
            }
        }
    }
    assert!(survived > 0, "{call:?} is never called");
    survived
}

#[test]
fn every_call_may_fail_with_every_status() {
    let of_runtime: Vec<Fault> = statuses()
        .map(Fault::Status)
        .chain([Fault::Missing])
        .collect();
    // EIO, EACCES, EFAULT, ENODEV; ENOMEM, ENFILE, EMFILE.
    let of_elf: Vec<Fault> = [5, 13, 14, 19].map(Fault::Io).into();
    let shortages: Vec<Fault> = [12, 23, 24].map(Fault::Io).into();
    let of_memory = [of_runtime.clone(), vec![Fault::NotAllocated]].concat();
    let undisturbed = Undisturbed::new();
    let mut unforeseen = Unforeseen::default();
    let table = [
        (Call::Agents, Costs::First, &of_runtime),
        (Call::Executables, Costs::Unseen, &of_runtime),
        (Call::CodeObjects, Costs::Executable, &of_runtime),
        (Call::Symbol, Costs::WithoutElf, &of_runtime),
        (Call::Image, Costs::Unknown, &of_elf),
        (Call::Image, Costs::Shortage, &shortages),
        (Call::ImageRead, Costs::Unknown, &of_elf),
        (Call::ReadEach, Costs::Nothing, &of_memory),
        (Call::Read, Costs::WithoutElf, &of_memory),
    ];
    let mut survived = 0;
    let mut put = |call, costs, faults: &[Fault], times| {
        survived += run_all(call, costs, faults, times, &undisturbed, &mut unforeseen);
    };
    for (call, costs, faults) in table {
        put(call, costs, faults, Times::Once);
        // A lost device fails each time; the status makes no difference.
        let costs = match call {
            Call::Read => Costs::Copies,
            _ => costs,
        };
        put(call, costs, &faults[..3], Times::FromThenOn);
    }
    unforeseen.are_read();
    figure("device_faults", survived);
}

#[test]
fn answers_may_lie() {
    let undisturbed = Undisturbed::new();
    let mut unforeseen = Unforeseen::default();
    let wrong_answers = [Fault::Short, Fault::Torn];
    let table: [(Call, Vec<Fault>); 8] = [
        (Call::Agents, changes_of_agents().map(Fault::Agents).into()),
        (
            Call::CodeObjects,
            changes_of_code_objects().map(Fault::CodeObjects).into(),
        ),
        (Call::CodeObjects, vec![Fault::Destroyed]),
        (
            Call::Symbol,
            changes_of_symbols()
                .map(Fault::Symbol)
                .into_iter()
                .chain([Fault::Destroyed])
                .collect(),
        ),
        (Call::Image, vec![Fault::Destroyed]),
        (Call::ImageRead, wrong_answers.into()),
        (
            Call::ReadEach,
            [&wrong_answers[..], &[Fault::Destroyed]].concat(),
        ),
        (
            Call::Read,
            [&wrong_answers[..], &[Fault::Destroyed]].concat(),
        ),
    ];
    let survived: usize = table
        .iter()
        .map(|(call, faults)| {
            let once = Times::Once;
            run_all(
                *call,
                Costs::Anything,
                faults,
                once,
                &undisturbed,
                &mut unforeseen,
            )
        })
        .sum();
    unforeseen.are_read();
    figure("device_lies", survived);
}

/// Agents that disappear, change their order or change their handles.
fn changes_of_agents() -> [fn(&mut Vec<Agent>); 4] {
    [
        Vec::clear,
        |agents| agents.truncate(1),
        |agents| agents.reverse(),
        |agents| agents.iter_mut().for_each(|agent| agent.handle = 0),
    ]
}

/// Descriptors that change.
fn changes_of_code_objects() -> [fn(&mut Vec<LoadedCodeObject>); 10] {
    fn each(loaded: &mut [LoadedCodeObject], change: impl Fn(&mut LoadedCodeObject)) {
        loaded.iter_mut().for_each(change);
    }
    const MAX: DeviceRange = DeviceRange {
        start: u64::MAX - 8,
        len: u64::MAX - 8,
    };
    [
        Vec::clear,
        |loaded| loaded.extend(loaded.clone()),
        |loaded| each(loaded, |load| load.agent = 0),
        |loaded| each(loaded, |load| load.agent = 0xdead),
        |loaded| each(loaded, |load| load.segment.len = 0),
        |loaded| each(loaded, |load| load.segment = MAX),
        |loaded| each(loaded, |load| load.segment.start += 0x1000),
        |loaded| {
            each(loaded, |load| {
                load.load_delta = load.load_delta.wrapping_sub(0x1000)
            })
        },
        |loaded| each(loaded, |load| load.load_delta = u64::MAX),
        |loaded| {
            each(loaded, |load| {
                (load.uri, load.storage) = (String::new(), Some(MAX))
            })
        },
    ]
}

/// Variables that change their places.
fn changes_of_symbols() -> [fn(&mut Option<Symbol>); 6] {
    fn with(symbol: &mut Option<Symbol>, change: impl Fn(&mut Symbol)) {
        symbol.iter_mut().for_each(change);
    }
    [
        |symbol| *symbol = None,
        |symbol| with(symbol, |symbol| symbol.address = 0),
        |symbol| with(symbol, |symbol| symbol.address = u64::MAX - 4),
        |symbol| with(symbol, |symbol| symbol.address += 8),
        |symbol| with(symbol, |symbol| symbol.size = 0),
        |symbol| with(symbol, |symbol| symbol.size = u64::MAX),
    ]
}

#[test]
fn zeroing_may_fail() {
    let mut survived = 0;
    let sizes = device().counters();
    for number in 0..sizes.len() {
        for status in statuses() {
            let device = RefCell::new(device());
            let device = Scripted::quiet(&device);
            let mut session = Session::default();
            for executable in ALL {
                session
                    .loaded(&device, executable)
                    .expect("nothing fails yet");
            }
            device.arm(Call::Write, number, Fault::Status(status), Times::Once);
            let error = session.zero(&device).expect_err("a write fails");
            let failed = format!("hsa_memory_copy failed with status {status:#x}");
            assert_eq!(error.to_string(), failed);
            let device = device.device.borrow();
            let is_zeroed = |(address, size): &&(u64, u64)| {
                let counters = device.peek(*address, usize::try_from(*size).expect("small"));
                counters.iter().all(|byte| *byte == 0)
            };
            let zeroed = sizes.iter().filter(is_zeroed).count();
            assert_eq!(zeroed, sizes.len() - 1, "all others are zeroed");
            survived += 1;
        }
    }
    figure("zeroing_faults", survived);
}

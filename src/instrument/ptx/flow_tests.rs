//! Random functions are instrumented, and an interpreter runs the new text along random ways. At each end, the sums of probes
//! in memory must be the runs of each block, which the interpreter counts by itself: after one lane, some lanes, two groups
//! of lanes at the same time, or a whole warp has left.

use std::collections::HashMap;
use std::fmt::Write;

use crate::format::ptx::Module;
use crate::format::ptx::module::PtxFunction;
use crate::instrument::ptx::plan::{Plan, Probe, Space, Way};
use crate::instrument::ptx::{PtxOptions, instrument};
use crate::support::counting::Counting;

/// A generator of numbers (Marsaglia, "Xorshift RNGs").
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A kernel with so many labels, and branches of all kinds. Its n-th label has an instruction that identifies it, or a return alone. If it `calls`, some
/// blocks call a function that may end their threads.
fn text(random: &mut Random, count: usize, calls: bool) -> String {
    let mut body = String::new();
    let mut tables = 0;
    for block in 0..count {
        if random.below(12) == 0 {
            let _ = write!(body, "L{block}:\nret;\n");
            continue;
        }
        let _ = write!(body, "L{block}:\nmov.u32 %mark, {block};\n");
        let target = random.below(count);
        match random.below(11) {
            0..5 => {
                let _ = writeln!(body, "@%p bra L{target};");
            }
            5 => {
                let _ = write!(body, "@%p bra L{target};\nbra L{};\n", random.below(count));
            }
            6 => {
                let _ = writeln!(body, "bra.uni L{target};");
            }
            7 => body.push_str("@!%p ret;\n"),
            8 => {
                let others = [random.below(count), random.below(count)];
                let _ = write!(
                    body,
                    "T{tables}: .branchtargets L{target}, L{}, L{};\nbrx.idx %r, T{tables};\n",
                    others[0], others[1]
                );
                tables += 1;
            }
            9 => body.push_str("bar.sync 0;\n"),
            _ if calls => body.push_str("call f;\n"),
            _ => {}
        }
    }
    let barrier = ["", "bar.sync 0;\n"][random.below(2)];
    let function = match calls {
        true => ".func f()\n{\n@%p exit;\nret;\n}\n",
        false => "",
    };
    format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n{function}.entry k()\n{{\n{barrier}{body}ret;\n}}\n"
    )
}

/// A run of a text with counters. The lines are instructions or labels.
#[derive(Clone)]
struct Run<'text> {
    lines: Vec<&'text str>,
    labels: HashMap<&'text str, usize>,
    tables: HashMap<&'text str, Vec<&'text str>>,
    registers: HashMap<&'text str, u64>,
    /// The runs of each label's instruction.
    marks: HashMap<u64, u64>,
    /// The sums of what it adds to memory before calls that may end it, by the number of the probe.
    early: HashMap<usize, u64>,
    /// The line that comes next.
    at: usize,
}

impl<'text> Run<'text> {
    fn new(text: &'text str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let mut labels = HashMap::new();
        let mut tables = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            if let Some((name, list)) = line.split_once(": .branchtargets ") {
                let list = list.trim_end_matches(';').split(", ");
                tables.insert(name, list.collect());
            } else if let Some(name) = line.strip_suffix(':') {
                labels.insert(name, number);
            }
        }
        Self {
            lines,
            labels,
            tables,
            registers: HashMap::new(),
            marks: HashMap::new(),
            early: HashMap::new(),
            at: 0,
        }
    }

    fn value(&self, operand: &str) -> u64 {
        let digits = operand.strip_prefix("0x");
        let number = digits.map_or_else(
            || operand.parse().ok(),
            |digits| u64::from_str_radix(digits, 16).ok(),
        );
        number.unwrap_or_else(|| {
            *self
                .registers
                .get(operand)
                .unwrap_or_else(|| panic!("{operand}"))
        })
    }

    /// Runs up to the code that brings counts to memory. Returns false if there are more than `limit` instructions.
    fn run(&mut self, random: &mut Random, limit: usize) -> bool {
        // The kernel is the last function.
        let kernel = self.lines.iter().position(|line| line.contains(".entry"));
        let mut at = kernel.unwrap() + 1;
        for _ in 0..limit {
            let line = self.lines[at];
            at += 1;
            let guarded = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
            let runs = match guarded {
                Some((guard, _)) if guard.contains("%rocov_") => self.holds(guard),
                Some(("%often", _)) => random.below(50_000) != 0,
                Some(_) => random.below(2) != 0,
                None => true,
            };
            if !runs {
                continue;
            }
            let line = guarded.map_or(line, |(_, rest)| rest).trim_end_matches(';');
            let (opcode, operands) = line.split_once(' ').unwrap_or((line, ""));
            let operands: Vec<&str> = operands.split(", ").collect();
            let value = match (opcode, operands.as_slice()) {
                ("mov.u32", [_, "%laneid"]) => {
                    self.at = at;
                    return true;
                }
                ("activemask.b32", _) if self.leaves(at) => {
                    self.at = at;
                    return true;
                }
                // It counts at once, and is the only lane.
                ("activemask.b32", _) => 1,
                ("mov.u32", [_, "%lanemask_lt"]) => 0,
                ("bra" | "bra.uni", [label]) => {
                    at = self.labels[label];
                    continue;
                }
                ("brx.idx", [_, table]) => {
                    let labels = &self.tables[table];
                    at = self.labels[labels[random.below(labels.len())]];
                    continue;
                }
                ("call", _) => continue,
                ("red.global.add.u64", [place, added]) => {
                    let (probe, added) = (self.probe(place), self.value(added));
                    *self.early.entry(probe).or_default() += added;
                    continue;
                }
                // The address of the copy is 0.
                ("mov.u64", ["%rocov_a" | "%rocov_place", ..]) => 0,
                ("mov.u64" | "mad.wide.u32", ["%rocov_z", ..]) => continue,
                ("mov.u32", [_, "%smid" | "%clock"]) => 0,
                ("ld.local.u32", [_, place]) => self.registers[place],
                ("st.local.u32", [_, value]) => self.value(value),
                _ => match self.computed(opcode, &operands[1..]) {
                    Some(value) => value,
                    None => {
                        let is_code =
                            opcode.starts_with(|character: char| character.is_ascii_lowercase());
                        assert!(!is_code || opcode == "bar.sync", "{line}");
                        continue;
                    }
                },
            };
            if operands[0] == "%mark" {
                *self.marks.entry(value).or_default() += 1;
            }
            self.registers.insert(operands[0], value);
        }
        false
    }

    /// Returns whether the code around this line ends the thread.
    fn leaves(&self, at: usize) -> bool {
        let rest = self.lines[at..].iter();
        let mut rest = rest.take_while(|line| **line != "}");
        rest.any(|line| *line == "ret;")
    }

    /// The number of the probe at a place in memory.
    fn probe(&self, place: &str) -> usize {
        let (base, offset) = place.trim_matches(['[', ']']).split_once('+').unwrap();
        (self.value(base) + offset.parse::<u64>().unwrap()) as usize / 8
    }

    /// The result of an instruction without a guard that computes in one lane.
    fn computed(&self, opcode: &str, operands: &[&str]) -> Option<u64> {
        let value = |operand: &str| self.value(operand);
        match (opcode, operands) {
            ("mad.wide.u32" | "mad.lo.u32", [one, other, sum]) => {
                Some(value(one) * value(other) + value(sum))
            }
            ("setp.ne.s32", [one, "-1"]) => Some(u64::from(value(one) != u64::from(u32::MAX))),
            (_, [one, other, third @ ..]) if opcode.starts_with("setp.") => {
                let plain = opcode.replace(".or.", ".").replace(".and.", ".");
                let holds = compared(&plain, value(one), value(other));
                let third = third.first().map(|third| value(third) != 0);
                Some(u64::from(match third {
                    Some(third) if opcode.contains(".or.") => holds || third,
                    Some(third) => holds && third,
                    None => holds,
                }))
            }
            ("selp.b32", [one, other, guard]) => Some(value(match value(guard) {
                0 => other,
                _ => one,
            })),
            _ => computed(opcode, operands, value),
        }
    }

    /// Returns whether an instruction with this guard runs.
    fn holds(&self, guard: &str) -> bool {
        let name = guard.trim_start_matches('!');
        (self.registers[name] != 0) != guard.starts_with('!')
    }
}

/// The result of a comparison.
fn compared(opcode: &str, one: u64, other: u64) -> bool {
    match opcode {
        "setp.eq.u32" | "setp.eq.u64" => one == other,
        "setp.ne.u32" | "setp.ne.u64" => one != other,
        "setp.ge.u32" | "setp.ge.u64" => one >= other,
        "setp.lt.u32" => one < other,
        "setp.ne.s32" => one != other,
        _ => panic!("{opcode}"),
    }
}

/// The result of an instruction without a guard that computes in one lane (PTX ISA, "Instruction Set").
fn computed(opcode: &str, operands: &[&str], value: impl Fn(&str) -> u64) -> Option<u64> {
    let all: Vec<u64> = match opcode.split('.').next() {
        Some(
            "mov" | "or" | "xor" | "not" | "and" | "add" | "sub" | "cvt" | "bfe" | "shr" | "shl"
            | "mul" | "popc" | "brev" | "clz" | "bfind" | "lop3" | "prmt" | "shf",
        ) => operands.iter().map(|operand| value(operand)).collect(),
        _ => return None,
    };
    let narrow = |number: u64| number & u64::from(u32::MAX);
    Some(match (opcode, all.as_slice()) {
        ("mov.u32" | "mov.b32" | "mov.b64" | "cvt.u64.u32", [one]) => *one,
        ("cvt.u32.u64", [one]) => narrow(*one),
        ("or.b32" | "or.b64", [one, other]) => one | other,
        ("and.b32", [one, other]) => one & other,
        ("add.u64", [one, other]) => one.wrapping_add(*other),
        ("sub.u64", [one, other]) => one.wrapping_sub(*other),
        ("add.u32", [one, other]) => narrow(one.wrapping_add(*other)),
        ("sub.u32", [one, other]) => narrow(one.wrapping_sub(*other)),
        ("mul.lo.u32", [one, other]) => narrow(one.wrapping_mul(*other)),
        ("mul.wide.u32", [one, other]) => one.wrapping_mul(*other),
        ("shr.u32", [one, bits]) => one >> bits,
        ("shl.b32", [one, bits]) => narrow(one << bits),
        ("bfe.u32", [one, bit, bits]) => one >> bit & ((1 << bits) - 1),
        ("xor.b32", [one, other]) => one ^ other,
        ("not.b32", [one]) => narrow(!one),
        ("brev.b32", [one]) => u64::from((*one as u32).reverse_bits()),
        ("clz.b32", [one]) => u64::from((*one as u32).leading_zeros()),
        ("bfind.u32", [one]) => u64::from((*one as u32).checked_ilog2().unwrap_or(u32::MAX)),
        ("popc.b32", [one]) => u64::from(one.count_ones()),
        ("shf.l.wrap.b32", [low, high, bits]) => narrow((high << 32 | low) << bits >> 32),
        ("prmt.b32", [one, other, places]) => {
            let bytes = (other << 32 | one).to_le_bytes();
            let byte = |number: u32| bytes[(places >> (4 * number) & 7) as usize];
            u64::from(u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]))
        }
        // The bits of the first where the second has them, else those of the third.
        ("lop3.b32", [one, other, third, 0xe2]) => one & other | third & !other,
        _ => return None,
    })
}

/// A lane of a warp that brings its counts to memory.
struct Lane<'text> {
    run: Run<'text>,
    number: u64,
    /// The lanes that are active with it when it asks.
    active: u64,
    is_done: bool,
}

/// Lanes of a warp at the code that brings their counts to memory. Each runs by itself up to an instruction of several lanes, which
/// waits for those of its mask. Others at the same instruction take part in it, as on a GPU.
struct Warp<'text> {
    lanes: Vec<Lane<'text>>,
    /// The sums of what is added, by the number of the probe.
    memory: HashMap<usize, u64>,
    /// The number of sums that lanes found together with others in one register.
    packed: usize,
}

impl<'text> Warp<'text> {
    /// Lanes with these numbers. Those of a group are active together.
    fn new(groups: &[Vec<(u64, Run<'text>)>]) -> Self {
        let lanes = groups.iter().flat_map(|group| {
            let active = group.iter().map(|(number, _)| 1 << number).sum();
            group.iter().map(move |(number, run)| Lane {
                run: run.clone(),
                number: *number,
                active,
                is_done: false,
            })
        });
        let mut lanes: Vec<Lane<'text>> = lanes.collect();
        for lane in &mut lanes {
            lane.run.at -= 1;
        }
        Self {
            lanes,
            memory: HashMap::new(),
            packed: 0,
        }
    }

    /// Runs all lanes up to their ends.
    fn leave(&mut self) {
        loop {
            for lane in &mut self.lanes {
                self.packed += lane.go_on(&mut self.memory);
            }
            let waiting: Vec<&Lane<'_>> = self.lanes.iter().filter(|lane| !lane.is_done).collect();
            if waiting.is_empty() {
                return;
            }
            let ready = waiting.iter().find(|lane| {
                let here = waiting.iter().filter(|other| other.run.at == lane.run.at);
                let here: u64 = here.map(|other| 1 << other.number).sum();
                lane.mask() & !here == 0
            });
            let ready = ready.expect("lanes wait for each other");
            self.exchange(ready.run.at, ready.mask());
        }
    }

    /// Runs the instruction of several lanes in this line for those of the mask.
    fn exchange(&mut self, at: usize, mask: u64) {
        let line = self.lanes[0].run.lines[at].trim_end_matches(';');
        let (opcode, operands) = line.split_once(' ').unwrap();
        let operands: Vec<&str> = operands.split(", ").collect();
        let here: Vec<&Lane<'_>> = self.lanes.iter().filter(|lane| lane.run.at == at).collect();
        let values = here
            .iter()
            .map(|lane| (lane.number, lane.run.value(operands[1])));
        let values: HashMap<u64, u64> = values.collect();
        let bits = values.iter();
        let bits = bits.fold(0, |all, (lane, value)| all | u64::from(*value != 0) << lane);
        let results: Vec<u64> = here
            .iter()
            .map(|lane| match (opcode, operands[2]) {
                ("vote.sync.any.pred", _) => u64::from(bits != 0),
                ("vote.sync.ballot.b32", _) => bits,
                ("redux.sync.add.u32", _) => values.values().sum::<u64>() & u64::from(u32::MAX),
                ("redux.sync.or.b32", _) => values.values().fold(0, |all, value| all | value),
                ("shfl.sync.bfly.b32", bit) => values[&(lane.number ^ lane.run.value(bit))],
                ("shfl.sync.idx.b32", from) => values[&lane.run.value(from)],
                _ => panic!("{line}"),
            })
            .collect();
        let lanes = self.lanes.iter_mut().filter(|lane| lane.run.at == at);
        let of_mask = lanes
            .zip(results)
            .filter(|(lane, _)| mask >> lane.number & 1 != 0);
        for (lane, result) in of_mask {
            lane.run.registers.insert(operands[0], result);
            lane.run.at += 1;
        }
    }
}

impl Lane<'_> {
    /// The mask of the instruction that it waits at.
    fn mask(&self) -> u64 {
        let line = self.run.lines[self.run.at].trim_end_matches(';');
        let mask = line.rsplit(", ").next().unwrap();
        self.run.value(mask)
    }

    /// The line after the label with this name in the same code of an exit.
    fn behind(&self, label: &str) -> usize {
        let lines = &self.run.lines;
        let start = lines[..self.run.at].iter().rposition(|line| *line == "{");
        let mut rest = lines[start.unwrap()..].iter();
        let place = rest.position(|line| line.strip_suffix(':') == Some(label));
        start.unwrap() + place.expect("there is such code") + 1
    }

    /// Runs up to the next instruction of several lanes, or the end. Returns the number of sums that it found together with
    /// others in one register.
    fn go_on(&mut self, memory: &mut HashMap<usize, u64>) -> usize {
        let mut packed = 0;
        while !self.is_done {
            let line = self.run.lines[self.run.at].trim_end_matches(';');
            if line.contains(".sync.") {
                return packed;
            }
            packed += usize::from(line.starts_with("prmt.b32 %rocov_c"));
            self.run.at += 1;
            let guarded = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
            if guarded.is_some_and(|(guard, _)| !self.run.holds(guard)) {
                continue;
            }
            let line = guarded.map_or(line, |(_, rest)| rest);
            let (opcode, operands) = line.split_once(' ').unwrap_or((line, ""));
            let operands: Vec<&str> = operands.split(", ").collect();
            let value = |operand: &str| self.run.value(operand);
            let result = match (opcode, operands.as_slice()) {
                ("ret", _) => {
                    self.is_done = true;
                    return packed;
                }
                ("bra" | "bra.uni", [label]) => {
                    self.run.at = self.behind(label);
                    continue;
                }
                // The address of the copy is 0.
                ("mov.u64", ["%rocov_a", ..]) => 0,
                ("mov.u32", [_, "%smid" | "%clock"]) => 0,
                ("mov.u32", [_, "%laneid"]) => self.number,
                ("mov.u32", [_, "%lanemask_lt"]) => (1 << self.number) - 1,
                ("activemask.b32", _) => self.active,
                ("mov.u64" | "mad.wide.u32", ["%rocov_z", ..]) => continue,
                ("ld.local.u32", [_, place]) => self.run.registers[place],
                ("red.global.add.u64", [place, added]) => {
                    *memory.entry(self.run.probe(place)).or_default() += value(added);
                    continue;
                }
                (_, [to, inputs @ ..]) if to.starts_with("%rocov_") => {
                    let result = self.run.computed(opcode, inputs);
                    result.unwrap_or_else(|| panic!("{line}"))
                }
                _ => {
                    assert!(
                        opcode.starts_with(['{', '}', '.', '$']) || opcode.is_empty(),
                        "{line}"
                    );
                    continue;
                }
            };
            self.run.registers.insert(operands[0], result);
        }
        packed
    }
}

/// The probes of each counter, by the table of copies in a text (docs/src/internals/counter-copies.md).
fn terms(text: &str) -> Vec<Vec<usize>> {
    let (_, table) = text.split_once("__rocov_copies_table_").unwrap();
    let (_, words) = table.split_once("] = {").unwrap();
    let (words, _) = words.split_once("};").unwrap();
    let words = words.split(", ").map(|word| {
        let digits = word.strip_prefix("0x");
        digits.map_or(0, |digits| u64::from_str_radix(digits, 16).unwrap())
    });
    let words: Vec<u64> = words.collect();
    assert_eq!(
        words[1],
        (8 * words.len() as u64) << 32 | 2,
        "size and version"
    );
    let (_, counters) = text.split_once(".b64 __profc_").unwrap();
    let (_, counters) = counters.split_once('[').unwrap();
    let counters: usize = counters.split_once(']').unwrap().0.parse().unwrap();
    let halves = words[7..]
        .iter()
        .flat_map(|word| [*word as u32, (word >> 32) as u32]);
    let mut all = vec![Vec::new()];
    for half in halves {
        if half >> 1 != u32::MAX >> 1 {
            let probe = (half >> 1) as usize;
            assert!((probe as u64) < words[6], "{probe}");
            all.last_mut().unwrap().push(probe);
        }
        if half & 1 == 0 {
            all.push(Vec::new());
        }
    }
    assert!(
        (counters + 1..=counters + 2).contains(&all.len()),
        "{counters} and padding"
    );
    all.truncate(counters);
    all
}

/// The registers of counters in a text that it does not declare.
fn undeclared(text: &str) -> Vec<&str> {
    let is_of_name =
        |character: char| character.is_ascii_alphanumeric() || "%_$".contains(character);
    let mut declared = Vec::new();
    let mut used = Vec::new();
    for line in text.lines() {
        let names = line.split(|character| !is_of_name(character));
        let names = names.filter(|name| name.starts_with("%rocov_"));
        match line.trim().starts_with(".reg") {
            true => declared.extend(names.map(|name| (name, line.contains('<')))),
            false => used.extend(names),
        }
    }
    let is_declared = |name: &str| {
        declared.iter().any(|(other, is_row)| {
            let rest = name.strip_prefix(other);
            rest.is_some_and(|rest| rest.is_empty() || *is_row && rest.parse::<u32>().is_ok())
        })
    };
    used.retain(|name| !is_declared(name));
    used
}

/// The text with counts of 16 bits that have little room from 4 on in place of 2^15, and keep 2 in place of 2^14. A whole warp
/// sums none of 2 or more.
fn full_early(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let (opcode, operands) = line.trim_start().split_once(' ').unwrap_or_default();
        let operands: Vec<&str> = operands.split(", ").collect();
        // Not the tests of bits and of lanes.
        let is_of_counts = |to: &str, from: &str| to == from || from.starts_with("%rocov_n");
        let changes: &[(&str, &str)] = match opcode {
            "and.b32" if is_of_counts(operands[0], operands[1]) => &[
                ("0x8000;", "0xfffc;"),
                ("0x80000000;", "0xfffc0000;"),
                ("0x80008000;", "0xfffcfffc;"),
                ("0xc000;", "0xfffe;"),
                ("0xc0000000;", "0xfffe0000;"),
                ("0xc000c000;", "0xfffefffe;"),
                ("0xfff8;", "0xfffe;"),
                ("0xfff80000;", "0xfffe0000;"),
                ("0xfff8fff8;", "0xfffefffe;"),
            ],
            "bfe.u32" => &[("14, 2;", "1, 15;"), ("30, 2;", "17, 15;")],
            "shl.b32" if line.contains("%rocov_o,") => &[("14;", "1;"), ("30;", "17;")],
            "mad.wide.u32" | "@%rocov_q" => &[("0x4000, %rocov_v;", "0x2, %rocov_v;")],
            "setp.ge.u64" => &[
                ("0x8;", "0x2;"),
                ("0x800000;", "0x2;"),
                ("0x8000000;", "0x2;"),
            ],
            "setp.ge.or.u64" => &[
                ("0x8, %rocov_p;", "0x2, %rocov_p;"),
                ("0x800000, %rocov_p;", "0x2, %rocov_p;"),
                ("0x8000000, %rocov_p;", "0x2, %rocov_p;"),
            ],
            _ => &[],
        };
        let changed = changes.iter().find_map(|(from, to)| {
            let rest = line.strip_suffix(&format!(" {from}"))?;
            Some(format!("{rest} {to}"))
        });
        changed.unwrap_or_else(|| line.into())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_thread_counts_for_its_block_if_each_runs_all_code() {
    let plain =
        ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{\nbra L;\nL:\nret;\n}\n";
    let counting = instrument(&Module::parse(plain).unwrap(), &PtxOptions::default()).unwrap();
    assert_eq!(undeclared(&counting), [""; 0], "{counting}");
    // The threads of a block of 3 * 2 * 4.
    let mut memory: HashMap<usize, u64> = HashMap::new();
    for thread in 0..24 {
        let mut run = Run::new(&counting);
        let places = [thread % 3, thread / 3 % 2, thread / 6];
        for (dimension, (place, size)) in ["x", "y", "z"].iter().zip(places.iter().zip([3, 2, 4])) {
            for (name, value) in [("tid", *place), ("ntid", size)] {
                run.registers
                    .insert(format!("%{name}.{dimension}").leak(), value);
            }
        }
        run.at = 1 + run.lines.iter().position(|line| *line == "{").unwrap();
        let mut lane = Lane {
            run,
            number: thread,
            active: 1,
            is_done: false,
        };
        lane.go_on(&mut memory);
        assert!(lane.is_done);
    }
    assert_eq!(memory, HashMap::from([(0, 24)]), "{counting}");
    assert_eq!(terms(&counting), [[0], [0]], "{counting}");
    // Another block that some threads do not run.
    let guarded = plain.replace("bra L;", "@%p bra L;\nmov.u32 %r, 1;");
    let counting = instrument(&Module::parse(&guarded).unwrap(), &PtxOptions::default()).unwrap();
    assert!(!counting.contains("%ntid"), "{counting}");
}

/// Beyond the bits of a function, blocks without loops add to their counts at once, after all other probes.
#[test]
fn more_blocks_than_bits_need_no_registers() {
    for target in ["sm_75", "sm_90"] {
        let branches = (0..700).map(|number| {
            format!("setp.eq.u32 %p, %r, {number};\n@%p bra B{number};\nmov.u32 %r, {number};\nB{number}:\n")
        });
        let plain = format!(
            ".version 8.8\n.target {target}\n.address_size 64\n.entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r;\n{}ret;\n}}\n",
            branches.collect::<String>()
        );
        let counting = instrument(&Module::parse(&plain).unwrap(), &PtxOptions::default()).unwrap();
        assert_eq!(undeclared(&counting), [""; 0], "{target}");
        // Each run of a block that has no bit.
        assert!(counting.matches("activemask").count() > 100, "{target}");
    }
}

/// The marks in a text, each with the block of `function` that has its instruction.
fn marks(text: &str, function: &PtxFunction<'_>) -> Vec<(u64, usize)> {
    let marks = text.lines().enumerate().filter_map(|(line, text)| {
        let mark = text.strip_prefix("mov.u32 %mark, ")?;
        let mark: u64 = mark.trim_end_matches(';').parse().unwrap();
        let mut blocks = function.blocks.iter();
        let block = blocks.rposition(|block| block.line <= line + 1);
        Some((mark, block.unwrap()))
    });
    marks.collect()
}

#[test]
fn counts_that_follow_from_others_are_those_of_the_threads() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut derived, mut edges, mut ends, mut warps) = (0, 0, 0, 0);
    let (mut full, mut moved, mut early) = (0, 0, 0);
    let (mut counters, mut probes, mut sums) = (0, 0, 0);
    let (mut long, mut kept) = (0, 0);
    let (mut packed, mut joined, mut single) = (0, 0, 0);
    for turn in 0..1200 {
        let calls = turn % 3 == 0;
        // More probes than lanes, and more blocks in loops than differences may follow from.
        let count = match turn % 24 {
            5 => 120 + random.below(60),
            2 | 9 | 16 => 40 + random.below(40),
            _ => 3 + random.below(9),
        };
        let mut plain = text(&mut random, count, calls);
        if turn % 5 == 0 {
            // It has no instruction that sums.
            plain = plain.replace("sm_90", "sm_75");
        }
        let module = Module::parse(&plain).unwrap();
        let (function, others) = module.functions.split_last().unwrap();
        let first: usize = others.iter().map(|other| other.blocks.len()).sum();
        let space = Space {
            is_memory: false,
            room: usize::MAX,
            plain: None,
        };
        let ending = calls.then_some("f").into_iter().collect();
        let plan = Plan::new(function, &ending, Counting::Exact, space);
        derived += plan.derivation.blocks.len();
        edges += plan.derivation.edges.len();
        let mut options = PtxOptions::default();
        if turn % 2 == 1 {
            // There is no room for more registers, so some share one.
            options.registers.insert("k".into(), 64);
        }
        let mut counting = instrument(&module, &options).unwrap();
        assert_eq!(undeclared(&counting), [""; 0], "{plain}\n{counting}");
        let terms = terms(&counting);
        counters += terms.len();
        probes += terms.iter().flatten().max().unwrap() + 1;
        sums += terms.iter().filter(|terms| terms.len() > 1).count();
        long += usize::from(plan.waiting_probes().len() > 33);
        kept +=
            usize::from(plan.probes.contains(&Probe::Direct) && plan.ways.contains(&Way::Derived));
        // Each thread runs all blocks.
        if plan.ways.contains(&Way::Each) {
            continue;
        }
        let is_full_early = turn % 4 == 1;
        if is_full_early {
            counting = full_early(&counting);
            full += usize::from(counting.contains("$rocov_full"));
        }
        let marks = marks(&plain, function);
        let mut all: HashMap<usize, Vec<Run<'_>>> = HashMap::new();
        for _ in 0..6 {
            let mut run = Run::new(&counting);
            if !run.run(&mut random, 8000) {
                continue;
            }
            ends += 1;
            early += usize::from(!run.early.is_empty());
            moved += usize::from(
                run.registers
                    .keys()
                    .any(|name| name.starts_with("[%rocov_z")),
            );
            all.entry(run.at).or_default().push(run);
        }
        for runs in all.values() {
            let lanes: Vec<(u64, Run<'_>)> = (0..32)
                .map(|lane| (lane, runs[random.below(runs.len())].clone()))
                .collect();
            let mut lanes = lanes.into_iter();
            // Few lanes of a warp, or two groups that pass at the same time, or a whole warp.
            let mut groups = match random.below(4) {
                0 => vec![lanes.nth(random.below(32)).into_iter().collect::<Vec<_>>()],
                1 => vec![lanes.filter(|_| random.below(3) == 0).collect()],
                2 => {
                    let (one, other) = lanes.partition(|(lane, _)| lane % 5 < 2);
                    vec![one, other]
                }
                _ => vec![lanes.collect()],
            };
            groups.retain(|group| !group.is_empty());
            warps += 1;
            let mut warp = Warp::new(&groups);
            warp.leave();
            packed += usize::from(warp.packed > 0);
            joined +=
                usize::from(warp.packed > 0 && counting.contains("prmt.b32 %rocov_t, %rocov_n"));
            single += usize::from(
                warp.packed == 0 && groups[0].len() == 32 && counting.contains("$rocov_single"),
            );
            let memory = warp.memory;
            for (mark, block) in &marks {
                let runs = groups.iter().flatten();
                let runs = runs.filter_map(|(_, run)| run.marks.get(mark));
                let added = terms[first + block].iter().map(|probe| {
                    let early = groups.iter().flatten();
                    let early = early.filter_map(|(_, run)| run.early.get(probe));
                    memory.get(probe).copied().unwrap_or(0) + early.sum::<u64>()
                });
                let added: u64 = added.sum();
                assert_eq!(
                    added,
                    runs.sum::<u64>(),
                    "block {block} of\n{plain}\n{counting}"
                );
            }
        }
    }
    assert!(
        derived > 900 && edges > 300 && ends > 3000 && warps > 600,
        "{derived} {edges} {ends} {warps}"
    );
    assert!(
        full > 20 && moved > 40 && early > 100,
        "{full} {moved} {early}"
    );
    assert!(
        10 * probes < 9 * counters && sums > 100,
        "{counters} {probes} {sums}"
    );
    assert!(long > 50 && kept > 10, "{long} {kept}");
    assert!(
        packed > 50 && joined > 20 && single > 20,
        "{packed} {joined} {single}"
    );
}

/// Loops that run more often than counts of 16 bits have room for.
#[test]
fn counts_of_any_size_are_those_of_the_threads() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let plain = ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n\
        L0:\nmov.u32 %mark, 0;\n@%p bra L2;\nL1:\nmov.u32 %mark, 1;\n@%p bra L3;\n\
        L2:\nmov.u32 %mark, 2;\n@%p bra L4;\nL3:\nmov.u32 %mark, 3;\n@%p bra L3;\n\
        L4:\nmov.u32 %mark, 4;\n@%often bra L0;\nret;\n}\n";
    let module = Module::parse(plain).unwrap();
    let mut options = PtxOptions::default();
    options.registers.insert("k".into(), 64);
    let counting = instrument(&module, &options).unwrap();
    assert!(counting.contains("$rocov_full"), "{counting}");
    let terms = terms(&counting);
    let threads = (0..3).map(|_| {
        let mut run = Run::new(&counting);
        assert!(run.run(&mut random, usize::MAX));
        run
    });
    let threads: Vec<Run<'_>> = threads.collect();
    let most = threads.iter().map(|run| run.marks[&0]).max().unwrap();
    assert!(most > 1 << 16, "{most}");
    // Some lanes, and a whole warp.
    for lanes in [3, 32] {
        let lanes = (0..lanes).map(|lane| (lane, threads[lane as usize % 3].clone()));
        let groups = [lanes.collect::<Vec<_>>()];
        let mut warp = Warp::new(&groups);
        warp.leave();
        let marks = marks(plain, &module.functions[0]);
        assert_eq!(marks.len(), 5);
        for (mark, block) in marks {
            let runs = groups[0].iter().map(|(_, run)| run.marks[&mark]);
            let added = terms[block].iter();
            let added = added.map(|probe| warp.memory.get(probe).copied().unwrap_or(0));
            assert_eq!(
                added.sum::<u64>(),
                runs.sum::<u64>(),
                "L{mark} of\n{counting}"
            );
        }
    }
}

#[test]
fn a_call_that_may_end_threads_lets_other_counters_be_larger_than_the_head() {
    let text = ".version 8.8\n.target sm_90\n.address_size 64\n.func f()\n{\n@%p exit;\nret;\n}\n.entry k()\n{\nL:\n@%p bra M;\n\
                call f;\nM:\nadd.u32 %r, %r, 1;\n@%q bra L;\nret;\n}\n";
    let module = Module::parse(text).unwrap();
    let function = module.functions.last().unwrap();
    let space = Space {
        is_memory: false,
        room: usize::MAX,
        plain: None,
    };
    let tested = |ending: &[&'static str]| {
        let ending = ending.iter().copied().collect();
        let plan = Plan::new(function, &ending, Counting::Exact, space);
        (plan.widths.largest.len(), plan.slots_in_blocks().count())
    };
    let (of_one, all) = tested(&[]);
    assert!(of_one == 1 && all > 1, "{of_one} {all}");
    let (of_all, all) = tested(&["f"]);
    assert!(of_all == all && all > 1, "{of_all} {all}");
}

//! Random functions are instrumented, and an interpreter runs the new text along random ways. At each end, the registers
//! that go to memory must have the runs of each block, which the interpreter counts by itself.

use std::collections::HashMap;
use std::fmt::Write;

use crate::format::ptx::plan::{Plan, WORD, Way};
use crate::format::ptx::{Module, Options, instrument};

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

/// A kernel with branches of all kinds. Its n-th label has an instruction that tells it.
fn text(random: &mut Random) -> String {
    let count = 3 + random.below(9);
    let mut body = String::new();
    let mut tables = 0;
    for block in 0..count {
        let _ = write!(body, "L{block}:\nmov.u32 %mark, {block};\n");
        let target = random.below(count);
        match random.below(10) {
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
            _ => {}
        }
    }
    let barrier = ["", "bar.sync 0;\n"][random.below(2)];
    format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.entry k()\n{{\n{barrier}{body}ret;\n}}\n"
    )
}

/// A run of a text with counters. The lines are instructions or labels.
struct Run<'text> {
    lines: Vec<&'text str>,
    labels: HashMap<&'text str, usize>,
    tables: HashMap<&'text str, Vec<&'text str>>,
    registers: HashMap<&'text str, u64>,
    /// The runs of each label's instruction.
    marks: HashMap<u64, u64>,
}

impl<'text> Run<'text> {
    fn of(text: &'text str) -> Self {
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
        }
    }

    fn value(&self, operand: &str) -> u64 {
        let digits = operand.strip_prefix("0x");
        let number = digits.map_or_else(
            || operand.parse().ok(),
            |digits| u64::from_str_radix(digits, 16).ok(),
        );
        number.unwrap_or_else(|| self.registers[operand])
    }

    /// Runs up to the code that brings counts to memory. Returns false if there are more than `limit` instructions.
    fn run(&mut self, random: &mut Random, limit: usize) -> bool {
        let mut at = self.lines.iter().position(|line| *line == "{").unwrap();
        for _ in 0..limit {
            let line = self.lines[at];
            at += 1;
            let guarded = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
            if guarded.is_some() && random.below(2) == 0 {
                continue;
            }
            let line = guarded.map_or(line, |(_, rest)| rest).trim_end_matches(';');
            let (opcode, operands) = line.split_once(' ').unwrap_or((line, ""));
            let operands: Vec<&str> = operands.split(", ").collect();
            let value = match (opcode, operands.as_slice()) {
                ("activemask.b32", _) => return true,
                ("bra" | "bra.uni", [label]) => {
                    at = self.labels[label];
                    continue;
                }
                ("brx.idx", [_, table]) => {
                    let labels = &self.tables[table];
                    at = self.labels[labels[random.below(labels.len())]];
                    continue;
                }
                ("mov.u32" | "mov.b32" | "mov.b64", [_, one]) => self.value(one),
                ("or.b32", [_, one, other]) => self.value(one) | self.value(other),
                ("add.u64", [_, one, other]) => self.value(one).wrapping_add(self.value(other)),
                ("sub.u64", [_, one, other]) => self.value(one).wrapping_sub(self.value(other)),
                ("cvt.u64.u32", [_, one]) => self.value(one),
                ("bfe.u32", [_, one, bit, "1"]) => self.value(one) >> self.value(bit) & 1,
                _ => {
                    let is_code = opcode.starts_with(|it: char| it.is_ascii_lowercase());
                    assert!(!is_code || opcode == "bar.sync", "{line}");
                    continue;
                }
            };
            if operands[0] == "%mark" {
                *self.marks.entry(value).or_default() += 1;
            }
            self.registers.insert(operands[0], value);
        }
        false
    }
}

#[test]
fn counts_that_follow_from_others_are_those_of_the_threads() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut derived, mut edges, mut ends) = (0, 0, 0);
    for _ in 0..400 {
        let plain = text(&mut random);
        let module = Module::parse(&plain).unwrap();
        let function = &module.functions[0];
        let plan = Plan::of(function, &std::collections::HashSet::new());
        derived += plan.derivation.blocks.len();
        edges += plan.derivation.edges.len();
        let counting = instrument(&module, &Options::default()).unwrap();
        // The block that has the instruction of each label.
        let marks = plain.lines().enumerate().filter_map(|(line, text)| {
            let mark = text.strip_prefix("mov.u32 %mark, ")?;
            let mark: u64 = mark.trim_end_matches(';').parse().unwrap();
            let block = function.blocks.iter().rposition(|it| it.line <= line + 1);
            Some((mark, block.unwrap()))
        });
        let marks: Vec<(u64, usize)> = marks.collect();
        for _ in 0..6 {
            let mut run = Run::of(&counting);
            if !run.run(&mut random, 4000) {
                continue;
            }
            ends += 1;
            for (mark, block) in &marks {
                let found = match plan.ways[*block] {
                    Way::Bit => {
                        run.value(&format!("%rocov_b{}", block / WORD)) >> (block % WORD) & 1
                    }
                    Way::Number(number) => run.value(&format!("%rocov_n{number}")),
                    Way::Direct => panic!("there are few blocks"),
                };
                let expected = run.marks.get(mark).copied().unwrap_or(0);
                assert_eq!(found, expected, "block {block} of\n{plain}\n{counting}");
            }
        }
    }
    assert!(
        derived > 300 && edges > 100 && ends > 1000,
        "{derived} {edges} {ends}"
    );
}

//! Gives each basic block of a module a counter.
//!
//! The text stays as it is but for additions: a count at the start of each block, a flush where a thread leaves a
//! function, registers with names that begin with `%rocov_`, and variables with the profile's records. A `ret` or `exit`
//! becomes a branch to its flush, which ends with it. `plan` decides how each block is counted.
//!
//! The code of a flush is in `flush`, and the variables are in `unit`.

use std::fmt::Write;

use crate::format::ptx::lexer::is_word;
use crate::format::ptx::module::{Module, PtxFunction};
use crate::format::ptx::statements::{Flow, StatementKind};
use crate::instrument::ptx::PtxOptions;
use crate::instrument::ptx::error::PtxRefusal;
use crate::instrument::ptx::flow::{CountedEdge, Counter, Place};
use crate::instrument::ptx::flush::Flush;
use crate::instrument::ptx::marks::Marks;
use crate::instrument::ptx::plan::{Plan, Space, WORD, Way, ending, word_of};
use crate::instrument::ptx::registers::register_limit;
use crate::instrument::ptx::unit::{Unit, words_for};
use crate::instrument::ptx::widths::Slot;
use crate::support::counting::Counting;

/// The first architecture that has the instructions of counters.
const FIRST_ARCHITECTURE: u32 = 30;
/// The first architecture that sums a value over a warp in one instruction (`redux.sync`).
const FIRST_WITH_SUMS: u32 = 80;
/// The first version of PTX with `activemask` (PTX ISA, "Release Notes").
const FIRST_VERSION: (u32, u32) = (6, 2);
/// The first version of PTX with `redux.sync`.
const FIRST_VERSION_WITH_SUMS: (u32, u32) = (7, 0);
/// The most blocks of a module: 32 MiB of counters. A drain accepts 256 MiB.
const MAX_BLOCKS: usize = 1 << 22;

/// Gives each basic block of `module` a counter, and returns the new text.
///
/// The new module has the variables that librocov's drain reads from modules that clang has instrumented: a record for each
/// function with a name of [`Kind::Ptx`](crate::format::blocks::Kind), and copies of probes. It needs PTX
/// 6.2, or 7.0 for sm_80 and later, and its `.version` is raised to that.
///
/// A module without blocks stays as it is.
///
/// # Errors
/// Fails if the module is instrumented already, is for a GPU before sm_30 or has addresses of 32 bits, or if there are too many
/// blocks.
pub fn instrument(module: &Module<'_>, options: &PtxOptions) -> Result<String, PtxRefusal> {
    let target = module.architecture();
    let architecture = target.filter(|target| *target >= FIRST_ARCHITECTURE);
    let architecture = architecture.ok_or_else(|| PtxRefusal::Target {
        line: module.header.target_line,
        found: module.target.to_owned(),
    })?;
    match module.header.address_size {
        Some((64, _)) => {}
        // Without the directive, addresses have 32 bits.
        other => {
            return Err(PtxRefusal::AddressSize {
                line: other.map_or(module.header.target_line, |(_, line)| line),
                found: other.map_or(32, |(size, _)| size).to_string(),
            });
        }
    }
    if let Some((line, found)) = module.counting {
        let found = found.to_owned();
        return Err(PtxRefusal::Counts { line, found });
    }
    let blocks: usize = module
        .functions
        .iter()
        .map(|function| function.blocks.len())
        .sum();
    if blocks > MAX_BLOCKS {
        return Err(PtxRefusal::TooMany {
            found: blocks,
            max: MAX_BLOCKS,
        });
    }
    if blocks == 0 {
        return Ok(module.text.to_owned());
    }
    let ending = ending(&module.functions);
    let functions = module.functions.iter();
    let functions = functions.filter(|function| !function.blocks.is_empty());
    let planned = functions.map(|function| {
        let space = Space {
            is_memory: options.functions_in_memory && !function.is_kernel,
            room: room(function, options),
            plain: options
                .registers
                .get(function.symbol)
                .copied()
                .filter(|_| !function.body.is_limited),
        };
        let plan = Plan::new(function, &ending, options.counting, space);
        (function, plan)
    });
    let planned: Vec<(&PtxFunction<'_>, Plan<'_>)> = planned.collect();
    let plans = planned.iter().map(|(_, plan)| plan);
    let unit = Unit::new(module, options.counting, plans);
    let mut edits = Edits::default();
    let has_sums = architecture >= FIRST_WITH_SUMS;
    let needed = match (options.counting, has_sums) {
        (Counting::Exact, true) => FIRST_VERSION_WITH_SUMS,
        (Counting::Exact, false) => FIRST_VERSION,
        // Only lanes that return to a caller meet.
        (Counting::Reached, _) if planned.iter().any(|(function, _)| !function.is_kernel) => {
            FIRST_VERSION
        }
        (Counting::Reached, _) => (0, 0),
    };
    if module.version < needed {
        let (start, end) = module.header.version;
        edits.replace(start, end, format!("{}.{}", needed.0, needed.1));
    }
    edits.insert(module.header.end, unit.variables(module, options.version)?);
    let (mut first, mut first_word, mut first_probe) = (0, 0, 0);
    for (function, plan) in &planned {
        let unit = &unit;
        let memory = match options.counting {
            Counting::Exact => Memory::Counts(Flush {
                unit,
                plan,
                first: first_probe,
                has_sums,
                is_kernel: function.is_kernel,
            }),
            Counting::Reached => Memory::Marks(Marks {
                unit,
                plan,
                first,
                first_word,
                is_kernel: function.is_kernel,
            }),
        };
        let mut editor = Editor {
            function,
            plan,
            memory,
            edits: &mut edits,
        };
        editor.open(options);
        editor.count();
        editor.before_calls();
        editor.close();
        first += function.blocks.len();
        first_word += words_for(function.blocks.len());
        first_probe += plan.probes.len();
    }
    Ok(edits.applied(module.text))
}

/// Replacements of parts of a text.
#[derive(Debug, Default)]
struct Edits {
    all: Vec<(usize, usize, String)>,
}

impl Edits {
    fn insert(&mut self, at: usize, text: String) {
        self.all.push((at, at, text));
    }

    fn replace(&mut self, start: usize, end: usize, text: String) {
        self.all.push((start, end, text));
    }

    /// The text with all of them. Those at one place keep their order. No word of the text becomes one with a new word
    /// after it: a sign of the text may have parted it from the next one.
    fn applied(mut self, text: &str) -> String {
        self.all.sort_by_key(|(start, _, _)| *start);
        let ends_with_word = |text: &str| text.bytes().next_back().is_some_and(is_word);
        let added: usize = self.all.iter().map(|(_, _, text)| text.len()).sum();
        let mut result = String::with_capacity(text.len() + added);
        let mut at = 0;
        for (start, end, new) in &self.all {
            result.push_str(&text[at..*start]);
            if ends_with_word(&result) && new.bytes().next().is_some_and(is_word) {
                result.push('\n');
            }
            result.push_str(new);
            at = *end;
        }
        result.push_str(&text[at..]);
        result
    }
}

/// Writes what a function records in memory.
enum Memory<'a, 'text> {
    /// How often each block ran.
    Counts(Flush<'a, 'text>),
    /// Marks of the blocks that ran.
    Marks(Marks<'a, 'text>),
}

impl Memory<'_, '_> {
    /// The code at the start of the function, after the zeros of the registers.
    fn open(&self) -> String {
        match self {
            Self::Counts(flush) => flush.open(),
            Self::Marks(marks) => marks.open().into(),
        }
    }

    /// The code for one run of a block.
    fn one(&self, block: usize) -> String {
        match self {
            Self::Counts(flush) => flush.one(block),
            Self::Marks(marks) => marks.one(block),
        }
    }

    /// The code at the head of a loop.
    fn check(&self, head: usize) -> String {
        match self {
            Self::Counts(flush) => flush.check(head),
            Self::Marks(_) => String::new(),
        }
    }

    /// The code that heads of loops lead to.
    fn make_room(&self) -> String {
        match self {
            Self::Counts(flush) => flush.make_room(),
            Self::Marks(_) => String::new(),
        }
    }

    /// The code before a call that may end the threads.
    fn each_lane(&self) -> String {
        match self {
            Self::Counts(flush) => flush.each_lane(),
            Self::Marks(marks) => marks.each_lane(),
        }
    }

    /// The code at a way out, which ends with `opcode`.
    fn at_exit(&self, opcode: &str) -> String {
        match self {
            Self::Counts(flush) => flush.at_exit(opcode),
            Self::Marks(marks) => marks.at_exit(opcode),
        }
    }
}

/// Edits a function.
struct Editor<'a, 'text> {
    function: &'a PtxFunction<'text>,
    plan: &'a Plan<'text>,
    memory: Memory<'a, 'text>,
    edits: &'a mut Edits,
}

impl Editor<'_, '_> {
    /// Limits the registers, and makes those of the counters, with zeros.
    fn open(&mut self, options: &PtxOptions) {
        let (body, plan) = (&self.function.body, self.plan);
        if self.function.is_kernel && !body.is_limited {
            let limit = match options.registers.get(self.function.symbol) {
                Some(plain) => {
                    let mut instructions = self.function.instructions();
                    let calls = instructions
                        .any(|(_, _, instruction)| matches!(instruction.flow, Flow::Call { .. }));
                    let calls = calls && !options.limits_callers;
                    let limit = register_limit(*plain, plan.registers(), calls);
                    format!(".maxnreg {limit}")
                }
                None => ".maxntid 1024".into(),
            };
            self.edits.insert(body.open, format!("\n{limit}\n"));
        }
        let mut code = plan.declarations();
        code.push_str(&plan.zeros());
        code.push_str(&self.memory.open());
        self.edits.insert(body.open + 1, code);
    }

    /// Counts each block at its start, unless its count follows from others, and the edges that others follow from.
    fn count(&mut self) {
        let body = &self.function.body;
        for (block, span) in body.blocks.spans.iter().enumerate() {
            let start = body.statements.all[span.first].start;
            let mut code = self.memory.check(block);
            code.push_str(&self.counted(block));
            self.edits.insert(start, code);
        }
        for edge in &self.plan.derivation.edges {
            if let Place::Behind(statement) = edge.place {
                let end = body.statements.all[statement].end;
                self.edits
                    .insert(end, format!("\n\t{}", self.counted_edge(*edge)));
            }
        }
    }

    /// Redirects branches with a counted edge to code that increments its counter and then jumps to the original
    /// target, and returns that code. An exit that a branch leads to counts its edge.
    fn detours(&mut self) -> String {
        let mut code = String::new();
        for (number, edge) in self.plan.derivation.edges.iter().enumerate() {
            let Place::Detour(branch) = edge.place else {
                continue;
            };
            let StatementKind::Instruction(it) = &self.function.body.statements.all[branch].kind
            else {
                continue;
            };
            let Flow::Branch { label, start, end } = it.flow else {
                continue;
            };
            if self
                .plan
                .exits
                .iter()
                .any(|exit| exit.from.contains(&branch))
            {
                continue;
            }
            let detour = format!("$rocov_edge{number}");
            let counted = self.counted_edge(*edge);
            let _ = write!(code, "{detour}:\n\t{counted}bra {label};\n");
            self.edits.replace(start, end, detour);
        }
        code
    }

    /// The code that adds a run of a block to its counter. None if its count follows from others.
    fn counted(&self, block: usize) -> String {
        match self.plan.ways[block] {
            Way::Bit(bit) | Way::Flag(bit) => with_bit(bit),
            Way::Number(number) => self.plan.incremented(Slot::Block(number)),
            Way::Direct => self.memory.one(block),
            Way::Call | Way::As(_) | Way::Derived | Way::Each | Way::Elsewhere => String::new(),
        }
    }

    /// The code that adds a run of an edge to its counter.
    fn counted_edge(&self, edge: CountedEdge) -> String {
        match edge.counter {
            Counter::Bit(bit) => with_bit(self.plan.edge_bits[bit]),
            Counter::Register(number) => self.plan.incremented(Slot::Edge(number)),
        }
    }

    /// Brings all counts to memory before calls of functions that may end their threads.
    fn before_calls(&mut self) {
        if self.plan.is_direct() {
            return;
        }
        for number in &self.plan.calls {
            let start = self.function.body.statements.all[*number].start;
            self.edits.insert(start, self.memory.each_lane());
        }
    }

    /// Leads each way out of the function to a flush.
    fn close(&mut self) {
        let statements = &self.function.body.statements;
        if self.plan.is_direct() {
            return;
        }
        let mut code = String::new();
        if let Some(end) = self.plan.end {
            let _ = write!(code, "\n\tbra $rocov_exit{end};\n");
        }
        for (number, exit) in self.plan.exits.iter().enumerate() {
            let label = format!("$rocov_exit{number}");
            for from in &exit.from {
                let statement = &statements.all[*from];
                let StatementKind::Instruction(instruction) = &statement.kind else {
                    continue;
                };
                match instruction.flow {
                    Flow::Branch { start, end, .. } => {
                        self.edits.replace(start, end, label.clone());
                    }
                    _ => self.edits.replace(
                        instruction.opcode_start,
                        statement.end,
                        format!("bra {label};"),
                    ),
                }
            }
            let _ = write!(code, "{label}:\n\t");
            let edges = exit.from.iter();
            for edge in edges.filter_map(|from| self.plan.derivation.detour_of(*from)) {
                code.push_str(&self.counted_edge(edge));
            }
            if let Some(block) = exit.block {
                code.push_str(&self.counted(block));
            }
            code.push_str(&self.memory.at_exit(exit.opcode));
        }
        code.push_str(&self.detours());
        code.push_str(&self.memory.make_room());
        self.edits.insert(statements.end, code);
    }
}

/// The code that sets a bit.
fn with_bit(bit: usize) -> String {
    let word = word_of(bit);
    format!("or.b32 {word}, {word}, {:#x};\n\t", 1_u32 << (bit % WORD))
}

/// The registers that counters of a function may take. A kernel with its own limit has as many as it wants, but each block of
/// 8 leaves room for fewer threads.
fn room(function: &PtxFunction<'_>, options: &PtxOptions) -> usize {
    const OF_LIMITED: u32 = 48;
    let Some(plain) = options.registers.get(function.symbol) else {
        return usize::MAX;
    };
    let most = match function.body.is_limited {
        true => OF_LIMITED,
        false => register_limit(*plain, u32::from(u8::MAX), false),
    };
    most.saturating_sub(*plain) as usize
}

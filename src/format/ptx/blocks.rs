//! The basic blocks of a function. The instrumentation and the readers of lines number them by this one function.
//!
//! A block begins at the first instruction of the body, at the first instruction after a label that a branch of the
//! function leads to, and after an instruction after which a thread may not run the next one: `bra`, `brx.idx`, `ret`,
//! `exit`, `trap`, guarded or not, and `call`, whose callee may end the thread. Two rules keep the number down:
//!
//! - A label that no branch leads to begins no block. Compilers put such labels between any two instructions, for debug
//!   information.
//! - An unguarded `bra` right after a guarded branch is part of the block that this branch ends. It is the other way
//!   out of the block.

use std::collections::{HashMap, HashSet};

use crate::format::ptx::PtxError;
use crate::format::ptx::statements::{Flow, Instruction, Statement, StatementKind, Statements};

/// The statements of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The number of the statement with its first instruction.
    pub(crate) first: usize,
    /// The number of the statement with its last instruction.
    pub(crate) last: usize,
}

/// The blocks of a function, and the ways between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) spans: Vec<Span>,
    /// The loops.
    pub(crate) loops: Vec<Loop>,
    /// The blocks that a label begins to which a branch leads.
    pub(crate) reached: HashSet<usize>,
    /// True if a branch leads past the last instruction.
    pub(crate) reaches_end: bool,
    /// For each branch to one label the block that it leads to, by the number of its statement.
    pub(crate) targets: HashMap<usize, usize>,
    /// For each branch all blocks that it leads to, by the number of its statement. `None` is the end of the body.
    pub(crate) ways: HashMap<usize, Vec<Option<usize>>>,
}

/// Blocks that a backward branch reaches over. A block that is in no loop runs once at most in a call of the function:
/// a way back to it has a branch from after it, or from it, to it or to a block before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The block that backward branches lead to.
    pub(crate) head: usize,
    /// The last block with such a branch.
    pub(crate) last: usize,
}

/// The labels of a function, by scope and name: the numbers of their statements.
struct Labels<'text, 'all> {
    statements: &'all Statements<'text>,
    labels: HashMap<(usize, &'text str), usize>,
    lists: HashMap<(usize, &'text str), &'all [&'text str]>,
}

impl<'text, 'all> Labels<'text, 'all> {
    fn new(statements: &'all Statements<'text>) -> Result<Self, PtxError> {
        let mut found = Self {
            statements,
            labels: HashMap::new(),
            lists: HashMap::new(),
        };
        for (number, statement) in statements.all.iter().enumerate() {
            let scope = statement.scope;
            let known = match &statement.kind {
                StatementKind::Label(name) => {
                    let known = found.labels.insert((scope, name), number).is_some();
                    known.then_some(*name)
                }
                StatementKind::Targets { name, labels } => {
                    let known = found.lists.insert((scope, name), labels).is_some();
                    known.then_some(*name)
                }
                _ => None,
            };
            if let Some(name) = known {
                return Err(PtxError::RepeatedLabel {
                    line: statement.line,
                    found: name.to_owned(),
                });
            }
        }
        Ok(found)
    }

    /// The value of `name` in the innermost scope around `scope` that has one.
    fn lookup<T: Copy>(
        &self,
        all: &HashMap<(usize, &'text str), T>,
        scope: usize,
        name: &'text str,
    ) -> Option<T> {
        let mut around = Some(scope);
        while let Some(scope) = around {
            if let Some(found) = all.get(&(scope, name)) {
                return Some(*found);
            }
            around = self.statements.scopes[scope];
        }
        None
    }

    fn label(&self, statement: &Statement<'text>, name: &'text str) -> Result<usize, PtxError> {
        let found = self.lookup(&self.labels, statement.scope, name);
        found.ok_or_else(|| PtxError::UnknownLabel {
            line: statement.line,
            found: name.to_owned(),
        })
    }

    /// The labels that a branch may lead to.
    fn targets(
        &self,
        statement: &Statement<'text>,
        instruction: &Instruction<'text>,
    ) -> Result<Vec<usize>, PtxError> {
        match instruction.flow {
            Flow::Branch { label, .. } => Ok(vec![self.label(statement, label)?]),
            Flow::Table { list } => {
                let labels = self.lookup(&self.lists, statement.scope, list);
                let labels = labels.ok_or_else(|| PtxError::UnknownLabel {
                    line: statement.line,
                    found: list.to_owned(),
                })?;
                let labels = labels.iter();
                labels.map(|label| self.label(statement, label)).collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl Blocks {
    /// Numbers the blocks of a body.
    ///
    /// # Errors
    /// Fails if a branch leads to no label of its scope, or if an instruction that is not a branch names a label.
    pub(super) fn new(statements: &Statements<'_>) -> Result<Self, PtxError> {
        let labels = Labels::new(statements)?;
        check_operands(statements, &labels)?;
        let mut branches: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut reached = HashSet::new();
        for (number, statement, instruction) in statements.instructions() {
            let targets = labels.targets(statement, instruction)?;
            reached.extend(targets.iter().copied());
            if !targets.is_empty() {
                branches.push((number, targets));
            }
        }
        let mut spans: Vec<Span> = Vec::new();
        // The block that each statement's label leads to, and the block of each statement.
        let mut block_at = vec![None; statements.all.len()];
        let (mut begins, mut after_guarded) = (true, false);
        for (number, statement) in statements.all.iter().enumerate() {
            match &statement.kind {
                StatementKind::Label(_) if reached.contains(&number) => {
                    (begins, after_guarded) = (true, false);
                }
                StatementKind::Instruction(instruction) => {
                    let is_other_way = after_guarded
                        && !instruction.is_guarded
                        && matches!(instruction.flow, Flow::Branch { .. });
                    if begins && !is_other_way {
                        spans.push(Span {
                            first: number,
                            last: number,
                        });
                    }
                    if let Some(span) = spans.last_mut() {
                        span.last = number;
                    }
                    block_at[number] = spans.len().checked_sub(1);
                    let is_branch = matches!(instruction.flow, Flow::Branch { .. });
                    begins = !matches!(instruction.flow, Flow::Next);
                    after_guarded = is_branch && instruction.is_guarded;
                }
                _ => {}
            }
        }
        let block_behind = |label: usize| {
            let next = spans.partition_point(|span| span.first < label);
            (next < spans.len()).then_some(next)
        };
        let mut last_of: HashMap<usize, usize> = HashMap::new();
        let mut targets = HashMap::new();
        let mut ways = HashMap::new();
        for (number, labels) in branches {
            let leads_to = labels.iter().map(|label| block_behind(*label));
            ways.insert(number, leads_to.collect());
            let from = block_at[number].unwrap_or(0);
            for label in &labels {
                let Some(head) = block_behind(*label) else {
                    continue;
                };
                if head <= from {
                    let last = last_of.entry(head).or_insert(from);
                    *last = from.max(*last);
                }
            }
            if let [label] = labels.as_slice()
                && let Some(target) = block_behind(*label)
            {
                targets.insert(number, target);
            }
        }
        let loops = last_of.into_iter();
        let mut loops: Vec<Loop> = loops.map(|(head, last)| Loop { head, last }).collect();
        loops.sort_unstable_by_key(|span| span.head);
        Ok(Self {
            reaches_end: reached.iter().any(|label| block_behind(*label).is_none()),
            reached: reached.into_iter().filter_map(block_behind).collect(),
            spans,
            loops,
            targets,
            ways,
        })
    }
}

/// Checks that no instruction but a branch names a label: the threads would take a path that rocov does not see.
fn check_operands(statements: &Statements<'_>, labels: &Labels<'_, '_>) -> Result<(), PtxError> {
    for (number, word) in &statements.operands {
        let statement = &statements.all[*number];
        let StatementKind::Instruction(instruction) = &statement.kind else {
            continue;
        };
        let names_label = labels
            .lookup(&labels.labels, statement.scope, word)
            .is_some()
            || labels
                .lookup(&labels.lists, statement.scope, word)
                .is_some();
        if names_label {
            return Err(PtxError::UnknownBranch {
                line: statement.line,
                opcode: instruction.opcode.to_owned(),
                label: (*word).to_owned(),
            });
        }
    }
    Ok(())
}

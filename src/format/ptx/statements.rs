//! The statements of a function's body (PTX ISA, "Statements" and "Control Flow Instructions").

use crate::format::ptx::PtxError;
use crate::format::ptx::lexer::{Lexer, Token, TokenKind};

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'text> {
    pub(crate) kind: StatementKind<'text>,
    /// The place of its first byte in the text.
    pub(crate) start: usize,
    /// The place after its last byte.
    pub(crate) end: usize,
    /// The line of the text, from 1 on.
    pub(crate) line: usize,
    /// The number of the scope that it is in.
    pub(crate) scope: usize,
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub(crate) enum StatementKind<'text> {
    /// A label that a branch may lead to.
    Label(&'text str),
    /// The name of a list of labels, `.branchtargets`.
    Targets {
        name: &'text str,
        labels: Vec<&'text str>,
    },
    /// `.loc`.
    Loc(Loc<'text>),
    /// Any other directive, and the bounds of scopes.
    Other,
    /// An instruction.
    Instruction(Instruction<'text>),
}

/// A place in a source file. File numbers are those of `.file`, lines and columns count from 1, and 0 is for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file.
    pub file: u64,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// `.loc` (PTX ISA, "Debugging Directives: .loc").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loc<'text> {
    pub(crate) place: Place,
    /// The inlined function: a label in `.debug_str`, and the bytes after it; and the place that it is inlined at.
    pub(crate) inlined: Option<(&'text str, u64, Place)>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction<'text> {
    /// True if a predicate guards it.
    pub(crate) is_guarded: bool,
    /// With modifiers, such as `bra.uni`.
    pub(crate) opcode: &'text str,
    /// The place of the opcode's first byte in the text.
    pub(crate) opcode_start: usize,
    pub(crate) flow: Flow<'text>,
}

/// The way of the threads after an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Flow<'text> {
    /// The next instruction.
    Next,
    /// `bra`: a label. The places are those of its name in the text.
    Branch {
        label: &'text str,
        start: usize,
        end: usize,
    },
    /// `brx.idx`: one label of a list.
    Table { list: &'text str },
    /// `call`: the next instruction, if the callee returns. The callee is a name or a register.
    Call { callee: &'text str },
    /// `ret`.
    Return,
    /// `exit`.
    Exit,
    /// `trap`: the end of the program's context.
    Trap,
}

impl Instruction<'_> {
    /// The opcode without modifiers.
    pub(crate) fn name(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }
}

/// The statements of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statements<'text> {
    pub(crate) all: Vec<Statement<'text>>,
    /// The outer scope of each scope. The first is the body.
    pub(crate) scopes: Vec<Option<usize>>,
    /// The place of the bracket that closes the body.
    pub(crate) end: usize,
    /// The words in the operands of instructions that only compute, with the statement's number: none may be a label.
    pub(crate) operands: Vec<(usize, &'text str)>,
}

/// The directives in a body that end with a semicolon.
const DECLARATIONS: [&str; 7] = [
    ".reg", ".local", ".shared", ".param", ".const", ".global", ".pragma",
];

/// Reads a body, from after its opening bracket to after its closing one.
pub(super) fn read<'text>(lexer: &mut Lexer<'text>) -> Result<Statements<'text>, PtxError> {
    let mut found = Statements {
        scopes: vec![None],
        ..Statements::default()
    };
    let mut scope = 0;
    loop {
        let first = lexer.take()?;
        let word = match first.kind {
            TokenKind::Word => lexer.text_of(first),
            TokenKind::Sign(b'{') => {
                found.scopes.push(Some(scope));
                scope = found.scopes.len() - 1;
                continue;
            }
            TokenKind::Sign(b'}') => match found.scopes[scope] {
                Some(outer) => {
                    scope = outer;
                    continue;
                }
                None => {
                    found.end = first.start;
                    return Ok(found);
                }
            },
            TokenKind::Sign(b'@') => "@",
            TokenKind::Sign(b';') => continue,
            _ => return Err(lexer.unexpected(first, "a statement")),
        };
        let (kind, end) = if lexer.peek().is(b':') {
            if !is_label(word) {
                return Err(lexer.unexpected(first, "a label"));
            }
            let colon = lexer.take()?;
            labelled(lexer, word, colon)?
        } else if word == ".loc" {
            loc(lexer)?
        } else if DECLARATIONS.contains(&word) {
            (StatementKind::Other, semicolon(lexer)?.end)
        } else if word.starts_with('.') {
            return Err(lexer.unexpected(first, "a directive of a function that rocov supports"));
        } else {
            let number = found.all.len();
            let (instruction, end) = instruction(lexer, first, number, &mut found.operands)?;
            (StatementKind::Instruction(instruction), end)
        };
        found.all.push(Statement {
            kind,
            start: first.start,
            end,
            line: first.line,
            scope,
        });
    }
}

/// Returns whether a word may be a label: an identifier (PTX ISA, "Identifiers") that is not a register.
fn is_label(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
}

/// A label, or the directive that it names.
fn labelled<'text>(
    lexer: &mut Lexer<'text>,
    name: &'text str,
    colon: Token,
) -> Result<(StatementKind<'text>, usize), PtxError> {
    let next = lexer.peek();
    let directive = match next.kind {
        TokenKind::Word => lexer.text_of(next),
        _ => "",
    };
    match directive {
        ".branchtargets" => {
            lexer.take()?;
            let mut labels = vec![lexer.word("a label")?];
            while lexer.take_if(b',')? {
                labels.push(lexer.word("a label")?);
            }
            let end = lexer.expect(b';', "a comma or a semicolon")?.end;
            Ok((StatementKind::Targets { name, labels }, end))
        }
        ".callprototype" | ".calltargets" => Ok((StatementKind::Other, semicolon(lexer)?.end)),
        _ => Ok((StatementKind::Label(name), colon.end)),
    }
}

/// Takes all up to the semicolon that ends a declaration.
fn semicolon(lexer: &mut Lexer<'_>) -> Result<Token, PtxError> {
    loop {
        let token = lexer.take()?;
        match token.kind {
            TokenKind::Sign(b';') => return Ok(token),
            TokenKind::Sign(b'(') => drop(lexer.skip_to(b')')?),
            TokenKind::Sign(b'[') => drop(lexer.skip_to(b']')?),
            TokenKind::Sign(b'{') => drop(lexer.skip_to(b'}')?),
            TokenKind::Sign(b')' | b']' | b'}' | b':' | b'@') | TokenKind::End => {
                return Err(lexer.unexpected(token, "a semicolon"));
            }
            _ => {}
        }
    }
}

fn place(lexer: &mut Lexer<'_>) -> Result<(Place, usize), PtxError> {
    let file = lexer.number("the number of a file")?;
    let small = |lexer: &mut Lexer<'_>, expected| {
        let token = lexer.peek();
        let number = lexer.number(expected)?;
        u32::try_from(number).map_err(|_| lexer.unexpected(token, expected))
    };
    let line = small(lexer, "the number of a line")?;
    let end = lexer.peek().end;
    let column = small(lexer, "the number of a column")?;
    Ok((Place { file, line, column }, end))
}

fn loc<'text>(lexer: &mut Lexer<'text>) -> Result<(StatementKind<'text>, usize), PtxError> {
    let (own, mut end) = place(lexer)?;
    let mut inlined = None;
    if lexer.take_if(b',')? {
        keyword(lexer, "function_name")?;
        let label = lexer.word("a label in .debug_str")?;
        let offset = match lexer.take_if(b'+')? {
            true => lexer.number("a number of bytes")?,
            false => 0,
        };
        lexer.expect(b',', "a comma and inlined_at")?;
        keyword(lexer, "inlined_at")?;
        let (outer, after) = place(lexer)?;
        inlined = Some((label, offset, outer));
        end = after;
    }
    let loc = Loc {
        place: own,
        inlined,
    };
    Ok((StatementKind::Loc(loc), end))
}

fn keyword(lexer: &mut Lexer<'_>, expected: &'static str) -> Result<(), PtxError> {
    let token = lexer.take()?;
    match lexer.text_of(token) == expected {
        true => Ok(()),
        false => Err(lexer.unexpected(token, expected)),
    }
}

/// An instruction whose first token is taken: the opcode, or the sign of a guard. Adds the words of its operands to
/// `operands` if it only computes.
fn instruction<'text>(
    lexer: &mut Lexer<'text>,
    first: Token,
    number: usize,
    operands: &mut Vec<(usize, &'text str)>,
) -> Result<(Instruction<'text>, usize), PtxError> {
    let mut opcode = first;
    let is_guarded = first.is(b'@');
    if is_guarded {
        lexer.take_if(b'!')?;
        lexer.word("a predicate")?;
        opcode = lexer.take()?;
    }
    let word = lexer.text_of(opcode);
    let is_name = opcode.kind == TokenKind::Word
        && word.starts_with(|first: char| first.is_ascii_alphabetic());
    if !is_name {
        return Err(lexer.unexpected(opcode, "an instruction"));
    }
    let mut instruction = Instruction {
        is_guarded,
        opcode: word,
        opcode_start: opcode.start,
        flow: Flow::Next,
    };
    const END: &str = "a semicolon";
    let name = word.split('.').next().unwrap_or_default();
    match name {
        "bra" => {
            let token = lexer.peek();
            let label = lexer.word("a label")?;
            instruction.flow = Flow::Branch {
                label,
                start: token.start,
                end: token.end,
            };
            let end = lexer.expect(b';', END)?.end;
            return Ok((instruction, end));
        }
        "brx" if word.starts_with("brx.idx") => {
            lexer.word("an index")?;
            lexer.expect(b',', "a comma and a list of labels")?;
            let list = lexer.word("a list of labels")?;
            instruction.flow = Flow::Table { list };
            let end = lexer.expect(b';', END)?.end;
            return Ok((instruction, end));
        }
        "ret" | "exit" | "trap" => {
            instruction.flow = match name {
                "ret" => Flow::Return,
                "exit" => Flow::Exit,
                _ => Flow::Trap,
            };
            let end = lexer.expect(b';', END)?.end;
            return Ok((instruction, end));
        }
        "call" => {
            if lexer.take_if(b'(')? {
                lexer.skip_to(b')')?;
                lexer.expect(b',', "a comma and a function")?;
            }
            let callee = lexer.word("a function")?;
            instruction.flow = Flow::Call { callee };
            return Ok((instruction, semicolon(lexer)?.end));
        }
        // A branch of PTX before version 2.0, or one that rocov does not support.
        "brx" => return Err(lexer.unexpected(opcode, "brx.idx")),
        _ => {}
    }
    loop {
        let token = lexer.take()?;
        match token.kind {
            TokenKind::Word => operands.push((number, lexer.text_of(token))),
            TokenKind::Sign(b';') => return Ok((instruction, token.end)),
            // Addresses and vectors have no brackets inside, but a closing one without its opening one ends more.
            TokenKind::Sign(b'(' | b'[' | b'{' | b')' | b']' | b'}') => {
                operand_bracket(lexer, token, number, operands)?;
            }
            TokenKind::Sign(b':' | b'@' | b'"') | TokenKind::End => {
                return Err(lexer.unexpected(token, END));
            }
            TokenKind::Text | TokenKind::Sign(_) => {}
        }
    }
}

/// Takes the operands in the bracket that `open` is.
fn operand_bracket<'text>(
    lexer: &mut Lexer<'text>,
    open: Token,
    number: usize,
    operands: &mut Vec<(usize, &'text str)>,
) -> Result<(), PtxError> {
    let closing = |token: Token| match token.kind {
        TokenKind::Sign(b'(') => Some(b')'),
        TokenKind::Sign(b'[') => Some(b']'),
        TokenKind::Sign(b'{') => Some(b'}'),
        _ => None,
    };
    let Some(first) = closing(open) else {
        return Err(lexer.unexpected(open, "a semicolon"));
    };
    let mut wanted = vec![first];
    while let Some(close) = wanted.last().copied() {
        let token = lexer.take()?;
        if let Some(inner) = closing(token) {
            wanted.push(inner);
        } else if token.is(close) {
            wanted.pop();
        } else {
            match token.kind {
                TokenKind::Word => operands.push((number, lexer.text_of(token))),
                TokenKind::Sign(b')' | b']' | b'}' | b';' | b':' | b'@') | TokenKind::End => {
                    return Err(lexer.unexpected(token, "the matching closing bracket"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

impl<'text> Statements<'text> {
    /// The instructions, with the numbers of their statements.
    pub(crate) fn instructions<'all>(
        &'all self,
    ) -> impl Iterator<Item = (usize, &'all Statement<'text>, &'all Instruction<'text>)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, statement)| match &statement.kind {
            StatementKind::Instruction(instruction) => Some((number, statement, instruction)),
            _ => None,
        })
    }
}

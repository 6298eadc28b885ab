//! A PTX module: its header, source files and functions (PTX ISA, "Directives").

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::format::blocks::{Kind, Records};
use crate::format::codeobject::name_ref;
use crate::format::ptx::PtxError;
use crate::format::ptx::blocks::Blocks;
use crate::format::ptx::lexer::{Lexer, Token, TokenKind};
use crate::format::ptx::statements::{
    self, Flow, Instruction, Loc, Place, Statement, StatementKind, Statements,
};

/// The start of the names of records.
pub(crate) const RECORD: &str = "__profd_";

/// A PTX module.
#[derive(Clone, Debug)]
pub struct Module<'text> {
    /// The text that it was read from.
    pub text: &'text str,
    /// The version of PTX: `.version`.
    pub version: (u32, u32),
    /// The architecture that it is for, such as `sm_90a`: the first word of `.target`.
    pub target: &'text str,
    /// The source files by their numbers: `.file`.
    pub files: BTreeMap<u64, String>,
    /// The kernels and functions that have a body, in the order of the text.
    pub functions: Vec<PtxFunction<'text>>,
    pub(crate) header: ModuleHeader,
    /// The first name of the module that is of counters, and its line.
    pub(crate) counting: Option<(usize, &'text str)>,
}

/// The places of a module's header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ModuleHeader {
    /// The number of `.version`.
    pub(crate) version: (usize, usize),
    /// The line of `.target`.
    pub(crate) target_line: usize,
    /// The size of addresses, and its line.
    pub(crate) address_size: Option<(u64, usize)>,
    /// The place after the header, before the first declaration.
    pub(crate) end: usize,
}

/// A kernel or a function with a body.
#[derive(Clone, Debug)]
pub struct PtxFunction<'text> {
    /// The symbol, which is the mangled name.
    pub symbol: &'text str,
    /// True for `.entry`, false for `.func`.
    pub is_kernel: bool,
    /// The text from the directive to the closing bracket.
    pub text: &'text str,
    /// The hash of the text, which its record has.
    pub hash: u64,
    /// The line of the text that has its name, from 1 on.
    pub line: usize,
    /// The basic blocks in the order of the text. Each has a counter of this number.
    pub blocks: Vec<Block>,
    /// The threads of one block of a launch, or of one cluster of blocks: `.reqntid` and `.reqnctapercluster`. `None` if
    /// the text leaves the number to the launch; `.maxntid` is only its limit.
    pub required_threads: Option<NonZeroU64>,
    pub(crate) body: Body<'text>,
}

impl PtxFunction<'_> {
    /// The hash of the name of its record, and that of its text: its record has both.
    #[must_use]
    pub fn key(&self) -> (u64, u64) {
        let name = Kind::Ptx.record_name(self.symbol);
        (name_ref(name.as_bytes()), self.hash)
    }
}

/// The parts of a function that only the instrumentation needs.
#[derive(Clone, Debug)]
pub(crate) struct Body<'text> {
    pub(crate) statements: Statements<'text>,
    pub(crate) blocks: Blocks,
    /// The place of the bracket that opens the body.
    pub(crate) open: usize,
    /// True if the kernel has a limit of threads or of registers.
    pub(crate) is_limited: bool,
}

/// A basic block: instructions that the threads that enter it run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of the text that its first instruction is in, from 1 on.
    pub line: usize,
    /// The source positions of its instructions, each once, in the order of the text. None has line 0.
    pub positions: Vec<Arc<Position>>,
}

/// A position in source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The place.
    pub place: Place,
    /// The name of the function that the place is in, if it was inlined and the text names it.
    pub function: Option<String>,
    /// The places that it was inlined at, from the innermost on.
    pub inlined_at: Vec<CallSite>,
}

/// The place of a call that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The place.
    pub place: Place,
    /// The name of the function that the call is in, if that was inlined, too, and the text names it.
    pub function: Option<String>,
}

/// The most nested calls that a position states.
const MAX_INLINED: usize = 64;

impl<'text> Module<'text> {
    /// Reads a module. Zeros at the end of the text count as nothing.
    ///
    /// # Errors
    /// Fails if the text is not as nvcc, clang and Triton write it. The error names the line.
    pub fn parse(text: &'text str) -> Result<Self, PtxError> {
        Reader::new(text)?.run()
    }

    /// The function with this symbol.
    #[must_use]
    pub fn function(&self, symbol: &str) -> Option<&PtxFunction<'text>> {
        self.functions
            .iter()
            .find(|function| function.symbol == symbol)
    }

    /// The number of the target's architecture, such as 90 for `sm_90a`.
    #[must_use]
    pub fn architecture(&self) -> Option<u32> {
        let digits = self.target.strip_prefix("sm_")?;
        let end = digits.find(|character: char| !character.is_ascii_digit());
        digits[..end.unwrap_or(digits.len())].parse().ok()
    }

    /// The records of its functions that have a body, if each block has a counter.
    pub(crate) fn records(&self) -> Records {
        let mut records = Records::default();
        for function in self
            .functions
            .iter()
            .filter(|function| !function.blocks.is_empty())
        {
            // A text of 4 GiB is more than a fat binary may unpack to.
            let count = u32::try_from(function.blocks.len()).unwrap_or(u32::MAX);
            records.push(Kind::Ptx, function.symbol, function.text.as_bytes(), count);
        }
        records
    }
}

struct Reader<'text> {
    lexer: Lexer<'text>,
    module: Module<'text>,
    functions: Vec<PtxFunction<'text>>,
    symbols: HashSet<&'text str>,
    /// The bytes of `.debug_str`, and the places of its labels.
    strings: Vec<u8>,
    labels: HashMap<&'text str, usize>,
}

/// The directives that limit the registers of a kernel (PTX ISA, "Performance-Tuning Directives"), or state the threads of
/// a block, from which ptxas derives the limit.
const LIMITS: [&str; 3] = [".maxntid", ".reqntid", ".maxnreg"];

/// The starts of names that modules have that count.
const COUNTING: [&str; 7] = [
    "__profc_",
    RECORD,
    "__llvm_profile_raw_version",
    "__llvm_prf_nm",
    "__rocov_",
    "%rocov_",
    "$rocov_",
];

impl<'text> Reader<'text> {
    fn new(text: &'text str) -> Result<Self, PtxError> {
        Ok(Self {
            lexer: Lexer::new(text)?,
            module: Module {
                text,
                version: (0, 0),
                target: "",
                files: BTreeMap::new(),
                functions: Vec::new(),
                header: ModuleHeader::default(),
                counting: counting(text),
            },
            functions: Vec::new(),
            symbols: HashSet::new(),
            strings: Vec::new(),
            labels: HashMap::new(),
        })
    }

    fn run(mut self) -> Result<Module<'text>, PtxError> {
        self.header()?;
        loop {
            let first = self.lexer.take()?;
            match first.kind {
                TokenKind::End => break,
                TokenKind::Sign(b';') => continue,
                TokenKind::Word => self.directive(first)?,
                _ => return Err(self.lexer.unexpected(first, "a directive")),
            }
        }
        let functions = std::mem::take(&mut self.functions);
        self.module.functions = functions
            .into_iter()
            .map(|function| self.named(function))
            .collect();
        Ok(self.module)
    }

    /// `.version`, `.target` and `.address_size`, in this order.
    fn header(&mut self) -> Result<(), PtxError> {
        let first = self.lexer.take()?;
        if self.lexer.text_of(first) != ".version" {
            return Err(self.lexer.unexpected(first, ".version"));
        }
        let number = self.lexer.take()?;
        let word = self.lexer.text_of(number);
        let parts = word.split_once('.');
        let version =
            parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let version = version.filter(|_| number.kind == TokenKind::Word);
        self.module.version =
            version.ok_or_else(|| self.lexer.unexpected(number, "a version of PTX"))?;
        self.module.header.version = (number.start, number.end);
        let target = self.lexer.take()?;
        if self.lexer.text_of(target) != ".target" {
            return Err(self.lexer.unexpected(target, ".target"));
        }
        self.module.header.target_line = target.line;
        let mut last = self.lexer.peek();
        self.module.target = self.lexer.word("an architecture")?;
        while self.lexer.take_if(b',')? {
            last = self.lexer.peek();
            self.lexer.word("an option of the target")?;
        }
        let next = self.lexer.peek();
        if self.lexer.text_of(next) == ".address_size" {
            self.lexer.take()?;
            last = self.lexer.peek();
            let size = self.lexer.number("a number of bits")?;
            self.module.header.address_size = Some((size, last.line));
        }
        self.module.header.end = last.end;
        Ok(())
    }

    fn directive(&mut self, first: Token) -> Result<(), PtxError> {
        match self.lexer.text_of(first) {
            ".file" => self.file(),
            ".section" => self.section(),
            ".func" => self.function(first, false),
            ".entry" => self.function(first, true),
            ".extern" | ".visible" | ".weak" | ".common" => self.linked(),
            ".global" | ".const" | ".shared" | ".local" | ".tex" | ".texref" | ".samplerref"
            | ".surfref" | ".pragma" | ".alias" | ".param" | ".reg" => self.declaration(),
            _ => Err(self
                .lexer
                .unexpected(first, "a directive that rocov supports")),
        }
    }

    /// A variable or a function with its linkage.
    fn linked(&mut self) -> Result<(), PtxError> {
        loop {
            let token = self.lexer.peek();
            match self.lexer.text_of(token) {
                ".func" => {
                    self.lexer.take()?;
                    return self.function(token, false);
                }
                ".entry" => {
                    self.lexer.take()?;
                    return self.function(token, true);
                }
                ".extern" | ".visible" | ".weak" | ".common" => drop(self.lexer.take()?),
                _ => return self.declaration(),
            }
        }
    }

    /// The rest of a declaration, up to its semicolon.
    fn declaration(&mut self) -> Result<(), PtxError> {
        loop {
            let token = self.lexer.take()?;
            match token.kind {
                TokenKind::Sign(b';') => return Ok(()),
                TokenKind::Sign(b'(') => drop(self.lexer.skip_to(b')')?),
                TokenKind::Sign(b'[') => drop(self.lexer.skip_to(b']')?),
                TokenKind::Sign(b'{') => drop(self.lexer.skip_to(b'}')?),
                TokenKind::Sign(b')' | b']' | b'}') | TokenKind::End => {
                    return Err(self.lexer.unexpected(token, "a semicolon"));
                }
                _ => {}
            }
        }
    }

    /// `.file NUMBER "NAME"`, and the time and the size of the file.
    fn file(&mut self) -> Result<(), PtxError> {
        let number = self.lexer.number("the number of a file")?;
        let name = self.lexer.take()?;
        if name.kind != TokenKind::Text {
            return Err(self.lexer.unexpected(name, "the name of a file"));
        }
        let name = self.lexer.text_of(name);
        let name = unescaped(&name[1..name.len() - 1]);
        self.module.files.insert(number, name);
        while self.lexer.take_if(b',')? {
            self.lexer.number("a number")?;
        }
        Ok(())
    }

    /// A section of debug information. Only the strings matter.
    fn section(&mut self) -> Result<(), PtxError> {
        let name = self.lexer.word("the name of a section")?;
        self.lexer.expect(b'{', "an opening bracket")?;
        if name != ".debug_str" {
            self.lexer.skip_to(b'}')?;
            return Ok(());
        }
        loop {
            let token = self.lexer.take()?;
            match token.kind {
                TokenKind::Sign(b'}') => return Ok(()),
                TokenKind::Sign(b',' | b';') => {}
                TokenKind::Word if self.lexer.peek().is(b':') => {
                    self.lexer.take()?;
                    let label = self.lexer.text_of(token);
                    self.labels.insert(label, self.strings.len());
                }
                TokenKind::Word => {
                    let word = self.lexer.text_of(token);
                    if let Ok(byte) = word.parse() {
                        self.strings.push(byte);
                    } else if word != ".b8" {
                        return Err(self.lexer.unexpected(token, ".b8, a byte or a label"));
                    }
                }
                _ => return Err(self.lexer.unexpected(token, ".b8, a byte or a label")),
            }
        }
    }

    /// A function, after its directive.
    fn function(&mut self, first: Token, is_kernel: bool) -> Result<(), PtxError> {
        // The values that it returns are before the name.
        if self.lexer.take_if(b'(')? {
            self.lexer.skip_to(b')')?;
        }
        let line = self.lexer.peek().line;
        let symbol = self.lexer.word("the name of a function")?;
        let mut is_limited = false;
        let (mut threads, mut blocks) = (None, NonZeroU64::new(1));
        let open = loop {
            let token = self.lexer.take()?;
            match token.kind {
                TokenKind::Sign(b'{') => break token,
                TokenKind::Sign(b';') => return Ok(()),
                TokenKind::Sign(b'(') => drop(self.lexer.skip_to(b')')?),
                // A pragma ends with a semicolon also if the body comes after it.
                TokenKind::Word if self.lexer.text_of(token) == ".pragma" => self.declaration()?,
                TokenKind::Word => {
                    is_limited |= LIMITS.contains(&self.lexer.text_of(token));
                    match self.lexer.text_of(token) {
                        ".reqntid" => threads = self.size()?,
                        ".reqnctapercluster" => blocks = self.size()?,
                        _ => {}
                    }
                }
                TokenKind::Sign(b',') | TokenKind::Text => {}
                _ => return Err(self.lexer.unexpected(token, "the body of a function")),
            }
        };
        if !self.symbols.insert(symbol) {
            let found = symbol.to_owned();
            return Err(PtxError::RepeatedFunction { line, found });
        }
        let required_threads = threads
            .zip(blocks)
            .and_then(|(threads, blocks)| threads.checked_mul(blocks));
        let statements = statements::read(&mut self.lexer)?;
        let blocks = Blocks::new(&statements)?;
        let text = &self.module.text[first.start..=statements.end];
        self.functions.push(PtxFunction {
            symbol,
            is_kernel,
            text,
            hash: Kind::Ptx.hash(text.as_bytes()),
            line,
            blocks: Vec::new(),
            required_threads,
            body: Body {
                statements,
                blocks,
                open: open.start,
                is_limited,
            },
        });
        Ok(())
    }

    /// The product of one to three numbers with commas between them. `None` if one is 0, or if it is too large.
    fn size(&mut self) -> Result<Option<NonZeroU64>, PtxError> {
        const EXPECTED: &str = "the size of one dimension";
        let mut size = NonZeroU64::new(self.lexer.number(EXPECTED)?);
        while self.lexer.take_if(b',')? {
            let more = NonZeroU64::new(self.lexer.number(EXPECTED)?);
            size = size
                .zip(more)
                .and_then(|(size, more)| size.checked_mul(more));
        }
        Ok(size)
    }

    /// The function with the positions of its blocks.
    fn named(&self, mut function: PtxFunction<'text>) -> PtxFunction<'text> {
        let statements = &function.body.statements.all;
        let mut current: Option<Loc<'text>> = None;
        // The positions so far, and the last one at each place: a call that was inlined is at an earlier one.
        let mut known: HashMap<Loc<'text>, Arc<Position>> = HashMap::new();
        let mut last: HashMap<Place, Arc<Position>> = HashMap::new();
        let mut spans = function.body.blocks.spans.iter().peekable();
        // The position may be of the block before.
        let mut is_new = true;
        for (number, statement) in statements.iter().enumerate() {
            if let StatementKind::Loc(loc) = &statement.kind {
                is_new = true;
                // The place may be the call of an inlined function, even if no instruction has it.
                if !known.contains_key(loc) {
                    let position = Arc::new(self.position(loc, &last));
                    known.insert(*loc, position);
                }
                last.insert(loc.place, known[loc].clone());
                current = Some(*loc);
            }
            if let Some(span) = spans.peek()
                && span.first == number
            {
                spans.next();
                function.blocks.push(Block {
                    line: statement.line,
                    positions: Vec::new(),
                });
            }
            let StatementKind::Instruction(instruction) = &statement.kind else {
                continue;
            };
            // Ways join at a block that is only a jump. It has no line if it has no position of its own.
            let begins = function.blocks.last().map(|block| block.line) == Some(statement.line);
            let is_join = begins && !instruction.is_guarded;
            if is_join && !is_new && matches!(instruction.flow, Flow::Branch { .. }) {
                continue;
            }
            is_new = false;
            let has_line = current.filter(|loc| loc.place.line > 0);
            let position = has_line.and_then(|loc| known.get(&loc));
            if let (Some(block), Some(position)) = (function.blocks.last_mut(), position) {
                block.positions.push(position.clone());
            }
        }
        for block in &mut function.blocks {
            let mut seen = HashSet::new();
            block
                .positions
                .retain(|position| seen.insert(Arc::as_ptr(position)));
        }
        function
    }

    fn position(&self, loc: &Loc<'text>, last: &HashMap<Place, Arc<Position>>) -> Position {
        let Some((label, offset, outer)) = loc.inlined else {
            return Position {
                place: loc.place,
                function: None,
                inlined_at: Vec::new(),
            };
        };
        let site = last.get(&outer);
        let mut inlined_at = vec![CallSite {
            place: outer,
            function: site.and_then(|site| site.function.clone()),
        }];
        if let Some(site) = site {
            let more = site.inlined_at.iter().take(MAX_INLINED - 1);
            inlined_at.extend(more.cloned());
        }
        Position {
            place: loc.place,
            function: self.string(label, offset),
            inlined_at,
        }
    }

    /// The string of `.debug_str` that begins some bytes after a label.
    fn string(&self, label: &str, offset: u64) -> Option<String> {
        let start = self.labels.get(label)?;
        let start = start.checked_add(usize::try_from(offset).ok()?)?;
        let bytes = self.strings.get(start..)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// The first name of counters in the text, and its line.
fn counting(text: &str) -> Option<(usize, &str)> {
    let all = COUNTING.iter().filter_map(|name| text.find(name));
    let at = all.min()?;
    let is_name =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '$' | '%');
    let name = &text[at..];
    let end = name
        .find(|character| !is_name(character))
        .unwrap_or(name.len());
    Some((text[..at].matches('\n').count() + 1, &name[..end]))
}

/// The name of a file without the backslashes before quotes and backslashes.
fn unescaped(name: &str) -> String {
    let mut all = String::with_capacity(name.len());
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => all.extend(letters.next()),
            _ => all.push(letter),
        }
    }
    all
}

impl<'text> PtxFunction<'text> {
    /// The instructions, with the numbers of their statements.
    pub(crate) fn instructions<'all>(
        &'all self,
    ) -> impl Iterator<Item = (usize, &'all Statement<'text>, &'all Instruction<'text>)> {
        self.body.statements.instructions()
    }
}

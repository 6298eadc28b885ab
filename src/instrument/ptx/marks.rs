//! The code that records in memory which blocks ran.
//!
//! Each block has a byte, which is 0xff until it ran, as the counters of clang's single-byte coverage. Each function has
//! words with its flags in the same array, whose bits are 1 until a thread has recorded them. So a drain that sets all bytes
//! to 0xff starts again.
//!
//! A thread that ends compares its flags with the words. Nearly all threads find nothing new, and write nothing. The words
//! come from the L1 cache: if they are old there, the thread writes once more, and its multiprocessor loads them again. They
//! are loaded at the end: on an H200, words that waited in registers from the start on made a loop of short kernels take
//! 1.047 times its time, and these 1.013 times. A kernel whose limit left no register for the words kept others in local
//! memory.

use std::fmt::Write;

use crate::instrument::ptx::flags::Flag;
use crate::instrument::ptx::flush::ended;
use crate::instrument::ptx::plan::{Plan, WORD};
use crate::instrument::ptx::unit::Unit;

/// Writes the code for one function.
#[derive(Debug)]
pub(super) struct Marks<'a, 'text> {
    pub(super) unit: &'a Unit,
    pub(super) plan: &'a Plan<'text>,
    /// The number of the function's first counter in the unit.
    pub(super) first: usize,
    /// The number of the function's first word in the unit.
    pub(super) first_word: usize,
    /// True if threads end where the function returns.
    pub(super) is_kernel: bool,
}

impl Marks<'_, '_> {
    /// The byte of a block.
    fn byte(&self, block: usize) -> String {
        let place = self.unit.first_byte() + (self.first + block) as u64;
        format!("[__profc_{}+{place}]", self.unit.name)
    }

    /// A word with flags.
    fn word(&self, word: usize) -> String {
        let place = 4 * (self.first_word + word);
        format!("[__profc_{}+{place}]", self.unit.name)
    }

    /// Sets the flag of the blocks that each call runs.
    pub(super) fn open(&self) -> &'static str {
        let is_of_all = |flag: &Flag| flag.at.is_none();
        match self.plan.waiting_flags().first().is_some_and(is_of_all) {
            true => "\n\tmov.b32 %rocov_b0, 1;",
            false => "",
        }
    }

    /// Tells memory of the blocks of a flag at once. Has no branch, so that it may be anywhere.
    pub(super) fn one(&self, block: usize) -> String {
        let flags = self.plan.flags.iter();
        let flag = flags.into_iter().find(|flag| flag.at == Some(block));
        let mut code = format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t;\n\t\
             ld.global.u8 %rocov_t, {};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t",
            self.byte(block)
        );
        for block in flag.map_or(&[][..], |flag| &flag.blocks) {
            let byte = self.byte(*block);
            let _ = write!(code, "@%rocov_p st.global.u8 {byte}, 0;\n\t");
        }
        code.push_str("}\n\t");
        code
    }

    /// Tells memory of all flags. Has no branch, so that it may be anywhere.
    pub(super) fn each_lane(&self) -> String {
        let mut code = self.scope();
        self.find_new(&mut code);
        self.tell(&mut code);
        code.push_str("}\n\t");
        code
    }

    /// Tells memory of the flags that it does not have yet, and ends with `opcode`.
    pub(super) fn at_exit(&self, opcode: &str) -> String {
        let mut code = self.scope();
        if !self.is_kernel {
            code.push_str(".reg .b32 %rocov_here;\n\tactivemask.b32 %rocov_here;\n\t");
        }
        self.find_new(&mut code);
        code.push_str("mov.b32 %rocov_t, %rocov_x0;\n\t");
        for word in 1..self.plan.words {
            let _ = write!(code, "or.b32 %rocov_t, %rocov_t, %rocov_x{word};\n\t");
        }
        code.push_str("setp.eq.u32 %rocov_p, %rocov_t, 0;\n\t@%rocov_p bra $rocov_told;\n\t");
        self.tell(&mut code);
        let end = ended(opcode, self.is_kernel, "%rocov_here");
        let _ = write!(code, "bra $rocov_told;\n$rocov_told:\n\t{end}\n\t}}\n");
        code
    }

    fn scope(&self) -> String {
        format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t, %rocov_x<{}>;\n\t",
            self.plan.words
        )
    }

    /// Sets `%rocov_x` of each word to the flags that memory does not have.
    fn find_new(&self, code: &mut String) {
        for word in 0..self.plan.words {
            let place = self.word(word);
            let _ = write!(code, "ld.global.b32 %rocov_x{word}, {place};\n\t");
        }
        for word in 0..self.plan.words {
            let _ = write!(
                code,
                "and.b32 %rocov_x{word}, %rocov_x{word}, %rocov_b{word};\n\t"
            );
        }
    }

    /// Writes the bytes of the flags in `%rocov_x`, and then the words.
    fn tell(&self, code: &mut String) {
        for (number, flag) in self.plan.waiting_flags().iter().enumerate() {
            let (word, bit) = (number / WORD, 1_u32 << (number % WORD));
            let _ = write!(
                code,
                "and.b32 %rocov_t, %rocov_x{word}, {bit:#x};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t"
            );
            for block in &flag.blocks {
                let byte = self.byte(*block);
                let _ = write!(code, "@%rocov_p st.global.u8 {byte}, 0;\n\t");
            }
        }
        for word in 0..self.plan.words {
            let place = self.word(word);
            let _ = write!(
                code,
                "not.b32 %rocov_t, %rocov_x{word};\n\tred.global.and.b32 {place}, %rocov_t;\n\t"
            );
        }
    }
}

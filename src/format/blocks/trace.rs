//! The counters of a trace: the executions of each instruction by the modelled GPU.
//!
//! The record of a function has two counters for each word of 4 bytes of its code, from its start: the waves that
//! executed the instruction that starts at the word, and the lanes that were active, summed over these waves. The counters
//! of words inside of an instruction are 0.

use object::read::ReadRef;

use crate::format::codeobject::{CodeObject, CodeObjectError, FunctionCode};

/// The size of a word of code in bytes. Each instruction starts at a word.
pub const WORD_BYTES: u64 = 4;
/// Counters for each word.
const COUNTERS_PER_WORD: usize = 2;

/// The executions of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The number of executions, each by one wave.
    pub waves: u64,
    /// The lanes that were active, summed over the executions. 0 if all of them had no active lane.
    pub lanes: u64,
}

/// The number of counters of a function with this size of its code in bytes.
#[must_use]
pub const fn counters(code_bytes: u64) -> u64 {
    code_bytes.div_ceil(WORD_BYTES) * COUNTERS_PER_WORD as u64
}

/// The counters for the instruction at `offset` bytes from the start of its function. `None` if the record has no such
/// counters, or no instruction can start there.
#[must_use]
pub fn at(counters: &[u64], offset: u64) -> Option<Executed> {
    let word = usize::try_from(offset / WORD_BYTES).ok()?;
    let first = word.checked_mul(COUNTERS_PER_WORD)?;
    let [waves, lanes] = *counters.get(first..)?.first_chunk()?;
    offset
        .is_multiple_of(WORD_BYTES)
        .then_some(Executed { waves, lanes })
}

/// The executed instructions of a function, by rising offset in bytes from its start.
pub fn executed(counters: &[u64]) -> impl Iterator<Item = (u64, Executed)> {
    let words = counters.as_chunks::<COUNTERS_PER_WORD>().0.iter();
    let words = words.zip(0..).map(|([waves, lanes], word)| {
        let (waves, lanes) = (*waves, *lanes);
        (word * WORD_BYTES, Executed { waves, lanes })
    });
    words.filter(|(_, executed)| executed.waves > 0)
}

/// Returns whether a function is a helper by which code counts or compiles, not one of the program: of rocov's headers,
/// of its plugin, of LLVM's device runtime, or one that replaces an intrinsic of LLVM. Its name shows that, as LLVM and
/// rocov keep these names for themselves.
#[must_use]
pub fn is_helper(symbol: &str) -> bool {
    let starts = ["__rocov_", "__llvm_profile_", "llvm."];
    starts.iter().any(|start| symbol.starts_with(start))
}

/// The functions of a device ELF that have a record if they ran, by rising address: one for each address and size.
///
/// If a function has several names, the least one counts.
///
/// # Errors
/// Fails if the symbols or the sections with code are damaged, or if functions share bytes with each other.
pub fn functions<'data, R: ReadRef<'data>>(
    code_object: &CodeObject<'data, R>,
) -> Result<Vec<FunctionCode<'data>>, CodeObjectError> {
    let mut functions = code_object.functions()?;
    functions
        .sort_unstable_by_key(|function| (function.address, function.code.len(), function.name));
    functions.dedup_by_key(|function| (function.address, function.code.len()));
    let sizes = functions.iter().map(|function| function.code.len() as u64);
    code_object.check_total("functions", sizes)?;
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_counters_of_its_first_word() {
        // Words 0 and 1 are one instruction, word 2 never ran, and no lane was active at word 3.
        let all = [4, 256, 0, 0, 0, 0, 7, 0];
        assert_eq!(counters(16), 8);
        assert_eq!(counters(14), 8);
        let first = Executed {
            waves: 4,
            lanes: 256,
        };
        let last = Executed { waves: 7, lanes: 0 };
        assert_eq!(at(&all, 0), Some(first));
        assert_eq!(at(&all, 4), Some(Executed::default()));
        assert_eq!(at(&all, 12), Some(last));
        assert_eq!(
            (at(&all, 16), at(&all, 2), at(&all, u64::MAX)),
            (None, None, None)
        );
        assert_eq!(executed(&all).collect::<Vec<_>>(), [(0, first), (12, last)]);
    }
}

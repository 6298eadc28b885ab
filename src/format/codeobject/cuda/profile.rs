//! The profile data of a cubin, for a reader that knows the variables' addresses from the driver.

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use crate::format::bounds_table::{OWN_VERSION_SYMBOL, VERSION_SYMBOL};
use crate::format::codeobject::cuda::symbols::{Pointer, Symbol, Variable, Variables};
use crate::format::codeobject::elf::{CodeObject, CodeObjectError};

/// The prefixes of the names of variables (`INSTR_PROF_*` in LLVM's InstrProfData.inc).
pub(super) const COUNTERS: &str = "__profc_";
pub(super) const BITMAP: &str = "__profbm_";
pub(super) const RECORD: &str = "__profd_";
pub(super) const NAMES: &str = "__llvm_prf_nm";
/// The prefix of rocov's plugin for tables of copies.
pub(super) const COPIES_TABLE: &str = "__rocov_copies_table";

/// The profile data of a cubin: plain values, which need neither the cubin nor a GPU.
///
/// The driver places each variable by itself. Ask it for the address of each of `counters`, `bitmaps` and `copies`
/// by name if the variable [is global](Variable::is_global). If one is local, the distance to a global variable of its
/// section is that of their values in the cubin, as far as is known.
///
/// Everything is in the order of sections and places in the cubin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CubinProfile {
    /// The data records, one for each function.
    pub records: Vec<Record>,
    /// The counters, `__profc_*`: one variable for each function.
    pub counters: Vec<Variable>,
    /// The MC/DC bitmaps, `__profbm_*`: one variable for each function that has one.
    pub bitmaps: Vec<Variable>,
    /// The names of the functions, in the form of `__llvm_prf_names`: lists, compressed or not, one after the other.
    /// They never change, so they need not be read from a GPU.
    pub names: Vec<u8>,
    /// The tables of copies. Empty if no code counts in copies.
    pub copies: Vec<CopiesTableVariable>,
    /// The version word of raw profiles: that of the compiler, or of rocov's device header. `None` if neither wrote
    /// one; then the size of a record tells the newest version that it may have.
    pub version: Option<u64>,
}

/// The data record of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its variable, `__profd_*`.
    pub variable: Variable,
    /// Its bytes as the cubin has them: pointers are 0.
    pub bytes: Vec<u8>,
    /// The pointer to its counters, in [`CubinProfile::counters`]. `None` if it points at none.
    pub counters: Option<Pointer>,
    /// The pointer to its bitmap, in [`CubinProfile::bitmaps`]. `None` if it points at none.
    pub bitmap: Option<Pointer>,
}

/// A table of copies (see [`crate::format::copies_table`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesTableVariable {
    /// Its variable, `__rocov_copies_table_*`.
    pub variable: Variable,
    /// Its bytes as the cubin has them: pointers are 0. The GPU has them with addresses.
    pub bytes: Vec<u8>,
    /// The pointers in it: start and stop of the area with the copies, then those of each range of counters.
    pub pointers: Vec<Pointer>,
}

impl CubinProfile {
    /// The profile data of the cubin with these bytes. It has no records if the cubin does not count.
    ///
    /// # Errors
    /// Fails if `cubin` is no code object, or its symbols or relocations are damaged.
    pub fn of(cubin: &[u8]) -> Result<Self, CodeObjectError> {
        CodeObject::parse(cubin)?.cubin_profile()
    }

    /// Returns whether the cubin counts.
    #[must_use]
    pub fn is_instrumented(&self) -> bool {
        !self.records.is_empty()
    }
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The profile data of a cubin. Empty for other code objects, which have sections instead.
    ///
    /// # Errors
    /// Fails if symbols or relocations are damaged.
    pub fn cubin_profile(&self) -> Result<CubinProfile, CodeObjectError> {
        if !self.is_cubin() {
            return Ok(CubinProfile::default());
        }
        let variables = Variables::of(self)?;
        let all = variables.named(&[RECORD, COPIES_TABLE, NAMES]);
        self.check_total("profile variables", all.map(|it| it.size))?;
        let describe = |prefix| -> Result<Vec<Variable>, CodeObjectError> {
            let named = [prefix];
            let all = variables.named(&named);
            all.map(|symbol| variables.describe(symbol)).collect()
        };
        let mut profile = CubinProfile {
            counters: describe(COUNTERS)?,
            bitmaps: describe(BITMAP)?,
            version: version(&variables)?,
            ..CubinProfile::default()
        };
        for symbol in variables.named(&[RECORD]) {
            profile.records.push(record(&variables, symbol)?);
        }
        for symbol in variables.named(&[NAMES]) {
            let names = variables.contents(symbol)?;
            profile.names.extend(names.unwrap_or_default());
        }
        for symbol in variables.named(&[COPIES_TABLE]) {
            profile.copies.push(CopiesTableVariable {
                variable: variables.describe(symbol)?,
                bytes: bytes(&variables, symbol)?,
                pointers: variables.pointers(symbol)?,
            });
        }
        Ok(profile)
    }
}

fn record<'data, R: ReadRef<'data>>(
    variables: &Variables<'data, '_, R>,
    symbol: &Symbol<'data>,
) -> Result<Record, CodeObjectError> {
    let pointers = variables.pointers(symbol)?;
    let to = |prefix| {
        let mut pointers = pointers.iter();
        pointers.find(|it| it.variable.starts_with(prefix)).cloned()
    };
    Ok(Record {
        variable: variables.describe(symbol)?,
        bytes: bytes(variables, symbol)?,
        counters: to(COUNTERS),
        bitmap: to(BITMAP),
    })
}

/// The bytes of a variable that has some in the file.
fn bytes<'data, R: ReadRef<'data>>(
    variables: &Variables<'data, '_, R>,
    symbol: &Symbol<'data>,
) -> Result<Vec<u8>, CodeObjectError> {
    let contents = variables.contents(symbol)?;
    Ok(match contents {
        Some(contents) => contents.to_vec(),
        // `cubin_profile` has compared all sizes with the size of the file.
        None => vec![0; symbol.size as usize],
    })
}

/// The version word, preferably the compiler's.
fn version<'data, R: ReadRef<'data>>(
    variables: &Variables<'data, '_, R>,
) -> Result<Option<u64>, CodeObjectError> {
    for name in [VERSION_SYMBOL, OWN_VERSION_SYMBOL] {
        let named = [name];
        if let Some(symbol) = variables.named(&named).next()
            && let Some(word) = variables.contents(symbol)?.unwrap_or_default().get(..8)
        {
            return Ok(Some(LittleEndian::read_u64(word)));
        }
    }
    Ok(None)
}

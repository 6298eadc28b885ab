//! Lookup in the generated tables of opcodes, `gfx*.txt`.

use std::sync::OnceLock;

use crate::facts::Facts;
use crate::target::{Generation, Target};

/// The opcodes of one encoding.
#[derive(Default)]
pub(crate) struct Table {
    /// Opcodes that all modelled targets of the generation share.
    common: Opcodes,
    /// The other opcodes, with the targets that have them.
    own: Vec<(Vec<Target>, Opcodes)>,
}

/// A list of opcodes.
#[derive(Default)]
struct Opcodes {
    /// By rising number.
    all: Vec<(u16, Facts)>,
    /// By number, the place in the list plus 1, or 0 if there is none.
    places: Vec<u16>,
}

impl Opcodes {
    fn new(all: Vec<(u16, Facts)>) -> Self {
        let end = all.iter().map(|(number, _)| number + 1).max();
        let mut places = vec![0; end.unwrap_or_default().into()];
        for ((number, _), place) in all.iter().zip(1..) {
            places[usize::from(*number)] = place;
        }
        Self { all, places }
    }

    fn get(&self, number: u32) -> Option<&Facts> {
        let place = self.places.get(number as usize)?.checked_sub(1)?;
        Some(&self.all[usize::from(place)].1)
    }
}

/// Makes the tables of a generation from the names of its encodings.
macro_rules! encodings {
    ($($(#[$doc:meta])* $field:ident $name:literal),* $(,)?) => {
        /// The tables of a generation. The three segments of FLAT count as encodings. A table is empty if
        /// the generation lacks its encoding.
        #[derive(Default)]
        pub(crate) struct Tables {
            $($(#[$doc])* pub $field: Table,)*
            /// The instructions of VOP1, VOP2 and VOPC whose operands are halves of registers: bit 0 and 1
            /// for sources, bit 3 for the result. Sorted by name.
            halves: Vec<(&'static str, u8)>,
        }

        impl Tables {
            /// All tables, with the names of their encodings.
            pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &Table)> {
                [$(($name, &self.$field)),*].into_iter()
            }

            /// The table of the encoding with this name, to fill it.
            fn table_mut(&mut self, name: &str) -> Option<&mut Table> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

encodings! {
    sop2 "SOP2",
    sopk "SOPK",
    sop1 "SOP1",
    sopc "SOPC",
    sopp "SOPP",
    smem "SMEM",
    vop2 "VOP2",
    vop1 "VOP1",
    vopc "VOPC",
    vop3 "VOP3",
    vop3p "VOP3P",
    /// Matrix products after their scales.
    vop3px "VOP3PX",
    /// The first and the second instruction of a dual one.
    vopdx "VOPDX",
    vopdy "VOPDY",
    /// Those with three sources each, on gfx1250.
    vopd3x "VOPD3X",
    vopd3y "VOPD3Y",
    ds "DS",
    flat "FLAT",
    scratch "SCRATCH",
    global "GLOBAL",
    mubuf "MUBUF",
    mtbuf "MTBUF",
    mimg "MIMG",
    /// Image accesses with a sampler, on RDNA 4.
    vsample "VSAMPLE",
}

impl Tables {
    /// The tables of a target's generation. The first call for a generation reads its file.
    pub(crate) fn for_target(target: Target) -> &'static Self {
        static GFX9: OnceLock<Tables> = OnceLock::new();
        static GFX10: OnceLock<Tables> = OnceLock::new();
        static GFX11: OnceLock<Tables> = OnceLock::new();
        static GFX12: OnceLock<Tables> = OnceLock::new();
        let (tables, text) = match target.generation() {
            Generation::Gfx9 => (&GFX9, include_str!("gfx9.txt")),
            Generation::Gfx10 => (&GFX10, include_str!("gfx10.txt")),
            Generation::Gfx11 => (&GFX11, include_str!("gfx11.txt")),
            Generation::Gfx12 => (&GFX12, include_str!("gfx12.txt")),
        };
        tables
            .get_or_init(|| Self::parse(text).expect("the tables are as their script writes them"))
    }

    /// Reads a file of tables; `None` if a line is not as the script writes it.
    fn parse(text: &'static str) -> Option<Self> {
        let mut tables = Self::default();
        let sections = text.split("\n[").skip(1);
        for section in sections {
            let (title, entries) = section.split_once("]\n")?;
            let entries = entries.lines().filter(|line| !line.is_empty());
            let entries = entries.map(|line| line.split_once(' '));
            if title == "HALVES" {
                let halves = entries.map(|entry| {
                    let (mask, mnemonic) = entry?;
                    Some((mnemonic, mask.parse().ok()?))
                });
                tables.halves = halves.collect::<Option<_>>()?;
                continue;
            }
            let (title, usual) = title.rsplit_once(' ')?;
            let encoding = title.split(' ').next()?;
            let opcodes = entries.map(|entry| {
                let (number, rest) = entry?;
                let (mnemonic, widths) = rest.split_once(' ').unwrap_or((rest, usual));
                let facts = Facts::new(encoding, mnemonic, widths)?;
                Some((number.parse().ok()?, facts))
            });
            let opcodes = Opcodes::new(opcodes.collect::<Option<_>>()?);
            match title.split_once(' ') {
                None => tables.table_mut(title)?.common = opcodes,
                Some((encoding, targets)) => {
                    let targets = targets.split(' ').map(|target| target.parse().ok());
                    let own = (targets.collect::<Option<_>>()?, opcodes);
                    tables.table_mut(encoding)?.own.push(own);
                }
            }
        }
        Some(tables)
    }

    /// The operands of a mnemonic that are halves of registers: bit 0 and 1 for sources, bit 3 for the result.
    pub(crate) fn halves_of(&self, mnemonic: &str) -> u8 {
        let place = self.halves.binary_search_by_key(&mnemonic, |entry| entry.0);
        place.map_or(0, |place| self.halves[place].1)
    }
}

impl Table {
    /// The target's opcode numbers and mnemonics.
    pub(crate) fn opcodes(&self, target: Target) -> impl Iterator<Item = (u16, &'static str)> {
        let all = self.lists(target).flat_map(|list| &list.all);
        all.map(|(number, facts)| (*number, facts.mnemonic))
    }

    /// The lists with the opcodes of a target.
    fn lists(&self, target: Target) -> impl Iterator<Item = &Opcodes> {
        let own = self.own.iter();
        let own = own.filter(move |(owners, _)| owners.contains(&target));
        std::iter::once(&self.common).chain(own.map(|(_, list)| list))
    }

    /// The facts of an opcode number.
    pub(crate) fn facts(&self, opcode: u32, target: Target) -> Option<&Facts> {
        self.lists(target).find_map(|list| list.get(opcode))
    }
}

/// The opcodes of a target: the encoding's name, the number in the encoding, and the mnemonic.
///
/// The names of encodings are those of AMD's instruction set guides, such as `VOP3P`. The three segments of FLAT count
/// as encodings.
pub fn opcodes(target: Target) -> impl Iterator<Item = (&'static str, u16, &'static str)> {
    let tables = Tables::for_target(target).all();
    tables.flat_map(move |(encoding, table)| {
        let opcodes = table.opcodes(target);
        opcodes.map(move |(number, mnemonic)| (encoding, number, mnemonic))
    })
}

/// The number of an instruction in an encoding of a target; `None` if the target or the encoding lacks it.
pub fn opcode(target: Target, encoding: &str, mnemonic: &str) -> Option<u16> {
    let mut tables = Tables::for_target(target).all();
    let (_, table) = tables.find(|(name, _)| *name == encoding)?;
    let mut opcodes = table.opcodes(target);
    opcodes
        .find(|(_, name)| *name == mnemonic)
        .map(|(number, _)| number)
}

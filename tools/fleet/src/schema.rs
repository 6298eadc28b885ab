//! The tables of a data set, version 2. The chapter docs/src/reference/dataset.md describes them; a test compares the
//! two.

use crate::condition::RunKey;

/// The version of the tables. A reader takes this one and earlier ones, and rejects others.
///
/// Version 2 gives files of runs and code objects numbers, and the name of the files of other tables in their metadata. It
/// has the kinds of counts of code objects, and their PTX.
pub(crate) const VERSION: u32 = 2;

/// The type of a column. No value is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Text,
    Bytes,
    /// A number of 32 bits.
    Int,
    /// A number of 64 bits.
    Long,
    /// Microseconds since 1970, UTC.
    Time,
    Flag,
}

/// The directories between that of a table and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// `date=DATE/commit=COMMIT`.
    Run,
    /// `date=DATE/commit=COMMIT/arch=ARCH`.
    RunAndArch,
    /// `arch=ARCH`: a code object has one row, however many runs have it.
    Arch,
}

impl Partition {
    /// The parts of the path, from the outermost on.
    pub(crate) fn keys(self) -> &'static [RunKey] {
        match self {
            Self::Run => &[RunKey::Date, RunKey::Commit],
            Self::RunAndArch => &[RunKey::Date, RunKey::Commit, RunKey::Arch],
            Self::Arch => &[RunKey::Arch],
        }
    }
}

/// A column: its name and type.
pub(crate) type TableColumn = (&'static str, ColumnKind);

/// A table.
#[derive(Debug)]
pub struct DataTable {
    /// Its name, which is that of its directory.
    pub name: &'static str,
    pub(crate) partition: Partition,
    pub(crate) columns: &'static [TableColumn],
    /// The number of columns in version 1, which are the first.
    first: usize,
}

/// The runs. It is written last: a file of another table counts if the file of the runs is there.
pub static RUN: DataTable = DataTable {
    name: "run",
    partition: Partition::Run,
    columns: &[
        ("run", ColumnKind::Text),
        ("start", ColumnKind::Time),
        ("end", ColumnKind::Time),
        ("processes", ColumnKind::Int),
        ("process_hashes", ColumnKind::Text),
        ("command", ColumnKind::Text),
        ("registry", ColumnKind::Text),
    ],
    first: 7,
};

/// The raw profiles of runs, those of one code object, build and label as one.
pub static PROFILE: DataTable = DataTable {
    name: "profile",
    partition: Partition::RunAndArch,
    columns: &[
        ("run", ColumnKind::Text),
        ("identity", ColumnKind::Text),
        ("build", ColumnKind::Text),
        ("label", ColumnKind::Text),
        ("zeros", ColumnKind::Flag),
        ("files", ColumnKind::Int),
    ],
    first: 6,
};

/// The counts other than 0.
pub static COUNTER: DataTable = DataTable {
    name: "counter",
    partition: Partition::RunAndArch,
    columns: &[
        ("run", ColumnKind::Text),
        ("identity", ColumnKind::Text),
        ("build", ColumnKind::Text),
        ("label", ColumnKind::Text),
        ("kind", ColumnKind::Text),
        ("function", ColumnKind::Int),
        ("index", ColumnKind::Int),
        ("count", ColumnKind::Long),
    ],
    first: 8,
};

/// The lines that each test reached.
pub static TEST_LINE: DataTable = DataTable {
    name: "test_line",
    partition: Partition::RunAndArch,
    columns: &[
        ("run", ColumnKind::Text),
        ("test", ColumnKind::Text),
        ("identity", ColumnKind::Text),
        ("file", ColumnKind::Text),
        ("line", ColumnKind::Int),
        ("count", ColumnKind::Long),
    ],
    first: 6,
};

/// The code objects. It is the last of the tables of code.
pub static CODE_OBJECT: DataTable = DataTable {
    name: "code_object",
    partition: Partition::Arch,
    columns: &[
        ("identity", ColumnKind::Text),
        ("compiler", ColumnKind::Text),
        ("raw_version", ColumnKind::Int),
        ("single_byte", ColumnKind::Flag),
        ("functions", ColumnKind::Int),
        ("counters", ColumnKind::Int),
        ("elf_name", ColumnKind::Text),
        ("elf", ColumnKind::Bytes),
        ("profile", ColumnKind::Bytes),
        ("kinds", ColumnKind::Text),
        ("ptx", ColumnKind::Bytes),
    ],
    first: 9,
};

/// The functions of code objects.
pub static FUNCTION: DataTable = DataTable {
    name: "function",
    partition: Partition::Arch,
    columns: &[
        ("identity", ColumnKind::Text),
        ("function", ColumnKind::Int),
        ("name", ColumnKind::Text),
        ("demangled", ColumnKind::Text),
        ("kernel", ColumnKind::Flag),
        ("file", ColumnKind::Text),
        ("line", ColumnKind::Int),
        ("counters", ColumnKind::Int),
    ],
    first: 8,
};

/// The regions of functions.
pub static REGION: DataTable = DataTable {
    name: "region",
    partition: Partition::Arch,
    columns: &[
        ("identity", ColumnKind::Text),
        ("function", ColumnKind::Int),
        ("region", ColumnKind::Int),
        ("kind", ColumnKind::Text),
        ("file", ColumnKind::Text),
        ("line", ColumnKind::Int),
        ("column", ColumnKind::Int),
        ("end_line", ColumnKind::Int),
        ("end_column", ColumnKind::Int),
    ],
    first: 9,
};

/// The branches of functions.
pub static BRANCH: DataTable = DataTable {
    name: "branch",
    partition: Partition::Arch,
    columns: &[
        ("identity", ColumnKind::Text),
        ("function", ColumnKind::Int),
        ("branch", ColumnKind::Int),
        ("file", ColumnKind::Text),
        ("line", ColumnKind::Int),
        ("column", ColumnKind::Int),
        ("end_line", ColumnKind::Int),
        ("end_column", ColumnKind::Int),
        ("folded_true", ColumnKind::Flag),
        ("folded_false", ColumnKind::Flag),
    ],
    first: 10,
};

/// The lines with code.
pub static LINE: DataTable = DataTable {
    name: "line",
    partition: Partition::Arch,
    columns: &[
        ("identity", ColumnKind::Text),
        ("file", ColumnKind::Text),
        ("line", ColumnKind::Int),
    ],
    first: 3,
};

/// All tables.
#[cfg(test)]
static TABLES: [&DataTable; 9] = [
    &RUN,
    &PROFILE,
    &COUNTER,
    &TEST_LINE,
    &CODE_OBJECT,
    &FUNCTION,
    &REGION,
    &BRANCH,
    &LINE,
];

impl ColumnKind {
    /// Its name in the chapter.
    #[cfg(test)]
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Int => "int32",
            Self::Long => "int64",
            Self::Time => "timestamp",
            Self::Flag => "boolean",
        }
    }

    /// Its type in a Parquet schema.
    fn parquet(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("BYTE_ARRAY", " (STRING)"),
            Self::Bytes => ("BYTE_ARRAY", ""),
            Self::Int => ("INT32", ""),
            Self::Long => ("INT64", ""),
            Self::Time => ("INT64", " (TIMESTAMP(MICROS,true))"),
            Self::Flag => ("BOOLEAN", ""),
        }
    }
}

impl DataTable {
    /// Its Parquet schema, as text.
    pub(crate) fn message(&self) -> String {
        let columns = self.columns.iter().map(|(name, kind)| {
            let (kind, meaning) = kind.parquet();
            format!("REQUIRED {kind} {name}{meaning};")
        });
        format!(
            "message {} {{ {} }}",
            self.name,
            columns.collect::<Vec<_>>().join(" ")
        )
    }

    /// The columns of a version.
    pub(crate) fn columns_of(&self, version: u32) -> &'static [TableColumn] {
        match version {
            1 => &self.columns[..self.first],
            _ => self.columns,
        }
    }

    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| *column == name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_chapter_has_all_columns() {
        let book =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/dataset.md");
        let chapter = fs::read_to_string(book).unwrap();
        assert!(
            chapter.contains(&format!("version {VERSION}")),
            "the version"
        );
        for table in TABLES {
            let heading = format!("\n## {}\n", table.name);
            let (_, section) = chapter.split_once(&heading).expect(table.name);
            let section = section.split("\n## ").next().unwrap();
            let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
            let columns = rows.map(|row| {
                let mut cells = row.split(" | ");
                let name = cells.next().unwrap().trim_end_matches('`');
                format!("{name} {}", cells.next().unwrap())
            });
            let columns: Vec<_> = columns.collect();
            let expected = table
                .columns
                .iter()
                .map(|(name, kind)| format!("{name} {}", kind.name()));
            assert_eq!(columns, expected.collect::<Vec<_>>(), "{}", table.name);
        }
    }
}

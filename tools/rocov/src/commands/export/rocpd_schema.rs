//! The part of ROCm's rocpd schema, version 3, that a registry fills: tables and columns as the
//! `rocpd_tables.sql` of rocprofiler-sdk names them. Later releases have further columns, so readers
//! go by names.

/// Number of the schema.
pub(super) const VERSION: &str = "3";

/// A table, without the `rocpd_` before its name and the suffix after it.
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// True if its rows say which database they are from.
    has_guid: bool,
    /// Columns after `id` and `guid`, with their types.
    columns: &'static [(&'static str, &'static str)],
    /// Columns that hold the `id` of a row in another table.
    references: &'static [(&'static str, &'static str)],
}

/// Columns of JSON text.
const JSON: &str = "JSONB DEFAULT '{}' NOT NULL";
/// Columns that say whose a row is.
const OWNER: &str = "INTEGER NOT NULL";

/// The tables, each after those that it refers to.
pub(super) const TABLES: [Table; 7] = [
    Table {
        name: "metadata",
        has_guid: false,
        columns: &[("tag", "TEXT NOT NULL"), ("value", "TEXT NOT NULL")],
        references: &[],
    },
    Table {
        name: "string",
        has_guid: true,
        columns: &[("string", "TEXT NOT NULL UNIQUE ON CONFLICT ABORT")],
        references: &[],
    },
    Table {
        name: "info_node",
        has_guid: true,
        columns: &[
            ("hash", "BIGINT NOT NULL UNIQUE"),
            ("machine_id", "TEXT NOT NULL UNIQUE"),
            ("system_name", "TEXT"),
            ("hostname", "TEXT"),
            ("release", "TEXT"),
            ("version", "TEXT"),
            ("hardware_name", "TEXT"),
            ("domain_name", "TEXT"),
        ],
        references: &[],
    },
    Table {
        name: "info_process",
        has_guid: true,
        columns: &[
            ("nid", OWNER),
            ("ppid", "INTEGER"),
            ("pid", "INTEGER NOT NULL"),
            ("init", "BIGINT"),
            ("fini", "BIGINT"),
            ("start", "BIGINT"),
            ("end", "BIGINT"),
            ("command", "TEXT"),
            ("environment", JSON),
            ("extdata", JSON),
        ],
        references: &[("nid", "info_node")],
    },
    Table {
        name: "info_agent",
        has_guid: true,
        columns: &[
            ("nid", OWNER),
            ("pid", OWNER),
            ("type", "TEXT CHECK (\"type\" IN ('CPU', 'GPU'))"),
            ("absolute_index", "INTEGER"),
            ("logical_index", "INTEGER"),
            ("type_index", "INTEGER"),
            ("uuid", "INTEGER"),
            ("name", "TEXT"),
            ("model_name", "TEXT"),
            ("vendor_name", "TEXT"),
            ("product_name", "TEXT"),
            ("user_name", "TEXT"),
            ("extdata", JSON),
        ],
        references: &[("nid", "info_node"), ("pid", "info_process")],
    },
    Table {
        name: "info_code_object",
        has_guid: true,
        columns: &[
            ("nid", OWNER),
            ("pid", OWNER),
            ("agent_id", "INTEGER"),
            ("uri", "TEXT"),
            ("load_base", "BIGINT"),
            ("load_size", "BIGINT"),
            ("load_delta", "BIGINT"),
            (
                "storage_type",
                "TEXT CHECK (\"storage_type\" IN ('FILE', 'MEMORY'))",
            ),
            ("extdata", JSON),
        ],
        references: &[
            ("nid", "info_node"),
            ("pid", "info_process"),
            ("agent_id", "info_agent"),
        ],
    },
    Table {
        name: "info_kernel_symbol",
        has_guid: true,
        columns: &[
            ("nid", OWNER),
            ("pid", OWNER),
            ("code_object_id", "INTEGER NOT NULL"),
            ("kernel_name", "TEXT"),
            ("display_name", "TEXT"),
            ("kernel_object", "INTEGER"),
            ("kernarg_segment_size", "INTEGER"),
            ("kernarg_segment_alignment", "INTEGER"),
            ("group_segment_size", "INTEGER"),
            ("private_segment_size", "INTEGER"),
            ("sgpr_count", "INTEGER"),
            ("arch_vgpr_count", "INTEGER"),
            ("accum_vgpr_count", "INTEGER"),
            ("extdata", JSON),
        ],
        references: &[
            ("nid", "info_node"),
            ("pid", "info_process"),
            ("code_object_id", "info_code_object"),
        ],
    },
];

impl Table {
    /// The statements that make the table and the view of the name without the suffix. `guid` is a
    /// UUID, `suffix` an underscore and the same with underscores.
    pub(super) fn statements(&self, guid: &str, suffix: &str) -> String {
        let name = self.name;
        let mut parts = vec!["\"id\" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT".to_owned()];
        if self.has_guid {
            parts.push(format!("\"guid\" TEXT DEFAULT '{guid}' NOT NULL"));
        }
        let columns = self.columns.iter();
        parts.extend(columns.map(|(column, kind)| format!("\"{column}\" {kind}")));
        parts.extend(self.references.iter().map(|(column, table)| {
            format!(
                "FOREIGN KEY (\"{column}\") REFERENCES \"rocpd_{table}{suffix}\" (\"id\") \
                 ON UPDATE CASCADE"
            )
        }));
        format!(
            "CREATE TABLE \"rocpd_{name}{suffix}\" ({});\n\
             CREATE VIEW \"rocpd_{name}\" AS SELECT * FROM \"rocpd_{name}{suffix}\";\n",
            parts.join(", ")
        )
    }
}

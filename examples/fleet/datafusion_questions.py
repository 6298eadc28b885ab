#!/usr/bin/env python3
"""Asks a data set the questions in questions/, by DataFusion (pip install datafusion pyarrow).

Takes the arguments of duckdb_questions.py.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def main():
    import datafusion
    import pyarrow

    sys.path.insert(0, str(HERE))
    import duckdb_questions

    given = duckdb_questions.arguments()
    context = datafusion.SessionContext()

    def register(name, table, *partitions):
        keys = [(key, pyarrow.string()) for key in partitions]
        context.register_parquet(name, f"{given.dataset}/{table}", table_partition_cols=keys)

    register("run", "run", "date", "commit")
    for table in ["profile", "counter", "test_line"]:
        register(f"all_{table}", table, "date", "commit", "arch")
        # A run counts if its row is there.
        context.sql(
            f"CREATE VIEW {table} AS SELECT * FROM all_{table} a WHERE a.run IN (SELECT r.run FROM run r)"
        )
    for table in ["code_object", "function", "region", "branch", "line"]:
        register(table, table, "arch")
    parameter = pyarrow.table({"since": [given.since], "until": [given.until]})
    files = pyarrow.array([file for file, _ in given.changed], pyarrow.string())
    lines = pyarrow.array([line for _, line in given.changed], pyarrow.int32())
    for name, table in [
        ("parameter", parameter),
        ("changed", pyarrow.table({"file": files, "line": lines})),
    ]:
        batches = table.to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=table.schema)]
        context.register_record_batches(name, [batches])
    answers = {
        name: [list(row.values()) for row in context.sql(text).to_pylist()]
        for name, text in given.questions.items()
    }
    print(json.dumps(answers, indent=1, default=str))


if __name__ == "__main__":
    main()

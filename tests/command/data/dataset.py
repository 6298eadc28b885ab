"""Prints as JSON how pyarrow and DuckDB see the data set in a directory."""

import json
import pathlib
import sys

import duckdb
import pyarrow.parquet

dataset = pathlib.Path(sys.argv[1])
types, rows, versions = {}, {}, set()
for table in sorted(path.name for path in dataset.iterdir() if path.is_dir()):
    for path in (dataset / table).rglob("*.parquet"):
        file = pyarrow.parquet.ParquetFile(path)
        types[table] = {field.name: str(field.type) for field in file.schema_arrow}
        rows[table] = rows.get(table, 0) + file.metadata.num_rows
        versions.add(file.metadata.metadata[b"rocov_dataset"].decode())
calls = duckdb.sql(
    f"""
    SELECT f.name, CAST(coalesce(sum(c.count), 0) AS BIGINT)
    FROM read_parquet('{dataset}/function/*/*.parquet', hive_partitioning = true) f
    LEFT JOIN read_parquet('{dataset}/counter/*/*/*/*.parquet', hive_partitioning = true) c
    ON c.arch = f.arch AND c.identity = f.identity AND c.function = f.function AND c.kind = 'counter' AND c.index = 0
    WHERE f.arch = 'gfx90a' GROUP BY f.name
    """
).fetchall()
print(json.dumps({"types": types, "rows": rows, "versions": sorted(versions), "calls": dict(calls)}))

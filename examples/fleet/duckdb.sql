-- The tables of a data set as views of DuckDB. First: SET VARIABLE dataset = 'DATASET';
-- A run counts if its row is there: the import has written everything else before.
CREATE OR REPLACE VIEW run AS
SELECT * FROM read_parquet(getvariable('dataset') || '/run/*/*/*.parquet',
  hive_partitioning = true, hive_types = {'date': VARCHAR, 'commit': VARCHAR});

CREATE OR REPLACE VIEW profile AS
SELECT * FROM read_parquet(getvariable('dataset') || '/profile/*/*/*/*.parquet',
  hive_partitioning = true, hive_types = {'date': VARCHAR, 'commit': VARCHAR, 'arch': VARCHAR})
WHERE run IN (SELECT r.run FROM run r);

CREATE OR REPLACE VIEW counter AS
SELECT * FROM read_parquet(getvariable('dataset') || '/counter/*/*/*/*.parquet',
  hive_partitioning = true, hive_types = {'date': VARCHAR, 'commit': VARCHAR, 'arch': VARCHAR})
WHERE run IN (SELECT r.run FROM run r);

CREATE OR REPLACE VIEW test_line AS
SELECT * FROM read_parquet(getvariable('dataset') || '/test_line/*/*/*/*.parquet',
  hive_partitioning = true, hive_types = {'date': VARCHAR, 'commit': VARCHAR, 'arch': VARCHAR})
WHERE run IN (SELECT r.run FROM run r);

CREATE OR REPLACE VIEW code_object AS
SELECT * FROM read_parquet(getvariable('dataset') || '/code_object/*/*.parquet',
  hive_partitioning = true, hive_types = {'arch': VARCHAR});

CREATE OR REPLACE VIEW function AS
SELECT * FROM read_parquet(getvariable('dataset') || '/function/*/*.parquet',
  hive_partitioning = true, hive_types = {'arch': VARCHAR});

CREATE OR REPLACE VIEW region AS
SELECT * FROM read_parquet(getvariable('dataset') || '/region/*/*.parquet',
  hive_partitioning = true, hive_types = {'arch': VARCHAR});

CREATE OR REPLACE VIEW branch AS
SELECT * FROM read_parquet(getvariable('dataset') || '/branch/*/*.parquet',
  hive_partitioning = true, hive_types = {'arch': VARCHAR});

CREATE OR REPLACE VIEW line AS
SELECT * FROM read_parquet(getvariable('dataset') || '/line/*/*.parquet',
  hive_partitioning = true, hive_types = {'arch': VARCHAR});

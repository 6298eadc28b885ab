#!/usr/bin/env python3
"""Asks a data set the questions in questions/, by Spark (pip install pyspark, and a Java 17).

Takes the arguments of duckdb_questions.py, and --master (default: local[2]). `--sums` prints the sums of all counters
instead, by arch, code object, function and index.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
OF_RUNS = ["profile", "counter", "test_line"]
OF_CODE = ["code_object", "function", "region", "branch", "line"]


def session(master):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("rocov")
    # A commit of digits, such as 12e4, is no number.
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "8")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def tables(spark, dataset):
    """The tables of a data set as views. A run counts if its row is there."""
    read = lambda name: spark.read.parquet(f"{dataset}/{name}")
    read("run").createOrReplaceTempView("run")
    for name in OF_RUNS:
        read(name).createOrReplaceTempView(f"all_{name}")
        spark.sql(
            f"SELECT * FROM all_{name} WHERE run IN (SELECT r.run FROM run r)"
        ).createOrReplaceTempView(name)
    for name in OF_CODE:
        read(name).createOrReplaceTempView(name)


SUMS = """
SELECT arch, identity, function, index, CAST(sum(count) AS BIGINT) AS count
FROM counter WHERE kind = 'counter'
GROUP BY arch, identity, function, index ORDER BY arch, identity, function, index
"""


def main():
    sys.path.insert(0, str(HERE))
    import duckdb_questions

    master = "local[2]"
    if "--master" in sys.argv:
        at = sys.argv.index("--master")
        master = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    sums = "--sums" in sys.argv
    if sums:
        sys.argv.remove("--sums")
    given = duckdb_questions.arguments()
    spark = session(master)
    tables(spark, given.dataset)
    spark.createDataFrame(
        [(given.since, given.until)], "since STRING, until STRING"
    ).createOrReplaceTempView("parameter")
    spark.createDataFrame(given.changed, "file STRING, line INT").createOrReplaceTempView("changed")
    questions = {"sums": SUMS} if sums else given.questions
    answers = {
        name: [list(row) for row in spark.sql(text).collect()] for name, text in questions.items()
    }
    print(json.dumps(answers, indent=1, default=str))
    spark.stop()


if __name__ == "__main__":
    main()

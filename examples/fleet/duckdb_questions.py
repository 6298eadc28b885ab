#!/usr/bin/env python3
"""Asks a data set the questions in questions/, by DuckDB (pip install duckdb).

Usage: duckdb_questions.py DATASET [--since COMMIT] [--until COMMIT] [--diff FILE] [QUESTION...]

Prints JSON: the rows of each question. FILE is a unified diff (git diff --unified=0 SINCE).
"""

import argparse
import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent


def changed_lines(diff):
    """The lines of the old side that a unified diff changes: pairs of a path and a number."""
    path, lines = None, []
    for line in diff.splitlines():
        if line.startswith("--- "):
            path = re.sub(r"^a/", "", line[4:].split("\t")[0])
        elif found := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            first, number = int(found[1]), int(found[2] or 1)
            # An insertion is after a line.
            lines += [(path, first + it) for it in range(max(number, 1))]
    return lines


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--since", default="")
    parser.add_argument("--until", default="")
    parser.add_argument("--diff", type=pathlib.Path)
    parser.add_argument("questions", nargs="*")
    given = parser.parse_intermixed_args()
    known = {path.stem: path.read_text() for path in sorted((HERE / "questions").glob("*.sql"))}
    given.questions = {name: known[name] for name in given.questions or known}
    given.changed = changed_lines(given.diff.read_text()) if given.diff else []
    return given


def main():
    import duckdb

    given = arguments()
    database = duckdb.connect()
    database.execute("SET VARIABLE dataset = '" + given.dataset.replace("'", "''") + "'")
    database.execute((HERE / "duckdb.sql").read_text())
    database.execute("CREATE TABLE parameter (since VARCHAR, until VARCHAR)")
    database.execute("INSERT INTO parameter VALUES (?, ?)", [given.since, given.until])
    database.execute("CREATE TABLE changed (file VARCHAR, line INTEGER)")
    if given.changed:
        database.executemany("INSERT INTO changed VALUES (?, ?)", given.changed)
    answers = {
        name: [list(row) for row in database.execute(text).fetchall()]
        for name, text in given.questions.items()
    }
    print(json.dumps(answers, indent=1, default=str))


if __name__ == "__main__":
    main()

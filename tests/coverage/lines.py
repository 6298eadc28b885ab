#!/usr/bin/env python3
"""Prints the lines of the library and of librocov that ran, from an lcov file: for tools/dev/coverage."""

import itertools
import re
import sys
from pathlib import Path

REQUIRED = 90
ROOT = Path(__file__).parents[2]
OURS = ("src/", "runtime/src/", "runtime/rocprofiler/src/")
# Test modules in separate files.
TESTS = re.compile(r"_tests\.rs$|/tests/")


def counts(lcov):
    """The count of each line, by file."""
    files = {}
    for entry in lcov.read_text().splitlines():
        key, _, value = entry.partition(":")
        if key == "SF":
            lines = files.setdefault(Path(value), {})
        elif key == "DA":
            number, count = value.split(",")[:2]
            lines[int(number)] = lines.get(int(number), 0) + int(count)
    return files


def without_tests(path, lines):
    """The lines before a file's unit tests, which are at its end."""
    text = path.read_text().splitlines()
    end = text.index("#[cfg(test)]") if "#[cfg(test)]" in text else len(text)
    return {number: count for number, count in lines.items() if number <= end}


def ranges(numbers, known):
    """Line numbers as FROM-TO. Lines without code do not split a range."""
    missed = set(numbers)
    groups = itertools.groupby(sorted(known), key=lambda number: number in missed)
    runs = [list(group) for is_missed, group in groups if is_missed]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def reasons(path):
    """The number of explained lines of each file and the reason, from lines `FILE: NUMBER` and the indented
    lines after each."""
    found, name = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("  "):
            found[name][1].append(line)
        elif line and not line.startswith("#"):
            name, _, number = line.partition(": ")
            found[name] = (int(number), [])
    return {name: (number, "\n".join(lines)) for name, (number, lines) in found.items()}


def main():
    lcov, given = (Path(argument) for argument in sys.argv[1:])
    given = reasons(given)
    total = missing = 0
    unexplained = []
    for path, lines in sorted(counts(lcov).items()):
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        if not name.startswith(OURS) or TESTS.search(name):
            continue
        lines = without_tests(path, lines)
        missed = [number for number, count in lines.items() if count == 0]
        total += len(lines)
        missing += len(missed)
        if missed:
            print(f"{name}: {len(missed)} of {len(lines)} lines: {ranges(missed, lines)}")
            number, reason = given.get(name, (0, "  (no reason is given)"))
            print(reason)
            if len(missed) > number:
                unexplained.append(f"{name}: {len(missed)} lines did not run, {number} are explained")
    if total == 0:
        sys.exit("tests/coverage/lines.py: no counts of the library and of librocov")
    for line in unexplained:
        print(line, file=sys.stderr)
    percent = 100 * (total - missing) / total
    print(f"{percent:.1f} % of {total} lines ran, at least {REQUIRED} % must")
    sys.exit(1 if percent < REQUIRED or unexplained else 0)


main()

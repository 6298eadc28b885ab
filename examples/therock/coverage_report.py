#!/usr/bin/env python3
"""Reports on a coverage run of TheRock with rocov, instead of with its merge_coverage_report.py.

It has the same options as that script, so a workflow changes only the path of the script:

    python examples/therock/coverage_report.py --profraw-dir coverage-report/profraw --rocm-dir build/dist/rocm \\
        --object-globs 'lib/librocrand.so*' --device-code --html-output coverage-report/html

The tests must run under `rocov run`, with LLVM_PROFILE_FILE as before. The artifact with the profiles must also
contain the directory next to them whose name ends in `.rocov`: upload the directory that contains both. The report then
needs no kpack archive. Host code needs the instrumented objects below --rocm-dir, and their llvm-profdata.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


def matching(directory: Path, globs: list[str]) -> list[Path]:
    """The files that the globs name, each once. A glob with `!` in front removes files."""
    found = {}
    for glob in globs:
        for path in sorted(directory.glob(glob.removeprefix("!"))):
            if glob.startswith("!"):
                found.pop(path.resolve(), None)
            elif path.is_file():
                found.setdefault(path.resolve(), path)
    return list(found.values())


def command(arguments: argparse.Namespace, objects: list[Path]) -> list[str]:
    report = ["rocov", "report", str(arguments.profraw_dir)]
    for path in objects:
        report += [f"--host-binary={path}", f"--component={path}"]
    tools = arguments.llvm_bin_dir or arguments.rocm_dir / "lib/llvm/bin"
    if (tools / "llvm-profdata").is_file():
        report.append(f"--llvm-bin={tools}")
    for pair in arguments.path_equivalence:
        report.append("--path-map=" + "=".join(pair.split(",", 1)))
    report += ["--lcov", str(arguments.lcov_output), "--output", str(arguments.summary_output)]
    if arguments.html_output:
        report += ["--html", str(arguments.html_output)]
    # Something must have run on each architecture, and the data must be complete.
    return report + ["--fail-under-lines=1"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    directory = Path("coverage-report")
    parser.add_argument("--profraw-dir", type=Path, required=True)
    parser.add_argument("--rocm-dir", type=Path, required=True)
    parser.add_argument("--object-globs", required=True)
    parser.add_argument("--llvm-bin-dir", type=Path)
    parser.add_argument("--lcov-output", type=Path, default=directory / "coverage.info")
    parser.add_argument("--summary-output", type=Path, default=directory / "coverage_summary.txt")
    parser.add_argument("--html-output", type=Path)
    parser.add_argument("--path-equivalence", action="append", default=[])
    parser.add_argument("--allow-empty", action="store_true")
    parser.add_argument("--device-code", action="store_true", help="accepted: rocov always reports device code")
    parser.add_argument("--profdata-output", type=Path, help="accepted: rocov merges in memory")
    arguments = parser.parse_args()

    if not any(arguments.profraw_dir.rglob("*.profraw")):
        if arguments.allow_empty:
            return 0
        return fail(f"no profile in {arguments.profraw_dir}: run the tests under `rocov run`")
    globs = [glob.strip() for glob in arguments.object_globs.split(",")]
    objects = matching(arguments.rocm_dir, [glob for glob in globs if glob])
    if not objects:
        return fail(f"no file in {arguments.rocm_dir} matches {arguments.object_globs}: check the globs")
    for path in (arguments.lcov_output, arguments.summary_output):
        path.parent.mkdir(parents=True, exist_ok=True)
    # rocov prints why data are not complete, and fails then, as there is a gate.
    return subprocess.run(command(arguments, objects), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

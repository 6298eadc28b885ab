"""Shows that `rocov run --instrument` counts right, changes no result and takes little time, on a machine with an NVIDIA
GPU, its driver, CUPTI and nvcc. Python 3.8 or later.

    instrument.py run RESULTS [PART]...       prints a line for each test of the parts, or of all: marks, referee, reached,
                                              languages, forms, samples, programs; and keeps its files in RESULTS.
                                              programs:1/3 is the first third of the programs
    instrument.py check RESULTS PROFDATA COV  compares the lines in RESULTS again with clang's counters, which LLVM's own
                                              tools read now
"""

import concurrent.futures
import glob
import hashlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

import drain
import reasons
from drain import HERE, NotRun, Test, Wrong, equal, inside, needed

PACK = os.path.dirname(HERE)
RUNNER = os.path.join(PACK, "cuda_runner")
GPU_TIMES = os.path.join(PACK, "gpu_times.so")
# The specs name their files relative to the pack.
LAUNCH = ["env", "-C", PACK, RUNNER, "launch"]
AT_A_TIME = 6
# Runs of a program of each kind in comparisons of times.
RUNS = 3
# Runs of decode.cu of each kind.
DECODE_RUNS = 5
# The most runs without counters that look whether a line of the output differs among them, too.
MOST_PLAIN = 10
# A number, and a line with a time or a rate.
NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:e[+-]?\d+)?")
MEASURED = re.compile(r"/s\b|\d *\(?(?:us|ms|msec|sec|seconds?)\b|\b(?:time|speed|throughput|bandwidth)\b", re.I)
# The most characters of a line of the record.
MOST_CHARACTERS = 100_000
# The most that the kernels of programs may take longer: the geometric mean, and the worst.
MOST_MEAN, MOST_WORST = 1.2, 2.0
# The same for programs of HeCBench.
MOST_PROGRAM_MEAN, MOST_PROGRAM_WORST = 1.12, 1.5
# The seconds that such a program may take to be compiled, and to run without counters. One that takes few runs several times.
MOST_BUILD, MOST_RUN, FEW_SECONDS = 150, 25, 2
# The words by which such programs say whether their results are right.
VERDICT = re.compile(r"\b(?:PASS|FAIL|ERROR)\w*", re.I)
# The most lines that optimization moves, in percent.
MOST_MOVED = 2
VARIANTS = ["clang-O0", "clang-O1", "clang-O3", "nvcc-G", "nvcc-O3"]
UNOPTIMIZED = ["clang-O0", "nvcc-G"]


class Machine:
    """What the tests use of the machine."""

    nvcc = shutil.which("nvcc") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/nvcc"))), None)
    cupti = None
    architecture = "sm_90"
    cache = None


def settle():
    """Finds CUPTI: rocov and the library that measures must use one."""
    found = [it for place in drain.CUPTI_PLACES for it in sorted(glob.glob(place))]
    Machine.cupti = os.environ.get("ROCOV_CUPTI") or next(iter(found), None)
    if Machine.cupti is not None:
        drain.Everywhere.variables["ROCOV_CUPTI"] = Machine.cupti
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
        Machine.architecture = "sm_" + told[0].replace(".", "")
    except (OSError, subprocess.CalledProcessError, IndexError):
        pass  # that of the pack


def with_nvcc(*arguments):
    if Machine.nvcc is None:
        raise NotRun("there is no nvcc on the PATH or in /usr/local/cuda")
    command = [Machine.nvcc, "-w", "-std=c++17", f"-arch={Machine.architecture}", *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise NotRun(f"nvcc does not compile it: {made.stderr.strip()[:300]}")


def instrumented(test, program, data, timeout=120, variables=None):
    """Runs a program with counters. Returns it, and what rocov has said."""
    command = [inside("rocov"), "run", "--instrument", "-o", data, "--", *program]
    ended = test.run(command, {"ROCOV_CACHE": Machine.cache, **(variables or {})}, timeout)
    return ended, [line for line in ended.stderr.splitlines() if line.startswith("rocov")]


def silent(ended_and_told):
    ended, told = ended_and_told
    if told:
        raise Wrong(f"rocov says {told!r}")
    return ended


# Marks


def marks(test, case):
    ended = test.run([RUNNER, "marks", case], timeout=60)
    test.note(ended.stdout.strip().split(": ", 1)[-1])
    if ended.status != 0:
        raise Wrong(f"status {ended.status} {ended.stderr.strip()!r}")


# A kernel that stops the program


def trap(test):
    program = [*LAUNCH, "instrument/trap", needed("trap", "trap.ptx")]
    plain = test.run(program)
    counted, told = instrumented(test, program, test.data)
    equal("the output", counted.stdout, plain.stdout)
    equal("the status", counted.status, plain.status)
    if plain.status == 0:
        raise Wrong("the kernel did not stop the program")
    test.note(repr(told))
    if not told or "counts since the last drain are lost" not in told[0]:
        raise Wrong("rocov does not say that counts are lost")


# The referee


def counts_of(lcov, stem):
    """The counts of the lines of a source."""
    counts, is_wanted = {}, False
    for record in lcov.splitlines():
        if record.startswith("SF:"):
            is_wanted = os.path.splitext(os.path.basename(record[3:]))[0] == stem
        elif record.startswith("DA:") and is_wanted:
            line, count = record[3:].split(",")[:2]
            counts[int(line)] = int(count)
    return counts


def of_one_block(exported, stem):
    """The lines on which all regions of the coverage mapping have one count."""
    lines = set()
    for file in exported["data"][0]["files"]:
        if os.path.splitext(os.path.basename(file["filename"]))[0] != stem:
            continue
        segments, around = file["segments"], None
        for line in range(segments[0][0], segments[-1][0] + 1):
            here = [it for it in segments if it[0] == line]
            inside_of_it = [it for it in [around, *here] if it is not None and it[3]]
            if len({it[2] for it in inside_of_it}) == 1:
                lines.add(line)
            around = here[-1] if here else around
    return lines


def verdict(clang, one_block, ptx, source, blocks):
    """Compares the lines of clang's counters with those of PTX: which are reached, and the counts of lines of one block. Tells
    the lines that differ, with reasons that the blocks of the PTX show, and how many have none."""
    evidence = reasons.Evidence(blocks, clang, one_block, source)
    found = {"lines": 0, "one_block": 0, "differ": [], "unexplained": 0, "reached_unexplained": 0}
    for line in sorted(set(clang) & set(ptx)):
        # Threads that returned early come to the bracket that closes a function, and those of some cases to that of a switch.
        # clang does not count them.
        has_one = line in one_block and source[line - 1].strip() != "}"
        found["lines"] += 1
        found["one_block"] += has_one
        is_reached_by_one = (clang[line] > 0) != (ptx[line] > 0)
        if is_reached_by_one or has_one and clang[line] != ptx[line]:
            reason = evidence.reason(line, ptx[line])
            found["differ"].append(f"line {line}: {clang[line]} by clang, {ptx[line]} by PTX: {reason or 'without a reason'}")
            found["unexplained"] += reason is None
            found["reached_unexplained"] += reason is None and is_reached_by_one
    return found


def tell(found):
    told = f"{found['lines']} lines, {found['one_block']} of one block"
    return told + (f", {len(found['differ'])} differ: {'; '.join(found['differ'])}" if found["differ"] else "")


def blocks_in(results, name, variant):
    """The blocks of a variant of a kernel, which the run has left."""
    stem = os.path.join(results, f"{name}.{variant}")
    with open(stem + ".blocks") as shown, open(stem + ".ptx") as ptx:
        return reasons.blocks_of(shown.read(), ptx.read(), name)


TOTALS = {}


def referee(test, name):
    case = needed("kernels", name)
    with open(os.path.join(case, f"{name}.cu")) as file:
        source = file.read().splitlines()
    here = os.path.relpath(case, PACK)
    ended = test.run([inside("rocov"), "run", "-o", test.data, "--", *LAUNCH, here, f"{here}/counting.cubin"])
    if ended.status != 0 or ended.stderr:
        raise Wrong(f"clang's counters: status {ended.status}, {ended.stderr!r}")
    report = ["report", test.data, "--counts", "mapping"]
    clang = counts_of(test.rocov(*report, "--lcov"), name)
    one_block = of_one_block(json.loads(test.rocov(*report, "--json")), name)
    wrong = []
    for variant in VARIANTS:
        text = os.path.join(here, f"{variant}.ptx")
        if variant.startswith("nvcc"):
            text = test.path(f"{variant}.ptx")
            levels = ["-O3", "-lineinfo"] if variant == "nvcc-O3" else ["-G"]
            # clang has not fused multiplications and additions either.
            levels.append("-fmad=false")
            try:
                with_nvcc("-ptx", *levels, os.path.join(case, f"{name}.cu"), "-o", text)
            except NotRun as reason:
                test.note(f"{variant}: not run: {reason}")
                continue
        data = test.path(variant)
        ended = silent(instrumented(test, [*LAUNCH, here, text], data))
        if ended.status != 0:
            raise Wrong(f"{variant}: status {ended.status}, {ended.stderr!r}")
        if "buffers equal" not in ended.stdout and "fmath" not in name:
            test.note(f"{variant}: {ended.stdout.strip()}")
        lcov = test.rocov("report", data, "--counts", "ptx", "--lcov")
        with open(os.path.join(test.results, f"{name}.{variant}.info"), "w") as file:
            file.write(lcov)
        keep_blocks(test, name, variant, os.path.join(PACK, text), data)
        blocks = blocks_in(test.results, name, variant)
        found = verdict(clang, one_block, counts_of(lcov, name), source, blocks)
        if found["lines"] == 0:
            raise Wrong(f"{variant}: the report has no line of the source")
        TOTALS.setdefault(variant, []).append(found)
        test.note(f"{variant}: {tell(found)}")
        if found["unexplained"] and variant in UNOPTIMIZED or found["reached_unexplained"]:
            wrong.append(variant)
    if wrong:
        raise Wrong(f"lines differ without a reason: {' '.join(wrong)}")


def keep_blocks(test, name, variant, text, data):
    """Leaves the PTX, and its blocks with their counts."""
    stem = os.path.join(test.results, f"{name}.{variant}")
    shutil.copyfile(text, stem + ".ptx")
    with open(text) as file:
        functions = reasons.functions_of(file.read())
    with open(stem + ".blocks", "w") as file:
        for function in functions:
            shown = test.run([inside("rocov"), "show", "--disassemble", function, data])
            # A declaration has none.
            file.write(shown.stdout)


def totals():
    """Prints the sums of all kernels. Returns whether they are within the bounds."""
    is_well = True
    for variant, verdicts in TOTALS.items():
        lines, one_block, unexplained = (sum(it[what] for it in verdicts) for what in ("lines", "one_block", "unexplained"))
        differ = sum(len(it["differ"]) for it in verdicts)
        share = 100 * unexplained / lines
        bound = 0 if variant in UNOPTIMIZED else MOST_MOVED
        is_well &= share <= bound
        print(
            f"instrument referee {variant}: {len(verdicts)} kernels, {lines} lines, {one_block} of one block, {differ} differ, "
            f"{unexplained} without a reason ({share:.1f} %, {bound} % are meant)",
            flush=True,
        )
    return is_well


# Programs of cuda-samples


def sources_of(folder):
    inner = os.path.join(folder, "src")
    place = inner if os.path.isdir(inner) else folder
    return sorted(it for it in glob.glob(f"{place}/*") if it.endswith((".cu", ".cpp")))


def build(folder):
    """Compiles a program as its own release build does, and with -lineinfo. Returns what was wrong."""
    includes = ["-I", folder, "-I", os.path.join(folder, "inc"), "-I", inside("samples", "Common")]
    try:
        with_nvcc("-O3", "-lineinfo", "--extended-lambda", "--threads", "2", *includes, *sources_of(folder), "-o", os.path.join(folder, "program"))
    except NotRun as reason:
        return str(reason)
    return None


def written(folder, before):
    """The files that a run has written, with hashes of their bytes."""
    found = {}
    for path in glob.glob(f"{folder}/**", recursive=True):
        if os.path.isfile(path) and path not in before:
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
            os.remove(path)
    return found


def kernel_times(path):
    """Launches, milliseconds and registers by kernel."""
    kernels = {}
    with open(path) as file:
        for line in file:
            name, launches, milliseconds, registers = line.split()
            kernels[name] = (int(launches), float(milliseconds), int(registers))
    return kernels


def sample_run(test, folder, number, data):
    """Runs a program, with counters if `data` is given. Returns its lines, files and kernels."""
    times = test.path(f"times{number}")
    before = set(glob.glob(f"{folder}/**", recursive=True))
    with open(os.path.join(folder, "arguments")) as file:
        arguments = file.read().split()
    variables = {"LD_PRELOAD": GPU_TIMES, "GPU_TIMES": times, "GPU_TIMES_CUPTI": Machine.cupti}
    words = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", "-C", folder, *words, "./program", *arguments]
    ended = test.run(command, timeout=90) if data is None else silent(instrumented(test, command, data))
    if ended.status != 0 or re.search(r"(?<!\b0 )fail", ended.stdout + ended.stderr, re.I):
        raise Wrong(f"status {ended.status}: {ended.stdout[-200:]!r} {ended.stderr[-300:]!r}")
    if not os.path.exists(times):
        raise Wrong("no kernel was noted")
    return ended.stdout.splitlines(), written(folder, before), kernel_times(times)


def without_numbers(line):
    return " ".join(NUMBER.sub("#", line).split())


def unchanged(plain, counted, one_more):
    """Expects of each counted run all lines and files of the plain runs. Numbers may differ on a line that differs among the plain
    runs, too, or that tells a time or a rate. `one_more` makes another plain run, if a line does so in counted runs only. Returns
    how many lines had other numbers with counters."""
    varying = 0
    count = len(plain[0][0])
    for run in [*plain, *counted]:
        equal("the number of lines", len(run[0]), count)
    for number in range(count):
        found = {run[0][number] for run in counted}
        expected = {run[0][number] for run in plain}
        if found <= expected:
            continue
        varying += 1
        while len(expected) == 1 and not MEASURED.search(*expected) and len(plain) < MOST_PLAIN:
            plain.append(one_more(len(plain)))
            equal("the number of lines", len(plain[-1][0]), count)
            expected.add(plain[-1][0][number])
        if len(expected) > 1 or MEASURED.search(*expected):
            found, expected = (set(map(without_numbers, it)) for it in (found, expected))
        if not found <= expected:
            raise Wrong(f"line {number + 1} of the output is {sorted(found)!r} instead of {sorted(expected)!r}")
    files = [run[1] for run in plain]
    for run in counted:
        equal("the files", sorted(run[1]), sorted(files[0]))
        for name, content in run[1].items():
            if all(it.get(name) == files[0][name] for it in files):
                equal(f"the file {name}", content, files[0][name])
    return varying


RATIOS = {}


def sample(test, name):
    if Machine.cupti is None:
        raise NotRun("CUPTI was not found")
    folder = inside("samples", name)
    if not os.path.exists(os.path.join(folder, "program")):
        raise NotRun(BUILT.get(name) or "it was not built")
    plain, counted = [], []
    first = sample_run(test, folder, "first", test.data)
    for number in range(RUNS):
        plain.append(sample_run(test, folder, f"plain{number}", None))
        counted.append(sample_run(test, folder, f"counted{number}", test.path(f"data{number}")))
    varying = unchanged(plain, [first, *counted], lambda number: sample_run(test, folder, f"plain{number}", None))
    lcov = test.rocov("report", test.data, "--counts", "ptx", "--lcov")
    lines = [line.split(",") for line in lcov.splitlines() if line.startswith("DA:")]
    hit = sum(it[1] != "0" for it in lines)
    if hit == 0:
        raise Wrong("the report has no line that ran")
    total = lambda run: sum(it[1] for it in run[2].values())
    before, after = (statistics.median(map(total, runs)) for runs in (plain, counted))
    RATIOS[name] = (before, after)
    most = max(plain[0][2], key=lambda it: plain[0][2][it][1])
    launches = sum(it[0] for it in plain[0][2].values())
    test.note(
        f"{hit} of {len(lines)} lines; {launches} launches; {before:.4f} ms, with counters {after:.4f} ms, ratio {after / before:.2f}; "
        f"registers {plain[0][2][most][2]} / {counted[0][2].get(most, (0, 0, 0))[2]}; "
        f"{varying} of {len(first[0])} lines of output with other numbers"
    )


BUILT = {}


def mean_of(ratios):
    return math.exp(statistics.mean(map(math.log, ratios)))


def all_samples(results, run_one):
    folders = sorted(os.path.dirname(it) for it in glob.glob(inside("samples", "*", "arguments")))
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, wrong in zip(folders, pool.map(build, folders)):
            BUILT[os.path.basename(folder)] = wrong
    print(f"instrument samples: {sum(it is None for it in BUILT.values())} of {len(folders)} built in {time.monotonic() - began:.0f} s", flush=True)
    for folder in folders:
        name = os.path.basename(folder)
        run_one(f"samples/{name}", lambda test, name=name: sample(test, name))
    if not RATIOS:
        return True
    ratios = {name: after / before for name, (before, after) in RATIOS.items()}
    mean = mean_of(ratios.values())
    worst = max(ratios, key=ratios.get)
    print(
        f"instrument samples: {len(ratios)} of {len(folders)} compared, geometric mean {mean:.3f} ({MOST_MEAN} is meant), "
        f"worst {ratios[worst]:.3f} ({worst}; {MOST_WORST} is meant)",
        flush=True,
    )
    return mean <= MOST_MEAN and ratios[worst] <= MOST_WORST


# Programs of HeCBench, by their own Makefiles


def make(folder, *arguments):
    variables = [f"CC={Machine.nvcc} -w", f"ARCH={Machine.architecture}", "EXTRA_CFLAGS=-lineinfo", "LAUNCHER="]
    command = ["make", "-C", folder, "--no-print-directory", *variables, *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=MOST_BUILD)


def made(folder):
    """Compiles a program. Returns the reason if that fails."""
    try:
        ended = make(folder)
    except subprocess.TimeoutExpired:
        return f"it takes more than {MOST_BUILD} s to compile"
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stderr.splitlines() if "rror" in line] or ended.stderr.splitlines() or ["no Makefile"]
    return f"it does not compile: {lines[0][:200]}"


def script_of(folder, times):
    """The commands of `make run`. Each start of the program has a file of its own for its times."""
    lines = make(folder, "-n", "run").stdout.splitlines()
    lines = [line for line in lines if line and not line.startswith("make")]
    commands = [f"GPU_TIMES={times}.{number} {line}" if line.startswith("./") else line for number, line in enumerate(lines)]
    return "set -e\n" + "\n".join(commands)


def program_run(test, folder, number, data, seconds):
    """Runs a program as `make run` does, with counters if `data` is given. Returns its verdicts, kernels and seconds."""
    times = test.path(f"times{number}")
    variables = {"LD_PRELOAD": GPU_TIMES, "GPU_TIMES_CUPTI": Machine.cupti}
    words = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", "-C", folder, *words, "sh", "-c", script_of(folder, times)]
    if data is None:
        ended = test.run(command, timeout=seconds)
    else:
        # Code of libraries may have no PTX for this GPU.
        ended, told = instrumented(test, command, data, seconds)
        silent((ended, [line for line in told if "uncounted" not in line]))
    if ended.status != 0:
        raise Wrong(f"status {ended.status}: {ended.stdout[-200:]!r} {ended.stderr[-300:]!r}")
    kernels = {}
    for path in glob.glob(f"{times}.*"):
        for name, (launches, milliseconds, registers) in kernel_times(path).items():
            known = kernels.get(name, (0, 0, 0))
            kernels[name] = (known[0] + launches, known[1] + milliseconds, registers)
    if not kernels:
        raise NotRun("it launches no kernel")
    return sorted(VERDICT.findall(ended.stdout)), kernels, ended.seconds


PROGRAM_RATIOS = {}


def program(test, folder):
    if Machine.cupti is None:
        raise NotRun("CUPTI was not found")
    name = os.path.basename(folder)
    if BUILT.get(name):
        raise NotRun(BUILT[name])
    try:
        first = program_run(test, folder, "first", None, MOST_RUN)
    except Wrong as reason:
        raise NotRun(f"without rocov: {reason}") from None
    # The first run with counters has code assembled.
    limit = 10 * MOST_RUN
    runs = [program_run(test, folder, "counted", test.data, limit)]
    plain, counted = [first], []
    for number in range(RUNS if first[2] < FEW_SECONDS else 1):
        counted.append(program_run(test, folder, f"counted{number}", test.path(f"data{number}"), limit))
        if number > 0:
            plain.append(program_run(test, folder, f"plain{number}", None, limit))
    for run in [*runs, *counted]:
        equal("the verdicts", run[0], first[0])
    total = lambda run: sum(it[1] for it in run[1].values())
    before, after = (statistics.median(map(total, runs)) for runs in (plain, counted))
    PROGRAM_RATIOS[name] = after / before
    most = max(first[1], key=lambda it: first[1][it][1])
    launches = sum(it[0] for it in first[1].values())
    own, new = first[1][most], counted[0][1].get(most, (0, 0, 0))
    test.note(
        f"{launches} launches; {before:.4f} ms, with counters {after:.4f} ms, ratio {after / before:.3f}; "
        f"registers {own[2]} / {new[2]} of {most[:60]} ({new[1] / own[1]:.3f}); {len(plain)} + {len(counted)} runs"
    )


def all_programs(share, run_one):
    """Compiles and runs the programs, or a share of them: 1/3 is the first third."""
    folders = sorted(glob.glob(inside("programs", "src", "*-cuda")))
    number, count = map(int, share.split("/")) if share else (1, 1)
    folders = folders[len(folders) * (number - 1) // count : len(folders) * number // count]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, wrong in zip(folders, pool.map(made, folders)):
            BUILT[os.path.basename(folder)] = wrong
    for folder in folders:
        run_one(f"programs/{os.path.basename(folder)}", lambda test, folder=folder: program(test, folder))
    if not PROGRAM_RATIOS:
        return True
    mean, worst = mean_of(PROGRAM_RATIOS.values()), max(PROGRAM_RATIOS, key=PROGRAM_RATIOS.get)
    print(
        f"instrument programs: {len(PROGRAM_RATIOS)} of {len(folders)} compared, geometric mean {mean:.3f} "
        f"({MOST_PROGRAM_MEAN} is meant), worst {PROGRAM_RATIOS[worst]:.3f} ({worst}; {MOST_PROGRAM_WORST} is meant)",
        flush=True,
    )
    return mean <= MOST_PROGRAM_MEAN and PROGRAM_RATIOS[worst] <= MOST_PROGRAM_WORST


# Only whether code ran


def reached(test):
    """decode.cu, plain, and with counters of both kinds: the output and the lines that ran are equal. Notes the times."""
    folder = needed("decode")
    program = test.path("decode")
    with_nvcc("-O3", "-lineinfo", os.path.join(folder, "decode.cu"), "-o", program)
    programs = {"plain": program, "reached": program, "counts": program}
    programs.update({f"clang's {name}": os.path.join(folder, name) for name in ["plain", "reached"]})
    options = {"reached": ["--counters=reached"], "counts": []}
    times, outputs = {}, set()
    for number in range(DECODE_RUNS):
        for loop in ["graph", "launches"]:
            for name in programs if number % 2 == 0 else reversed(programs):
                command, data = [programs[name], loop, "40", "100"], test.path(f"{name}{loop}".replace("'", "").replace(" ", ""))
                if name in options:
                    command = [inside("rocov"), "run", "--instrument", *options[name], "-o", data, "--", *command]
                elif name == "clang's reached":
                    command = [inside("rocov"), "run", "-o", data, "--", *command]
                ended = test.run(command, {"ROCOV_CACHE": Machine.cache}, 120)
                if ended.status != 0 or "rocov" in ended.stderr:
                    raise Wrong(f"{name}: status {ended.status}, {ended.stderr!r}")
                checksum, took = ended.stdout.splitlines()
                outputs.add(checksum)
                times.setdefault((name, loop), []).append(float(took.split()[0]))
    equal("the number of different outputs", len(outputs), 1)
    for loop in ["graph", "launches"]:
        lines = {}
        for name in options:
            lcov = test.rocov("report", test.path(f"{name}{loop}"), "--counts", "ptx", "--lcov")
            lines[name] = {line: count > 0 for line, count in counts_of(lcov, "decode").items()}
        equal("the lines that ran", lines["reached"], lines["counts"])
        for name in programs:
            least = min(times[name, loop])
            plain = min(times["clang's plain" if name.startswith("clang") else "plain", loop])
            test.note(f"{loop}, {name}: {least:.2f} us a token, ratio {least / plain:.3f}")
        test.note(f"{sum(lines['counts'].values())} of {len(lines['counts'])} lines ran, by both")


# Other languages


def has_torch():
    if subprocess.run([sys.executable, "-c", "import torch, triton"], capture_output=True, check=False).returncode != 0:
        raise NotRun("there is no PyTorch with Triton")


def triton_kernel(test):
    has_torch()
    program = inside("in_triton.py")
    # PyTorch's own libraries have no PTX, and rocov says so.
    ended, _ = instrumented(test, [sys.executable, program], test.data, timeout=300)
    equal("the output", ended.stdout, "done\n")
    found = counts_of(test.rocov("report", test.data, "--counts", "ptx", "--lcov"), "in_triton")
    with open(program) as file:
        lines = enumerate(file.read().splitlines(), 1)
    told = [(number, line.rsplit("# ", 1)[1]) for number, line in lines if re.search(r"  # \d+$", line)]
    wrong = [f"line {number} has {found.get(number)} instead of {count}" for number, count in told if str(found.get(number)) != count]
    test.note(f"{len(told)} lines of Python with a known count")
    if wrong:
        raise Wrong("; ".join(wrong))


EXTENSION = """
import sys
from torch.utils.cpp_extension import load
sources, folder = sys.argv[1:3], sys.argv[3]
load("rocov_doses", sources, extra_cuda_cflags=["-lineinfo"], build_directory=folder, is_python_module=False)
"""


def torch_extension(test):
    has_torch()
    if Machine.nvcc is None:
        raise NotRun("there is no nvcc on the PATH or in /usr/local/cuda")
    home = os.path.dirname(os.path.dirname(os.path.realpath(Machine.nvcc)))
    folder = test.path("built")
    os.makedirs(folder)
    sources = [inside("extension.cpp"), inside("extension.cu")]
    # PyTorch's own choice has no PTX.
    with_ptx = Machine.architecture[3:-1] + "." + Machine.architecture[-1] + "+PTX"
    variables = {"CUDA_HOME": home, "TORCH_CUDA_ARCH_LIST": with_ptx}
    made = test.run([sys.executable, "-c", EXTENSION, *sources, folder], variables, timeout=400)
    library = os.path.join(folder, "rocov_doses.so")
    if not os.path.exists(library):
        raise Wrong(f"PyTorch does not build it: {made.stderr[-600:]}")
    program = [sys.executable, inside("in_torch.py"), library, "3"]
    ended, _ = instrumented(test, program, test.data, timeout=300)
    equal("the output", ended.stdout, "done\n")
    found = counts_of(test.rocov("report", test.data, "--counts", "ptx", "--lcov"), "doses")
    with open(needed("expected", "h3")) as file:
        expected = counts_of(file.read(), "doses")
    common = set(found) & set(expected)
    wrong = [f"line {line} has {found[line]} instead of {expected[line]}" for line in sorted(common) if (found[line] > 0) != (expected[line] > 0)]
    others = [f"line {line}: {found[line]} instead of {expected[line]}" for line in sorted(common) if found[line] != expected[line]]
    told = f", others: {'; '.join(others)}" if others else ""
    test.note(f"{len(common)} lines of C++, {len(common) - len(others)} with the count of the host{told}")
    if wrong or len(common) < 8:
        raise Wrong("; ".join(wrong) or f"only lines {sorted(common)}")


# Forms of code


# The options of nvcc for one program with code of several kinds.
ARCHITECTURES = {
    "ptx_of_75_and_cubin": ["compute_75,code=compute_75", "{compute},code={sm}"],
    "ptx_of_80_and_own": ["compute_80,code=compute_80", "{compute},code={compute}"],
}


def form_program(test, flags):
    """Compiles forms.cu, and other sources among the flags. Returns the program."""
    if Machine.nvcc is None:
        raise NotRun("there is no nvcc on the PATH or in /usr/local/cuda")
    program = test.path("forms")
    home = os.path.dirname(os.path.dirname(os.path.realpath(Machine.nvcc)))
    libraries = ["-lcuda", "-lnvrtc", "-Xlinker", f"-rpath={home}/lib64"]
    made = test.run([Machine.nvcc, "-w", "-std=c++17", "-O3", "-lineinfo", *flags, inside("forms", "forms.cu"), *libraries, "-o", program])
    if made.status != 0:
        raise NotRun(f"nvcc does not compile it: {made.stderr.strip()[:300]}")
    return program


def form(test, flags, arguments, variables=None):
    """Runs forms.cu. The count of a line that adds to a place in memory is what the program prints of it."""
    program = form_program(test, flags)
    plain = test.run([program, *arguments], variables)
    if plain.status != 0:
        raise NotRun(f"without rocov: {plain.stderr.strip()}")
    counted = silent(instrumented(test, [program, *arguments], test.data, variables=variables))
    equal("the output", counted.stdout, plain.stdout)
    places = dict(line.split() for line in plain.stdout.splitlines())
    lcov = test.rocov("report", test.data, "--counts", "ptx", "--lcov")
    wrong, compared = [], 0
    for stem in ["tally", "step"]:
        found = counts_of(lcov, stem)
        with open(inside("forms", f"{stem}.cu")) as file:
            lines = enumerate(file.read().splitlines(), 1)
        for number, place in [(number, line.rsplit(" ", 1)[1]) for number, line in lines if re.search(r"// out \d$", line)]:
            compared += 1
            if str(found.get(number)) != places[place]:
                wrong.append(f"{stem}.cu:{number} has {found.get(number)} instead of {places[place]}")
    equal("the number of places", compared, len(places))
    test.note(f"{compared} lines with the count in memory")
    if wrong:
        raise Wrong("; ".join(wrong))


def forms(run_one):
    own = Machine.architecture
    usual = [f"-arch={own}"]
    names = {"sm": own, "compute": own.replace("sm", "compute")}
    for name, code in ARCHITECTURES.items():
        flags = [f"-gencode=arch={it.format(**names)}" for it in code]
        run_one(f"forms/{name}", lambda test, flags=flags: form(test, flags, ["runtime"]))
    run_one("forms/shared_runtime", lambda test: form(test, [*usual, "-cudart=shared"], ["runtime"]))
    run_one("forms/rdc", lambda test: form(test, [*usual, "-rdc=true", "-DSPLIT", inside("forms", "step.cu")], ["runtime"]))
    run_one("forms/eager", lambda test: form(test, usual, ["runtime"], {"CUDA_MODULE_LOADING": "EAGER"}))
    run_one("forms/graph", lambda test: form(test, usual, ["graph"]))
    run_one("forms/nvrtc", lambda test: form(test, usual, ["nvrtc", inside("forms")]))

    def link(test):
        texts = []
        for stem in ["tally", "step"]:
            texts.append(test.path(f"{stem}.ptx"))
            with_nvcc("-ptx", "-O3", "-lineinfo", "-rdc=true", "-DSPLIT", inside("forms", f"{stem}.cu"), "-o", texts[-1])
        form(test, usual, ["link", *texts])

    run_one("forms/link", link)

    def file(test, kind, call):
        path = test.path(f"tally.{kind}")
        with_nvcc(f"-{kind}", "-O3", "-lineinfo", inside("forms", "tally.cu"), "-o", path)
        form(test, usual, [call, path])

    for call in ["module", "library"]:
        for kind in ["ptx", "fatbin"]:
            run_one(f"forms/{call}_file_{kind}", lambda test, kind=kind, call=call: file(test, kind, call))


# The record


class Record:
    def __init__(self, results):
        self.results = results
        self.counts = {"passed": 0, "failed": 0, "not run": 0}

    def run_one(self, name, body):
        test = Test(name, self.results)
        test.results = self.results
        try:
            body(test)
            outcome, text = "passed", []
        except NotRun as reason:
            outcome, text = "not run", [str(reason)]
        except Wrong as reason:
            outcome, text = "failed", [str(reason)]
        except Exception:  # pylint: disable=broad-except
            outcome, text = "failed", [traceback.format_exc().replace("\n", " | ")]
        self.counts[outcome] += 1
        told = "; ".join([*text, *test.figures]).replace("\n", "\\n")[:MOST_CHARACTERS]
        print(f"instrument {name}: {outcome}{'; ' if told else ''}{told}", flush=True)
        test.pack_data()


def run_all(results, parts):
    results = os.path.abspath(results)
    os.makedirs(results, exist_ok=True)
    Machine.cache = os.path.join(results, "cache")
    settle()
    record = Record(results)
    is_well, began = True, time.monotonic()
    wanted = lambda part: not parts or part in parts
    version = subprocess.run([Machine.nvcc, "--version"], capture_output=True, text=True, check=False).stdout if Machine.nvcc else "there is none"
    print(f"instrument: nvcc {version.strip().splitlines()[-1]}, {Machine.architecture}, CUPTI {Machine.cupti}", flush=True)
    if wanted("marks"):
        for case in sorted(glob.glob(inside("marks", "*"))):
            record.run_one(f"marks/{os.path.basename(case)}", lambda test, case=case: marks(test, case))
        record.run_one("trap", trap)
    if wanted("referee"):
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            for name in sorted(os.listdir(inside("kernels"))):
                pool.submit(record.run_one, f"referee/{name}", lambda test, name=name: referee(test, name))
        is_well &= totals()
    if wanted("reached"):
        record.run_one("reached", reached)
    if wanted("languages"):
        record.run_one("languages/triton", triton_kernel)
        record.run_one("languages/torch", torch_extension)
    if wanted("forms"):
        forms(record.run_one)
    if wanted("samples"):
        if os.path.isdir(inside("samples")):
            is_well &= all_samples(results, record.run_one)
        else:
            print("instrument samples: not run; the pack was made without --samples", flush=True)
    for part in [it for it in parts or ["programs"] if it.split(":")[0] == "programs"]:
        if os.path.isdir(inside("programs")):
            is_well &= all_programs(part.partition(":")[2], record.run_one)
        else:
            print("instrument programs: not run; the pack was made without --programs", flush=True)
    shutil.rmtree(Machine.cache, ignore_errors=True)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in record.counts.items())
    print(f"instrument: {counts}, in {time.monotonic() - began:.0f} s", flush=True)
    return 0 if is_well and not record.counts["failed"] else 1


# The second look, with LLVM's tools


def check(results, profdata, cov):
    wrong = 0
    for archive in sorted(glob.glob(os.path.join(results, "referee_*", "data.tar.gz"))):
        name = os.path.basename(os.path.dirname(archive))[len("referee_") :]
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(archive) as opened:
                opened.extractall(work)
            merged = os.path.join(work, "merged")
            profiles = glob.glob(f"{work}/data/**/*.profraw", recursive=True)
            elves = glob.glob(f"{work}/data/**/objects/*", recursive=True)
            subprocess.run([profdata, "merge", *profiles, "-o", merged], check=True, capture_output=True)
            export = [cov, "export", f"-instr-profile={merged}", elves[0]]
            lcov = subprocess.run([*export, "-format=lcov"], check=True, capture_output=True, text=True).stdout
            exported = json.loads(subprocess.run([*export, "-format=text"], check=True, capture_output=True, text=True).stdout)
        with open(needed("kernels", name, f"{name}.cu")) as file:
            source = file.read().splitlines()
        for variant in VARIANTS:
            path = os.path.join(results, f"{name}.{variant}.info")
            if not os.path.exists(path):
                print(f"check {name} {variant}: not run; the run has left no lines")
                continue
            with open(path) as file:
                ptx = counts_of(file.read(), name)
            blocks = blocks_in(results, name, variant)
            found = verdict(counts_of(lcov, name), of_one_block(exported, name), ptx, source, blocks)
            TOTALS.setdefault(variant, []).append(found)
            is_wrong = found["lines"] == 0 or found["unexplained"] and variant in UNOPTIMIZED
            wrong += bool(is_wrong)
            print(f"check {name} {variant}: {'differs' if is_wrong else 'agrees'}; {tell(found)}")
    return 0 if totals() and not wrong else 1


def main(arguments):
    if arguments[:1] == ["run"] and len(arguments) > 1:
        return run_all(arguments[1], arguments[2:])
    if arguments[:1] == ["check"] and len(arguments) == 4:
        return check(*arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs the programs of testdata/hardware under `rocov run`, on a machine with an NVIDIA GPU, and compares what rocov
reports with llvm-cov's figures for the same kernels on the host. Python 3.8 or later.

    drain.py doses                      prints the runs whose figures it needs
    drain.py run RESULTS [NAME]...      prints a line for each test, and keeps its files in RESULTS; NAME selects tests
    drain.py check RESULTS PROFDATA COV compares the profiles in RESULTS again, with LLVM's own tools
"""

import concurrent.futures
import glob
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ["llvm", "fast"]
DOSES = "testdata/hardware/doses.h"
OTHER = "testdata/hardware/other.h"
CUPTI_PLACES = [
    "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1*",
    "/usr/local/cuda*/lib64/libcupti.so.1*",
    "/usr/local/cuda*/targets/x86_64-linux/lib/libcupti.so.1*",
    "/usr/lib/x86_64-linux-gnu/libcupti.so.1*",
    "/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.1*",
    "/usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.1*",
]
AT_A_TIME = 6
# Runs of each kind in comparisons of times.
RUNS = 5


class Wrong(Exception):
    """A result that differs from the expected one."""


class NotRun(Exception):
    """A test that this machine or this pack does not have what it needs for."""


def inside(*names):
    return os.path.join(HERE, *names)


def needed(*names):
    path = inside(*names)
    if not os.path.exists(path):
        raise NotRun(f"the pack has no {os.path.join(*names)}")
    return path


def equal(what, found, expected):
    if found != expected:
        raise Wrong(f"{what} is {found!r} instead of {expected!r}")


# Programs


def plain_environment():
    """The environment without what changes rocov or CUDA."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ROCOV_", "LLVM_PROFILE", "CUDA_INJECTION", "CUDA_MODULE", "LD_PRELOAD", "TOOL_"))
    }
    # A traceback of librocov tells more than a message.
    kept["RUST_BACKTRACE"] = "1"
    kept.update(Everywhere.variables)
    return kept


class Everywhere:
    """Settings that the first test finds necessary."""

    variables = {}


class Ended:
    def __init__(self, command, status, stdout, stderr, seconds):
        self.command, self.status, self.stdout, self.stderr = command, status, stdout, stderr
        self.seconds = seconds

    def figure(self, name):
        found = re.search(rf"^{name} ([-\d.]+)", self.stdout, re.M)
        if found is None:
            raise Wrong(f"the output has no {name}")
        return float(found.group(1))


class Test:
    """A test that runs: its directory has everything that it writes."""

    def __init__(self, name, results):
        self.name, self.figures = name, []
        self.directory = os.path.join(results, name.replace("/", "_"))
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.data = os.path.join(self.directory, "data")
        self.commands = 0

    def path(self, name):
        return os.path.join(self.directory, name)

    def note(self, text):
        self.figures.append(text)

    def log(self, command, status, stdout, stderr, seconds):
        self.commands += 1
        with open(self.path("log"), "a") as file:
            file.write(f"$ {' '.join(command)}\nstatus {status} after {seconds:.2f} s\n")
            for stream, text in [("stdout", stdout), ("stderr", stderr)]:
                if text:
                    file.write(f"--- {stream}\n{text[-20000:]}\n")

    def start(self, command, environment=None, **options):
        variables = plain_environment()
        variables.update(environment or {})
        return subprocess.Popen(
            command,
            cwd=HERE,
            env=variables,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            **options,
        )

    def finish(self, process, command, timeout=60, send=None):
        began = time.monotonic()
        try:
            stdout, stderr = process.communicate(send, timeout=timeout)
        except subprocess.TimeoutExpired:
            tell = waiting_threads(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            self.log(command, "timeout", stdout, f"{stderr}\n{tell}", timeout)
            raise Wrong(f"{os.path.basename(command[0])} did not end in {timeout} s") from None
        seconds = time.monotonic() - began
        self.log(command, process.returncode, stdout, stderr, seconds)
        return Ended(command, process.returncode, stdout, stderr, seconds)

    def run(self, command, environment=None, timeout=60):
        began = time.monotonic()
        ended = self.finish(self.start(command, environment), command, timeout)
        ended.seconds = time.monotonic() - began
        return ended

    def rocov_run(self, program, steps, options=(), environment=None, timeout=60, data=None):
        return self.run(self.command(program, steps, options, data), environment, timeout)

    def command(self, program, steps, options=(), data=None):
        steps = steps.split() if isinstance(steps, str) else steps
        program = [program] if isinstance(program, str) else program
        return [inside("rocov"), "run", "-o", data or self.data, *options, "--", *program, *steps]

    def rocov(self, *arguments):
        ended = self.run([inside("rocov"), *arguments])
        if ended.status != 0:
            raise Wrong(f"rocov {arguments[0]} ended with {ended.status}: {ended.stderr.strip()}")
        return ended.stdout

    def well(self, ended, status=0):
        """Expects this status, the usual output and no message."""
        if ended.status != status or "done" not in ended.stdout.splitlines() or ended.stderr:
            raise Wrong(
                f"status {ended.status} instead of {status}, stdout {ended.stdout[-300:]!r}, stderr {ended.stderr[-600:]!r}"
            )
        return ended

    def counted(self, doses, files=(DOSES,), label=None, data=None):
        """Expects the lines, functions and branches of `doses` in the report, and writes down what was expected."""
        with open(self.path("expected"), "a") as file:
            file.write(f"{os.path.relpath(data or self.data, self.directory)} {label or '-'} {doses} {' '.join(files)}\n")
        out = self.path(f"{label or 'all'}.info".replace("/", "_"))
        options = ["--label", label] if label else []
        self.rocov("report", data or self.data, *options, "--lcov", "-o", out)
        with open(out) as file:
            found = lines_of(file.read())
        with open(needed("expected", doses)) as file:
            expected = lines_of(file.read())
        compare(found, expected, files)

    def pack_data(self):
        """Leaves one small file of the data."""
        if os.path.isdir(self.data):
            with tarfile.open(self.data + ".tar.gz", "w:gz") as archive:
                archive.add(self.data, "data")
        for name in os.listdir(self.directory):
            path = self.path(name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)


def waiting_threads(pid):
    """What the threads of a process group wait for, if it hangs."""
    told = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as file:
                fields = file.read().rsplit(")", 1)[1].split()
            if int(fields[2]) != pid:
                continue
            for task in glob.glob(os.path.dirname(stat) + "/task/*"):
                texts = []
                for name in ["comm", "wchan", "syscall"]:
                    with open(f"{task}/{name}") as file:
                        texts.append(file.read().strip())
                told.append(f"{task}: {' | '.join(texts)}")
        except (OSError, ValueError, IndexError):
            continue
    return "\n".join(told)


def lines_of(tracefile):
    """What an LCOV tracefile says of each source: lines, functions and branches."""
    sources, current = {}, set()
    for line in tracefile.splitlines():
        if line.startswith("SF:"):
            name = line[3:]
            at = name.find("testdata/hardware/")
            current = sources.setdefault(name[at:] if at >= 0 else name, set())
        elif line.startswith(("DA:", "FNDA:", "BRDA:")):
            current.add(line)
    return sources


def compare(found, expected, files):
    for name in files:
        if name not in found:
            raise Wrong(f"the report has no {name}, only {sorted(found)}")
        more, less = found[name] - expected[name], expected[name] - found[name]
        if more or less:
            raise Wrong(f"{name}: {sorted(more)[:12]} instead of {sorted(less)[:12]}")


# Tests

TESTS = []


def test(name, alone=False):
    """Adds a test. One that measures times runs while no other does."""

    def add(body):
        TESTS.append((name, alone, body))
        return body

    return add


def simple(name, program, steps, doses, status=0, files=(DOSES,), options=(), environment=None, labels=()):
    def body(test):
        path = needed(program)
        words = [inside(word[1:]) if word.startswith("@") else word for word in re.split(r"\s+", steps)]
        words = [re.sub(r"@([\w.-]+)", lambda it: needed(it.group(1)), word) for word in words]
        test.well(test.rocov_run(path, words, options, environment), status)
        test.counted(doses, files)
        for label, of_label in labels:
            test.counted(of_label, files, label)

    body.doses = [doses, *(it for _, it in labels)]
    TESTS.append((name, False, body))


for way in WAYS:
    for kind in ["shared", "static", "ptx", "clang19", "clang23"]:
        simple(f"runtime/{kind}/{way}", f"{kind}-{way}", "h:3 c:2 sync exit:7", "h3c2", 7)
    for loading in ["LAZY", "EAGER"]:
        for kind in ["shared", "static"]:
            simple(
                f"runtime/{kind}-{loading.lower()}/{way}",
                f"{kind}-{way}",
                "h:3 c:2",
                "h3c2",
                environment={"CUDA_MODULE_LOADING": loading},
            )
    simple(f"runtime/rdc/{way}", f"rdc-{way}", "h:3 w:2 sync", "h3w2", files=(DOSES, OTHER))
    program = f"static-{way}"
    simple(f"runtime/threads/{way}", program, "threads:4", "h4c4")
    simple(f"runtime/threads-synced/{way}", program, "threads:8 sync threads:3 sync exit:1", "h11c11", 1)
    simple(f"runtime/streams-at-exit/{way}", program, "streams:6", "h6")
    simple(f"runtime/kernel-at-exit/{way}", program, "hold:300 h:2", "h2")
    simple(f"runtime/graph/{way}", program, "graph:5 sync", "h5c5")
    simple(f"runtime/device-reset/{way}", program, "h:1 c:1 reset h:2 reset", "h3c1")
    simple(f"runtime/fork-before/{way}", program, "fork h:2", "h3")
    simple(f"runtime/fork-idle/{way}", program, "h:1 sync fork-idle h:2", "h3")
    simple(f"runtime/_exit/{way}", program, "h:2 sync _exit:4", "h2", 4)
    simple(f"runtime/library-closed/{way}", "static-plain", f"open:@library-{way}.so close open:@library-{way}.so close", "h2c2")
    simple(f"runtime/library-open/{way}", "shared-plain", f"open:@library-{way}.so h:3", "h1c1")
    simple(
        f"labels/flat/{way}",
        program,
        "h:1 push:first h:2 pop push:second c:3 pop c:1",
        "h3c4",
        labels=[("first", "h2"), ("second", "c3")],
    )
    simple(
        f"labels/nested/{way}",
        program,
        "push:outer h:1 push:inner c:2 pop h:1 pop",
        "h2c2",
        labels=[("outer", "h2"), ("outer/inner", "c2")],
    )
    simple(f"labels/of-run/{way}", program, "h:2", "h2", options=["--label", "unit/first"], labels=[("unit/first", "h2")])
    simple(f"requests/windows/{way}", program, "h:1 start h:2 stop h:4", "h2")
    simple(f"requests/paused/{way}", program, "h:1 start c:2 stop c:1", "c2", options=["--paused"])
    simple(
        f"requests/dumps/{way}",
        program,
        "h:1 dump:one c:2 dump:two h:1",
        "h2c2",
        labels=[("one", "h1"), ("two", "c2")],
    )
    simple(f"requests/drain-and-zero/{way}", program, "h:2 sync drain h:5 sync zero h:1", "h3")
    driver = "driver"
    simple(f"driver/module/{way}", driver, f"module:@doses-{way}.cubin h:3 c:2 exit:5", "h3c2", 5)
    simple(f"driver/file/{way}", driver, f"file:@doses-{way}.cubin h:3 c:2", "h3c2")
    simple(f"driver/library/{way}", driver, f"library:@doses-{way}.cubin h:3 c:2", "h3c2")
    simple(f"driver/library-unloaded/{way}", driver, f"library:@doses-{way}.cubin h:3 unload library:@doses-{way}.cubin c:2 unload", "h3c2")
    simple(f"driver/ptx/{way}", driver, f"module:@doses-{way}.ptx h:3 c:2", "h3c2")
    simple(f"driver/link/{way}", driver, f"link:@doses-{way}.o:@other-plain.o h:3 c:2", "h3c2")
    simple(
        f"driver/reloaded/{way}",
        driver,
        f"module:@doses-{way}.cubin h:1 unload file:@doses-{way}.cubin c:2 unload module:@doses-{way}.cubin h:3",
        "h4c2",
    )
    simple(
        f"driver/two-modules/{way}",
        driver,
        f"module:@doses-{way}.cubin h:1 module:@other-{way}.cubin w:2",
        "h1w2",
        files=(DOSES, OTHER),
    )
    simple(
        f"driver/contexts/{way}",
        driver,
        f"module:@doses-{way}.cubin h:1 context module:@doses-{way}.cubin h:2 destroy module:@doses-{way}.cubin h:4",
        "h7",
    )
    simple(f"driver/contexts-at-exit/{way}", driver, f"module:@doses-{way}.cubin h:1 context module:@doses-{way}.cubin h:2", "h3")
    simple(f"driver/threads/{way}", driver, f"threads:4:@doses-{way}.cubin", "h4")
    simple(
        f"driver/one-address-100-times/{way}",
        driver,
        f"turns:100:@doses-{way}.cubin:@other-{way}.cubin",
        "h100w100",
        files=(DOSES, OTHER),
    )


def in_each_way(name, doses=(), alone=False):
    """Adds a test for each way of counting."""

    def add(body):
        for way in WAYS:

            def bound(test, way=way):
                body(test, way)

            bound.doses = list(doses)
            TESTS.append((f"{name}/{way}", alone, bound))
        return body

    return add


@in_each_way("python/ctypes", ["h3c2"])
def python_ctypes(test, way):
    program = [sys.executable, inside("in_python.py"), needed(f"library-{way}.so"), "3", "2"]
    test.well(test.rocov_run(program, []))
    test.counted("h3c2")


@in_each_way("python/torch", ["h3"])
def python_torch(test, way):
    extension = needed(f"extension-{way}.so")
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        raise NotRun("there is no PyTorch")
    program = [sys.executable, inside("in_torch.py"), extension, "3"]
    test.well(test.rocov_run(program, [], timeout=120))
    test.counted("h3")


class Dialogue:
    """A program that waits for lines."""

    def __init__(self, test, program, steps, options):
        self.test, self.command = test, test.command(program, steps, options)
        self.process = test.start(self.command, stdin=subprocess.PIPE)
        self.said = ""

    def pid(self):
        """The program's own number: a child of `rocov run`, if that does not become the program."""
        for _ in range(3):
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
                children = file.read().split()
            if children:
                return int(children[0])
            time.sleep(0.1)
        return self.process.pid

    def until_ready(self):
        """Reads on until the program is ready."""
        watchdog = threading.Timer(40, os.killpg, [self.process.pid, signal.SIGKILL])
        watchdog.start()
        while True:
            line = self.process.stdout.readline()
            self.said += line
            if line == "ready\n" or not line:
                break
        watchdog.cancel()
        if not line:
            self.test.finish(self.process, self.command)
            raise Wrong(f"the program ended, or was not ready in 40 s: {self.said!r}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        ended = self.test.finish(self.process, self.command)
        ended.stdout = self.said + ended.stdout
        return ended


@in_each_way("requests/control", ["h1", "c2", "h1c3"])
def control(test, way):
    program = Dialogue(test, needed(f"static-{way}"), "h:1 sync ready c:2 sync ready c:1 sync", ["--control"])
    program.until_ready()
    pid = str(program.pid())
    status = test.rocov("status", pid)
    if "1 GPU" not in status and " GPUs" not in status:
        raise Wrong(f"rocov status says {status!r}")
    test.rocov("dump", pid, "--label", "warm-up")
    program.go_on()
    program.until_ready()
    test.rocov("dump", pid, "--label", "peak")
    again = test.rocov("dump", pid)
    if "nothing was counted" not in again:
        raise Wrong(f"a dump of nothing says {again!r}")
    program.go_on()
    test.well(program.end())
    test.counted("h1c3")
    test.counted("h1", label="warm-up")
    test.counted("c2", label="peak")
    table = test.rocov("report", test.data, "--per-test")
    for label in ["warm-up", "peak"]:
        if label not in table:
            raise Wrong(f"rocov report --per-test has no {label}: {table}")


@in_each_way("requests/dump-window", ["h4", "c2"])
def dump_window(test, way):
    program = Dialogue(test, needed(f"static-{way}"), "h:1 sync ready c:2 sync ready h:3 sync", ["--control"])
    program.until_ready()
    command = [inside("rocov"), "dump", str(program.pid()), "--window", "1500ms", "--label", "window"]
    dump = test.start(command)
    time.sleep(0.7)
    program.go_on()
    program.until_ready()
    ended = test.finish(dump, command)
    equal("the status of rocov dump", ended.status, 0)
    program.go_on()
    test.well(program.end())
    test.counted("c2", label="window")


@in_each_way("requests/snapshot-then-kill", ["h2"])
def snapshot_then_kill(test, way):
    program = Dialogue(test, needed(f"static-{way}"), "h:2 sync ready", ["--snapshot-every", "200ms"])
    program.until_ready()
    time.sleep(1)
    os.kill(program.pid(), signal.SIGKILL)
    equal("the status", program.end().status, 137)
    test.counted("h2")


@in_each_way("requests/snapshot-on-signal", ["h2"])
def snapshot_on_signal(test, way):
    program = Dialogue(test, needed(f"static-{way}"), "h:2 sync ready", ["--snapshot-on", "USR1"])
    program.until_ready()
    pid = program.pid()
    os.kill(pid, signal.SIGUSR1)
    time.sleep(1)
    os.kill(pid, signal.SIGKILL)
    equal("the status", program.end().status, 137)
    test.counted("h2")


@in_each_way("requests/terminated", ["h2"])
def terminated(test, way):
    program = Dialogue(test, needed(f"static-{way}"), "h:2 sync ready", ["--control"])
    program.until_ready()
    os.kill(program.pid(), signal.SIGTERM)
    equal("the status", program.end().status, 143)
    test.counted("h2")


@test("driver/one-address/100-runs", alone=True)
def one_address_100_runs(test):
    """Runs are made at a time, but no other test is: so much of the GPU they need."""

    def one(number):
        way = WAYS[number % 2]
        steps = [f"turns:3:{needed(f'doses-{way}.cubin')}:{needed(f'other-{way}.cubin')}"]
        data = test.path(f"data-{number}")
        ended = test.well(test.rocov_run(needed("driver"), steps, data=data))
        test.counted("h3w3", (DOSES, OTHER), data=data) if number < 2 else quietly_counted(test, data)
        shutil.rmtree(data, ignore_errors=True)
        return ended.figure("same-address")

    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = [pool.submit(one, number) for number in range(100)]
        wrong = [str(run.exception()) for run in runs if run.exception() is not None]
    if wrong:
        raise Wrong(f"{len(wrong)} of 100 runs: {wrong[:3]}")
    same = [run.result() for run in runs]
    test.note(f"100 of 100 runs right, loads at the address of the module before: {min(same):.0f} to {max(same):.0f} of 5")
    if max(same) == 0:
        raise Wrong("no module was loaded at the address of the one before")


one_address_100_runs.doses = ["h3w3"]


def quietly_counted(test, data):
    out = data + ".info"
    ended = test.run([inside("rocov"), "report", data, "--lcov", "-o", out])
    equal("the status of rocov report", ended.status, 0)
    with open(out) as file, open(needed("expected", "h3w3")) as expected:
        compare(lines_of(file.read()), lines_of(expected.read()), (DOSES, OTHER))
    os.remove(out)


@in_each_way("gpus/two", ["h1", "h2", "h3"])
def two_gpus(test, way):
    gpus = test.run([needed("driver"), "gpus"]).figure("gpus")
    if gpus < 2:
        raise NotRun("the machine has one GPU")
    cubin = needed(f"doses-{way}.cubin")
    test.well(test.rocov_run(needed("driver"), [f"module:{cubin}", "h:1", "device:1", f"module:{cubin}", "h:2"]))
    test.counted("h3")
    profiles = sorted(glob.glob(test.data + "/profraw/*"))
    equal("the number of profiles", len(profiles), 2)
    for number, doses in enumerate(["h1", "h2"]):
        alone = test.path(f"data-{number}")
        shutil.copytree(test.data, alone)
        os.remove(os.path.join(alone, "profraw", os.path.basename(profiles[1 - number])))
        test.counted(doses, data=alone)


# Programs that do not count, and tools


def unchanged(test, program, steps, status):
    alone = test.run([program, *steps])
    equal("the status without rocov", alone.status, status)
    beside = test.rocov_run(program, steps)
    equal("the status", beside.status, status)
    equal("the output", beside.stdout, alone.stdout)
    return beside


def no_files(test):
    if os.path.exists(test.data):
        raise Wrong(f"there are files: {[name for _, _, names in os.walk(test.data) for name in names][:10]}")


@test("uncounted/runtime")
def uncounted_runtime(test):
    beside = unchanged(test, needed("shared-plain"), ["h:3", "sync", "exit:7"], 7)
    test.note(repr(beside.stderr.strip()))
    no_files(test)


@test("uncounted/driver")
def uncounted_driver(test):
    beside = unchanged(test, needed("driver"), [f"module:{needed('doses-plain.cubin')}", "h:3", "sync", "exit:7"], 7)
    test.note(repr(beside.stderr.strip()))
    no_files(test)


def milliseconds(values):
    return f"{statistics.median(values) * 1000:.1f} ms ({min(values) * 1000:.1f} to {max(values) * 1000:.1f})"


@test("uncounted/start-up", alone=True)
def start_up(test):
    """The program without rocov and under it, in turn."""
    program = [needed("shared-plain"), "h:1", "sync"]
    alone, beside = [], []
    for _ in range(RUNS + 1):
        alone.append(test.run(program).seconds)
        beside.append(test.rocov_run(program, []).seconds)
    # The first of each warms caches.
    alone, beside = alone[1:], beside[1:]
    test.note(f"alone {milliseconds(alone)}, under rocov run {milliseconds(beside)}")
    test.note(f"added {(statistics.median(beside) - statistics.median(alone)) * 1000:.1f} ms")


def one_line(test, ended, words):
    lines = [line for line in ended.stderr.splitlines() if "CUPTI" in line or "CUDA_INJECTION" in line]
    test.note(repr(ended.stderr.strip()))
    if len(lines) != 1 or not all(word in lines[0] for word in words):
        raise Wrong(f"standard error is {ended.stderr!r}")


def cupti():
    """The file of CUPTI that the tests found."""
    found = Everywhere.variables.get("ROCOV_CUPTI") or next((it for place in CUPTI_PLACES for it in sorted(glob.glob(place))), None)
    if found is None:
        raise NotRun("CUPTI was not found")
    return found


@test("tools/cupti-missing")
def cupti_missing(test):
    ended = test.rocov_run(needed("static-llvm"), "h:1 sync exit:7", environment={"ROCOV_CUPTI": "/nonexistent/libcupti.so"})
    equal("the status", ended.status, 7)
    equal("the output", ended.stdout, "done\n")
    one_line(test, ended, ["CUPTI"])
    no_files(test)


@test("tools/cupti-damaged")
def cupti_damaged(test):
    damaged = test.path("libcupti.so")
    with open(damaged, "wb") as file:
        file.write(b"\x7fELF" + bytes(100))
    ended = test.rocov_run(needed("static-llvm"), "h:1 sync exit:7", environment={"ROCOV_CUPTI": damaged})
    equal("the status", ended.status, 7)
    equal("the output", ended.stdout, "done\n")
    one_line(test, ended, ["CUPTI"])


@test("tools/another-subscriber")
def another_subscriber(test):
    library = cupti()
    environment = {
        "LD_PRELOAD": needed("tool.so"),
        "TOOL_SUBSCRIBES": "static-llvm",
        "TOOL_CUPTI": library,
        "ROCOV_CUPTI": library,
    }
    ended = test.rocov_run(needed("static-llvm"), "h:1 sync exit:7", environment=environment)
    equal("the status", ended.status, 7)
    equal("the output", ended.stdout, "done\n")
    one_line(test, ended, ["another tool uses CUPTI"])
    if "tool: status 0, saw modules" not in ended.stderr:
        raise Wrong(f"the tool did not work: {ended.stderr!r}")


@test("tools/another-injection")
def another_injection(test):
    environment = {"CUDA_INJECTION64_PATH": needed("tool.so"), "TOOL_CUPTI": cupti()}
    ended = test.rocov_run(needed("static-llvm"), "h:1 sync exit:7", environment=environment)
    equal("the status", ended.status, 7)
    equal("the output", ended.stdout, "done\n")
    one_line(test, ended, ["CUDA_INJECTION64_PATH"])
    if "tool: status 0, saw modules" not in ended.stderr:
        raise Wrong(f"the tool did not work: {ended.stderr!r}")


# Times


def counted_bytes(cubin):
    """The bytes of a cubin's counters, or of their copies: what a drain copies."""
    with open(cubin, "rb") as file:
        elf = file.read()
    start, size, count = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, start + size * i) for i in range(count)]
    total = 0
    for section in sections:
        if section[1] != 2:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, _, _, _, _, length = struct.unpack_from("<IBBHQQ", elf, at)
            text = elf[names + name : elf.index(b"\0", names + name)]
            if text.startswith((b"__profc_", b"__rocov_copies_area")):
                total += length
    return total


def of_the_exit(test, ended, data):
    """The files that a program has written since its exit began, in a folder of their own."""
    began = re.search(r"^exit-at (\d+)", ended.stdout, re.M)
    folder = tempfile.mkdtemp(dir=test.directory)
    for directory, _, names in os.walk(data):
        for name in names:
            path = os.path.join(directory, name)
            if os.stat(path).st_mtime_ns >= int(began.group(1)) - 5_000_000:
                shutil.copy(path, os.path.join(folder, f"{len(os.listdir(folder))}"))
    return folder


def drain_at_exit(test, way, modules, runs):
    """Alternates a program under rocov with one that pays the floor."""
    cubin, driver = needed(f"doses-{way}.cubin"), needed("driver")
    size = counted_bytes(cubin)
    drains, floors, bare, loads, loads_alone, wholes, wholes_alone = [], [], [], [], [], [], []
    files = None
    for number in range(runs + 1):
        data = test.path(f"data-{number}")
        ended = test.rocov_run(driver, [f"many:{modules}:{cubin}", "exit-times"], data=data, timeout=120)
        finished = time.monotonic_ns()
        test.well(ended)
        if files is None:
            files = of_the_exit(test, ended, data)
        shutil.rmtree(data, ignore_errors=True)
        into = tempfile.mkdtemp(dir=test.directory)
        steps = [f"many:{modules}:{cubin}", f"floor:{size}:{files}:{into}", "exit-times"]
        alone = test.run([driver, *steps], timeout=120)
        finished_alone = time.monotonic_ns()
        test.well(alone)
        shutil.rmtree(into, ignore_errors=True)
        if number == 0:
            continue  # warms caches
        drains.append(ended.figure("exit-took"))
        wholes.append(finished - ended.figure("exit-began"))
        wholes_alone.append(finished_alone - alone.figure("exit-began"))
        pinned, copies, written = (alone.figure(f"floor-{part}") for part in ["pinned", "copies", "files"])
        floors.append(pinned + copies + written)
        bare.append(copies + written)
        loads.append(ended.figure("load-median"))
        loads_alone.append(alone.figure("load-median"))
    middle = statistics.median
    ratio = middle(drains) / middle(floors)
    count, total = len(os.listdir(files)), sum(os.path.getsize(os.path.join(files, it)) for it in os.listdir(files))
    test.note(f"{modules} modules of {size} bytes, {count} files of {total} bytes")
    test.note(f"drain {middle(drains) / 1e6:.3f} ms, floor {middle(floors) / 1e6:.3f} ms, ratio {ratio:.2f}")
    test.note(f"without the allocation of pinned memory {middle(bare) / 1e6:.3f} ms, ratio {middle(drains) / middle(bare):.2f}")
    test.note(f"whole exit {middle(wholes) / 1e6:.1f} ms, with the floor {middle(wholes_alone) / 1e6:.1f} ms")
    added = (middle(loads) - middle(loads_alone)) / 1000
    test.note(f"load {middle(loads) / 1000:.1f} us, alone {middle(loads_alone) / 1000:.1f} us, added {added:.1f} us")
    if ratio > 1.5:
        raise Wrong(f"the ratio is {ratio:.2f}, the bound 1.5")


for way in WAYS:
    for modules, runs in [(1, 5), (100, 4), (1000, 3)]:

        def body(test, way=way, modules=modules, runs=runs):
            drain_at_exit(test, way, modules, runs)

        TESTS.append((f"times/drain-of-{modules}/{way}", True, body))


@in_each_way("times/load", alone=True)
def load(test, way):
    """Loads of modules that are equal, and of modules that differ: librocov keeps the ELF of each of these."""
    cubin, driver = needed(f"doses-{way}.cubin"), needed("driver")
    for kind in ["equal", "many"]:
        beside, alone = [], []
        for number in range(4):
            data = test.path(f"data-{kind}-{number}")
            ended = test.well(test.rocov_run(driver, [f"{kind}:200:{cubin}"], data=data))
            shutil.rmtree(data, ignore_errors=True)
            without = test.well(test.run([driver, f"{kind}:200:{cubin}"]))
            if number > 0:
                beside.append(ended.figure("load-median") / 1000)
                alone.append(without.figure("load-median") / 1000)
        added = statistics.median(beside) - statistics.median(alone)
        test.note(
            f"{'equal' if kind == 'equal' else 'distinct'} modules: {statistics.median(beside):.1f} us, "
            f"alone {statistics.median(alone):.1f} us, added {added:.1f} us"
        )
    if added > 100:
        raise Wrong(f"a load takes {added:.1f} us longer, the bound is 100")


def direct_environment(test, data):
    """What `rocov run` sets, to start a program without it."""
    ended = test.run(test.command("/usr/bin/env", [], data=data))
    before = plain_environment()
    variables = dict(line.split("=", 1) for line in ended.stdout.splitlines() if "=" in line)
    return {name: value for name, value in variables.items() if before.get(name) != value and name != "_"}


@test("times/exit-of-10000-counters", alone=True)
def exit_of_10000_counters(test):
    whole, drains = {way: [] for way in WAYS}, {way: [] for way in WAYS}
    for number in range(7):
        for way in WAYS:
            data = test.path(f"data-{way}-{number}")
            environment = direct_environment(test, data)
            steps = [f"module:{needed(f'counters-{way}.cubin')}", "kernel:k00", "sync", "exit-times"]
            ended = test.run([needed("driver"), *steps], environment)
            finished = time.monotonic_ns()
            test.well(ended)
            if not glob.glob(data + "/profraw/*"):
                raise Wrong("there is no profile")
            shutil.rmtree(data, ignore_errors=True)
            if number > 0:
                whole[way].append((finished - ended.figure("exit-began")) / 1e6)
                drains[way].append(ended.figure("exit-took") / 1e6)
    middle = {way: statistics.median(whole[way]) for way in WAYS}
    drain = {way: statistics.median(drains[way]) for way in WAYS}
    test.note(f"whole exit: llvm {middle['llvm']:.2f} ms, fast {middle['fast']:.2f} ms, ratio {middle['fast'] / middle['llvm']:.2f}")
    test.note(f"drain: llvm {drain['llvm']:.2f} ms, fast {drain['fast']:.2f} ms, ratio {drain['fast'] / drain['llvm']:.2f}")
    if middle["fast"] > 3 * middle["llvm"]:
        raise Wrong("the bound is 3")


@test("pgo/profile", alone=True)
def pgo_profile(test):
    """Makes the profile for a rebuild: `tools/dev/hardware pack --drain --profile FILE`."""
    ended = test.rocov_run(needed("calibrate-fast"), [])
    equal("the status", ended.status, 0)
    flags = test.rocov("merge", test.data, "--pgo", test.path("pgo"))
    shutil.copy(test.path("pgo/sm_90.profdata"), test.path("sm_90.profdata"))
    test.note(f"made {os.path.basename(test.path('sm_90.profdata'))}; flags {flags.strip().replace(test.directory + '/', '')!r}")


@test("pgo/rebuilt", alone=True)
def pgo_rebuilt(test):
    times = {"plain": [], "pgo": []}
    for program in times:
        needed(f"calibrate-{program}")
    for _ in range(3):
        for program, values in times.items():
            ended = test.run([inside(f"calibrate-{program}")])
            equal("the status", ended.status, 0)
            values.append(ended.figure("milliseconds"))
    plain, rebuilt = min(times["plain"]), min(times["pgo"])
    test.note(f"plain {plain:.3f} ms, with the profile {rebuilt:.3f} ms, {plain / rebuilt:.2f} times as fast")
    if rebuilt > 0.97 * plain:
        raise Wrong("the rebuild is not faster")


# The record


class Record:
    def __init__(self):
        self.lock, self.counts = threading.Lock(), {"passed": 0, "failed": 0, "not run": 0}

    def line(self, name, outcome, text):
        with self.lock:
            self.counts[outcome] += 1
            print(f"drain {name}: {outcome}{'; ' if text else ''}{text}", flush=True)


def run_one(name, body, results, record):
    test = Test(name, results)
    try:
        body(test)
        outcome, text = "passed", "; ".join(test.figures)
    except NotRun as reason:
        outcome, text = "not run", str(reason)
    except Wrong as reason:
        outcome, text = "failed", "; ".join([str(reason), *test.figures])
    except Exception:  # pylint: disable=broad-except
        outcome, text = "failed", "; ".join([traceback.format_exc().replace("\n", " | "), *test.figures])
    record.line(name, outcome, text.replace("\n", "\\n")[:3000])
    try:
        test.pack_data()
    except OSError as error:
        print(f"drain: the files of {name} are lost: {error}", flush=True)


def find_cupti(results):
    """Names CUPTI for all tests if rocov does not find it: one fault must not hide all others."""
    test = Test("search-of-cupti", results)
    ended = test.rocov_run(needed("static-llvm"), "h:1 sync")
    if "CUPTI" in ended.stderr:
        print(f"drain search-of-cupti: failed; {ended.stderr.strip()!r}", flush=True)
        for place in CUPTI_PLACES:
            for library in sorted(glob.glob(place)):
                test.data += "+"
                if "CUPTI" not in test.rocov_run(needed("static-llvm"), "h:1 sync", environment={"ROCOV_CUPTI": library}).stderr:
                    Everywhere.variables["ROCOV_CUPTI"] = library
                    print(f"drain: ROCOV_CUPTI={library} in all tests", flush=True)
                    return
        return
    print("drain search-of-cupti: passed", flush=True)


def run_all(results, names):
    os.makedirs(results, exist_ok=True)
    results = os.path.abspath(results)
    began = time.monotonic()
    find_cupti(results)
    record = Record()
    chosen = [it for it in TESTS if not names or any(it[0].startswith(name) for name in names)]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = [pool.submit(run_one, name, body, results, record) for name, alone, body in chosen if not alone]
        concurrent.futures.wait(runs)
    print(f"drain: {time.monotonic() - began:.0f} s so far", flush=True)
    for name, alone, body in chosen:
        if alone:
            run_one(name, body, results, record)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in record.counts.items())
    print(f"drain: {counts}, in {time.monotonic() - began:.0f} s", flush=True)
    return 1 if record.counts["failed"] else 0


def all_doses():
    asked = {"h1"}
    for _, _, body in TESTS:
        asked.update(getattr(body, "doses", ()))
    return sorted(asked)


# The second look, with LLVM's tools


def check(results, profdata, cov):
    wrong = 0
    for archive in sorted(glob.glob(os.path.join(results, "*", "data.tar.gz"))):
        directory = os.path.dirname(archive)
        expected = os.path.join(directory, "expected")
        if not os.path.exists(expected):
            continue
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(archive) as opened:
                opened.extractall(work)
            with open(expected) as file:
                wanted = [line.split() for line in file]
            for data, label, doses, *files in wanted:
                if data != "data":
                    continue
                folder = "data" if label == "-" else os.path.join("data", "profraw", "labels", label)
                told = f"check {os.path.basename(directory)} {label} {doses}"
                try:
                    compare(by_llvm(os.path.join(work, folder), label == "-", work, profdata, cov), expected_of(doses), files)
                    print(f"{told}: equal")
                except Exception as error:  # pylint: disable=broad-except
                    wrong += 1
                    print(f"{told}: {error}")
    return 1 if wrong else 0


def expected_of(doses):
    with open(needed("expected", doses)) as file:
        return lines_of(file.read())


def by_llvm(folder, with_labels, work, profdata, cov):
    """The lines of llvm-cov for the profiles in a folder, or also for those in the folders of labels inside."""
    profiles = glob.glob(f"{folder}/**/*.profraw" if with_labels else f"{folder}/*.profraw", recursive=True)
    elves = glob.glob(f"{work}/data/**/objects/*", recursive=True)
    merged = os.path.join(work, "merged")
    subprocess.run([profdata, "merge", *profiles, "-o", merged], check=True, capture_output=True)
    objects = [word for elf in elves[1:] for word in ["-object", elf]]
    command = [cov, "export", "-format=lcov", f"-instr-profile={merged}", elves[0], *objects]
    return lines_of(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(arguments):
    if arguments[:1] == ["doses"]:
        print("\n".join(all_doses()))
        return 0
    if arguments[:1] == ["run"] and len(arguments) > 1:
        return run_all(arguments[1], arguments[2:])
    if arguments[:1] == ["check"] and len(arguments) == 4:
        return check(*arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

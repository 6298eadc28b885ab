"""The plugin of coverage.py, with planted counts in place of a GPU. Needs coverage.py, pytest-cov and pytest-xdist.

`rocov` is a stand-in here, which writes the planted counts as `rocov report` does. Expected lines are those that a reader
of the sources finds.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree

import coverage
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
WHEEL = os.path.dirname(HERE)
PYTEST = os.path.join(WHEEL, "pytest-plugin")

# What stands for Triton.
TRITON = {"__init__.py": "def jit(function):\n    return function\n", "language.py": "constexpr = int\n"}

KERNELS = """\
import triton
import triton.language as tl


@triton.jit
def twice(x, LIMIT: tl.constexpr):
    if LIMIT > 10:
        y = x * 2
    else:
        y = x * 3
    return y


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr, LIMIT: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    if pid == 1000:
        tl.store(x_ptr, 7.0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, 5):
        acc += twice(tl.load(x_ptr + offs), LIMIT)
    if LIMIT > 100:
        acc += 5
    tl.store(x_ptr + offs, acc)


@triton.jit
def never(p):
    one = 1.0
    tl.store(p, one)


@triton.jit
def debug(p):  # pragma: no cover
    tl.store(p, 1.0)


def launch(n):
    if n > 100:
        print("many")
    return n
"""
# The block before `if pid`, its side, the loop, and the store after it. Zeros and constants have no code.
COUNTS = {8: 640, 16: 128, 17: 128, 18: 128, 19: 0, 22: 640, 25: 128}
# `never` was never launched, 19 is a side that no thread took, 41 is code of the host. 10 is the side of a condition
# that no specialisation has, and so is 24.
MISSED = [19, 30, 31, 41]
EXCLUDED = [10, 24, 35, 36]
# Releases differ in whether the decorator of an excluded function is excluded, too.
DECORATOR = 34
MISSED_BRANCHES = [[18, 19], [40, 41]]

TESTS = """\
import kernels


def test_one():
    assert kernels.launch(1) == 1


class TestOthers:
    def test_two(self):
        assert kernels.launch(2) == 2
"""

STAND_IN = """\
#!{python}
import json, os, sys

arguments = sys.argv[1:]
with open("calls", "a") as file:
    print(json.dumps(arguments), file=file)
if arguments[0] == "run":
    end = arguments.index("--")
    os.environ["ROCOV_DATA"] = arguments[arguments.index("-o") + 1]
    os.makedirs(os.environ["ROCOV_DATA"], exist_ok=True)
    os.execv(arguments[end + 1], arguments[end + 1:])
if arguments[0] == "report":
    if os.path.exists("messages"):
        with open("messages") as file:
            sys.stderr.write(file.read())
    by_test = "--per-test" in arguments
    with open({planted!r}) as file:
        planted = json.load(file)
    with open(arguments[arguments.index("--lcov") + 1], "w") as file:
        for label, files in planted.items():
            name = "".join(letter if letter.isalnum() else "_" for letter in label)
            for path, counts in files.items():
                print("TN:" + (name if by_test else ""), "SF:" + path, sep="\\n", file=file)
                for line, count in counts.items():
                    print("DA:%s,%s" % (line, count), file=file)
                print("end_of_record", file=file)
    tests = [{{"name": label}} for label in planted if label] if by_test else []
    with open(arguments[arguments.index("--json") + 1], "w") as file:
        json.dump({{"rocov": {{"tests": tests}}}}, file)
"""


class Project:
    def __init__(self, path):
        self.path = path
        for name, text in TRITON.items():
            self.write("triton/" + name, text)
        self.write("kernels.py", KERNELS)
        self.write("test_kernels.py", TESTS)
        self.write("program.py", "import kernels\nkernels.launch(1)\n")
        self.settings()
        self.counts({"": {"kernels.py": COUNTS}})
        (path / "bin").mkdir()
        (path / ".rocov-coverage").mkdir()
        stand_in = STAND_IN.format(python=sys.executable, planted=str(path / "planted.json"))
        self.write("bin/rocov", stand_in)
        (path / "bin/rocov").chmod(0o755)

    def write(self, name, text):
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(text)

    def settings(self, run="", more=""):
        self.write(".coveragerc", f"[run]\nplugins = rocov\nomit = triton/*\n{run}\n{more}\n")

    def counts(self, by_label):
        absolute = {
            label: {str(self.path / name): counts for name, counts in files.items()}
            for label, files in by_label.items()
        }
        self.write("planted.json", json.dumps(absolute))

    def run(self, *arguments, status=0, **variables):
        """Runs a Python module."""
        environment = dict(os.environ, **variables)
        for name in list(environment):
            if name.startswith(("COV_", "COVERAGE_", "PYTEST_", "ROCOV_")) and name not in variables:
                del environment[name]
        environment["PATH"] = f"{self.path / 'bin'}{os.pathsep}{environment['PATH']}"
        environment["PYTHONPATH"] = os.pathsep.join([WHEEL, PYTEST])
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        # Debian's setuptools imports a module of its own at each start, which old releases of coverage.py would measure.
        environment["SETUPTOOLS_USE_DISTUTILS"] = "stdlib"
        ended = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=str(self.path),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        assert ended.returncode == status, ended.stdout
        return ended.stdout

    def pytest(self, *arguments):
        return self.run("pytest", "-q", "-p", "no:cacheprovider", "-p", "rocov_pytest", *arguments)

    def json(self, *arguments):
        self.run("coverage", "json", "-q", "-o", "out.json", *arguments)
        return json.loads((self.path / "out.json").read_text())["files"]

    def calls(self):
        """What `rocov` was called with."""
        return [json.loads(line) for line in (self.path / "calls").read_text().splitlines()]

    def check(self, branch=False):
        found = self.json()["kernels.py"]
        assert found["missing_lines"] == MISSED
        assert [line for line in found["excluded_lines"] if line != DECORATOR] == EXCLUDED
        if branch:
            assert found["missing_branches"] == MISSED_BRANCHES


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.mark.parametrize("branch", [False, True])
def test_coverage_run_and_all_reports(project, branch):
    project.settings(f"branch = {branch}")
    project.run("coverage", "run", "program.py")
    table = project.run("coverage", "report", "--show-missing")
    assert re.search(r"kernels\.py .* 19, 30-31, 41$", table, re.MULTILINE), table
    project.check(branch)
    # Each format has the lines, and each file once.
    project.run("coverage", "xml", "-q")
    found = xml.etree.ElementTree.parse(str(project.path / "coverage.xml")).getroot()
    files = [each for each in found.iter("class") if each.get("filename") == "kernels.py"]
    assert [int(line.get("number")) for line in files[0].iter("line") if line.get("hits") == "0"] == MISSED
    assert len(files) == 1
    project.run("coverage", "lcov", "-q")
    section = (project.path / "coverage.lcov").read_text().split("SF:kernels.py\n")
    assert len(section) == 2
    section = section[1].split("end_of_record")[0]
    assert [int(line) for line in re.findall(r"^DA:(\d+),0", section, re.MULTILINE)] == MISSED
    project.run("coverage", "html", "-q")
    page = next((project.path / "htmlcov").glob("kernels_py.html")).read_text()
    assert [int(line) for line in re.findall(r'<p class="mis[^>]*>.*?id="t(\d+)"', page)] == MISSED


def test_a_source_that_was_edited_after_the_run_is_named(project):
    project.run("coverage", "run", "program.py")
    stale = "it has changed since it ran (line 19 had different text)"
    path = project.path / "kernels.py"
    project.write("messages", f"rocov: {path}: stale: {stale}: remove the counts, and run it again, or take it from git\n")
    assert f"rocov: kernels.py: {stale}: run the tests again\n" in project.run("coverage", "report")
    project.write("messages", "rocov: another message: with a next step\n")
    assert "rocov:" not in project.run("coverage", "report")


def test_reports_do_not_add_up(project):
    project.run("coverage", "run", "program.py")
    for _ in range(3):
        project.check()
    assert sorted(project.json()) == ["kernels.py", "program.py"]

def test_kernels_of_a_module_that_was_never_imported_are_missed(project):
    project.settings("source = .")
    project.write("other.py", KERNELS)
    project.run("coverage", "run", "program.py")
    project.check()
    # It has a function with the name of one that a kernel calls.
    assert project.json()["other.py"]["missing_lines"][:4] == [1, 2, 5, 6]
    assert 7 in project.json()["other.py"]["missing_lines"]


def test_omit_and_source_hold(project):
    project.write("inner/kernels.py", "import triton, triton.language as tl\n\n\n@triton.jit\ndef k(p):\n    tl.store(p, 1)\n")
    project.write("inner/__init__.py", "")
    project.write("program.py", "import kernels\nimport inner.kernels\n")
    project.counts({"": {"kernels.py": COUNTS, "inner/kernels.py": {6: 1}}})
    project.settings("source = inner")
    project.run("coverage", "run", "program.py")
    found = project.json()
    assert sorted(found) == ["inner/__init__.py", "inner/kernels.py"]
    assert found["inner/kernels.py"]["missing_lines"] == []
    project.write(".coveragerc", "[run]\nplugins = rocov\nomit = triton/*,inner/*\n")
    project.run("coverage", "run", "program.py")
    assert sorted(project.json()) == ["kernels.py", "program.py"]


@pytest.mark.parametrize("branch", [False, True])
def test_processes_are_combined(project, branch):
    project.settings(f"branch = {branch}\nparallel = true")
    for _ in range(2):
        project.run("coverage", "run", "program.py")
    project.run("coverage", "combine")
    # As coverage.py removes the files that it has combined.
    assert [call[0] for call in project.calls()] == ["report", "clean"]
    # The lines are in the file: another machine has no counts.
    (project.path / ".rocov-coverage").rmdir()
    project.check(branch)


def test_relative_files(project):
    project.settings("relative_files = true")
    project.run("coverage", "run", "program.py")
    project.check()


@pytest.mark.parametrize("branch", [[], ["--cov-branch"]])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_pytest_cov(project, branch, workers):
    output = project.pytest("--cov", "--cov-report=term-missing", *branch, *workers)
    assert re.search(r"kernels\.py .* 19, 30-31, 41$", output, re.MULTILINE), output
    project.check(bool(branch))


def test_contexts_of_pytest_cov(project):
    by_label = {"test_kernels.py/test_one/inner": {"kernels.py": COUNTS}}
    # What no test has counted, and a context of a user's own.
    by_label["dump-1"] = {"kernels.py": {30: 128}}
    by_label["forward"] = {"kernels.py": {31: 128}}
    project.counts(by_label)
    project.pytest("--cov", "--cov-context=test")
    contexts = project.json("--show-contexts")["kernels.py"]["contexts"]
    assert contexts["22"] == ["test_kernels.py::test_one|run"]
    assert "19" not in contexts
    assert contexts["31"] == ["", "forward"]
    host = ["test_kernels.py::TestOthers::test_two|run", "test_kernels.py::test_one|run"]
    assert sorted(contexts["40"]) == host


def test_contexts_of_coverage(project):
    project.counts({"test_kernels.py/TestOthers/test_two": {"kernels.py": COUNTS}})
    project.settings("dynamic_context = test_function")
    project.run("coverage", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernels.py")
    contexts = project.json("--show-contexts")["kernels.py"]["contexts"]
    assert contexts["22"] == ["test_kernels.TestOthers.test_two"]


def test_several_specialisations_are_joined(project):
    counts = dict(COUNTS)
    counts.update({10: 640, 24: 128})
    project.counts({"": {"kernels.py": counts}})
    project.run("coverage", "run", "program.py")
    found = project.json()["kernels.py"]
    assert found["missing_lines"] == MISSED
    assert [line for line in found["excluded_lines"] if line != DECORATOR] == [35, 36]


def test_a_helper_of_another_file(project):
    project.write("helpers.py", "import triton, triton.language as tl\n\n\n@triton.jit\ndef half(x):\n    y = x / 2\n    return y\n")
    project.write("kernels.py", KERNELS.replace("import triton\n", "import triton; from helpers import half\n").replace("twice(tl", "half(tl").replace(", LIMIT)\n    if", ")\n    if"))
    project.write("program.py", "import kernels\nimport helpers\n")
    project.run("coverage", "run", "program.py")
    assert project.json()["helpers.py"]["missing_lines"] == []
    program = project.path / "kernels.py"
    program.write_text(program.read_text().replace("import half", "import half as other").replace("half(tl", "other(tl"))
    project.run("coverage", "run", "program.py")
    assert project.json()["helpers.py"]["missing_lines"] == []


def test_the_plugin_starts_rocov(project):
    project.settings(more="[rocov]\nrun = always")
    project.write("program.py", "import kernels, sys\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")
    output = project.run("coverage", "run", "program.py", "7", "a b", status=7)
    assert output == "['7', 'a b']\n"
    run = project.calls()[-1]
    assert run[:3] == ["run", "--instrument", "-o"]
    assert run[3] == str(project.path / ".rocov-coverage")
    assert run[-5:] == ["coverage", "run", "program.py", "7", "a b"]
    # As coverage.py removes its own data.
    assert project.calls()[0] == ["clean", ".rocov-coverage"]
    output = project.pytest("--cov", "--cov-append", "test_kernels.py")
    assert "2 passed" in output
    assert [call[0] for call in project.calls()].count("clean") == 1
    assert [call[0] for call in project.calls()].count("run") == 2
    # Runs in parallel have counts until they are combined.
    project.run("coverage", "run", "--parallel-mode", "program.py", "0")
    assert [call[0] for call in project.calls()].count("clean") == 1
    assert [call[0] for call in project.calls()].count("run") == 3
    # Without --cov, pytest runs as it is.
    project.pytest("test_kernels.py")
    assert [call[0] for call in project.calls()].count("run") == 3


def test_counts_of_rocov_run(project):
    (project.path / ".rocov-coverage").rmdir()
    (project.path / "rocov-data").mkdir()
    project.run("coverage", "run", "program.py", ROCOV_DATA=str(project.path / "rocov-data"))
    project.check()
    assert "rocov-data" in project.calls()[0]
    # They are not the counts of a later run without rocov.
    project.run("coverage", "run", "program.py")
    project.run("coverage", "report")
    assert project.calls()[-1][:2] == ["report", ".rocov-coverage"]
    # Nor are they those of one under rocov that has none.
    before = len(project.calls())
    project.run("coverage", "run", "program.py", ROCOV_DATA=str(project.path / "nothing"))
    project.run("coverage", "report", ROCOV_DATA=str(project.path / "nothing"))
    assert "report" not in [call[0] for call in project.calls()[before:]]


def test_counts_in_named_directories(project):
    (project.path / "mine").mkdir()
    project.write("pyproject.toml", '[tool.coverage.run]\nplugins = ["rocov"]\nomit = ["triton/*"]\n')
    (project.path / ".coveragerc").unlink()
    settings = (project.path / "pyproject.toml").read_text() + "[tool.coverage.rocov]\n"
    project.write("pyproject.toml", settings + 'data = ["mine", "nowhere"]\n')
    project.run("coverage", "run", "program.py")
    output = project.run("coverage", "json", "-o", "out.json")
    assert "rocov: [tool.coverage.rocov] data names nowhere, which does not exist" in output
    report = [call for call in project.calls() if call[0] == "report"][-1]
    assert report[1] == "mine" and "nowhere" not in report
    for wrong, message in [
        ("data = 7", "data is 7: write the directory, or a list of directories"),
        ('data = "mine"\nrun = "always"', "has run = 'always' and data"),
    ]:
        project.write("pyproject.toml", settings + wrong + "\n")
        assert message in project.run("coverage", "run", "program.py", status=1)


def test_what_is_wrong_has_a_message(project):
    project.run("coverage", "run", "program.py")
    (project.path / "bin/rocov").unlink()
    output = project.run("coverage", "report", PATH="/nowhere")
    assert "kernels are reported as missed: there is no command rocov" in output
    project.settings(more="[rocov]\nrun = sometimes")
    output = project.run("coverage", "run", "program.py", status=1)
    assert "run is 'sometimes': write auto, always or never" in output
    project.settings(more="[rocov]\nrunn = always")
    output = project.run("coverage", "run", "program.py", status=1)
    assert "has the setting 'runn': there are data and run" in output
    # pytest prints it as one line.
    output = project.run("pytest", "-p", "rocov_pytest", "--cov", "test_kernels.py", status=4)
    assert output.strip().startswith("ERROR: [tool.coverage.rocov] has the setting 'runn'"), output
    project.settings(more="[rocov]\nrun = always")
    output = project.run("coverage", "run", "program.py", PATH="/nowhere")
    assert "kernels are reported as missed: there is no command rocov" in output


def test_kernels_without_line_numbers_are_named(project):
    project.counts({"": {"without-lines-f1647f43": {3: 64}}})
    project.run("coverage", "run", "program.py")
    output = project.run("coverage", "report")
    assert "kernels without line numbers ran, and those of kernels.py may be among them" in output
    assert output.count("lineinfo=True") == 1
    # A kernel of the file has counts, so its kernels have line numbers; code that did not run needs none.
    for others in [{"kernels.py": COUNTS, "without-lines-f1647f43": {3: 64}}, {"without-lines-f1647f43": {3: 0}}]:
        project.counts({"": others})
        project.run("coverage", "run", "program.py")
        assert "line numbers" not in project.run("coverage", "report")


def test_counts_of_an_earlier_run_are_removed(project):
    # Without a GPU, too.
    project.run("coverage", "run", "program.py")
    assert project.calls() == [["clean", ".rocov-coverage"]]
    project.run("coverage", "run", "--append", "program.py")
    project.run("coverage", "run", "--app", "program.py")
    project.run("coverage", "run", "--source", ".", "-a", "program.py")
    project.run("coverage", "run", "-am", "program")
    project.run("coverage", "run", "-pm", "program")
    project.run("coverage", "run", "--parallel-mode", "program.py")
    assert [call for call in project.calls() if call[0] == "clean"] == [["clean", ".rocov-coverage"]]
    # Options of the program are not coverage.py's.
    project.run("coverage", "run", "program.py", "-a", "--append")
    project.run("coverage", "run", "-m", "program", "-p", "-a")
    assert [call[0] for call in project.calls()].count("clean") == 3


def test_without_counts_all_is_as_without_the_plugin(project):
    (project.path / ".rocov-coverage").rmdir()
    project.run("coverage", "run", "program.py")
    found = project.json()["kernels.py"]["missing_lines"]
    project.write(".coveragerc", "[run]\nomit = triton/*\n")
    project.run("coverage", "run", "program.py")
    assert project.json()["kernels.py"]["missing_lines"] == found


def numbers(text, *words):
    """The numbers of the lines that have one of these words behind `#`."""
    lines = enumerate(text.split("\n"), 1)
    return [number for number, line in lines if line.partition("# ")[2] in words]


def test_pytest_with_a_marker_under_coverage_run_shows_triton_kernels(project):
    """Tests call a kernel, and its lines are not missed (triton-lang/triton#6459)."""
    source = textwrap.dedent(
        """\
        import pytest
        import triton
        import triton.language as tl


        @triton.jit
        def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # ran
            mask = offs < n
            x = tl.load(x_ptr + offs, mask=mask)  # ran
            y = tl.load(y_ptr + offs, mask=mask)  # ran
            tl.store(out_ptr + offs, x + y, mask=mask)  # ran


        @pytest.mark.unittest
        def test_add():
            assert callable(add)


        def test_other():
            assert callable(add)  # missed
        """
    )
    project.write("test_add.py", source)
    project.counts({"": {"test_add.py": {line: 512 for line in numbers(source, "ran")}}})
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-m", "unittest"]
    project.run("coverage", "run", "-m", "pytest", *options, "test_add.py")
    assert project.json()["test_add.py"]["missing_lines"] == numbers(source, "missed")


# Numba tells coverage.py itself which lines for the CPU it has compiled (NUMBA_JIT_COVERAGE=1).
NUMBA = """\
import ast, inspect, os
import coverage


class cuda:
    def jit(function=None, **options):
        return function or cuda.jit


def jit(function):
    def compiled(*arguments):
        lines, start = inspect.getsourcelines(function)
        lines = range(start + 2, start + len(lines))
        data = coverage.Coverage.current().get_data()
        path = inspect.getsourcefile(function)
        pairs = zip(lines, lines[1:])
        data.add_arcs({path: list(pairs)}) if data.has_arcs() else data.add_lines({path: list(lines)})

    return compiled
"""
FOR_BOTH = """\
import numba
from numba import cuda


@numba.jit
def on_cpu(x):
    x[1] = 1
    if x[0] == 0:
        x[0] = 5


@numba.jit
def never_on_cpu(x):
    x[1] = 1  # missed


@cuda.jit(lineinfo=True)
def stores(x):
    x[0] = 5  # ran


@cuda.jit(lineinfo=True)
def calls(x):
    x[0] = chosen(5)  # ran


@cuda.jit(device=True)
def chosen(x):
    if x == 5:
        return x + 5
    else:
        return x + 7  # missed


on_cpu([0, 0])
"""


@pytest.mark.parametrize("branch", [False, True])
def test_kernels_of_numba_are_shown_beside_functions_for_the_cpu(project, branch):
    """Lines for the CPU are those that Numba tells, and those of kernels are added (numba#4268, numba-cuda#888).

    The compiler folds `chosen`, as the only call gives it a literal.
    """
    project.settings(f"branch = {branch}")
    project.write("numba.py", NUMBA)
    project.write("program.py", FOR_BOTH)
    project.counts({"": {"program.py": {line: 1 for line in numbers(FOR_BOTH, "ran")}}})
    project.run("coverage", "run", "program.py")
    found = project.json()["program.py"]
    assert found["missing_lines"] == numbers(FOR_BOTH, "missed")
    if branch:
        # Of functions for the CPU, Numba tells no branches.
        kernels = FOR_BOTH[: FOR_BOTH.index("@cuda")].count("\n")
        arcs = [arc for arc in found["missing_branches"] if arc[0] > kernels]
        assert arcs == [[FOR_BOTH[: FOR_BOTH.index("if x == 5")].count("\n") + 1, numbers(FOR_BOTH, "missed")[-1]]]

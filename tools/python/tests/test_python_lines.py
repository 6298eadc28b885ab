"""How tools/dev/python-lines compares kernels, with stand-ins for the frameworks and rocov. It needs no GPU, but coverage.py.

The stand-in for rocov reports the counts of testdata/python/lines.json, which is what a GPU would count.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("coverage")

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TOOL = os.path.join(ROOT, "tools/dev/python-lines")
LINES = os.path.join(ROOT, "testdata/python/lines.json")

TRITON = """\
class Kernel:
    def __getitem__(self, grid):
        return lambda **arguments: None


def jit(function):
    return Kernel()
"""
# What runs under `rocov run` has a directory with counts: here with the number of the launch.
TORCH = """\
import os
import sys


class cuda:
    @staticmethod
    def synchronize():
        os.mkdir(".rocov-coverage")
        with open(".rocov-coverage/launch", "w") as file:
            file.write(sys.argv[2])


def ones(*_, device):
    return None
"""
ROCOV = """\
#!{python}
import json, sys

arguments = sys.argv[1:]
if arguments[0] == "report":
    with open(arguments[1] + "/launch") as file:
        launch = int(file.read())
    with open({lines!r}) as file:
        counts = json.load(file)[launch]["counts"]
    with open(arguments[arguments.index("--lcov") + 1], "w") as file:
        print("SF:" + {kernels!r}, file=file)
        for line, count in counts.items():
            print("DA:%s,%d" % (line, 0 if [launch, line] == {dropped} else count), file=file)
        print("end_of_record", file=file)
    with open(arguments[arguments.index("--json") + 1], "w") as file:
        json.dump({{"rocov": {{}}}}, file)
"""
MISSING = "raise ImportError('not here')\n"


@pytest.fixture
def place(tmp_path):
    for name, text in {
        "modules/triton/__init__.py": TRITON,
        "modules/triton/language.py": "constexpr = int\n",
        "modules/torch.py": TORCH,
        "bin/rocov": stand_in([]),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("cupy", "jax", "numba", "numba_cuda_mlir", "numpy", "warp"):
        (tmp_path / "modules" / f"{name}.py").write_text(MISSING)
    (tmp_path / "bin/rocov").chmod(0o755)
    return tmp_path


def stand_in(dropped):
    """`dropped` has a launch, and a line of it whose count is 0."""
    kernels = os.path.join(ROOT, "testdata/python/kernels.py")
    return ROCOV.format(python=sys.executable, lines=LINES, kernels=kernels, dropped=dropped)


def python_lines(place, *arguments):
    environment = dict(os.environ, PYTHONPATH=str(place / "modules"))
    environment["PATH"] = f"{place}/bin:{environment['PATH']}"
    command = [sys.executable, "-B", TOOL, *arguments]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ended.returncode, ended.stdout


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU: call tools/dev/python-lines check")
def test_launches_are_right_or_wrong_or_known_to_differ(place):
    status, said = python_lines(place, "check", "0", "9")
    assert status == 0, said
    assert said.split("\n")[:-1] == [
        "straight 1000 {}: 7 lines run, 0 missed; right",
        "merged 2 {}: 5 lines run, 0 missed; known: line 181 is run; branch (180, 181) is taken",
        "1 of 2 launches are as the interpreter ran them, and 1 differ as no count can show more",
    ]
    # Line 60 is the store in the first side of the third launch.
    (place / "bin/rocov").write_text(stand_in([2, "60"]))
    status, said = python_lines(place, "check", "2")
    assert status == 1
    wrong = "sides 2 {}: 5 lines run, 3 missed; line 59 is not run; line 60 is not run; branch (58, 59) is not taken"
    assert said.split("\n")[0] == wrong, said
    assert said.split("\n")[1].startswith("0 of 1 launches are as the interpreter ran them, and 0 differ")


def test_a_record_names_what_is_not_run(place):
    for name in ("triton/__init__.py", "torch.py"):
        (place / "modules" / name).write_text(MISSING)
    status, said = python_lines(place, "record")
    assert status == 0, said
    versions, check, table = said.split("\n\n")
    assert versions.startswith(f"Python {sys.version.split()[0]}, ") and "coverage.py " in versions
    assert check == "tools/dev/python-lines check\nnot run: ImportError: not here"
    table = table.split("\n")[:-1]
    assert table[0] == "tools/dev/python-lines table"
    assert "cupy: not run: ImportError: not here" in table
    assert table[-1] == "not run: the kernels of compiled, core, cupy, gluon, jax, mlir, numba, triton, warp"

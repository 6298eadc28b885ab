"""How tools/dev/python-lines measures tutorials, with stand-ins for Triton, PyTorch and rocov. It needs no GPU."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "tools/dev/python-lines")

# What tutorials use of Triton. The real perf_report and do_bench take minutes, and need matplotlib.
TRITON = """\
class Config:
    def __init__(self, values):
        self.values = values


def autotune(configs, key):
    def wrap(function):
        return lambda *arguments: [function(*arguments, **config.values) for config in configs]
    return wrap
"""
TESTING = """\
class Benchmark:
    def __init__(self, x_names, x_vals, line_arg, line_vals, args):
        self.x_names, self.x_vals = x_names, x_vals
        self.line_arg, self.line_vals, self.args = line_arg, line_vals, args


def perf_report(benchmarks):
    raise RuntimeError("the real one")


do_bench = do_bench_cudagraph = perf_report
"""
TORCH = """\
class cuda:
    init = staticmethod(lambda: None)
    synchronize = staticmethod(lambda: None)
"""
# Starts the command after --, and reports counts of the tutorial whose folder it gets.
ROCOV = """\
#!/bin/sh
if [ "$1" = run ]; then
    [ -z "$TRITON_CACHE_DIR" ] || exit 9
    while [ "$1" != -o ]; do shift; done
    mkdir "$2"
    while [ "$1" != -- ]; do shift; done
    shift
    echo counted >> "$PLACE/runs"
    exec "$@"
fi
for last; do :; done
name=$(basename "$(dirname "$2")")
file="$2/../../python/tutorials/$name.py"
printf 'SF:%s\\nDA:3,128\\nDA:4,0\\nDA:5,1\\nend_of_record\\nSF:/other.py\\nDA:1,1\\n' "$file" > "$last"
"""
TUTORIAL = """\
import os
import tabulate
import triton
import triton.testing


@triton.autotune(configs=[triton.Config({"SIZE": size}) for size in (16, 32, 64)], key=[])
def kernel(n, SIZE):
    note("kernel", n, SIZE)


def note(*words):
    with open("notes", "a") as file:
        print(*words, file=file)


@tabulate.mark.parametrize("n", [1, 2])
def test_kernel(n):
    raise RuntimeError("pytest calls it")


@triton.testing.perf_report([triton.testing.Benchmark(
    x_names=["m", "n"], x_vals=[7, (8, 9)], line_arg="provider", line_vals=["triton", "torch"], args={"extra": 1})])
def benchmark(m, n, provider, extra):
    ms, low, high = triton.testing.do_bench(lambda: note("bench", m, n, provider), quantiles=[0.5, 0.2, 0.8])
    assert (ms, low, high) == (1.0, 1.0, 1.0)
    return ms / triton.testing.do_bench(lambda: None)


if __name__ == "__main__":
    print(tabulate.tabulate([[1]]))
    # A file of Triton's repository, which its wheel has elsewhere.
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    assert open(top + "/third_party/nvidia/backend/lib/libdevice.10.bc").read() == "bitcode"
    kernel(5)
    benchmark.run(show_plots=True, print_data=True)
    assert open("notes").read().split("\\n")[-7:-1] == EXPECTED
"""
EXPECTED = ["kernel 5 16", "kernel 5 32"] + [
    f"bench {size} {provider}" for size in ("7 7", "8 9") for provider in ("triton", "torch")
]


@pytest.fixture
def place(tmp_path):
    for name, text in {
        "modules/triton/__init__.py": TRITON,
        "modules/triton/testing.py": TESTING,
        "modules/triton/backends/nvidia/lib/libdevice.10.bc": "bitcode",
        "modules/torch.py": TORCH,
        "modules/tabulate.py": "raise ImportError('not here')\n",
        "bin/rocov": ROCOV,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "bin/rocov").chmod(0o755)
    return tmp_path


def measure(place, *arguments):
    environment = dict(os.environ, PYTHONPATH=str(place / "modules"), PLACE=str(place))
    environment["PATH"] = f"{place}/bin:{environment['PATH']}"
    environment["TRITON_CACHE_DIR"] = "/of/the/user"
    command = [sys.executable, "-B", TOOL, "tutorials", str(place), *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_each_tutorial_has_a_line(place):
    text = TUTORIAL.replace("EXPECTED", repr(EXPECTED))
    (place / "01-vector-add.py").write_text(text)
    (place / "02-broken.py").write_text("raise SystemExit('no such GPU')\n")
    (place / "09-other.py").write_text("raise SystemExit('not wanted')\n")
    # So many seconds that all runs have their time on any machine.
    ended = measure(place, "600")
    assert ended.returncode == 1, ended.stdout
    lines = ended.stdout.strip().split("\n")
    assert len(lines) == 5, ended.stdout
    assert lines[0].startswith("the first runs took "), lines
    assert lines[1].startswith("01-vector-add: "), lines
    assert lines[1].endswith("; 3 runs; 2 lines run, 1 missed"), lines
    assert " s plain, " in lines[1] and " s under rocov, " in lines[1], lines
    assert lines[2] == "02-broken: plain: status 1: no such GPU; rocov: status 1: no such GPU"
    assert lines[3].startswith("median ratio of 1 tutorials: "), lines
    assert lines[4] == "7 of 8 tutorials were not measured"
    # Three of the first tutorial that are measured, and the first runs of both.
    assert len((place / "runs").read_text().split()) == 5


def test_a_tutorial_has_a_limit(place):
    (place / "01-vector-add.py").write_text("import time\ntime.sleep(60)\n")
    ended = measure(place, "4")
    assert ended.returncode == 1
    assert "01-vector-add: plain: more than 2 s; rocov: more than 2 s\n" in ended.stdout


def test_wrong_arguments_have_a_next_step(place):
    ended = measure(place)
    assert ended.returncode == 2
    assert "has the name of a tutorial, such as 01-vector-add.py" in ended.stdout
    (place / "01-a.py").write_text("")
    (place / "bin/rocov").unlink()
    ended = measure(place)
    assert (ended.returncode, ended.stdout) == (2, "rocov is not on the PATH: put target/release there\n")

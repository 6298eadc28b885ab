"""The rules that decide which statements of kernels ran, for counts of lines.

testdata/python/lines.json has what Triton's interpreter ran and what PTX counts (tools/dev/python-lines). The other
kernels have lines by hand: `+` marks a line that runs, `-` one that does not, `?` one that no specialisation was
compiled with. The number is the count; a line without one has no machine code. `>` marks a condition that is taken
both ways.
"""

import ast
import json
import os
import re
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from rocov._truth import SourceKernels  # noqa: E402

DATA = os.path.join(HERE, "../../../testdata/python")


def read(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return file.read()


RECORDED = json.loads(read("lines.json"))
TEXT = read("kernels.py")
KERNELS = SourceKernels(TEXT)


def statements(kernels):
    lines = {}
    for function in kernels.functions:
        for statement in function.node.body:
            for node in ast.walk(statement):
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                if isinstance(node, ast.stmt) and not is_text:
                    lines[node.lineno] = function.name
    return lines


STATEMENTS = statements(KERNELS)

# What counts cannot show: the compiler made one store of two, and the count is at the other one's line; it made a
# selection of a branch.
WRONG = {"merged": "tl.store(out_ptr + offs, 2.0)", "selected": "value = 2.0"}
# With these arguments the helper's sides have no code at all: both are left out.
FOLDED = {"inlined": ["y = x * 2", "y = x * 3"]}


def recorded_name(recorded):
    return recorded["kernel"] + "-" + str(recorded["n"])


@pytest.mark.parametrize("recorded", RECORDED, ids=recorded_name)
def test_the_lines_are_those_of_tritons_interpreter(recorded):
    counts = {int(line): count for line, count in recorded["counts"].items()}
    walk = KERNELS.ran(counts)
    expected = {line for line in recorded["ran"] if line in STATEMENTS}
    text = TEXT.split("\n")
    wrong = {text[line - 1].strip() for line in walk.lines ^ expected}
    allowed = [WRONG.get(recorded["kernel"])] + FOLDED.get(recorded["kernel"], [])
    assert wrong <= set(allowed), sorted(wrong)
    # What did not run is missed, but for what was decided at compile time.
    undecided = KERNELS.undecided(walk.lines)
    of_kernel = {line for line, name in STATEMENTS.items() if name == recorded["kernel"]}
    assert undecided.isdisjoint(walk.lines)
    missed = of_kernel - walk.lines - undecided
    known = {"optional", "unrolled"}
    assert recorded["kernel"] not in known or not missed


@pytest.mark.parametrize("recorded", RECORDED, ids=recorded_name)
def test_the_branches_are_those_of_tritons_interpreter(recorded):
    walk = KERNELS.ran({int(line): count for line, count in recorded["counts"].items()})
    arcs = {tuple(arc) for arc in recorded["arcs"]}
    known = KERNELS.known_branches(walk.lines)
    found, expected = {}, {}
    for line, (inside, enters, passes) in walk.taken.items():
        if STATEMENTS[line] == recorded["kernel"] and line not in known:
            found[line] = (enters, passes)
            expected[line] = ((line, inside) in arcs, any(start == line and end != inside for start, end in arcs))
    if recorded["kernel"] not in WRONG:
        assert found == expected


def test_several_specialisations_and_runs_are_joined():
    both = [recorded for recorded in RECORDED if recorded["kernel"] == "optional"]
    counts = {}
    for recorded in both:
        for line, count in recorded["counts"].items():
            counts[int(line)] = counts.get(int(line), 0) + count
    walk = KERNELS.ran(counts)
    assert walk.lines == {line for each in both for line in each["ran"] if line in STATEMENTS}


def test_a_kernel_that_was_never_launched_did_not_run():
    every = set()
    for recorded in RECORDED:
        every |= KERNELS.ran({int(line): count for line, count in recorded["counts"].items()}).lines
    never = {line for line, name in STATEMENTS.items() if name == "never"}
    assert len(never) == 2
    assert every.isdisjoint(never)
    assert KERNELS.undecided(every).isdisjoint(never)


BY_HAND = {
    "a straight run": """
        @triton.jit
        def k(p, n):
            "The kernel."
    +       zero = 0
    + 32    i = tl.program_id(0)
    +       one = zero + 1
    + 0     moved = i * 2
    + 32    tl.store(p + i, one)
    """,
    "a side that no thread took, whose address was computed before": """
        @triton.jit
        def k(p, n):
    + 32    i = tl.program_id(0)
    + 32    if i == 7:
    - 32        place = i * 5
    - 0         tl.store(p + place, 1)
    + 32    tl.store(p + i, 1)
    """,
    "a condition that is taken both ways": """
        @triton.jit
        def k(p, n):
    > 64    if tl.program_id(0) == 0:
    + 32        tl.store(p, 1)
    + 64    tl.store(p + 1, 1)
    """,
    "an early end": """
        @triton.jit
        def k(p, n):
    > 64    if tl.program_id(0) == 0:
    +           return
    + 32    tl.store(p + 1, 1)
    +       return
    """,
    "an early end that all threads take": """
        @triton.jit
        def k(p, n):
    + 64    if tl.program_id(0) >= 0:
    +           return
    - 0     one = 1
    - 0     tl.store(p + 1, one)
    """,
    "a side that the specialisation decided": """
        @triton.jit
        def k(p, bias, BLOCK: tl.constexpr):
    +       if BLOCK > 16:
    + 32        tl.store(p, 1)
            else:
    ?           tl.store(p, 2)
    +       if bias is not None:
    ?           tl.store(bias, 2)
    """,
    "an early end that the specialisation decided": """
        @triton.jit
        def k(p, BLOCK: tl.constexpr):
    + 32    tl.store(p, 1)
    +       if BLOCK > 16:
    ?           return
    + 32    tl.store(p, 2)
    """,
    "a helper that was inlined and folded": """
        @triton.jit
        def helper(a):
    +       b = a + 1
    +       return b

        @triton.jit
        def k(p):
    + 32    tl.store(p, helper(1))
    """,
    "a helper with a literal for its constexpr": """
        @triton.jit
        def helper(a, WIDE: tl.constexpr):
    +       if WIDE:
    +           b = a + 1
            else:
    ?           b = a + 2
    +       return b

        @triton.jit
        def k(p):
    + 32    tl.store(p, helper(1, WIDE=True))
    """,
    "a helper with a global for its constexpr, through another one": """
        WIDE = tl.constexpr(20)

        @triton.jit
        def inner(a, LIMIT: tl.constexpr):
    +       if LIMIT > 10:
    +           a = a + 1
            else:
    ?           a = a + 2
    +       return a

        @triton.jit
        def helper(a, LIMIT: tl.constexpr):
    +       return inner(a, LIMIT + 1)

        @triton.jit
        def k(p):
    + 32    tl.store(p, helper(1, WIDE))
    """,
    "a helper that is only called where no thread came": """
        @triton.jit
        def helper(a):
    -       return a + 1

        @triton.jit
        def k(p):
    + 32    if tl.program_id(0) > 7:
    - 0         tl.store(p, helper(1))
    + 32    tl.store(p, 1)
    """,
    "loops": """
        @triton.jit
        def k(p, n):
    + 32    for i in range(n):
    + 99        tl.store(p + i, 1)
    + 32    for i in range(0, -n):
    - 0         tl.store(p + i, 1)
    + 32    while n > 7:
    +           n -= 1
    + 32    tl.store(p, n)
    """,
    "a loop that is left": """
        @cuda.jit
        def k(a, n):
    + 32    for i in range(n):
    > 99        if a[i] > 7:
    + 16            break
    + 83        a[i] = 1
    + 32    a[0] = 1
    """,
    "a helper of Numba with a literal, that was folded": """
        @cuda.jit
        def helper(a):
    +       if a == 5:
    +           return a + 5
            else:
    -           return a + 7

        @cuda.jit
        def k(p):
    + 32    p[0] = helper(5)
    """,
    "a helper with a literal, and one whose argument is not known": """
        @cuda.jit
        def helper(a):
    > 64    if a == 5:
    + 40        return a + 5
            else:
    + 24        return a + 7

        @cuda.jit
        def k(p):
    + 32    p[0] = helper(5)
    + 32    p[1] = helper(p[0])
    """,
    "a helper whose parameter changes": """
        @cuda.jit
        def helper(a):
    +       a = a + cuda.threadIdx.x
    >       if a == 5:
    +           return a + 5
            else:
    +           return a + 7

        @cuda.jit
        def k(p):
    + 32    p[0] = helper(5)
    """,
    "a helper that the call gives a default, and one that calls itself": """
        @triton.jit
        def helper(a, wide=False):
    +       if wide:
    -           a = a * 2
    +       return again(a, 3)

        @triton.jit
        def again(a, n):
    >       if n == 0:
    +           return a
    +       return again(a, n - 1)

        @triton.jit
        def k(p):
    + 32    tl.store(p, helper(1))
    """,
    "a variable with one value": """
        @cuda.jit
        def k(p):
    +       n = 5
    +       if n == 6:
    -           n_more = p[2]
    -           p[0] = n_more
    +       m = 1
    +       while m < n:
    +           m = m * 2
    + 32    p[1] = n
    """,
    "functions that are compiled by a call": """
        def helper(a):
    +       return a + 1

        def body(p):
    + 32    tl.store(p, f(1))

        f = triton.jit(helper)
        k = triton.jit(do_not_specialize=["p"])(body)
    """,
    "a kernel of Numba": """
        @cuda.jit(lineinfo=True)
        def k(a, n):
    + 32    i = cuda.grid(1)
    + 32    if i < n:
    + 32        a[i] += 1
            else:
    - 0         a[0] = a[0]
    """,
    "a kernel of numba-cuda-mlir": """
        @mlir.jit
        def k(a, n):
    + 32    if n < 0:
    - 0         a[0] = 1
    """,
    "a kernel of Warp and one of CuPy": """
        @wp.kernel
        def k(a: wp.array(dtype=float)):
    + 32    i = wp.tid()
    + 32    a[i] = 1.0

        @jit.rawkernel()
        def raw(a):
    -       a[0] = 1
    """,
    "a kernel of Gluon that never ran": """
        @gluon.jit
        def k(p, BLOCK: gl.constexpr):
    -       if BLOCK > 2:
    -           gl.store(p, 1)
    """,
}
IMPORTS = """\
import triton
import triton.language as tl
from numba import cuda
from numba_cuda_mlir import cuda as mlir
import warp as wp
from cupyx import jit
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
"""


def by_hand(table):
    """The source, the counts, and the lines with each mark."""
    lines, counts, marks = IMPORTS.split("\n")[:-1], {}, {}
    for line in table.split("\n")[1:]:
        mark, count, code = re.fullmatch(r"    ([ +?>-])? ?(\d*) *(.*)|\s*", line).groups()
        width = len(line) - len(line.lstrip(" +-?>0123456789"))
        indent = max(width - 8, 0)
        lines.append(" " * indent + (code or ""))
        if count:
            counts[len(lines)] = int(count)
        if (mark or " ") != " ":
            marks.setdefault(mark, set()).add(len(lines))
    return "\n".join(lines), counts, marks


@pytest.mark.parametrize("name", BY_HAND)
def test_lines_by_hand(name):
    text, counts, marks = by_hand(BY_HAND[name])
    kernels = SourceKernels(text)
    walk = kernels.ran(counts)
    undecided = kernels.undecided(walk.lines)
    assert sorted(walk.lines) == sorted(marks.get("+", set()) | marks.get(">", set()))
    assert sorted(undecided) == sorted(marks.get("?", set()))
    assert set(statements(kernels)) == {line for lines in marks.values() for line in lines}
    both = {
        line
        for line, (_, enters, passes) in walk.taken.items()
        if enters and passes and isinstance(at(kernels, line), ast.If) and line not in kernels.known_branches(walk.lines)
    }
    assert sorted(both) == sorted(marks.get(">", set()))


def at(kernels, line):
    for function in kernels.functions:
        for node in ast.walk(function.node):
            if isinstance(node, ast.stmt) and node.lineno == line:
                return node
    return None


@pytest.mark.parametrize(
    "text",
    [
        "import functools\n\n\n@functools.cache\ndef kernel():\n    return 1\n",
        "import numba\n\n\n@numba.jit\ndef kernel():\n    return 1\n",
        "def broken(:\n    @triton.jit\n",
        "import torch\n\n\n@torch.jit.script\ndef kernel():\n    return 1\n",
    ],
)
def test_other_functions_are_no_kernels(text):
    assert SourceKernels(text).functions == []

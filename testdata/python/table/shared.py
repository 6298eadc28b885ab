"""What the kernels of this folder share.

A comment at the end of a line tells what a GPU does with it. A statement without one runs.

    missed       no thread runs it
    excluded     no specialisation was compiled with it
    only true    all threads take this way of a condition; `only false` is the other one
    no end       a loop is never left by its condition, or a function never returns there

Lines of a kernel that is never launched are all missed: `never` stands at its `def`.
"""

import contextlib
import ctypes
import sys


def placed(text):
    """CUDA C++ that a source has as a raw string, with the place of this string for line numbers."""
    path = sys._getframe(1).f_code.co_filename
    with open(path, encoding="utf-8") as file:
        before, _, _ = file.read().partition(text)
    return f'#line {1 + before.count(chr(10))} "{path}"\n{text}'


@contextlib.contextmanager
def labelled(name):
    """Gives what runs in this block a label of rocov, under `rocov run`."""
    push = getattr(ctypes.CDLL(None), "rocov_label_push", None)
    if push:
        push(name.encode())
    yield
    if push:
        ctypes.CDLL(None).rocov_label_pop()


def show(name, values):
    """Prints what a kernel has made."""
    import numpy

    values = numpy.asarray(values, numpy.float64).ravel()
    weights = 1 + numpy.arange(values.size) % 13
    print(name, values.size, float((values * weights).sum()))

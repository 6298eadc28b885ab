"""The module rocov, over a library of kernels that ctypes opens. Prints what it finds."""

import ctypes
import sys

import rocov

kernels = ctypes.CDLL("./libkernels.so", mode=ctypes.RTLD_GLOBAL)


@rocov.scope("decorated")
def halve():
    return kernels.halve()


rocov.stop()
assert kernels.halve() == 0
rocov.start()
with rocov.scope("block/inner"):
    assert kernels.halve() == 0
assert halve() == 0
assert kernels.halve() == 0
dumped = rocov.dump("last")
assert kernels.halve() == 0
dropped = rocov.reset()
try:
    with rocov.scope("a//b"):
        raise AssertionError("a label with an empty name passes")
except ValueError as error:
    print(error)
print("rocov", rocov.version(), dumped, dropped)
sys.exit(0 if rocov.version() else 1)

"""Opens HIP in a scope of its own or the process's, runs a kernel of a code object twice.

opens_hip.py local|global CODE_OBJECT KERNEL [LIBRARY]

A LIBRARY is opened after the first run.
"""

import ctypes
import sys

WORK_ITEMS = 128
TALLIED = 100

_, scope, code_object, kernel, *libraries = sys.argv
mode = {"local": ctypes.RTLD_LOCAL, "global": ctypes.RTLD_GLOBAL}[scope]
hip = ctypes.CDLL("libamdhip64.so.5", mode=mode)


def check(status):
    if status:
        sys.exit(f"HIP says {status}")


module, function, tallies = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(hip.hipInit(0))
check(hip.hipModuleLoad(ctypes.byref(module), code_object.encode()))
check(hip.hipModuleGetFunction(ctypes.byref(function), module, kernel.encode()))
check(hip.hipMalloc(ctypes.byref(tallies), ctypes.c_size_t(4 * WORK_ITEMS)))
limit = ctypes.c_int(TALLIED)
arguments = (ctypes.c_void_p * 2)(
    ctypes.cast(ctypes.byref(tallies), ctypes.c_void_p),
    ctypes.cast(ctypes.byref(limit), ctypes.c_void_p),
)
for _ in range(2):
    check(hip.hipModuleLaunchKernel(function, WORK_ITEMS // 64, 1, 1, 64, 1, 1, 0, None, arguments, None))
    check(hip.hipDeviceSynchronize())
    opened = [ctypes.CDLL(library, mode=mode) for library in libraries]

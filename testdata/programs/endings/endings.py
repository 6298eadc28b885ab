"""Runs a kernel through HIP's C interface, then ends in the way that the last argument names.

endings.py LIBAMDHIP64 CODE_OBJECT ENDING
"""

import ctypes
import os
import subprocess
import sys

STATUS = 42


def main(library, code_object, ending):
    hip = ctypes.CDLL(library)

    def check(error, what):
        if error:
            sys.exit(f"endings.py: {what}: error {error}")

    module, kernel, total = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(hip.hipModuleLoad(ctypes.byref(module), code_object.encode()), "hipModuleLoad")
    check(hip.hipModuleGetFunction(ctypes.byref(kernel), module, b"counted"), "hipModuleGetFunction")
    check(hip.hipMalloc(ctypes.byref(total), ctypes.c_size_t(4)), "hipMalloc")
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(total))
    check(
        hip.hipModuleLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, None, arguments, None),
        "hipModuleLaunchKernel",
    )
    check(hip.hipDeviceSynchronize(), "hipDeviceSynchronize")

    if ending == "return":
        return
    if ending == "sys.exit":
        sys.exit(STATUS)
    if ending == "os._exit":
        os._exit(STATUS)
    if ending == "subprocess":
        # Starts a child that shares this process's memory until it calls exec.
        subprocess.run(["sh", "-c", "exit 0"], check=True)
        sys.exit(STATUS)
    if ending == "exception":
        raise RuntimeError("nobody catches this")
    if ending == "os.abort":
        os.abort()
    sys.exit(f"endings.py: no such ending: {ending}")


main(*sys.argv[1:])

"""Compiles a kernel by hipRTC, with the options in the arguments of this program, and launches it: by ctypes alone.

Each thread makes the steps of Collatz from its number on, and notes all steps and those from an odd number.
"""

import ctypes
import sys

SOURCE = b"""\
extern "C" __global__ void collatz(volatile unsigned *steps, volatile unsigned *odd, int count) {
  int i = threadIdx.x;
  if (i >= count)
    return;
  for (unsigned x = i; x > 1; x = x % 2 ? 3 * x + 1 : x / 2) {
    steps[i] += 1;
    if (x % 2)
      odd[i] += 1;
  }
  if (count > 1000)
    steps[i] += 1000;
}
"""
THREADS, COUNT = 64, 40

hip, hiprtc = ctypes.CDLL("libamdhip64.so.7"), ctypes.CDLL("libhiprtc.so.7")


def check(status):
    if status != 0:
        size = ctypes.c_size_t()
        hiprtc.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        hiprtc.hiprtcGetProgramLog(program, log)
        sys.exit(f"status {status}: {log.value.decode()}")


program = ctypes.c_void_p()
check(hiprtc.hiprtcCreateProgram(ctypes.byref(program), SOURCE, b"collatz.hip", 0, None, None))
options = [option.encode() for option in sys.argv[1:]]
check(hiprtc.hiprtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
size = ctypes.c_size_t()
check(hiprtc.hiprtcGetCodeSize(program, ctypes.byref(size)))
code = ctypes.create_string_buffer(size.value)
check(hiprtc.hiprtcGetCode(program, code))

module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
check(hip.hipModuleLoadData(ctypes.byref(module), code))
check(hip.hipModuleGetFunction(ctypes.byref(kernel), module, b"collatz"))
size = ctypes.c_size_t(4 * THREADS)
buffers = [ctypes.c_void_p() for _ in range(2)]
for buffer in buffers:
    check(hip.hipMalloc(ctypes.byref(buffer), size))
    check(hip.hipMemset(buffer, 0, size))
count = ctypes.c_int(COUNT)
arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(each) for each in (*buffers, count)))
check(hip.hipModuleLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, None, arguments, None))
steps, odd = ((ctypes.c_uint * THREADS)() for _ in range(2))
for host, buffer in zip((steps, odd), buffers):
    check(hip.hipMemcpy(host, buffer, size, 2))
print(sum(steps), sum(odd))

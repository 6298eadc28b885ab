"""Kernels of numba-cuda-mlir, which compiles what Numba-CUDA does."""

import numpy
from numba_cuda_mlir import cuda
from shared import show


@cuda.jit(lineinfo=True)
def increased(a, n):
    i = cuda.grid(1)
    if i < n:
        a[i] += 1
    elif n < 0:  # only false
        a[0] = 5  # missed


@cuda.jit(device=True)
def halved(x, least):
    if x < least:
        return least
    return x / 2


@cuda.jit(lineinfo=True)
def helped(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = halved(a[i], 10)


@cuda.jit(lineinfo=True)
def looped(a, rounds):
    i = cuda.grid(1)
    total = 0.0
    for j in range(rounds):
        total += a[i] * j
        if total < -5:  # only false
            a[i] = 0  # missed
    a[i] = total


@cuda.jit(lineinfo=True)
def early(a, bins):
    i = cuda.grid(1)
    if i >= a.size:
        return
    if a[i] > 1000:  # only false
        cuda.atomic.add(bins, 1, 1)  # missed
        return  # missed
    cuda.atomic.add(bins, 0, 1)


@cuda.jit(lineinfo=True)
def never(a):  # never
    a[0] = 1


def main():
    def there(kind=numpy.float32, count=1000):
        return cuda.to_device(numpy.arange(count, dtype=kind))

    a = there()
    increased[4, 256](a, 1000)
    show("increased", a.copy_to_host())
    helped[4, 256](a)
    show("helped", a.copy_to_host())
    a = there(count=256)
    looped[2, 128](a, 5)
    show("looped", a.copy_to_host())
    a, bins = there(), there(numpy.int32, 2)
    early[4, 256](a, bins)
    show("early", bins.copy_to_host())


if __name__ == "__main__":
    main()

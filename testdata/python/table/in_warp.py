"""Kernels of Warp, on a machine whose driver is as new as Warp's CUDA toolkit: with an older one, Warp loads cubins."""

import numpy
import warp as wp
from shared import show

wp.config.lineinfo = True  # line_directives, which names this file, is the default
wp.config.quiet = True


@wp.func
def limited(x: float, most: float):
    if x > most:
        return most
    return x


@wp.kernel
def scaled(a: wp.array(dtype=float), n: int):
    i = wp.tid()
    if i < n:
        a[i] = limited(a[i] * 2.0, 100.0)
    if n > 5000:  # only false
        a[i] = 7.0  # missed


@wp.kernel
def counted(a: wp.array(dtype=float), bins: wp.array(dtype=int)):
    i = wp.tid()
    if a[i] < 50.0:
        wp.atomic_add(bins, 0, 1)
    elif a[i] > 5000.0:  # only false
        wp.atomic_add(bins, 2, 1)  # missed
    else:
        wp.atomic_add(bins, 1, 1)


@wp.kernel
def looped(a: wp.array(dtype=float), rounds: int):
    i = wp.tid()
    total = float(0.0)
    for j in range(rounds):
        total = total + a[i] * float(j)
    if total < -1.0:  # only false
        total = 0.0  # missed
    a[i] = total


@wp.kernel
def never(a: wp.array(dtype=float)):  # never
    a[0] = 1.0


def main():
    def there(count, kind=float):
        return wp.array(numpy.arange(count), dtype=kind, device="cuda:0")

    def launch(kernel, *inputs):
        wp.launch(kernel, dim=1000, inputs=inputs, device="cuda:0")

    a = there(1000)
    launch(scaled, a, 900)
    show("scaled", a.numpy())
    bins = there(3, int)
    launch(counted, a, bins)
    show("counted", bins.numpy())
    launch(looped, a, 5)
    show("looped", a.numpy())


if __name__ == "__main__":
    main()

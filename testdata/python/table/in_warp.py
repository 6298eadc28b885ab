"""Kernels of Warp, on a machine whose driver is as new as Warp's CUDA toolkit: with an older one, Warp loads cubins."""

import numpy
import warp as wp
from shared import show

wp.config.lineinfo = True  # line_directives, which names this file, is the default
wp.config.quiet = True


@wp.func
def noted(bins: wp.array(dtype=int), place: int, amount: float):
    if amount > 100.0:
        wp.atomic_add(bins, place, 1)
    return amount * 2.0


@wp.kernel
def scaled(a: wp.array(dtype=float), bins: wp.array(dtype=int), n: int):
    i = wp.tid()
    if i < n:
        a[i] = noted(bins, 2, a[i])
    if n > 5000:  # only false
        a[i] = 7.0  # missed


@wp.kernel
def counted(a: wp.array(dtype=float), bins: wp.array(dtype=int)):
    i = wp.tid()
    if a[i] < 50.0:
        wp.atomic_add(bins, 0, 1)
    elif a[i] > 5000.0:  # only false
        wp.atomic_add(bins, 1, 1)  # missed
    else:
        a[i] = 50.0


@wp.kernel
def looped(a: wp.array(dtype=float), rounds: int):
    i = wp.tid()
    total = float(0.0)
    for j in range(rounds):
        total = total + a[i] * float(j)
    if total < -1.0:  # only false
        a[0] = 0.0  # missed
    a[i] = total


@wp.kernel
def never(a: wp.array(dtype=float)):  # never
    a[0] = 1.0


def main():
    def there(count, kind=float):
        return wp.array(numpy.arange(count), dtype=kind, device="cuda:0")

    def launch(kernel, *inputs):
        wp.launch(kernel, dim=1000, inputs=inputs, device="cuda:0")

    a, bins = there(1000), there(3, int)
    launch(scaled, a, bins, 900)
    show("scaled", a.numpy())
    launch(counted, a, bins)
    show("counted", bins.numpy())
    launch(looped, a, 5)
    show("looped", a.numpy())


if __name__ == "__main__":
    main()

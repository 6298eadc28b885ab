"""Kernels of Gluon."""

import torch
from shared import show
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copied(out, values, count, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    places = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = places < count
    x = gl.load(values + places, mask=mask)
    gl.store(out + places, x, mask=mask)


@gluon.jit
def branched(out, values, limit, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    places = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(values + places)
    if gl.program_id(0) < limit:
        gl.store(out + places, x * 2.0)
    else:
        gl.store(out + places + 0, x * 3.0)
    if limit > 1000:  # only false
        gl.store(values + places, x)  # missed


@gluon.jit
def repeated(out, values, times, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    places = gl.arange(0, BLOCK, layout=layout)
    total = gl.load(out + places)
    for i in range(times):
        total += gl.load(values + i * BLOCK + places)
        if i == 1000:  # only false
            gl.store(values + places, total)  # missed
    gl.store(out + places, total)


def main():
    values = torch.arange(1024, dtype=torch.float32, device="cuda")
    out = torch.zeros_like(values)
    copied[(8,)](out, values, 1000, BLOCK=128)
    show("copied", out.cpu())
    branched[(8,)](out, values, 3, BLOCK=128)
    show("branched", out.cpu())
    repeated[(1,)](out, values, 8, BLOCK=128)
    show("repeated", out.cpu())


if __name__ == "__main__":
    main()

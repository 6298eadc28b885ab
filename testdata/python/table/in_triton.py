"""Kernels of Triton, in addition to those of kernels.py, whose lines its interpreter tells."""

import torch
import triton
import triton.language as tl
from shared import show


@triton.jit
def softmax(out, values, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(values + row * width + columns, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    top = tl.exp(x)
    y = top / tl.sum(top, axis=0)
    tl.store(out + row * width + columns, y, mask=mask)


@triton.autotune(configs=[triton.Config({"ROWS": 16}), triton.Config({"ROWS": 32})], key=["inner"])
@triton.jit
def matmul(a, b, c, inner, RELU: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, 32)
    total = tl.zeros((ROWS, 32), tl.float32)
    for start in range(0, inner, 32):
        step = start + tl.arange(0, 32)
        x = tl.load(a + rows[:, None] * inner + step[None, :])
        y = tl.load(b + step[:, None] * 32 + columns[None, :])
        total += tl.dot(x, y)
    if RELU:
        total = tl.maximum(total, 0.0)  # excluded
    tl.store(c + rows[:, None] * 32 + columns[None, :], total)


@triton.jit
def persistent(out, tiles, stop, BLOCK: tl.constexpr):
    start = tl.program_id(0)
    for tile in range(start, tiles, tl.num_programs(0)):
        places = tile * BLOCK + tl.arange(0, BLOCK)
        if tile >= stop:  # only false
            tl.store(out + places, -1.0)  # missed
        tl.store(out + places, tile * 1.0)


@triton.jit
def numbered(out, turns, count, BLOCK: tl.constexpr):
    turn = tl.atomic_add(turns, 1)
    places = tl.arange(0, BLOCK)
    while turn >= 4:
        turn -= 4
    tl.atomic_add(out + places, turn * 1.0)
    if count < 0:  # only false
        tl.atomic_add(out + places, 1.0)  # missed


@triton.jit
def clamped(x, LOW: tl.constexpr):
    if LOW is None:
        y = x
    else:
        y = tl.maximum(x, LOW)  # excluded
    return y


@triton.jit
def helped(out, values, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(values + places)
    x = clamped(x, None)
    tl.store(out + places, x * 2.0)


@triton.jit
def never(out):  # never
    tl.store(out, 1.0)


def main():
    values = torch.arange(64 * 100, dtype=torch.float32, device="cuda").reshape(64, 100) / 640
    out = torch.zeros_like(values)
    softmax[(64,)](out, values, 100, BLOCK=128)
    show("softmax", out.cpu())
    a = (torch.arange(64 * 64, device="cuda") % 7).reshape(64, 64).half()
    b = (torch.arange(64 * 32, device="cuda") % 5).reshape(64, 32).half()
    c = torch.zeros(64, 32, device="cuda")
    matmul[lambda chosen: (64 // chosen["ROWS"],)](a, b, c, 64, RELU=False)
    show("matmul", c.cpu())
    out = torch.zeros(40 * 128, device="cuda")
    persistent[(8,)](out, 40, 100, BLOCK=128)
    show("persistent", out.cpu())
    out, turns = torch.zeros(128, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    numbered[(16,)](out, turns, 1, BLOCK=128)
    show("numbered", out.cpu())
    out = torch.zeros(6400, device="cuda")
    helped[(50,)](out, values, BLOCK=128)
    show("helped", out.cpu())


if __name__ == "__main__":
    main()

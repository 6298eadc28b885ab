"""Kernels of Triton whose lines that run are known: from Triton's interpreter, and by hand in lines.json."""

import triton
import triton.language as tl

FACTOR = tl.constexpr(3)


@triton.jit
def chosen(x, LIMIT: tl.constexpr):
    if LIMIT > 10:
        y = x * 2
    else:
        y = x * 3
    return y


@triton.jit
def folded(LIMIT: tl.constexpr):
    zero = 0
    one = zero + 1
    return one


@triton.jit
def through(x, LIMIT: tl.constexpr):
    z = chosen(x, LIMIT)
    return z + folded(LIMIT)


@triton.jit
def straight(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    unused = pid * 0
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    zero = tl.zeros((BLOCK,), tl.float32)
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + zero, mask=mask)


@triton.jit
def rare(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if pid == 1000000:
        seven = 7.0
        x = x + seven
        tl.store(out_ptr + offs, x)
    tl.store(x_ptr + offs, x)


@triton.jit
def sides(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    if pid < n:
        scaled = offs * 3
        tl.store(out_ptr + scaled, 1.0)
    elif pid > 1000:
        tl.atomic_add(out_ptr + offs, 2.0)
    else:
        tl.store(out_ptr + offs, 3.0)


@triton.jit
def inlined(x_ptr, out_ptr, n, BLOCK: tl.constexpr, LIMIT: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = through(x, LIMIT)
    tl.store(out_ptr + offs, y)


@triton.jit
def looped(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n):
        x = tl.load(x_ptr + i * BLOCK + offs)
        acc += x
        if i == 77:
            place = offs * 3
            tl.store(out_ptr + place, acc)
    tl.store(out_ptr + offs, acc)


@triton.jit
def no_rounds(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(n, 0):
        acc += tl.load(x_ptr + i * BLOCK + offs)
    tl.store(out_ptr + offs, acc)


@triton.jit
def waits(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    left = n
    steps = 0
    while left > 1:
        left = left // 2
        steps += 1
    while left > 100:
        left -= 1
        tl.store(out_ptr + left, 5.0)
    tl.store(out_ptr + offs, steps * 1.0)


@triton.jit
def early(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 1.0)


@triton.jit
def all_early(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= 0:
        if n > 0:
            return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 1.0)


@triton.jit
def optional(x_ptr, out_ptr, bias_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offs)
    else:
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + offs)
    HALF: tl.constexpr = BLOCK // 2
    if HALF == FACTOR:
        x += HALF
    tl.store(out_ptr + offs, x)


@triton.jit
def unrolled(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(ROUNDS):
        if i == 1:
            acc += tl.load(x_ptr + i * BLOCK + offs)
        acc += 1.0
    tl.store(out_ptr + offs, acc)


@triton.jit
def nested(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    for i in range(0, n):
        for j in range(0, i):
            if j > 2:
                if pid == 5:
                    tl.store(out_ptr + i * BLOCK + offs, 1.0)
                tl.store(out_ptr + j * BLOCK + offs, 2.0)
            else:
                tl.atomic_add(out_ptr + offs, 1.0)


@triton.jit
def never(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 1.0)


@triton.jit
def merged(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    if pid > 1000:
        tl.store(out_ptr + offs, 2.0)
    else:
        tl.store(out_ptr + offs, 3.0)


@triton.jit
def selected(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    value = 1.0
    if pid > 1000:
        value = 2.0
    tl.store(out_ptr + offs, value)


@triton.jit
def hoisted(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    for i in range(0, n):
        if i > 1000:
            place = pid * BLOCK + offs * 5
            tl.store(out_ptr + place, 1.0)
        tl.atomic_add(out_ptr + offs + i, 1.0)

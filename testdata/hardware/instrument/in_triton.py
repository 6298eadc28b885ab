# A program with a kernel of Triton. A comment at the end of a line tells how many threads run it; `-` is for a line that
# the compiler may leave without code.
import torch
import triton
import triton.language as tl


@triton.jit
def weigh(values, sums, count, steps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # -
    value = tl.load(values + at, mask=at < count, other=0)  # 1024
    if steps < 0:  # -
        value = tl.sqrt(value)  # 0
        tl.store(values + at, value, mask=at < count)  # 0
    for step in range(steps):  # -
        value = value * 0.5 + tl.load(values + (at + step) % count)  # 7168
    tl.store(sums + at, value, mask=at < count)  # 1024


values = torch.arange(1000, dtype=torch.float32, device="cuda")
sums = torch.zeros_like(values)
weigh[(8,)](values, sums, 1000, 7, BLOCK=128, num_warps=4)
expected = values.clone()
places = torch.arange(1000, device="cuda")
for step in range(7):
    expected = expected * 0.5 + values[(places + step) % 1000]
print("done" if torch.allclose(sums, expected) else "the sums are wrong")

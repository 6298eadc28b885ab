# A PyTorch program with an extension: in_torch.py LIBRARY HISTOGRAMS. It compares the results with its own.
import sys

import torch

torch.ops.load_library(sys.argv[1])
host = [index % 13 - 1.5 for index in range(1000)]
values = torch.tensor(host, device="cuda")
bins = torch.zeros(10, dtype=torch.int32, device="cuda")
launches = int(sys.argv[2])
for _ in range(launches):
    torch.ops.rocov_doses.histogram(values, bins)
expected = [0] * 10
for index, value in enumerate(host):
    expected[min(max(int(value), 0), 9)] += index % 3 * launches
print("done" if bins.tolist() == expected else f"{bins.tolist()} instead of {expected}")

"""Functions that torch.compile makes kernels of. All lines of the files with these run."""

import torch
from shared import labelled, show


@torch.compile
def pointwise(x, y):
    return torch.sin(x) * y + 1


@torch.compile
def reduced(x):
    return torch.softmax(x, -1).sum(0)


@torch.compile(dynamic=True)
def dynamic(x):
    return torch.where(x > 0.5, x * 2, x - 1).cumsum(0)


@torch.compile
def normalised(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:]).relu()


@torch.compile
def parted(x):
    y = x * 2
    if y.sum() < 0:
        return y - 5
    return y.max(-1).values


def main():
    x = torch.arange(200 * 300, dtype=torch.float32, device="cuda").reshape(200, 300) / 60000
    for function in (pointwise, reduced, dynamic, normalised, parted):
        inputs = (x, x + 1) if function is pointwise else (x,)
        with labelled(function.__name__):
            show(function.__name__, function(*inputs).cpu())


if __name__ == "__main__":
    main()

"""Kernels of Pallas, which JAX compiles by Mosaic."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from shared import show


def added(x_ref, y_ref, out_ref):
    place = pl.ds(jax.lax.axis_index("block") * 128, 128)
    x = x_ref[place]
    y = y_ref[place]
    out_ref[place] = x + y * 2


def chosen(x_ref, limit_ref, out_ref):
    block = jax.lax.axis_index("block")
    place = pl.ds(block * 128, 128)
    x = x_ref[place]
    out_ref[place] = x * 1.5

    @pl.when(block == 2)
    def _():
        out_ref[place] = x - 7

    @pl.when(limit_ref[0] > 1000)
    def _():
        out_ref[place] = jnp.exp(x)  # missed


def repeated(x_ref, out_ref):
    block = jax.lax.axis_index("block")
    place = pl.ds(block * 128, 128)
    x = x_ref[place]

    def step(i, total):
        return total + x * 2

    total = jax.lax.fori_loop(0, block + 3, step, x)
    out_ref[place] = total


def sided(x_ref, limit_ref, out_ref):
    block = jax.lax.axis_index("block")
    place = pl.ds(block * 128, 128)
    x = x_ref[place]

    def small():
        out_ref[place] = x + 3

    def large():
        out_ref[place] = jnp.exp(x) * 5  # missed

    jax.lax.cond(limit_ref[0] < 1000, small, large)


def main():
    x = jnp.arange(1024, dtype=jnp.float32)
    limit = jnp.full((128,), 7, jnp.int32)
    for kernel, inputs in ((added, (x, x + 1)), (chosen, (x, limit)), (repeated, (x,)), (sided, (x / 1024, limit))):
        call = plgpu.kernel(
            kernel,
            out_type=jax.ShapeDtypeStruct((1024,), jnp.float32),
            grid=(8,),
            grid_names=("block",),
        )
        show(kernel.__name__, jax.jit(call)(*inputs))


if __name__ == "__main__":
    main()

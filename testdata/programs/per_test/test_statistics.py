"""A pytest suite over kernels in a library, which it opens like Python opens extension modules."""

import ctypes
import os

import pytest


@pytest.fixture(scope="session")
def statistics():
    return ctypes.CDLL(os.environ["STATISTICS_LIBRARY"])


@pytest.fixture
def warm(statistics):
    assert statistics.sum_of(10) == 45
    yield
    assert statistics.sum_of(20) == 190


@pytest.mark.parametrize("count", [100, 300])
def test_sum(statistics, count):
    assert statistics.sum_of(count) == count * (count - 1) // 2


class TestHistogram:
    def test_above(self, statistics, warm):
        assert statistics.bin_of_all(100, 0, 15) == 85

    def test_below(self, statistics):
        assert statistics.bin_of_all(100, 7, 0) == 8

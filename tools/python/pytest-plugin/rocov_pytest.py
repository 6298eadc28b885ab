"""Labels what each test counts on GPUs with the test's name, for `rocov report --per-test`.

librocov is taken as it is in the process: `rocov run -- pytest` preloads it. Or ROCOV_LIBRARY names
the file. Without it the plugin does nothing.

With pytest-cov and `plugins = ["rocov"]` in coverage.py's settings, it adds what ran of kernels to the report.
"""

import ctypes
import functools
import os
import sys
import zlib

import pytest

# The labels that librocov takes (src/store/label.rs).
MAX_NAMES = 8
MAX_BYTES = 128
MAX_ENCODED = 255
USUAL = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
# Characters of a name that is too long which go into the label.
CHARACTERS_KEPT = 64


def label(node_id):
    """The label of the test with this node id: its path, classes and name, with / between them.

    What cannot be in a label is shortened as `rocov run --per-test` does it.
    """
    names = node_id.replace("::", "/").split("/")
    more = len(names) - MAX_NAMES
    if more > 0:
        names[: more + 1] = [".".join(names[: more + 1])]
    return "/".join(name if _fits(name) else _short(name) for name in names)


def _fits(name):
    written = name.encode(errors="surrogateescape")
    encoded = sum(1 if byte in USUAL else 3 for byte in written)
    return (
        name not in ("", ".", "..")
        and "\0" not in name
        and len(written) <= MAX_BYTES
        and encoded <= MAX_ENCODED
    )


def _short(name):
    start = "".join(
        letter if letter.isascii() and ord(letter) in USUAL else "_"
        for letter in name[:CHARACTERS_KEPT]
    )
    return f"{start}-{zlib.crc32(name.encode(errors='surrogateescape')):08x}"


@functools.lru_cache(maxsize=None)
def _library():
    """librocov, if it is in the process or named. Not looked for before the first test, as the module
    under test may bring it along."""
    library = ctypes.CDLL(os.environ.get("ROCOV_LIBRARY") or None)
    if not hasattr(library, "rocov_label_push"):
        return None
    library.rocov_label_push.argtypes = [ctypes.c_char_p]
    library.rocov_label_pop.argtypes = []
    return library


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Around all of a test: its fixtures, as far as they are set up for it, and itself."""
    library = _library()
    if library is None:
        yield
        return
    # librocov reports faults on standard error. The end pops also a label that librocov rejects.
    library.rocov_label_push(label(item.nodeid).encode(errors="surrogateescape"))
    yield
    library.rocov_label_pop()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Before pytest captures output: starts pytest under `rocov run` if pytest-cov measures kernels, too."""
    plugin = _plugin_of_coverage(early_config.known_args_namespace)
    if plugin is not None:
        plugin.start_under_rocov(clean=not getattr(early_config.known_args_namespace, "cov_append", False))
    yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtestloop(session):
    """Before pytest-cov reports: the counts of this process are written, and those of all are added."""
    yield
    module = sys.modules.get("rocov._coverage")
    if module is None or not module.is_measuring():
        return
    library = _library()
    if library is not None:
        library.rocov_drain()
    # A process of pytest-xdist leaves that to the first one.
    if not hasattr(session.config, "workerinput"):
        module.add_to_current()


def _plugin_of_coverage(options):
    """The plugin of coverage.py, if pytest-cov will load it."""
    if not getattr(options, "cov_source", None) or getattr(options, "no_cov", False):
        return None
    import coverage

    settings = coverage.Coverage(config_file=options.cov_config)
    if "rocov" not in (settings.get_option("run:plugins") or []):
        return None
    from rocov._coverage import ConfigError, KernelCoverage

    try:
        return KernelCoverage(settings.config.get_plugin_options("rocov"))
    except ConfigError as error:
        # pytest prints this error as one line.
        raise pytest.UsageError(str(error)) from None

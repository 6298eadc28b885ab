"""Counts of GPU code, from within a program: windows, labels and dumps of librocov.

`rocov run -- python program.py` preloads librocov, and these functions call it. Without librocov in the process they
do nothing and return False, so that a program can keep its calls; only `start` loads it.

`coverage_init` is for coverage.py, which imports this module before pytest does: PYTEST_DONT_REWRITE.
"""

import contextlib
import ctypes
import importlib.metadata
import os

__all__ = ["dump", "reset", "scope", "start", "stop", "version"]

# RocovStatus of rocov.h.
_OK = 0
_NOTHING = 1
_LOSS = 2
_INVALID = 3

_loaded = None


class LostCounts(RuntimeWarning):
    """librocov could not read or write some counts. It names them on standard error."""


def _in_process():
    """librocov, if `rocov run` has preloaded it, the program is linked with it, or ROCOV_LIBRARY names it."""
    global _loaded
    if _loaded is None:
        named = os.environ.get("ROCOV_LIBRARY")
        _loaded = _with_types(ctypes.CDLL(named or None))
    return _loaded


def _with_types(library):
    if not hasattr(library, "rocov_version"):
        return None
    library.rocov_version.restype = ctypes.c_char_p
    for name in ("rocov_dump", "rocov_label_push"):
        getattr(library, name).argtypes = [ctypes.c_char_p]
    return library


def _load():
    """The librocov of this package."""
    global _loaded
    for file in importlib.metadata.files("rocov") or []:
        if file.name == "librocov.so":
            # For all: HIP looks for the functions of librocov, too.
            _loaded = _with_types(ctypes.CDLL(str(file.locate()), mode=ctypes.RTLD_GLOBAL))
            return _loaded
    raise OSError(
        "librocov is not in this process, and not in the package rocov: start Python by "
        "`rocov run -- python`, or set ROCOV_LIBRARY to the path of librocov.so"
    )


def _call(name, *arguments):
    """Whether librocov had something to do."""
    library = _in_process()
    if library is None:
        return False
    status = getattr(library, name)(*arguments)
    if status == _INVALID:
        raise ValueError(f"{name} rejects {arguments[0]!r}; see standard error")
    if status == _LOSS:
        import warnings

        warnings.warn(f"{name} has lost counts; see standard error", LostCounts, stacklevel=3)
    elif status not in (_OK, _NOTHING):
        raise RuntimeError(f"{name} has failed with status {status}; see standard error")
    return status == _OK


def _bytes(label):
    return None if label is None else os.fsencode(label)


def version():
    """The version of the librocov in this process, such as "0.1.0", or None without one."""
    library = _in_process()
    return None if library is None else library.rocov_version().decode()


def start():
    """Opens a window: from now on rocov counts inside of windows only, and drops what was counted before.

    Loads librocov if it is not in the process. GPU code that is unloaded before the exit of such a process is not
    counted: prefer `rocov run`.
    """
    if _in_process() is None:
        _load()
    return _call("rocov_start")


def stop():
    """Closes the window, writes its counts, and leaves out later ones until `start`."""
    return _call("rocov_stop")


def dump(label=None):
    """Writes the counts since the last dump as a profile of `label`, by default dump-1, dump-2 and so on."""
    return _call("rocov_dump", _bytes(label))


def reset():
    """Drops the counts since they were last written."""
    return _call("rocov_reset")


@contextlib.contextmanager
def scope(name):
    """Gives the counts of a block, or of each call of a function, the label `name`, within the labels around it.

    For `with rocov.scope("forward"):` and `@rocov.scope("forward")`. Waits for kernels at both ends.
    """
    # librocov wants an end for a label that it rejects, too.
    try:
        _call("rocov_label_push", _bytes(name))
        yield
    finally:
        _call("rocov_label_pop")


def coverage_init(reg, options):
    """Registers with coverage.py, for `plugins = ["rocov"]` in its settings."""
    from ._coverage import KernelCoverage

    plugin = KernelCoverage(options)
    reg.add_configurer(plugin)
    reg.add_file_tracer(plugin)

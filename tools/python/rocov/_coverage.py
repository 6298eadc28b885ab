"""The plugin of coverage.py that adds what ran of kernels on a GPU.

coverage.py measures the source of a kernel as any other: the lines of the host's code run, and those of the kernel are
missed. This plugin adds the lines of kernels that `rocov report` has, by coverage.py's public interface, to the files that
coverage.py has in its data. So `source`, `omit` and `include` hold for them, too.
"""

import atexit
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize

import coverage
import coverage.python
from coverage.exceptions import ConfigError
from coverage.plugin import CoveragePlugin, FileTracer

from ._truth import SourceKernels

# As coverage.py names it in its data: the module of `plugins`, and the class.
NAME = "rocov.KernelCoverage"

# The directory of the counts of `coverage run` and `pytest --cov`. Those of `rocov run` are in its own.
OWN_DIRECTORY = ".rocov-coverage"
OF_RUN = "rocov-data"

# How `rocov report` names a source of code without line numbers.
WITHOUT_LINES = "without-lines-"

# The directory of the `rocov run` that a process is under.
DATA = "ROCOV_DATA"

NO_COMMAND = (
    "rocov: kernels are reported as missed: there is no command rocov next to this Python or on the PATH: install rocov's wheel "
    "into this environment"
)

# What coverage.py's command does that reads data.
_REPORTS = frozenset(["report", "html", "xml", "json", "lcov", "annotate"])


class KernelCoverage(CoveragePlugin):
    """Shows kernels in coverage.py's reports."""

    # The one that coverage.py in this process uses.
    active = None

    def __init__(self, options):
        self._data = _directories(options.get("data"))
        self._run = options.get("run", "auto")
        unknown = sorted(set(options) - {"data", "run"})
        wrong = None
        if self._run not in ("auto", "always", "never"):
            wrong = f"run is {self._run!r}: write auto, always or never"
        elif unknown:
            wrong = f"has the setting {unknown[0]!r}: there are data and run"
        elif self._data is None:
            wrong = f"data is {options['data']!r}: write the directory, or a list of directories"
        elif self._data and self._run == "always":
            wrong = "has run = 'always' and data, which names the counts of another run: leave out one of them"
        if wrong:
            raise ConfigError(f"[tool.coverage.rocov] {wrong}")
        self._config = None
        self._missing = set()

    # Of a configurer.

    def configure(self, config):
        """coverage.py calls this when it has read its settings, and before it measures or reports."""
        self._config = config
        KernelCoverage.active = self
        command = _command_of_coverage()
        if command == "run":
            self.start_under_rocov(clean=not _setting(config, "run:parallel") and not _is_appending(sys.argv[2:]))
        if command in _REPORTS:
            self.join_file()
        if command == "combine":
            atexit.register(self._join_combined, _changed(self._path()))
        if command == "erase":
            self._clean()
        # Only the C tracer takes plugins.
        if _setting(config, "run:core") is None and sys.version_info >= (3, 12):
            try:
                config.set_option("run:core", "ctrace")
            except ConfigError:
                pass  # an older coverage.py, which has this tracer only

    def start_under_rocov(self, clean=True):
        """Starts this program anew under `rocov run`, if it is not under it and there is a GPU."""
        directory = os.path.abspath(OWN_DIRECTORY)
        if os.environ.get(DATA) == directory:
            return
        # Also if this run adds no counts, or another directory has them: those of an earlier one are not its own.
        if clean:
            self._clean()
        if DATA in os.environ or self._data:
            return
        # An earlier run has made them: they are not the counts of this one, even if no kernel runs.
        if os.path.isdir(OF_RUN):
            os.makedirs(directory, exist_ok=True)
        if self._run == "never" or (self._run == "auto" and not os.path.exists("/dev/nvidiactl")):
            return
        command = _rocov()
        if command is None:
            print(NO_COMMAND, file=sys.stderr)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(
            command,
            [command, "run", "--instrument", "-o", directory, "--", sys.executable] + _arguments(),
        )

    def _path(self):
        """The data file. None if data are only in memory."""
        return _setting(self._config, "run:data_file")

    def _join_combined(self, before):
        """Adds the lines to what `coverage combine` has written, which removes the files that it has read."""
        if _changed(self._path()) != before:
            self.join_file()
            if "--keep" not in sys.argv:
                self._clean()

    def _clean(self):
        """Removes the counts of earlier runs, as coverage.py removes its own."""
        command = _rocov()
        if command and os.path.isdir(OWN_DIRECTORY):
            subprocess.run([command, "clean", OWN_DIRECTORY], stdout=subprocess.DEVNULL, check=False)

    # Of a file tracer.

    def file_tracer(self, filename):
        return KernelTracer(filename) if _kernels(filename).functions else None

    def find_executable_files(self, src_dir):
        """The files with kernels, which coverage.py looks for if a program has not imported them."""
        for folder, folders, names in os.walk(src_dir):
            if folder != src_dir and "__init__.py" not in names:
                folders[:] = []
                continue
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".py") and _kernels(path).functions:
                    yield path

    def file_reporter(self, filename):
        return KernelReporter(filename, self._config)

    # What it adds.

    def directories(self):
        """The directories with counts."""
        if self._data:
            for path in self._data:
                if not os.path.isdir(path) and path not in self._missing:
                    self._missing.add(path)
                    print(
                        f"rocov: [tool.coverage.rocov] data names {path}, which does not exist: run the program "
                        f"under `rocov run --instrument -o {path}`",
                        file=sys.stderr,
                    )
            named = self._data
        elif DATA in os.environ:
            named = [os.environ[DATA]]
        else:
            named = [OWN_DIRECTORY if os.path.isdir(OWN_DIRECTORY) else OF_RUN]
        return [path for path in named if os.path.isdir(path)]

    def join_file(self):
        """Adds the lines of kernels to the data file."""
        path = self._path()
        if not path or not os.path.exists(path) or not self.directories():
            return
        data = coverage.CoverageData(basename=path)
        data.read()
        self.join(data)
        if hasattr(data, "close"):  # since 7
            data.close()

    def join(self, data, more=()):
        """Adds the lines of kernels to data. `more` are other data, which has more files."""
        directories = self.directories()
        if not directories:
            return
        # The file of each source, as data has it, and whether its tracer is this plugin.
        known = {}
        contexts = set()
        for each in [data, *more]:
            contexts |= each.measured_contexts()
            for name in each.measured_files():
                known.setdefault(os.path.realpath(name), (name, each.file_tracer(name)))
        named = _Contexts(contexts, _setting(self._config, "run:context") or "")
        is_branch = _setting(self._config, "run:branch") or data.has_arcs()
        counts = _counts(directories, any(contexts))
        _name_kernels_without_lines(counts, known)
        for label, files in counts.items():
            lines, arcs = self._ran(files, known, is_branch)
            if not lines:
                continue
            data.set_context(named.of(label))
            data.add_arcs(arcs) if is_branch else data.add_lines(lines)
            tracers = {name: NAME for name in lines if not data.file_tracer(name)}
            data.add_file_tracers({name: tracer for name, tracer in tracers.items() if _tracer(known, name)})
        data.set_context(None)

    def _ran(self, files, known, is_branch):
        """The lines and arcs that ran, by the names that data has of files."""
        kernels = {path: _kernels(path) for path in known}
        called = set()
        while True:
            walks = {
                path: kernels[path].ran(files.get(path, {}), called, path)
                for path in kernels
                if kernels[path].functions and (path in files or called)
            }
            now = {name for walk in walks.values() for name in walk.called}
            if now <= called:
                break
            called |= now
        lines, arcs = {}, {}
        for path, walk in walks.items():
            if walk.lines:
                name = known[path][0]
                lines[name] = walk.lines
                if is_branch:
                    possible = KernelReporter(path, self._config).all_arcs()
                    arcs[name] = walk.arcs(possible, kernels[path].functions)
        return lines, arcs


def _name_kernels_without_lines(counts, known):
    """Prints a line if code without line numbers ran, and kernels of files that coverage.py has are without counts."""
    ran = any(
        os.path.basename(path).startswith(WITHOUT_LINES) and any(lines.values())
        for files in counts.values()
        for path, lines in files.items()
    )
    counted = {path for files in counts.values() for path, lines in files.items() if any(lines.values())}
    others = [os.path.relpath(path) for path in sorted(known) if path not in counted and _kernels(path).functions]
    if ran and others:
        print(
            f"rocov: kernels without line numbers ran, and those of {', '.join(others)} may be among them: with Numba, write "
            "@cuda.jit(lineinfo=True)",
            file=sys.stderr,
        )


def is_measuring():
    """Whether coverage.py measures this process, with the plugin."""
    return coverage.Coverage.current() is not None and KernelCoverage.active is not None


def add_to_current():
    """Adds the lines of kernels to what coverage.py measures, to the data of this process."""
    measured = coverage.Coverage.current()
    data = measured.get_data()
    others = []
    for path in glob.glob(glob.escape(measured.get_option("run:data_file")) + ".*"):
        if os.path.realpath(path) != os.path.realpath(data.data_filename()):
            other = coverage.CoverageData(basename=path)
            try:
                other.read()
            except coverage.CoverageException:
                continue  # coverage.py names it when it combines the files
            others.append(other)
    KernelCoverage.active.join(data, others)


class KernelTracer(FileTracer):
    """Has coverage.py measure a file with kernels as it is."""

    def __init__(self, filename):
        self._filename = filename

    def source_filename(self):
        return self._filename


class KernelReporter(coverage.python.PythonFileReporter):
    """Reports a Python file without the sides that kernels were not compiled with."""

    def __init__(self, filename, config):
        self._rules = _Rules(config)
        super().__init__(filename, self._rules)
        self._executed = None

    def _executed_lines(self):
        if self._executed is None:
            path = self._rules.setting("run:data_file")
            self._executed = set()
            if path and os.path.exists(path):
                data = coverage.CoverageData(basename=path)
                data.read()
                for name in data.measured_files():
                    if os.path.realpath(name) == os.path.realpath(self.filename):
                        self._executed = set(self.parser.translate_lines(data.lines(name) or []))
        return self._executed

    def all_arcs(self):
        return self.parser.arcs()

    def excluded_lines(self):
        return super().excluded_lines() | self._undecided()

    def _undecided(self):
        return _kernels(self.filename).undecided(self._executed_lines()) & super().lines()

    def lines(self):
        return super().lines() - self._undecided()

    def no_branch_lines(self):
        return super().no_branch_lines() | _kernels(self.filename).known_branches(self._executed_lines())

    def arcs(self):
        gone = self._undecided()
        return {arc for arc in super().arcs() if arc[0] not in gone and arc[1] not in gone}

    def exit_counts(self):
        gone = self._undecided()
        counts = {}
        for start, _ in self.arcs():
            if start > 0:
                counts[start] = counts.get(start, 0) + 1
        return {line: min(count, counts.get(line, 0)) for line, count in super().exit_counts().items() if line not in gone}


class _Rules:
    """What a reporter of Python files asks coverage.py's object for: its settings."""

    def __init__(self, given):
        self._given = given
        self.config = getattr(given, "config", given)

    def setting(self, name):
        return _setting(self._given, name)

    def _exclude_regex(self, which):
        patterns = getattr(self.config, which + "_list")
        return "|".join(f"(?:{pattern})" for pattern in patterns)


def _setting(config, name):
    try:
        return config.get_option(name)
    except ConfigError:
        return None


def _command_of_coverage():
    """What coverage.py's own command was asked to do; None in other programs."""
    if len(sys.argv) < 2:
        return None
    program = os.path.normpath(sys.argv[0]).split(os.sep)
    is_command = re.fullmatch(r"coverage(-?3(\.\d+)?)?", program[-1])
    return sys.argv[1] if is_command or program[-2:] == ["coverage", "__main__.py"] else None


def _is_appending(arguments):
    """Whether `coverage run` with these arguments adds to its data. Those behind the program, or `-m`, are not its own."""
    with_value = re.compile(r"--(concurrency|context|data-file|debug|include|omit|rcfile|save-signal|source)$")
    is_value = False
    for argument in arguments:
        if is_value:
            is_value = False
        elif argument.startswith("--") and len(argument) > 2:
            # coverage.py accepts abbreviations.
            if "--append".startswith(argument):
                return True
            is_value = bool(with_value.match(argument))
        elif argument.startswith("-") and argument != "-":
            if "a" in argument.partition("m")[0]:
                return True
            if "m" in argument:
                return False
        else:
            return False
    return False


def _directories(named):
    """The directories that the setting `data` names: None if it is no text or list of texts."""
    if isinstance(named, str):
        return [path for path in named.split(os.pathsep) if path]
    named = [] if named is None else named
    return list(named) if isinstance(named, (list, tuple)) and all(isinstance(path, str) for path in named) else None


def _changed(path):
    """When a file was changed."""
    return os.stat(path).st_mtime_ns if path and os.path.exists(path) else None


def _arguments():
    """The command line of this process, behind the interpreter."""
    if sys.version_info >= (3, 10):
        return sys.orig_argv[1:]
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(argument) for argument in file.read().split(b"\0")[1:-1]]


def _rocov():
    """The command, of this environment if it has one."""
    beside = os.path.join(os.path.dirname(sys.executable), "rocov")
    return beside if os.access(beside, os.X_OK) else shutil.which("rocov")


_found = {}


def _kernels(path):
    if path not in _found:
        text = ""
        if path.endswith(".py"):
            try:
                with tokenize.open(path) as file:
                    text = file.read()
            except (OSError, SyntaxError, UnicodeDecodeError):
                pass  # coverage.py names it
        _found[path] = SourceKernels(text)
    return _found[path]


def _tracer(known, name):
    """Whether coverage.py has this plugin as the tracer of a file, or knows none yet."""
    return any(tracer == NAME for path, tracer in known.values() if path == name)


def _counts(directories, by_test):
    """The counts of lines: by label (None for all that has none), by file, by line."""
    command = _rocov()
    if command is None:
        print(NO_COMMAND, file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        lcov, details = (os.path.join(folder, name) for name in ("lcov", "json"))
        # Programs would not show that only some of the threads of each ran a line.
        unit = "--per=thread"
        arguments = [command, "report", *directories, unit, "--lcov", lcov, "--json", details, "--summary-only"]
        arguments += ["--per-test"] if by_test else []
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        ended = subprocess.run(
            arguments,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            env=environment,
            universal_newlines=True,
        )
        if not os.path.exists(lcov):
            if "no profiles" not in ended.stderr:
                sys.stderr.write(ended.stderr)
            return {}
        _name_edited(ended.stderr)
        labels = {}
        if by_test:
            with open(details, encoding="utf-8") as file:
                tests = json.load(file)["rocov"].get("tests", [])
            labels = _names_in_lcov([test["name"] for test in tests])
        with open(lcov, encoding="utf-8") as file:
            return parse_lcov(file, labels)


def _name_edited(messages):
    """Prints a line for each source that was edited after it ran, by what `rocov report` prints."""
    for line in messages.split("\n"):
        found = re.match(r"rocov: (.*): stale: (.*?\))", line)
        if found:
            path, change = found.groups()
            print(f"rocov: {os.path.relpath(path)}: {change}: run the tests again", file=sys.stderr)
        elif "sources have changed since" in line:
            print(line, file=sys.stderr)


def _names_in_lcov(labels):
    """The labels, by the names that LCOV has of them: letters, digits and underscores."""
    import zlib

    def plain(label):
        return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in label)

    names = {}
    for label in labels:
        name = plain(label)
        if sum(1 for other in labels if plain(other) == name) > 1:
            name += f"_{zlib.crc32(label.encode()):08x}"
        names[name] = label
    return names


def parse_lcov(lines, labels):
    """Reads LCOV: by label, by file, the counts of lines."""
    found, label, file = {}, None, None
    for line in lines:
        kind, _, value = line.rstrip("\n").partition(":")
        if kind == "TN":
            label = labels.get(value)
        elif kind == "SF":
            file = found.setdefault(label, {}).setdefault(os.path.realpath(value), {})
        elif kind == "DA":
            number, count = value.split(",")[:2]
            file[int(number)] = file.get(int(number), 0) + int(count)
        elif kind == "end_of_record":
            label = None
    return found


class _Contexts:
    """The contexts of coverage.py's data, by rocov's labels."""

    def __init__(self, contexts, static):
        self._static = static
        self._by_label = {}
        label = _label_of_test()
        for context in sorted(contexts):
            # pytest-cov has the phase of the test after its node id. Another context may be before it.
            node, _, phase = context.rpartition("|")
            if phase == "run":
                self._by_label[label(node.split("|")[-1])] = context
        self._has_tests = bool(self._by_label)
        self._others = sorted(contexts)

    def of(self, label):
        """The context for the counts of a label."""
        # rocov_dump has numbers for counts that no test has.
        if not label or re.fullmatch(r"dump-\d+", label):
            return self._static
        names = label.split("/")
        for end in range(len(names), 0, -1):
            context = self._by_label.get("/".join(names[:end]))
            if context is not None:
                return context
        file, is_test, names = label.partition(".py/")
        if is_test and not self._has_tests:
            # dynamic_context = test_function: the module, the class and the function.
            name = ".".join([file.split("/")[-1]] + names.split("[")[0].split("/"))
            for context in self._others:
                dynamic = context.split("|")[-1]
                if dynamic == name or dynamic.endswith("." + name):
                    return context
        node = f"{file}.py::{names.replace('/', '::')}" if is_test else label
        node = f"{node}|run" if is_test and self._has_tests else node
        return f"{self._static}|{node}" if self._static else node


def _label_of_test():
    """The function that makes labels of pytest's node ids."""
    try:
        from rocov_pytest import label
    except ImportError:
        return lambda node: node.replace("::", "/")
    return label

"""Which statements of kernels in a Python source ran, from the counts of lines that have machine code.

A compiler moves, folds and inlines code, so many statements of a kernel have no count. Their syntax tree decides:

- Control that reaches one statement of a straight run reaches all of them. Runs end where a `return`, `break` or
  `continue` may leave.
- A count of a store or an atomic operation outweighs other counts of its run: the compiler cannot move it out of a
  branch.
- A condition over `constexpr` parameters and globals is decided when a kernel is compiled. The other side has no code.
- A function that a kernel calls starts when the call runs. A parameter for which the call gives a literal has this value, and
  so has a local variable that is only assigned one: without code of its own, the other side of a condition over it did not run.
- A branch without any machine code is taken to have run if its condition was reached. If it has a store or an atomic
  operation, the compiler has proved that it never runs.
"""

import ast
import itertools
import os
import re

# The decorators of kernels and of functions that run on a GPU, by the names that they are imported from.
_DECORATORS = frozenset(
    [
        "triton.jit",
        "triton.runtime.jit",
        "triton.runtime.jit.jit",
        "triton.experimental.gluon.jit",
        "triton.experimental.gluon._runtime.jit",
        "numba.cuda.jit",
        "numba_cuda_mlir.cuda.jit",
        "cuda.jit",
        "cupyx.jit.rawkernel",
        "warp.kernel",
        "warp.func",
    ]
)
# Most sources have no such decorator, and need no parsing.
_MAY_BE_KERNEL = re.compile(r"^[ \t]*@[\w.]*(?:jit|kernel|func)\b|\b(?:jit|kernel|func)\(", re.MULTILINE)

# The starts of the names of operations that a compiler cannot move out of a branch.
_ANCHORS = ("store", "atomic", "device_print", "device_assert", "debug_barrier", "barrier", "syncthreads")

# The arguments that a function is looked at with, at most.
_MOST_CALLS = 100

_JUMPS = (ast.Return, ast.Break, ast.Continue, ast.Raise)
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Attributes whose values a compiler of kernels knows.
_KNOWN_ATTRIBUTES = frozenset(["dtype", "shape", "type", "element_ty", "ndim", "numel"])
# Calls whose results a compiler of kernels knows if it knows the arguments.
_KNOWN_CALLS = frozenset(["constexpr", "isinstance", "len", "hasattr", "cdiv", "is_hip", "is_cuda", "bool", "int"])


class SourceKernels:
    """The functions of a Python source that run on a GPU."""

    def __init__(self, text):
        self.functions = []
        self._globals = {}
        self._imports = {}
        # The functions that calls compile, by the names of the results.
        self._aliases = {}
        if not _MAY_BE_KERNEL.search(text):
            return
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return
        names = self._imports = _imports(tree)
        self._globals = _constants(tree)
        # Functions that are compiled by a call: `kernel = triton.jit(function)`.
        given = set()
        for node in ast.walk(tree):
            function = _compiled(node, names)
            if function:
                given.add(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._aliases[node.targets[0].id] = _compiled(node.value, names)
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                if node.name in given or any(_is_kernel(decorator, names) for decorator in node.decorator_list):
                    self.functions.append(Function(node))
        self.functions.sort(key=lambda function: function.node.lineno)

    def ran(self, counts, called=(), path=""):
        """The lines and arcs that ran, and the full names of functions of other sources that these call.

        `counts` has the count of each line that has machine code. `called` are full names of functions that kernels of
        other sources call, and `path` is that of this source.
        """
        walk = _Walk(counts)
        by_name = {function.name: function for function in self.functions}
        reached = [
            function
            for function in self.functions
            if function.is_reached(counts) or called and function.is_named(called, path)
        ]
        # Calls give helpers their arguments. One that is reached by no call that is known has none.
        helpers = {self._aliases.get(name) or name for function in self.functions for name in function.callees()}
        seen, walked = set(), {}
        for root in sorted(reached, key=lambda function: function.name in helpers):
            if root.name in walked and not (called and root.is_named(called, path)):
                continue
            waiting = [(root, {})]
            while waiting:
                function, arguments = waiting.pop()
                # A recursion may have other arguments without end.
                if walked.get(function.name, 0) > _MOST_CALLS:
                    arguments = {}
                key = (function.name, repr(sorted(arguments.items())))
                if key in seen:
                    continue
                seen.add(key)
                walked[function.name] = walked.get(function.name, 0) + 1
                values = {**self._globals, **arguments}
                values.update(function.fixed(values))
                for call in walk.function(function, values):
                    names = _full_names(call.func, self._imports)
                    name = getattr(call.func, "id", None)
                    here = by_name.get(name) or by_name.get(self._aliases.get(name))
                    if here is not None:
                        waiting.append((here, here.arguments(call, values)))
                    else:
                        walk.called.update(names)
        return walk

    def undecided(self, executed):
        """The lines of sides that no specialisation that ran was compiled with, by the lines that ran."""
        lines = set()
        for function in self.functions:
            function.undecided(function.node.body, executed, lines)
        return lines

    def known_branches(self, executed):
        """The lines with conditions that the compiler decides. Both sides need not run."""
        lines = set()
        for function in self.functions:
            for node in ast.walk(function.node):
                if isinstance(node, (ast.If, ast.While)) and node.lineno in executed:
                    if function.is_known(node.test):
                        lines.add(node.lineno)
                if isinstance(node, ast.For) and _last_name(node.iter) == "static_range":
                    lines.add(node.lineno)
        return lines


class Function:
    """A function that runs on a GPU."""

    def __init__(self, node):
        self.node = node
        self.name = node.name
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        self._parameters = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        self._known = {argument.arg for argument in arguments if _is_constexpr(argument.annotation)}
        self._local = {argument.arg for argument in arguments} - self._known
        for part in ast.walk(node):
            if isinstance(part, ast.AnnAssign) and _is_constexpr(part.annotation):
                self._known.add(getattr(part.target, "id", None))
            if isinstance(part, ast.For) and _last_name(part.iter) == "static_range":
                self._known.add(getattr(part.target, "id", None))
        stores = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                stores[part.id] = stores.get(part.id, 0) + 1
                if part.id not in self._known:
                    self._local.add(part.id)
        # Parameters that keep the values of the call, and the defaults of those that it may leave out.
        self._kept = {argument.arg for argument in arguments if argument.arg not in stores}
        defaults = [*zip(reversed(self._parameters), reversed(node.args.defaults))]
        defaults += zip((argument.arg for argument in node.args.kwonlyargs), node.args.kw_defaults)
        self._defaults = {name: value for name, value in defaults if value is not None}
        # The variables that one statement assigns a value, in order.
        self._assigned = []
        for part in ast.walk(node):
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None and len(targets) == 1:
                if isinstance(targets[0], ast.Name) and stores[targets[0].id] == 1:
                    self._assigned.append((part.lineno, targets[0].id, part.value))
        self._assigned.sort(key=lambda assigned: assigned[0])

    def callees(self):
        """The names that it calls."""
        return {part.func.id for part in ast.walk(self.node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}

    def fixed(self, values):
        """The variables that have one value only, if `values` are those of globals and parameters."""
        fixed = {}
        for _, name, node in self._assigned:
            if name not in self._parameters:
                try:
                    fixed[name] = _evaluate(node, {**values, **fixed})
                except (ValueError, TypeError, ArithmeticError):
                    pass
        return fixed

    def is_named(self, names, path):
        """Whether it is one of these full names, if its source has this path."""
        folder, file = os.path.split(path)
        module = os.path.splitext(file)[0]
        module = os.path.basename(folder) if module == "__init__" else module
        ends = [name.split(".")[-2:] for name in names]
        return [module, self.name] in ends

    def is_reached(self, counts):
        """Whether a line of its body ran."""
        first = self.node.body[0].lineno
        return any(counts.get(line, 0) > 0 for line in range(first, self.node.end_lineno + 1))

    def arguments(self, call, values):
        """The parameters whose values a call gives by literals and names of `values`, or leaves to literals."""
        plain = list(itertools.takewhile(lambda argument: not isinstance(argument, ast.Starred), call.args))
        given = dict(zip(self._parameters, plain))
        given.update((keyword.arg, keyword.value) for keyword in call.keywords)
        is_whole = len(plain) == len(call.args) and None not in given
        known = {}
        for name, node in {**(self._defaults if is_whole else {}), **given}.items():
            if name in self._known or name in self._kept:
                try:
                    known[name] = _evaluate(node, values if name in given else {})
                except (ValueError, TypeError, ArithmeticError):
                    pass
        return known

    def is_known(self, node):
        """Whether the compiler knows the value of an expression."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id in self._known or node.id not in self._local
        if isinstance(node, ast.Attribute):
            return node.attr in _KNOWN_ATTRIBUTES or self.is_known(node.value)
        if isinstance(node, ast.Compare):
            # A compiler of kernels compares an argument that is None by its type.
            if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
                return True
            return all(self.is_known(part) for part in [node.left] + node.comparators)
        if isinstance(node, ast.BoolOp):
            return all(self.is_known(part) for part in node.values)
        if isinstance(node, ast.UnaryOp):
            return self.is_known(node.operand)
        if isinstance(node, ast.BinOp):
            return self.is_known(node.left) and self.is_known(node.right)
        if isinstance(node, ast.Subscript):
            return self.is_known(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(self.is_known(part) for part in node.elts)
        if isinstance(node, ast.Call):
            arguments = node.args + [keyword.value for keyword in node.keywords]
            return _last_name(node) in _KNOWN_CALLS and all(self.is_known(part) for part in arguments)
        return False

    def undecided(self, suite, executed, lines):
        for number, statement in enumerate(suite):
            sides = _suites(statement)
            if isinstance(statement, ast.If) and statement.lineno in executed and self.is_known(statement.test):
                ran = [side for side in sides if side[0].lineno in executed]
                for side in sides:
                    if side not in ran:
                        lines.update(_all_lines(side))
                rest = suite[number + 1 :]
                if rest and rest[0].lineno not in executed and any(_leaves(side) for side in ran):
                    lines.update(_all_lines(rest))
                    rest = []
            for side in sides:
                self.undecided(side, executed, lines)


class _Walk:
    """Goes through functions that ran, and finds the lines and arcs."""

    def __init__(self, counts):
        self._counts = counts
        self.lines = set()
        # The arcs of lines with several: the first line of the body, and whether the other way was taken.
        self.taken = {}
        self.called = set()

    def function(self, function, values):
        self._function = function
        self._values = values
        self._calls = []
        self._suite(function.node.body, True)
        return self._calls

    def _suite(self, suite, entered, after=None):
        """Marks what ran of a suite that control enters. Returns whether a jump left it.

        `after` is whether what comes after the suite ran, as far as it is known.
        """
        segments = _segments(suite)
        states = [self._own_run(segment) for segment in segments]
        states[0] = states[0] or entered
        for number in range(len(states) - 1, 0, -1):
            if states[number]:
                states[number - 1] = True
        left = False
        for number, segment in enumerate(segments):
            if number > 0 and not states[number]:
                # Only a jump that ran keeps control from the next segment.
                if states[number - 1] and not left:
                    states[number] = True
                elif states[number] is None and left == "maybe":
                    states[number] = True
            if not states[number]:
                return True
            follows = states[number + 1] if number + 1 < len(states) else after
            for statement in segment:
                left = self._statement(statement, segment, follows)
        return left

    def _statement(self, statement, segment, follows):
        """Marks a statement that ran. Returns whether it leaves the suite: True, False or "maybe"."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return False  # a docstring, which is no statement for coverage.py either
        self.lines.add(statement.lineno)
        for part in _expressions(statement):
            self._calls.extend(_calls(part))
        if isinstance(statement, _JUMPS):
            return True
        if isinstance(statement, ast.If):
            return self._if(statement, segment, follows)
        if isinstance(statement, _LOOPS):
            body = self._own(statement.body)
            runs = body is not False and not (body is None and _has_anchor(statement.body))
            if isinstance(statement, ast.While) and self._value(statement.test) is False:
                runs = False
            left = self._suite(statement.body, True) if runs else False
            if statement.orelse and self._own(statement.orelse) is not False:
                self._suite(statement.orelse, True)
            self._take(statement, runs, follows is not False)
            may_return = left and any(isinstance(part, ast.Return) for part in ast.walk(statement))
            return "maybe" if may_return else False
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self._suite(statement.body, True, follows)
        return False

    def _if(self, statement, segment, follows):
        body = self._own(statement.body)
        other = self._own(statement.orelse) if statement.orelse else None
        value = self._value(statement.test)
        if value is not None or self._function.is_known(statement.test):
            # One side was compiled: code tells which. Several specialisations may have one each.
            then = body is True or value is True
            otherwise = other is True or value is False
        else:
            # The compiler may make one store of those of two sides, with the line of one.
            then = body is not False and not (body is None and not other and _has_anchor(statement.body))
            if statement.orelse:
                otherwise = other is not False and not (other is None and not body and _has_anchor(statement.orelse))
            else:
                otherwise = self._passes_by(statement, segment, then, follows)
        left = [False]
        if then:
            left.append(self._suite(statement.body, True, follows))
        if statement.orelse and otherwise:
            left.append(self._suite(statement.orelse, True, follows))
        self._take(statement, then, otherwise)
        ran = left[1:]
        if ran and all(way is True for way in ran) and (otherwise is False or len(ran) == 2):
            return True
        return "maybe" if any(ran) else False

    def _take(self, statement, enters, passes):
        """Notes the ways that a condition took, by any of the calls of its function."""
        _, entered, passed = self.taken.get(statement.lineno, (None, False, False))
        self.taken[statement.lineno] = (statement.body[0].lineno, entered or enters, passed or passes)

    def _passes_by(self, statement, segment, then, follows):
        """Whether a condition without another side was false for some thread."""
        if not then:
            return True
        if follows is False or _leaves(statement.body) and follows is not None:
            return follows
        reached = [self._count(part) for part in segment if not isinstance(part, _LOOPS)]
        reached = max((count for count in reached if count is not None), default=None)
        inside = [self._count(part) for part in _segments(statement.body)[0] if not isinstance(part, _LOOPS)]
        inside = [count for count in inside if count]
        return reached is None or not inside or reached > min(inside)

    def _own(self, suite):
        """Whether code of a suite ran, as far as counts tell."""
        states = [self._own_run(segment) for segment in _segments(suite)]
        told = [state for state in states if state is not None]
        return any(told) if told else None

    def _own_run(self, segment):
        """Whether code of a straight run ran, as far as counts tell."""
        anchored, other = [], []
        for statement in segment:
            count = self._count(statement)
            if count is not None:
                (anchored if _is_anchored(statement) else other).append(count > 0)
            for side in _suites(statement):
                state = self._own(side)
                if state is not None:
                    (anchored if state else other).append(state)
        told = anchored or other
        return any(told) if told else None

    def _count(self, statement):
        """The count of the lines of a simple statement, or of the head of a compound one."""
        suites = _suites(statement)
        if suites:
            heads = _expressions(statement)
            last = max((part.end_lineno for part in heads), default=statement.lineno)
        else:
            last = statement.end_lineno
        counts = [self._counts[line] for line in range(statement.lineno, last + 1) if line in self._counts]
        return max(counts) if counts else None

    def _value(self, node):
        """The truth of a condition, if it is known from literals. Otherwise None."""
        try:
            return bool(_evaluate(node, self._values))
        except (ValueError, TypeError, ArithmeticError):
            return None

    def arcs(self, possible, functions):
        """The arcs that ran, of the `possible` ones of the source."""
        targets = {}
        for start, end in possible:
            targets.setdefault(start, set()).add(end)
        arcs = set()
        for start, ends in targets.items():
            if start < 0:
                arcs.update((start, end) for end in ends if end in self.lines)
            elif start in self.lines:
                ran = {end for end in ends if end < 0 or end in self.lines}
                if start in self.taken and len(ends) > 1:
                    inside, enters, passes = self.taken[start]
                    ran = {end for end in ends if (enters if end == inside else passes)}
                arcs.update((start, end) for end in ran)
        ends = {line for arc in arcs for line in arc}
        arcs.update((line, line) for line in self.lines - ends)
        bodies = [range(function.node.body[0].lineno, function.node.end_lineno + 1) for function in functions]
        return {arc for arc in arcs if any(arc[0] in body or arc[1] in body for body in bodies)}


def _segments(suite):
    """The straight runs of a suite: control that reaches the first statement of one reaches all of it."""
    segments = [[]]
    for statement in suite:
        segments[-1].append(statement)
        if _may_leave(statement):
            segments.append([])
    return segments if segments[-1] else segments[:-1]


def _may_leave(statement, in_loop=False):
    """Whether a jump in a statement may leave the suite that it is in."""
    if isinstance(statement, (ast.Return, ast.Raise)):
        return True
    if isinstance(statement, (ast.Break, ast.Continue)):
        return not in_loop
    in_loop = in_loop or isinstance(statement, _LOOPS)
    return any(_may_leave(inner, in_loop) for side in _suites(statement) for inner in side)


def _leaves(suite):
    """Whether a suite always ends with a jump."""
    last = suite[-1]
    if isinstance(last, ast.If) and last.orelse:
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, _JUMPS)


def _suites(statement):
    """The suites in a compound statement."""
    if isinstance(statement, _FUNCTIONS + (ast.ClassDef,)):
        return []
    suites = [getattr(statement, "body", None), getattr(statement, "orelse", None)]
    return [suite for suite in suites if isinstance(suite, list) and suite]


def _all_lines(suite):
    """The first lines of all statements in a suite."""
    return {node.lineno for statement in suite for node in ast.walk(statement) if isinstance(node, ast.stmt)}


def _expressions(statement):
    """The expressions of a simple statement, or of the head of a compound one."""
    return [part for part in ast.iter_child_nodes(statement) if isinstance(part, (ast.expr, ast.withitem))]


def _calls(node):
    """The calls in an expression that run if it is evaluated."""
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
        return []
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.IfExp):
        inner = [node.test]
    elif isinstance(node, ast.BoolOp):
        inner = node.values[:1]
    found = [call for part in inner for call in _calls(part)]
    if isinstance(node, ast.Call) and _last_name(node):
        found.append(node)
    return found


def _is_anchored(statement):
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in statement.targets)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Subscript)
    calls = [call for part in _expressions(statement) for call in _calls(part)]
    return any(_last_name(call).startswith(_ANCHORS) for call in calls)


def _has_anchor(suite):
    """Whether a suite always does what must leave machine code."""
    return any(_is_anchored(statement) for statement in _segments(suite)[0])


def _last_name(node):
    """The last name of a call's function, of a dotted name, or of a decorator."""
    if isinstance(node, ast.Call):
        node = node.func
    # kernel[grid](...) and such
    if isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _is_constexpr(annotation):
    if isinstance(annotation, ast.Constant):
        return str(annotation.value).split(".")[-1] == "constexpr"
    return annotation is not None and _last_name(annotation) == "constexpr"


def _imports(tree):
    """The full names that each name which a source imports may have."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                names.setdefault(alias.asname or first, set()).add(alias.name if alias.asname else first)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
    return names


def _is_kernel(decorator, names):
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    # Projects import triton from a module of their own, too: its own name counts.
    full = _full_names(decorator, names) | _full_names(decorator, {})
    return not full.isdisjoint(_DECORATORS)


def _compiled(node, names):
    """The name of the function that a call compiles for a GPU, if it is one: `triton.jit(function)`."""
    if isinstance(node, ast.Call) and node.args and _is_kernel(node.func, names):
        return getattr(node.args[0], "id", None)
    return None


def _full_names(node, names):
    """The dotted names that an expression may stand for, by what a source imports."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return set()
    return {".".join([first] + parts[::-1]) for first in names.get(node.id, {node.id})}


def _constants(tree):
    """The values of a source's globals that are literals, also within `tl.constexpr(...)`."""
    values, written = {}, {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                written[target.id] = written.get(target.id, 0) + 1
                value = node.value
                if isinstance(value, ast.Call) and _last_name(value) == "constexpr" and value.args:
                    value = value.args[0]
                if isinstance(value, ast.Constant):
                    values[target.id] = value.value
    return {name: value for name, value in values.items() if written[name] == 1}


_COMPARISONS = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}
_OPERATIONS = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}


def _evaluate(node, values):
    """The value of an expression of literals and known names. Raises ValueError if there are others."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.Compare) and all(type(operator) in _COMPARISONS for operator in node.ops):
        parts = [_evaluate(part, values) for part in [node.left] + node.comparators]
        pairs = zip(node.ops, parts, parts[1:])
        return all(_COMPARISONS[type(operator)](left, right) for operator, left, right in pairs)
    if isinstance(node, ast.BoolOp):
        results = [_evaluate(part, values) for part in node.values]
        return all(results) if isinstance(node.op, ast.And) else any(results)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _evaluate(node.operand, values)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
    raise ValueError("not a value that is known")

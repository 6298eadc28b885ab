"""Finds why clang's counters and those of PTX differ on a line. A reason is a fact that the blocks of the PTX and their counts
show for this line. The blocks are what `rocov show --disassemble` prints."""

import re
from collections import Counter

LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*?inlined_at\s+(\d+)\s+(\d+))?")
HEAD = re.compile(r"(?:\.\w+\s+)*\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)")
OPCODE = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)")
CALL = re.compile(r"call[\w.]*\s+(?:\([^)]*\)\s*,\s*)?([\w$]+)")
# A value that is chosen without a branch, and what a guard leaves out.
SELECT = re.compile(r"@!?%\w+\s|selp|slct|set\.")


class Block:
    """A basic block: the threads that entered it, and its instructions, each with the lines that it is of."""

    def __init__(self, function, count):
        self.function, self.count = function, count
        self.instructions = []

    def lines(self):
        return {line for lines, _ in self.instructions for line in lines}


def functions_of(ptx):
    """The names of the functions in PTX."""
    return list(dict.fromkeys(re.findall(r"^" + HEAD.pattern, ptx, re.M)))


def blocks_of(shown, ptx, stem):
    """The blocks in what `rocov show` has printed of functions of `ptx`, with the lines of the source."""
    files = dict(re.findall(r'\.file\s+(\d+)\s+"(?:[^"]*/)?([\w-]+)\.\w+"', ptx))
    blocks, function, lines, statement = [], None, set(), ""
    for printed in shown.splitlines():
        count, text = printed[:11].strip(), re.sub(r"//.*", "", printed[13:]).strip()
        head, place = HEAD.match(text), LOC.match(text)
        if head:
            function, lines, statement = head.group(1), set(), ""
        elif place:
            places = zip(place.groups()[::2], place.groups()[1::2])
            lines = {int(line) for file, line in places if files.get(file) == stem and line != "0"}
        else:
            if count.isdigit():
                blocks.append(Block(function, int(count)))
            # The statement of a call goes over several lines.
            statement = f"{statement} {text}".strip()
            if statement.endswith(";"):
                instruction = re.sub(r"^[{}\s]*", "", statement)
                if OPCODE.match(instruction) and blocks and blocks[-1].function == function:
                    blocks[-1].instructions.append((lines, instruction))
                statement = ""
            elif statement.endswith((":", "{", "}", ")")):
                statement = ""
    return blocks


class Evidence:
    """The blocks of a kernel in one PTX, and clang's counts of its lines."""

    def __init__(self, blocks, clang, one_block, source):
        self.blocks, self.clang, self.one_block, self.source = blocks, clang, one_block, source
        self.callees, self.ended, self.lines = {}, Counter(), {}
        for block in blocks:
            self.lines.setdefault(block.function, set()).update(block.lines())
            calls = self.callees.setdefault(block.function, set())
            for _, instruction in block.instructions:
                call = CALL.match(instruction)
                calls.update(call.groups() if call else ())
                if OPCODE.match(instruction).group(1) == "exit":
                    self.ended[block.function] += block.count

    def reason(self, line, found):
        """Why clang's count of a line is not `found`. `None` if nothing shows it."""
        own = [block for block in self.blocks if line in block.lines()]
        ways = [self.inlined, self.copied, self.unrolled, self.ends, self.recursion, self.beside, self.folded, self.moved]
        told = (way(line, own, self.clang[line], found) for way in ways) if own else ()
        return next((reason for reason in told if reason), None)

    def inlined(self, line, own, expected, found):
        """The function was inlined wherever it is called, and its own code never runs."""
        called = set().union(*self.callees.values())
        functions = {block.function for block in own}
        if found == 0 and all(block.count == 0 for block in own) and not functions & called:
            return f"inlined: all of it is in {' '.join(sorted(functions))}, which nothing calls"
        return None

    def copied(self, line, own, expected, found):
        """The compiler has copied the line into several blocks: of an unrolled loop, or of an inlined function whose copies the
        text does not tell apart."""
        if len(own) > 1 and sum(block.count for block in own) == expected:
            return f"copied: {len(own)} blocks, which ran {expected} times together"
        return None

    def runs(self, line, own):
        """The instructions of a line by opcode: how often each ran in all, and how often it is there."""
        ran, there = Counter(), Counter()
        for block in own:
            for lines, instruction in block.instructions:
                if line in lines:
                    opcode = OPCODE.match(instruction).group(1)
                    ran[opcode] += block.count
                    there[opcode] += 1
        return ran, there

    def unrolled(self, line, own, expected, found):
        """An instruction of the line is there several times, in one block or in some of several. In all, it ran as often as clang
        counts."""
        ran, there = self.runs(line, own)
        for opcode in sorted(ran):
            if there[opcode] > 1 and ran[opcode] == expected:
                return f"unrolled: {there[opcode]} {opcode}, which ran {expected} times together"
        return None

    def ends(self, line, own, expected, found):
        """Threads have ended in the function, or in one that it calls. clang counts the whole block that they were in."""
        for function in sorted({block.function for block in own}):
            within, left = set(), [function]
            while left:
                it = left.pop()
                if it not in within:
                    within.add(it)
                    left.extend(self.callees.get(it, ()))
            ended = sum(self.ended[it] for it in within)
            if ended > 0 and expected - ended == found:
                return f"ended: {ended} threads by exit, before the line"
        return None

    def recursion(self, line, own, expected, found):
        """Calls of a function by itself have become turns of a loop: the function is entered less often."""
        name = re.search(r"(\w+)\(", self.source[line - 1])
        if name is None:
            return None
        within = set().union(*(self.lines[block.function] for block in own)) - {line}
        calls = [it for it in sorted(within) if re.search(rf"\b{name.group(1)}\(", self.source[it - 1])]
        for some in [calls, *([it] for it in calls)]:
            if sum(self.clang.get(it, 0) for it in some) == expected - found > 0:
                return f"recursion made a loop: the other {expected - found} calls are those of line {', '.join(map(str, some))}"
        return None

    def beside(self, line, own, expected, found):
        """Each block with instructions of the line that is not the line's own has those of another line, whose count by clang
        is that of the block."""
        places = []
        for block in own:
            others = [it for it in block.lines() if it != line and it in self.one_block and self.clang.get(it) == block.count]
            if others:
                places.append(f"{min(others, key=lambda it: abs(it - line))} ({block.count})")
            elif block.count != expected:
                return None
        is_select = any(line in lines and SELECT.match(text) for block in own for lines, text in block.instructions)
        return f"{'folded into a select' if is_select else 'moved'}: beside line {', '.join(dict.fromkeys(places))}" if places else None

    def folded(self, line, own, expected, found):
        """A select is left of the branch: an instruction of the line ran as often as one of another line in the same blocks, which
        clang counts so often."""
        if not any(SELECT.match(instruction) for block in own for _, instruction in block.instructions):
            return None
        ran, _ = self.runs(line, own)
        others = set().union(*(block.lines() for block in own)) & self.one_block - {line}
        for other in sorted(others, key=lambda it: abs(it - line)):
            count = self.clang.get(other)
            of_other, _ = self.runs(other, own)
            if count not in (0, expected) and count in of_other.values() and count in ran.values():
                return f"folded into a select: an instruction of it ran {count} times, as one of line {other} in the same blocks"
        return None

    def moved(self, line, own, expected, found):
        """All blocks with instructions of the line ran as often as another line of the function, whose blocks have its count."""
        counts = {block.count for block in own}
        if len(counts) != 1:
            return None
        functions = {block.function for block in own}
        count = counts.pop()
        for other in sorted(self.one_block - {line}, key=lambda it: abs(it - line)):
            blocks = [block for block in self.blocks if other in block.lines() and block.function in functions]
            if self.clang.get(other) == count and blocks and all(block.count == count for block in blocks):
                return f"moved: its {len(own)} blocks ran {count} times, as line {other}"
        return None

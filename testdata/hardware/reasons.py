"""Finds why clang's counters and those of PTX differ on a line. A reason is a fact that the blocks of the PTX and their counts
show, for this line. The blocks are what `rocov show --disassemble` prints."""

import re
from collections import Counter

LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*?inlined_at\s+(\d+)\s+(\d+))?")
INSTRUCTION = re.compile(r"(?:\w*\$?[\w$]*:\s*)?(@!?%\w+\s+)?([a-z][\w.:]*)(?:\s|;)")
CALL = re.compile(r"\bcall[\w.]*\s+(?:\([^)]*\)\s*,\s*)?([\w$]+)")


class Block:
    """A basic block: the threads that entered it, and its instructions, each with the lines that it is of."""

    def __init__(self, function, count):
        self.function, self.count = function, count
        self.instructions = []

    def lines(self):
        return {line for lines, _ in self.instructions for line in lines}


def blocks_of(shown, ptx, stem):
    """The blocks in what `rocov show` has printed of functions of `ptx`, with the lines of the source."""
    files = dict(re.findall(r'\.file\s+(\d+)\s+"(?:[^"]*/)?([\w-]+)\.\w+"', ptx))
    blocks, function, lines = [], None, set()
    for printed in shown.splitlines():
        count, text = printed[:11].strip(), printed[13:].strip()
        named = re.match(r"(?:\.\w+ )*\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)", text)
        if named:
            function, lines = named.group(1), set()
            continue
        place = LOC.match(text)
        if place:
            places = zip(place.groups()[::2], place.groups()[1::2])
            lines = {int(line) for file, line in places if files.get(file) == stem and line != "0"}
            continue
        if count.isdigit():
            blocks.append(Block(function, int(count)))
        instruction = INSTRUCTION.match(text)
        if instruction and blocks and blocks[-1].function == function:
            blocks[-1].instructions.append((lines, text))
    return blocks


class Evidence:
    """The blocks of a kernel in one PTX, and clang's counts of its lines."""

    def __init__(self, blocks, clang, one_block):
        self.blocks, self.clang, self.one_block = blocks, clang, one_block
        self.callees = {}
        self.ended = Counter()
        for block in blocks:
            calls = self.callees.setdefault(block.function, set())
            for _, text in block.instructions:
                calls.update(CALL.findall(text))
                if re.match(r"(@!?%\w+\s+)?exit\b", text):
                    self.ended[block.function] += block.count

    def reason(self, line, found):
        """Why clang's count of a line is not `found`. `None` if nothing shows it."""
        own = [block for block in self.blocks if line in block.lines()]
        if not own:
            return None
        expected = self.clang[line]
        ways = [self.uncalled, self.copied, self.unrolled, self.ends, self.recursive, self.moved]
        return next((told for told in (way(line, own, expected, found) for way in ways) if told), None)

    def uncalled(self, line, own, expected, found):
        """The function was inlined wherever it is called, and its own code never runs."""
        called = set().union(*self.callees.values())
        functions = {block.function for block in own}
        if found == 0 and all(block.count == 0 for block in own) and not functions & called:
            return f"only in {' '.join(sorted(functions))}, which nothing calls: it was inlined"
        return None

    def copied(self, line, own, expected, found):
        """The compiler has copied the line into several blocks: an unrolled loop, or an inlined function."""
        if len(own) > 1 and sum(block.count for block in own) == expected:
            return f"{len(own)} copies, which ran {expected} times together"
        return None

    def unrolled(self, line, own, expected, found):
        """A block has the line several times: one of its instructions ran as often as clang counts, in all."""
        ran, copies = Counter(), Counter()
        for block in own:
            for lines, text in block.instructions:
                if line in lines:
                    opcode = INSTRUCTION.match(text).group(2)
                    ran[opcode] += block.count
                    copies[opcode] += 1
        for opcode in sorted(ran):
            if copies[opcode] > len(own) and ran[opcode] == expected:
                return f"unrolled: its {copies[opcode]} {opcode} ran {expected} times together"
        return None

    def ends(self, line, own, expected, found):
        """Threads have ended in the function, or in one that it calls. clang counts the whole block that they were in."""
        for function in {block.function for block in own}:
            within, left = set(), [function]
            while left:
                it = left.pop()
                if it not in within:
                    within.add(it)
                    left.extend(self.callees.get(it, ()))
            ended = sum(self.ended[it] for it in within)
            if ended > 0 and expected - ended == found:
                return f"{ended} threads ended before it by exit"
        return None

    def recursive(self, line, own, expected, found):
        return None

    def moved(self, line, own, expected, found):
        """Each block with instructions of the line has those of another line, whose count by clang is that of the block."""
        beside = []
        for block in own:
            others = [it for it in sorted(block.lines()) if it != line and it in self.one_block and self.clang.get(it) == block.count]
            if not others:
                return None
            nearest = min(others, key=lambda it: abs(it - line))
            beside.append(f"{nearest} ({block.count})")
        has_select = any(line in lines and re.match(r"(@!?%\w+\s|selp|set\.)", text) for block in own for lines, text in block.instructions)
        return f"{'folded into a select' if has_select else 'moved'}, to where line {', '.join(dict.fromkeys(beside))} is"

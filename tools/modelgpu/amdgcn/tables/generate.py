#!/usr/bin/env python3
"""Writes ../src/isa/tables.rs: the mnemonic of each opcode number, per generation, encoding and target.

LLVM is the source. For each encoding, the script puts every opcode number into a few operand
patterns ("probes") and disassembles them with llvm-mc. The first probe that LLVM accepts names the
opcode. Several probes are necessary, because some opcodes only accept a constant, a pair of
registers or no operand at all.

    generate.py            rewrite the file
    generate.py --check    exit 1 if the committed file differs from a new one
"""

import re
import subprocess
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "src" / "isa" / "tables.rs"
DISASSEMBLER = "llvm-mc-22"

# Operand codes that the probes use.
VCC, CONSTANT_ZERO, NO_SADDR = 0x6A, 0x80, 0x7F
# A second dword for opcodes that always have a literal constant.
LITERAL = 0x12345678
# gfx942 has a bit for scratch accesses with a vector address.
GFX940_SVE = 1 << 13


def vgpr(number):
    """The 9-bit source code of a vector register."""
    return 0x100 + number


def vop3_sources(*sources):
    """The second dword of a VOP3 instruction."""
    return sum(code << (9 * place) for place, code in enumerate(sources))


def flat_probes(segment, saddr, more=0):
    """FLAT, SCRATCH and GLOBAL differ in the segment field and in the presence of saddr."""
    base = 0xDC000000 | segment << 14 | more
    return [
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr << 16 | 6 << 24),
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr << 16),
        lambda op: (base | op << 18, 2 | saddr << 16 | 6 << 24),
        # Loads to LDS have neither data nor a result.
        lambda op: (base | op << 18, 2 | saddr << 16),
    ]


VOP3 = 0xD0000000 | 4
VOP3_SDST_VCC = VOP3 | VCC << 8
VOP3P = 0xD3800000 | 4
VOP3P_ALL_HI = 3 << 27  # op_sel_hi of sources 0 and 1; source 2's is bit 14 of the first dword
TWO_V, THREE_V = vop3_sources(vgpr(2), vgpr(4)), vop3_sources(vgpr(2), vgpr(4), vgpr(6))

# encoding: (number of opcodes, probes in order of preference)
GFX9 = {
    "SOP2": (96, [
        lambda op: (0x80000000 | op << 23 | 4 << 16 | 2 << 8 | 2,),
        lambda op: (0x80000000 | op << 23 | 2 << 8 | 2,),
    ]),
    "SOPK": (32, [
        lambda op: (0xB0000000 | op << 23 | 4 << 16 | 4,),
        lambda op: (0xB0000000 | op << 23 | 1, LITERAL),
    ]),
    "SOP1": (256, [
        lambda op: (0xBE800000 | 4 << 16 | op << 8 | 2,),
        lambda op: (0xBE800000 | 4 << 16 | op << 8,),
        lambda op: (0xBE800000 | op << 8 | 2,),
        lambda op: (0xBE800000 | 4 << 16 | op << 8 | CONSTANT_ZERO,),
    ]),
    "SOPC": (128, [
        lambda op: (0xBF000000 | op << 16 | 4 << 8 | 2,),
        lambda op: (0xBF000000 | op << 16,),
    ]),
    "SOPP": (128, [lambda op: (0xBF800000 | op << 16,)]),
    "SMEM": (256, [
        lambda op: (0xC0000000 | op << 18 | 1 << 17 | 8 << 6 | 2, 0x10),
        lambda op: (0xC0000000 | op << 18, 0),
        lambda op: (0xC0000000 | op << 18 | 1 << 17, 0),
        lambda op: (0xC0000000 | op << 18 | 1 << 17 | 8 << 6 | 2, 0),
    ]),
    # 62 and 63 are VOPC and VOP1.
    "VOP2": (62, [
        lambda op: (op << 25 | 3 << 17 | 2 << 9 | vgpr(1),),
        lambda op: (op << 25 | 3 << 17 | 2 << 9 | vgpr(1), LITERAL),
    ]),
    "VOP1": (256, [
        lambda op: (0x7E000000 | 4 << 17 | op << 9 | vgpr(2),),
        lambda op: (0x7E000000 | op << 9,),
        lambda op: (0x7E000000 | 4 << 17 | op << 9 | vgpr(1),),
    ]),
    "VOPC": (256, [lambda op: (0x7C000000 | op << 17 | 2 << 9 | vgpr(4),)]),
    # Numbers from 896 on are VOP3P.
    "VOP3": (896, [
        lambda op: (VOP3 | op << 16, THREE_V),
        lambda op: (VOP3 | op << 16, TWO_V),
        lambda op: (VOP3 | op << 16, vop3_sources(vgpr(2))),
        lambda op: (VOP3_SDST_VCC | op << 16, THREE_V),
        lambda op: (VOP3_SDST_VCC | op << 16, vop3_sources(vgpr(2), vgpr(4), VCC)),
        lambda op: (VOP3 | op << 16, vop3_sources(2, 4)),
        lambda op: (VOP3 | op << 16, vop3_sources(vgpr(2), 4)),
        lambda op: (0xD0000000 | op << 16, 0),
    ]),
    "VOP3P": (128, [
        lambda op: (VOP3P | 1 << 14 | op << 16, THREE_V | VOP3P_ALL_HI),
        lambda op: (VOP3P | 1 << 14 | op << 16, TWO_V | VOP3P_ALL_HI),
        lambda op: (VOP3P | op << 16, TWO_V | VOP3P_ALL_HI),
        lambda op: (VOP3P | op << 16, vop3_sources(vgpr(2)) | VOP3P_ALL_HI),
        lambda op: (VOP3P | 1 << 14 | op << 16, vop3_sources(vgpr(2)) | VOP3P_ALL_HI),
        lambda op: (VOP3P | op << 16, vop3_sources(vgpr(2), vgpr(4), vgpr(8))),
    ]),
    "DS": (256, [
        lambda op: (0xD8000000 | op << 17, 1 | 2 << 8 | 4 << 16 | 6 << 24),
        lambda op: (0xD8000000 | op << 17, 1 | 2 << 8),
        lambda op: (0xD8000000 | op << 17, 1 | 2 << 8 | 4 << 16),
        lambda op: (0xD8000000 | op << 17, 1 | 6 << 24),
        lambda op: (0xD8000000 | op << 17, 1 | 2 << 8 | 6 << 24),
        lambda op: (0xD8000000 | op << 17, 0),
        # The barriers of grids have the bit of global data share, and no other opcode of theirs.
        lambda op: (0xD8010000 | op << 17, 1),
    ]),
    "FLAT": (128, flat_probes(0, 0)),
    "SCRATCH": (128, flat_probes(1, NO_SADDR) + flat_probes(1, NO_SADDR, GFX940_SVE)),
    "GLOBAL": (128, flat_probes(2, NO_SADDR)),
    "MUBUF": (128, [
        lambda op: (0xE0001000 | op << 18, 2 | 4 << 8 | 1 << 16 | CONSTANT_ZERO << 24),
        lambda op: (0xE0000000 | op << 18, 0),
    ]),
    "MTBUF": (16, [
        lambda op: (0xE8001000 | 7 << 23 | 4 << 19 | op << 15,
                    2 | 4 << 8 | 1 << 16 | CONSTANT_ZERO << 24),
    ]),
    # Four, two or one components; all but samples have coordinates in texels.
    "MIMG": (128, [
        lambda op: (0xF0000000 | op << 18 | 1 << 12 | 15 << 8, 4 | 8 << 8 | 2 << 16),
        lambda op: (0xF0000000 | op << 18 | 1 << 12 | 3 << 8, 4 | 8 << 8 | 2 << 16),
        lambda op: (0xF0000000 | op << 18 | 1 << 12 | 1 << 8, 4 | 8 << 8 | 2 << 16),
        lambda op: (0xF0000000 | op << 18 | 15 << 8, 4 | 8 << 8 | 2 << 16 | 4 << 21),
    ]),
}


def disassemble(target, instructions):
    """The mnemonic of each instruction (a tuple of dwords), None if LLVM rejects it."""
    encoded = [b"".join(word.to_bytes(4, "little") for word in words) for words in instructions]
    # The brackets keep an opcode with a longer encoding from reading the next line.
    text = "".join("[" + " ".join(f"{byte:#04x}" for byte in code) + "]\n" for code in encoded)
    done = subprocess.run(
        [DISASSEMBLER, "-triple=amdgcn", f"-mcpu={target}", "-disassemble", "-show-encoding"],
        input=text, capture_output=True, text=True, check=False)
    # A rejected line prints nothing, so results are matched by the bytes that LLVM echoes.
    names = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\s+(\S+).*encoding: \[([^\]]*)\]", line)
        if match:
            code = bytes(int(byte, 16) for byte in match.group(2).split(","))
            names.setdefault(code, re.sub(r"_e(32|64)$", "", match.group(1)))
    return [names.get(code) for code in encoded]


def mnemonics(target, count, probes):
    """{opcode: mnemonic} of one encoding."""
    found = {}
    for probe in probes:
        left = [op for op in range(count) if op not in found]
        for op, name in zip(left, disassemble(target, [probe(op) for op in left])):
            if name:
                found[op] = name
    return found


# The fields of `Tables`.
NAMES = ("SOP2", "SOPK", "SOP1", "SOPC", "SOPP", "SMEM", "VOP2", "VOP1", "VOPC", "VOP3", "VOP3P",
         "DS", "FLAT", "SCRATCH", "GLOBAL", "MUBUF", "MTBUF", "MIMG")

# The targets of each generation, and its encodings.
GENERATIONS = {
    "gfx9": (("gfx90a", "gfx942", "gfx950"), GFX9),
}


def rust_list(entries):
    return "&[" + "".join(f'({op}, "{name}"),' for op, name in sorted(entries)) + "]"


def rust_table(targets, count, probes):
    """The opcodes that all targets share, and those of each target."""
    entries = [set(mnemonics(target, count, probes).items()) for target in targets]
    common = set.intersection(*entries)
    own = "".join(f"(Target::{target.capitalize()}, {rust_list(list_ - common)}),"
                  for target, list_ in zip(targets, entries) if list_ - common)
    return f"Table {{ common: {rust_list(common)}, own: &[{own}] }}"


def generate():
    parts = [
        "// Generated by tables/generate.py from llvm-mc-22; do not edit.\n\n",
        "use super::opcode::{Table, Tables};\n",
        "use crate::target::Target;\n",
    ]
    for generation, (targets, encodings) in GENERATIONS.items():
        parts.append(f"\npub(super) static {generation.upper()}: Tables = Tables {{\n")
        for encoding in NAMES:
            table = "Table::EMPTY"
            if encoding in encodings:
                table = rust_table(targets, *encodings[encoding])
            parts.append(f"{encoding.lower()}: {table},\n")
        parts.append("};\n")
    formatted = subprocess.run(["rustfmt", "--edition", "2024"], input="".join(parts),
                               capture_output=True, text=True, check=True)
    return formatted.stdout


def main():
    fresh = generate()
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text() != fresh:
            sys.exit(f"{OUTPUT} differs from a fresh generation; run {sys.argv[0]}")
        return
    OUTPUT.write_text(fresh)


if __name__ == "__main__":
    main()

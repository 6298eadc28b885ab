#!/usr/bin/env python3
"""Writes ../src/gfx*.txt: the mnemonic of each opcode number and the widths of its operands, per
generation, encoding and target.

LLVM is the source. For each encoding, the script puts every opcode number into a few operand
patterns ("probes") and disassembles them with llvm-mc. The first probe that LLVM accepts names the
opcode. Several probes are necessary, because some opcodes only accept a constant, a pair of
registers or no operand at all.

The widths are the numbers of registers of the result, the scalar result (or buffer resource), and three
sources: a digit of base 36 each, `-` for an operand that the instruction lacks. The script puts a register
of its own into each field of the accepted probe; LLVM's text names the registers that the instruction has.
Widths that depend on the size of waves are those of 32 lanes, a slash, and those of 64. The title of a
section has the widths of the opcodes without widths of their own.

    generate.py            rewrite the files
    generate.py --check    exit 1 if a committed file differs from a new one
"""

import collections
import itertools
import re
import subprocess
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "src"
DISASSEMBLER = "llvm-mc-22"
# LLVM 22 has the halves of registers by default for gfx11 alone.
FEATURES = {target: ("-mattr=+real-true16",) for target in ("gfx1201", "gfx1250")}
# LLVM 22 accepts these products of gfx1201 for gfx1250, too. LLVM 23 rejects them.
ABSENT = {"gfx1250": {"VOP3P": range(64, 75)}}

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
        # Pairs of registers have even numbers on gfx1250.
        lambda op: (op << 25 | 4 << 17 | 6 << 9 | vgpr(2),),
        lambda op: (op << 25 | 4 << 17 | 6 << 9 | vgpr(2), LITERAL, LITERAL),
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
    # The scales of a matrix product, and the product.
    "VOP3PX": (128, [
        lambda op: (0xD3AC0000, TWO_V,
                    VOP3P | 1 << 11 | op << 16, vop3_sources(vgpr(2), vgpr(4), vgpr(8))),
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


GFX11_NULL = 0x7C
GFX11_VOP3 = 0xD4000000 | 4
GFX11_VOP3_SDST_VCC = GFX11_VOP3 | VCC << 8
GFX11_VOP3P = 0xCC000000 | 4


def gfx11_flat_probes(segment):
    """The probes of a segment; scratch also has a bit for a vector address."""
    base = 0xDC000000 | segment << 16
    saddr = GFX11_NULL << 16
    vector = 1 << 23 if segment == 1 else 0
    return [
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr | vector | 6 << 24),
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr | vector),
        lambda op: (base | op << 18, 2 | saddr | vector | 6 << 24),
        lambda op: (base | op << 18, saddr | 6 << 24),
        lambda op: (base | op << 18, saddr | 4 << 8),
    ]


# The encodings of scalar instructions and the 32-bit ones of vector instructions have the layout of
# gfx9 on RDNA.
RDNA = {name: GFX9[name] for name in (
    "SOP2", "SOPK", "SOP1", "SOPC", "SOPP", "VOP2", "VOP1", "VOPC")}
GFX11 = dict(RDNA)
GFX11.update({
    "SMEM": (256, [
        lambda op: (0xF4000000 | op << 18 | 8 << 6 | 2, GFX11_NULL << 25 | 0x10),
        lambda op: (0xF4000000 | op << 18, 0),
        lambda op: (0xF4000000 | op << 18, GFX11_NULL << 25),
    ]),
    "VOP3": (1024, [
        lambda op: (GFX11_VOP3 | op << 16, THREE_V),
        lambda op: (GFX11_VOP3 | op << 16, TWO_V),
        lambda op: (GFX11_VOP3 | op << 16, vop3_sources(vgpr(2))),
        lambda op: (GFX11_VOP3_SDST_VCC | op << 16, THREE_V),
        lambda op: (GFX11_VOP3_SDST_VCC | op << 16, vop3_sources(vgpr(2), vgpr(4), VCC)),
        lambda op: (GFX11_VOP3 | op << 16, vop3_sources(vgpr(2), vgpr(4), 4)),
        lambda op: (GFX11_VOP3 | op << 16, vop3_sources(vgpr(2), 4, 6)),
        lambda op: (GFX11_VOP3 | op << 16, vop3_sources(2, 4)),
        lambda op: (GFX11_VOP3 | op << 16, vop3_sources(vgpr(2), 4)),
        # Comparisons that only write EXEC.
        lambda op: (0xD4000000 | 0x7E | op << 16, TWO_V),
        lambda op: (0xD4000000 | op << 16, 0),
    ]),
    "VOP3P": (128, [
        lambda op: (GFX11_VOP3P | 1 << 14 | op << 16, THREE_V | VOP3P_ALL_HI),
        lambda op: (GFX11_VOP3P | 1 << 14 | op << 16, TWO_V | VOP3P_ALL_HI),
        lambda op: (GFX11_VOP3P | 1 << 14 | op << 16,
                    vop3_sources(vgpr(16), vgpr(32), vgpr(48)) | VOP3P_ALL_HI),
    ]),
    # The other instruction is a product.
    "VOPDX": (16, [
        lambda op, own=own, literal=literal: (0xC8000000 | op << 22 | 3 << 17 | own << 9 | vgpr(2),
                                              2 << 24 | 1 << 17 | 4 << 9 | vgpr(3)) + literal
        for own in (1, 0) for literal in ((), (LITERAL,))
    ]),
    "VOPDY": (32, [
        lambda op, own=own, literal=literal: (0xC8000000 | 3 << 22 | op << 17 | 1 << 9 | vgpr(2),
                                              2 << 24 | 1 << 17 | own << 9 | vgpr(3)) + literal
        for own in (4, 0) for literal in ((), (LITERAL,))
    ]),
    "DS": (256, [
        lambda op: (0xD8000000 | op << 18, 1 | 2 << 8 | 4 << 16 | 6 << 24),
        lambda op: (0xD8000000 | op << 18, 1 | 2 << 8),
        lambda op: (0xD8000000 | op << 18, 1 | 2 << 8 | 4 << 16),
        lambda op: (0xD8000000 | op << 18, 1 | 6 << 24),
        lambda op: (0xD8000000 | op << 18, 1 | 2 << 8 | 6 << 24),
        lambda op: (0xD8000000 | op << 18, 0),
        lambda op: (0xD8020000 | op << 18, 1),
        lambda op: (0xD8020000 | op << 18, 1 | 6 << 24),
    ]),
    "FLAT": (128, gfx11_flat_probes(0)),
    "SCRATCH": (128, gfx11_flat_probes(1)),
    "GLOBAL": (128, gfx11_flat_probes(2)),
    "MUBUF": (256, [
        lambda op: (0xE0000000 | op << 18, 2 | 4 << 8 | 1 << 16 | 1 << 22 | CONSTANT_ZERO << 24),
        lambda op: (0xE0000000 | op << 18, 0),
        lambda op: (0xE0000000 | op << 18, CONSTANT_ZERO << 24),
        lambda op: (0xE0000000 | op << 18, 2 | 1 << 16 | 1 << 22 | CONSTANT_ZERO << 24),
    ]),
    "MTBUF": (16, [
        lambda op: (0xE8000000 | 20 << 19 | op << 15,
                    2 | 4 << 8 | 1 << 16 | 1 << 22 | CONSTANT_ZERO << 24),
    ]),
    # With a sampler and without one; of one, two and three dimensions, and of several samples. The last
    # are intersections with rays, which have a resource of four dwords.
    "MIMG": (256, [
        *(lambda op, dim=dim, mask=mask, sampler=sampler: (
              0xF0000000 | op << 18 | mask << 8 | dim << 2, 4 | 8 << 8 | 2 << 16 | sampler << 26)
          for sampler in (4, 0) for dim in (0, 1, 2, 6) for mask in (15, 3, 1)),
        lambda op: (0xF0000F80 | 1 << 15 | op << 18, 9 | 4 << 8 | 1 << 16),
    ]),
})


GFX10_NULL = 0x7D
# Scratch with neither a vector nor a scalar address.
GFX10_NO_ADDRESS = 0x7F


def gfx10_flat_probes(segment):
    """The probes of a segment. The last one is for sizes of caches, which have no address."""
    base, saddr = 0xDC000000 | segment << 14, GFX10_NULL << 16
    return [
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr | 6 << 24),
        lambda op: (base | op << 18, 2 | 4 << 8 | saddr),
        lambda op: (base | op << 18, 2 | saddr | 6 << 24),
        lambda op: (base | op << 18, saddr | 6 << 24),
        lambda op: (base | op << 18, saddr | 4 << 8),
    ]


def image_probe(mask, dim, sampler, addresses=0, first=4):
    """A probe of an image instruction with so many groups of four further addresses."""
    return lambda op: (0xF0000000 | (op & 127) << 18 | mask << 8 | dim << 3 | addresses << 1 | op >> 7,
                       first | 8 << 8 | 2 << 16 | sampler << 21)


# VOP3 and VOP3P have the layout of gfx11.
GFX10 = dict(RDNA)
GFX10.update({
    "SMEM": (256, [
        lambda op: (0xF4000000 | op << 18 | 8 << 6 | 2, GFX10_NULL << 25 | 0x10),
        lambda op: (0xF4000000 | op << 18, 0),
        lambda op: (0xF4000000 | op << 18 | 8 << 6, GFX10_NULL << 25),
        lambda op: (0xF4000000 | op << 18, GFX10_NULL << 25),
    ]),
    "VOP3": GFX11["VOP3"],
    "VOP3P": (128, GFX11["VOP3P"][1][:2]),
    "DS": GFX11["DS"],
    "FLAT": (128, gfx10_flat_probes(0)),
    "SCRATCH": (128, gfx10_flat_probes(1)),
    "GLOBAL": (128, gfx10_flat_probes(2)),
    "MUBUF": (256, [
        lambda op: (0xE0001000 | op << 18, 2 | 4 << 8 | 1 << 16 | CONSTANT_ZERO << 24),
        lambda op: (0xE0000000 | op << 18, 0),
        lambda op: (0xE0000000 | op << 18, CONSTANT_ZERO << 24),
    ]),
    # The highest bit of the number lies in the second dword.
    "MTBUF": (16, [
        lambda op: (0xE8001000 | 20 << 19 | (op & 7) << 16,
                    2 | 4 << 8 | 1 << 16 | (op >> 3) << 21 | CONSTANT_ZERO << 24),
    ]),
    # The highest bit of the number is the lowest one of the dword.
    "MIMG": (256, [
        *(image_probe(mask, dim, sampler) for sampler in (4, 0) for dim in (0, 1, 2, 6) for mask in (15, 3, 1)),
        # Intersections with rays.
        lambda op: (0xF0009F00 | (op & 127) << 18 | op >> 7, 9 | 4 << 8 | 1 << 16),
    ]),
})


def gfx12_probes(encoding, operands):
    """The probes of an encoding of three dwords: each gives the second and the third one."""
    return [
        lambda op, words=words: (encoding << 24 | op << 14 | words[0], words[1], words[2])
        for words in operands
    ]


# The places of data, result, address and, for scratch, of the bit for a vector address.
GFX12_DATA, GFX12_VECTOR = 4 << 23, 1 << 17
GFX12_RESOURCE = 8 << 9


def gfx12_flat_probes(encoding):
    """The probes of a segment; scratch also has a bit for a vector address."""
    vector = GFX12_VECTOR if encoding == 0xED else 0
    return gfx12_probes(encoding, [
        (GFX11_NULL, 6 | GFX12_DATA | vector, 2),
        (GFX11_NULL, 6 | vector, 2),
        (GFX11_NULL, GFX12_DATA | vector, 2),
        (GFX11_NULL, 6, 0),
        (GFX11_NULL, GFX12_DATA, 0),
        (GFX11_NULL, 0, 0),
        (0, 6, 2),
        (0, 0, 0),
    ])


# Scalar instructions and those of vectors have the layout of gfx11.
GFX12 = {name: GFX11[name] for name in (
    "SOPK", "SOP1", "SOPC", "SOPP", "VOP2", "VOP1", "VOPC", "VOP3", "VOPDX", "VOPDY")}
GFX12.update({
    "SOP2": (96, [
        *GFX9["SOP2"][1],
        lambda op: (0x80000000 | op << 23 | 4 << 16 | 2 << 8 | 2, LITERAL),
    ]),
    "SMEM": (64, [
        lambda op: (0xF4000000 | op << 13 | 8 << 6 | 2, GFX11_NULL << 25 | 0x10),
        lambda op: (0xF4000000 | op << 13, 0),
        lambda op: (0xF4000000 | op << 13, GFX11_NULL << 25),
    ]),
    "VOP3P": (256, [
        *GFX11["VOP3P"][1],
        # The third source of a sparse product is a register of its own.
        lambda op: (GFX11_VOP3P | 1 << 14 | op << 16,
                    vop3_sources(vgpr(16), vgpr(32), vgpr(48)) | 3 << 27),
    ]),
    # The scales of a matrix product of 32 and, from number 256 on, of 64 bits, and the product.
    "VOP3PX": (512, [
        lambda op: (0xCC3A0000 if op >= 256 else 0xCC350000, vop3_sources(vgpr(2), vgpr(4), 0x100),
                    GFX11_VOP3P | 1 << 14 | (op & 255) << 16, vop3_sources(vgpr(16), vgpr(32), vgpr(48)) | 3 << 27),
    ]),
    # VOPD with three sources each. The other instruction is a product or a move.
    "VOPD3X": (64, [
        lambda op, more=more: (0xCF000000 | op << 18 | 8 << 12 | vgpr(2), more << 16 | vgpr(5), 11 << 24 | 4)
        for more in (6 << 8 | 4, 4, 0)
    ]),
    "VOPD3Y": (64, [
        lambda op, more=more: (0xCF000000 | 8 << 18 | op << 12 | vgpr(5), vgpr(2), 4 << 24 | more << 8 | 11)
        for more in (6 << 8 | 4, 4, 0)
    ]),
    "DS": (256, GFX11["DS"][1][:6]),
    "FLAT": (256, gfx12_flat_probes(0xEC)),
    "SCRATCH": (256, gfx12_flat_probes(0xED)),
    "GLOBAL": (256, gfx12_flat_probes(0xEE)),
    # Typed accesses have numbers from 128 on.
    "MUBUF": (256, gfx12_probes(0xC4, [
        (0, 6 | GFX12_RESOURCE | 1 << 30 | 20 << 23, 2),
        (GFX11_NULL, 6 | GFX12_RESOURCE | 1 << 30, 2),
    ])),
    # The last are sizes, with one address, and intersections with rays.
    "MIMG": (256, gfx12_probes(0xD0, [
        *((mask << 22 | dim, 4 | GFX12_RESOURCE, 8 | 9 << 8)
          for dim in (0, 1, 2) for mask in (15, 3, 1)),
        (15 << 22, 4 | GFX12_RESOURCE, 8),
        (15 << 22 | 1 << 4, 4 | GFX12_RESOURCE | 21 << 24, 9 | 12 << 8 | 15 << 16 | 18 << 24),
        # Tensors: all operands are scalar, and the last two may be absent.
        (1 << 22 | 1, GFX11_NULL << 24, GFX11_NULL << 24 | GFX11_NULL << 16 | 8 << 8),
    ])),
    "VSAMPLE": (256, gfx12_probes(0xE4, [
        (mask << 22 | dim, 4 | GFX12_RESOURCE | sampler << 23, 8 | 9 << 8 | third << 16)
        for sampler in (16, 0) for dim, third in ((0, 0), (1, 0), (2, 0), (6, 10)) for mask in (15, 3, 1)
    ])),
})


def disassemble(target, instructions, more=()):
    """The mnemonic of each instruction (a tuple of dwords), None if LLVM rejects it."""
    encoded = [b"".join(word.to_bytes(4, "little") for word in words) for words in instructions]
    # The brackets keep an opcode with a longer encoding from reading the next line.
    text = "".join("[" + " ".join(f"{byte:#04x}" for byte in code) + "]\n" for code in encoded)
    done = subprocess.run(
        [DISASSEMBLER, "-triple=amdgcn", f"-mcpu={target}", *FEATURES.get(target, ()), *more,
         "-disassemble", "-show-encoding"],
        input=text, capture_output=True, text=True, check=False)
    # A rejected line prints nothing, so results are matched by the bytes that LLVM echoes.
    names = {}
    for line in done.stdout.splitlines():
        # LLVM shows a register that the instruction cannot have, rather than reject it.
        if "/*Invalid register" in line:
            continue
        match = re.match(r"\s+(\S+).*encoding: \[([^\]]*)\]", line)
        if match:
            code = bytes(int(byte, 16) for byte in match.group(2).split(","))
            names.setdefault(code, line.partition(";")[0].strip())
    return [names.get(code) for code in encoded]


def mnemonic(text):
    return re.sub(r"_e(32|64)$", "", text.split()[0])


def instructions(target, encodings):
    """{encoding: {opcode: (instruction, its dwords)}} of a target."""
    absent = ABSENT.get(target, {})
    found = {encoding: {} for encoding in encodings}
    # A start of the disassembler costs more than a thousand instructions.
    for first, last in ((0, 1), (1, None)):
        tried = [(encoding, op, probe(op))
                 for encoding, (count, probes) in encodings.items() for probe in probes[first:last] for op in range(count)
                 if op not in absent.get(encoding, ()) and op not in found[encoding]]
        for (encoding, op, words), text in zip(tried, disassemble(target, [words for *_, words in tried])):
            if text:
                found[encoding].setdefault(op, (text, words))
    return found


# The operands with widths, in their order: the result, the scalar result or resource, and three sources.
RESULT, SCALAR_RESULT, FIRST, SECOND, THIRD = range(5)
# The registers of the operands, far enough apart for the widest ones, and below those with another
# meaning: in a vector field, and in a scalar one.
VECTORS, SCALARS = (32, 16, 64, 80, 96), (16, 36, 40, 56, 72)


def vector(operand, word, low):
    """A field with the number of a vector register."""
    return operand, word, low, 8, lambda _, operand=operand: VECTORS[operand]


def scalar(operand, word, low, bits=7, unit=1):
    """A field with the number of a scalar register, of a group of `unit` registers."""
    return operand, word, low, bits, lambda _, operand=operand: SCALARS[operand] // unit


def source(operand, low, word=1):
    """A field of nine bits for a register of either kind or a constant."""
    def renumber(old):
        if old >= 0x100:
            return vgpr(VECTORS[operand])
        return SCALARS[operand] if old <= VCC else old
    return operand, word, low, 9, renumber


LONG = [vector(RESULT, 0, 0), *(source(FIRST + place, 9 * place) for place in range(3))]
SHORT = [vector(RESULT, 0, 17), source(FIRST, 0, 0), vector(SECOND, 0, 9)]
BUFFER = [vector(SECOND, 1, 8), vector(FIRST, 1, 0), scalar(SCALAR_RESULT, 1, 16, 5, 4), scalar(THIRD, 1, 24, 8)]
IMAGE = [vector(SECOND, 1, 8), vector(FIRST, 1, 0), scalar(SCALAR_RESULT, 1, 16, 5, 4)]
GFX9_FIELDS = {
    "SOP2": [scalar(RESULT, 0, 16), scalar(FIRST, 0, 0, 8), scalar(SECOND, 0, 8, 8)],
    "SOPK": [scalar(RESULT, 0, 16)],
    "SOP1": [scalar(RESULT, 0, 16), scalar(FIRST, 0, 0, 8)],
    "SOPC": [scalar(FIRST, 0, 0, 8), scalar(SECOND, 0, 8, 8)],
    "SMEM": [scalar(RESULT, 0, 6), scalar(FIRST, 0, 0, 6, 2)],
    "VOP2": SHORT,
    "VOP1": SHORT[:2],
    "VOPC": SHORT[1:],
    "VOP3": LONG + [scalar(SCALAR_RESULT, 0, 8)],
    "VOP3P": LONG,
    "VOP3PX": [(operand, word + 2, *rest) for operand, word, *rest in LONG],
    "DS": [vector(RESULT, 1, 24), *(vector(FIRST + place, 1, 8 * place) for place in range(3))],
    "FLAT": [vector(RESULT, 1, 24), vector(FIRST, 1, 0), vector(SECOND, 1, 8)],
    "SCRATCH": [vector(RESULT, 1, 24), vector(FIRST, 1, 0), vector(SECOND, 1, 8)],
    "GLOBAL": [vector(RESULT, 1, 24), vector(FIRST, 1, 0), vector(SECOND, 1, 8)],
    "MUBUF": BUFFER,
    "MTBUF": BUFFER,
    "MIMG": IMAGE + [scalar(THIRD, 1, 21, 5, 4)],
}
GFX11_FIELDS = GFX9_FIELDS | {"MIMG": IMAGE + [scalar(THIRD, 1, 26, 5, 4)]}
WIDE = [vector(RESULT, 1, 0), vector(FIRST, 2, 0), vector(SECOND, 1, 23)]
WIDE_BUFFER = [vector(SECOND, 1, 0), vector(FIRST, 2, 0), scalar(SCALAR_RESULT, 1, 9)]
GFX12_FIELDS = GFX11_FIELDS | {
    "FLAT": WIDE,
    "SCRATCH": WIDE,
    "GLOBAL": WIDE,
    "MUBUF": WIDE_BUFFER + [scalar(THIRD, 0, 0)],
    "MIMG": WIDE_BUFFER,
    "VSAMPLE": WIDE_BUFFER + [scalar(THIRD, 1, 23)],
    "VOPD3X": [vector(RESULT, 2, 0), source(FIRST, 0, 0), vector(SECOND, 1, 16), vector(THIRD, 1, 24)],
    "VOPD3Y": [vector(RESULT, 2, 24), source(FIRST, 0, 1), vector(SECOND, 2, 8), vector(THIRD, 2, 16)],
}
FIELDS = {"gfx9": GFX9_FIELDS, "gfx10": GFX9_FIELDS, "gfx11": GFX11_FIELDS, "gfx12": GFX12_FIELDS}
# The bit that makes an atomic return the old value, by encoding: dword and place.
RETURNS = {
    "gfx9": {name: (0, 16) for name in ("FLAT", "GLOBAL", "SMEM")},
    "gfx10": {name: (0, 16) for name in ("FLAT", "GLOBAL", "SMEM")},
    "gfx11": {name: (0, 14) for name in ("FLAT", "GLOBAL")},
    "gfx12": {name: (1, 20) for name in ("FLAT", "GLOBAL")},
}
WAVES = {"gfx9": ((),), "gfx11": ((), ("-mattr=-wavefrontsize32,+wavefrontsize64",))}
WAVES["gfx10"] = WAVES["gfx12"] = WAVES["gfx11"]
# The targets whose waves have one size.
WAVES["gfx1250"] = ((),)


def renumbered(words, fields):
    """The instruction with a register of its own in each of the fields, and these registers."""
    words, registers = list(words), {}
    for operand, word, low, bits, renumber in fields:
        mask = (1 << bits) - 1
        code = renumber(words[word] >> low & mask)
        words[word] = words[word] & ~(mask << low) | code << low
        # The base of scalar memory and resources count groups.
        number = SCALARS[operand] if bits in (5, 6) else code & 0xff
        registers[number] = operand
    return tuple(words), registers


def widths_of(text, registers):
    """The widths of operands whose registers the text names."""
    found = [0] * 5
    for match in re.finditer(r"\b[vsa](?:(\d+)\b|\[(\d+):(\d+)\])", text):
        single, first, last = match.groups()
        operand = registers.get(int(single or first))
        if operand is not None:
            found[operand] = int(last) - int(first) + 1 if last else 1
    return found


def subsets(fields, absent):
    """The fields without so many of them, but at least one."""
    return itertools.combinations(fields, len(fields) - absent) if absent < len(fields) else ()


def widths(generation, target, found, wave):
    """{encoding: {opcode: widths}} of instructions with their dwords."""
    result = {encoding: {} for encoding in found}
    # LLVM accepts most instructions with a register in all fields or in all but one, so that few are left for subsets.
    for absent in range(max(map(len, FIELDS[generation].values()))):
        tried = [(encoding, op, *renumbered(words, some))
                 for encoding, entries in found.items()
                 for some in subsets(FIELDS[generation].get(encoding, []), absent)
                 for op, (_, words) in entries.items() if op not in result[encoding]]
        texts = disassemble(target, [words for _, _, words, _ in tried], wave)
        for (encoding, op, _, registers), text in zip(tried, texts):
            if text and mnemonic(text) == mnemonic(found[encoding][op][0]) and op not in result[encoding]:
                result[encoding][op] = widths_of(text, registers)
    returning = []
    for encoding, (word, place) in RETURNS[generation].items():
        fields = FIELDS[generation][encoding]
        for op, (text, words) in found[encoding].items():
            if "_atomic_" in text:
                words, registers = renumbered(words, fields)
                words = tuple(dword | (place_ == word) << place for place_, dword in enumerate(words))
                returning.append((encoding, op, words, registers))
    texts = disassemble(target, [words for _, _, words, _ in returning], wave)
    for (encoding, op, _, registers), text in zip(returning, texts):
        if text and mnemonic(text) == mnemonic(found[encoding][op][0]):
            result[encoding][op] = widths_of(text, registers)
    return result


def digits(widths_):
    return "".join("-0123456789abcdefghijklmnopqrstuvwxyz"[width + (width > 0)] for width in widths_)


def all_widths(generation, target, found):
    """{encoding: {opcode: text of the widths}}, for both sizes of waves if they differ."""
    waves = WAVES.get(target, WAVES[generation])
    by_wave = [widths(generation, target, found, wave) for wave in waves]
    both = {}
    for encoding, entries in found.items():
        texts = {op: [digits(result[encoding][op]) for result in by_wave if op in result[encoding]] for op in entries}
        both[encoding] = {op: "/".join(dict.fromkeys(list_)) or "-----" for op, list_ in texts.items()}
    return both


# The fields of `Tables`.
NAMES = ("SOP2", "SOPK", "SOP1", "SOPC", "SOPP", "SMEM", "VOP2", "VOP1", "VOPC", "VOP3", "VOP3P",
         "VOP3PX", "VOPDX", "VOPDY", "VOPD3X", "VOPD3Y", "DS", "FLAT", "SCRATCH", "GLOBAL", "MUBUF", "MTBUF", "MIMG", "VSAMPLE")

# The targets of each generation, and its encodings.
GENERATIONS = {
    "gfx9": (("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"), GFX9),
    "gfx10": (("gfx1030",), GFX10),
    "gfx11": (("gfx1100",), GFX11),
    "gfx12": (("gfx1201", "gfx1250"), GFX12),
}


def section(title, entries):
    """A section of opcodes: number, name, and widths that are not the most frequent ones."""
    counts = collections.Counter(widths_ for _, _, widths_ in sorted(entries))
    usual = max(counts, key=counts.get, default="-----")
    lines = (f"{number} {name}{'' if widths_ == usual else ' ' + widths_}\n" for number, name, widths_ in sorted(entries))
    return f"\n[{title} {usual}]\n" + "".join(lines)


def name(encoding, text):
    """The mnemonic of an instruction in an encoding. A dual one has two plain mnemonics."""
    halves = text.split(" :: ")
    if encoding.startswith("VOPD"):
        return mnemonic(halves[encoding.endswith("Y")]).replace("v_dual_", "v_")
    return mnemonic(text)


def table(encoding, entries):
    """The opcodes that all targets share, and those that some share."""
    targets = tuple(entries)
    owners = collections.defaultdict(list)
    for entry in sorted(set.union(*entries.values())):
        owners[tuple(target for target in targets if entry in entries[target])].append(entry)
    shared = owners.pop(targets, [])
    own = (section(" ".join((encoding, *group)), owners[group])
           for group in sorted(owners, key=lambda group: [target not in group for target in targets]))
    return section(encoding, shared) + "".join(own)


def halves(text):
    """The operands that are halves of registers: bit 0 and 1 for sources, bit 3 for the result."""
    operands = [part.split()[0] for part in text.split(None, 1)[1].split(",")]
    # Comparisons that write EXEC have no result. Literals are no sources here.
    result, *sources = [""] * ("_cmpx_" in text) + operands
    sources = [operand for operand in sources if not re.match("vcc|0x", operand)]
    is_half = [re.fullmatch(r"v\d+\.[lh]", operand) is not None for operand in [*sources[:2], result]]
    return is_half[-1] << 3 | sum(half << place for place, half in enumerate(is_half[:-1]))


def table_of_halves(found):
    """The 32-bit vector instructions with halves of registers as operands: the highest bit of a
    register's number tells which half."""
    masks = {}
    for instructions_ in found.values():
        for encoding in ("VOP1", "VOP2", "VOPC"):
            for text, _ in instructions_[encoding].values():
                if re.search(r"v\d+\.[lh]", text):
                    masks[mnemonic(text)] = halves(text)
    return "\n[HALVES]\n" + "".join(f"{mask} {name}\n" for name, mask in sorted(masks.items()))


def generate(generation):
    targets, encodings = GENERATIONS[generation]
    found = {target: instructions(target, encodings) for target in targets}
    widths_ = {target: all_widths(generation, target, found[target]) for target in targets}
    parts = [
        f"# Opcodes of {generation}: number, mnemonic and widths by encoding, first those that all targets share.\n",
        "# Generated by tables/generate.py from llvm-mc-22; do not edit.\n",
    ]
    for encoding in NAMES:
        if encoding in encodings:
            entries = {target: {(op, name(encoding, text), widths_[target][encoding][op])
                                for op, (text, _) in found[target][encoding].items()} for target in targets}
            parts.append(table(encoding, entries))
    parts.append(table_of_halves(found))
    return "".join(parts)


def main():
    for generation in GENERATIONS:
        output, fresh = OUTPUT / f"{generation}.txt", generate(generation)
        if "--check" in sys.argv[1:]:
            if output.read_text() != fresh:
                sys.exit(f"{output} differs from a fresh generation; run {sys.argv[0]}")
        else:
            output.write_text(fresh)


if __name__ == "__main__":
    main()

//! The instructions that counters need, as machine code.

use modelgpu_isa::{Generation, Target, opcode};

use super::text::{Label, Text};

/// The registers of an address.
pub(super) const PAIR: u16 = 2;
/// The number of EXEC among scalar operands; its high half follows.
pub(super) const EXEC: u16 = 126;
/// The scalar operand -1.
const MINUS_ONE: u32 = 193;
/// The scalar operand 0.
const ZERO: u32 = 128;
/// The scalar operand for a constant after the instruction.
const LITERAL: u32 = 255;
/// The vector operand v0.
const VGPR: u32 = 256;
/// The largest small constant.
const MAX_INLINE: u32 = 64;
/// The largest offset in bytes that an atomic adds to its address. Some targets have more.
pub(super) const MAX_OFFSET: u32 = 4095;

/// A value that a scalar instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Scalar(u16),
    Constant(u32),
}

impl Source {
    /// The operand, and the constant after the instruction.
    fn operand(self) -> (u32, Option<u32>) {
        match self {
            Self::Scalar(number) => (number.into(), None),
            Self::Constant(u32::MAX) => (MINUS_ONE, None),
            Self::Constant(value) if value <= MAX_INLINE => (ZERO + value, None),
            Self::Constant(value) => (LITERAL, Some(value)),
        }
    }
}

/// Opcodes of a target.
#[derive(Clone, Copy, Debug)]
struct Opcodes {
    add: u32,
    add_with_carry: u32,
    multiply: u32,
    mask: u32,
    select: u32,
    or: u32,
    or_64: u32,
    minimum: u32,
    vector_minimum: u32,
    set_bit: u32,
    take_field: u32,
    move_32: u32,
    move_64: u32,
    /// For waves of 32, and of 64.
    save_and_activate: [u32; 2],
    count_32: u32,
    count_64: u32,
    get_pc: u32,
    set_pc: u32,
    compare_not_equal: u32,
    compare_not_equal_64: u32,
    call: u32,
    branch: u32,
    branch_on_scc: u32,
    nothing: u32,
    end: u32,
    vector_move: u32,
    shift_left: u32,
    shift_left_64: u32,
    shift_left_add: u32,
    vector_add: u32,
    vector_multiply: u32,
    read_lane: u32,
    write_lane: u32,
    count_below: u32,
    count_below_high: u32,
    atomic: u32,
    atomic_or: u32,
    store: u32,
}

/// Writes instructions of a target, for waves of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoder {
    pub(super) target: Target,
    /// The lanes of a wave: 32 or 64.
    pub(super) lanes: u16,
    opcodes: Opcodes,
}

impl Encoder {
    pub(super) fn new(target: Target, lanes: u16) -> Self {
        let find = |encoding, names: &[&str]| {
            let mut found = names
                .iter()
                .filter_map(|name| opcode(target, encoding, name));
            found.next().map_or(0, u32::from)
        };
        let opcodes = Opcodes {
            add: find("SOP2", &["s_add_u32", "s_add_co_u32"]),
            add_with_carry: find("SOP2", &["s_addc_u32", "s_add_co_ci_u32"]),
            multiply: find("SOP2", &["s_mul_i32"]),
            mask: find("SOP2", &["s_bfm_b64"]),
            select: find("SOP2", &["s_cselect_b32"]),
            or: find("SOP2", &["s_or_b32"]),
            or_64: find("SOP2", &["s_or_b64"]),
            minimum: find("SOP2", &["s_min_u32"]),
            vector_minimum: find("VOP2", &["v_min_u32"]),
            set_bit: find("SOP1", &["s_bitset1_b32"]),
            take_field: find("SOP2", &["s_bfe_u32"]),
            move_32: find("SOP1", &["s_mov_b32"]),
            move_64: find("SOP1", &["s_mov_b64"]),
            save_and_activate: [
                find("SOP1", &["s_or_saveexec_b32"]),
                find("SOP1", &["s_or_saveexec_b64"]),
            ],
            count_32: find("SOP1", &["s_bcnt1_i32_b32"]),
            count_64: find("SOP1", &["s_bcnt1_i32_b64"]),
            get_pc: find("SOP1", &["s_getpc_b64"]),
            set_pc: find("SOP1", &["s_setpc_b64"]),
            compare_not_equal: find("SOPC", &["s_cmp_lg_u32"]),
            compare_not_equal_64: find("SOPC", &["s_cmp_lg_u64"]),
            call: find("SOPK", &["s_call_b64"]),
            branch: find("SOPP", &["s_branch"]),
            branch_on_scc: find("SOPP", &["s_cbranch_scc1"]),
            nothing: find("SOPP", &["s_nop"]),
            end: find("SOPP", &["s_endpgm"]),
            vector_move: find("VOP1", &["v_mov_b32"]),
            shift_left: find("VOP2", &["v_lshlrev_b32"]),
            // On gfx12, a VOP2 instruction has this number among those of VOP3.
            shift_left_64: opcode(target, "VOP2", "v_lshlrev_b64").map_or_else(
                || find("VOP3", &["v_lshlrev_b64"]),
                |op| u32::from(op) + 0x100,
            ),
            shift_left_add: find("VOP3", &["v_lshl_add_u32"]),
            vector_add: find("VOP2", &["v_add_u32", "v_add_nc_u32"]),
            vector_multiply: find("VOP3", &["v_mul_lo_u32"]),
            read_lane: find("VOP3", &["v_readlane_b32"]),
            write_lane: find("VOP3", &["v_writelane_b32"]),
            count_below: find("VOP3", &["v_mbcnt_lo_u32_b32"]),
            count_below_high: find("VOP3", &["v_mbcnt_hi_u32_b32"]),
            atomic: find("GLOBAL", &["global_atomic_add_x2", "global_atomic_add_u64"]),
            atomic_or: find("GLOBAL", &["global_atomic_or", "global_atomic_or_b32"]),
            store: find("GLOBAL", &["global_store_dword", "global_store_b32"]),
        };
        Self {
            target,
            lanes,
            opcodes,
        }
    }

    fn is_gfx9(&self) -> bool {
        self.target.generation() == Generation::Gfx9
    }

    fn is_gfx12(&self) -> bool {
        self.target.generation() == Generation::Gfx12
    }

    /// The target needs wait states between some lane accesses.
    fn is_gfx94(&self) -> bool {
        matches!(self.target, Target::Gfx942 | Target::Gfx950)
    }

    fn sop2(text: &mut Text, op: u32, goal: u16, first: Source, second: Source) {
        let ((a, literal), (b, other)) = (first.operand(), second.operand());
        text.push(0x8000_0000 | op << 23 | u32::from(goal) << 16 | b << 8 | a);
        text.extend(literal.or(other));
    }

    fn sop1(text: &mut Text, op: u32, goal: u16, source: Source) {
        let (operand, literal) = source.operand();
        text.push(0xbe80_0000 | u32::from(goal) << 16 | op << 8 | operand);
        text.extend(literal);
    }

    fn sopp(op: u32, immediate: u16) -> u32 {
        0xbf80_0000 | op << 16 | u32::from(immediate)
    }

    /// goal = first + second. SCC is the carry.
    pub(super) fn add(&self, text: &mut Text, goal: u16, first: u16, second: Source) {
        Self::sop2(text, self.opcodes.add, goal, Source::Scalar(first), second);
    }

    /// goal = first + second + SCC.
    fn add_with_carry(&self, text: &mut Text, goal: u16, first: u16, second: Source) {
        let op = self.opcodes.add_with_carry;
        Self::sop2(text, op, goal, Source::Scalar(first), second);
    }

    /// goal = first * second. Keeps SCC.
    pub(super) fn multiply(&self, text: &mut Text, goal: u16, first: u16, second: u16) {
        let (first, second) = (Source::Scalar(first), Source::Scalar(second));
        Self::sop2(text, self.opcodes.multiply, goal, first, second);
    }

    /// Keeps SCC.
    pub(super) fn move_32(&self, text: &mut Text, goal: u16, source: Source) {
        Self::sop1(text, self.opcodes.move_32, goal, source);
    }

    /// Sets two registers. A constant is sign-extended.
    pub(super) fn move_64(&self, text: &mut Text, goal: u16, source: Source) {
        Self::sop1(text, self.opcodes.move_64, goal, source);
    }

    /// goal = first | second. Changes SCC.
    fn or(&self, text: &mut Text, goal: u16, first: u16, second: u16) {
        let (first, second) = (Source::Scalar(first), Source::Scalar(second));
        Self::sop2(text, self.opcodes.or, goal, first, second);
    }

    /// Sets a register to a value that is not 0 if some lane is active. Changes SCC.
    pub(super) fn any_active(&self, text: &mut Text, goal: u16) {
        match self.lanes {
            32 => self.move_32(text, goal, Source::Scalar(EXEC)),
            _ => self.or(text, goal, EXEC, EXEC + 1),
        }
    }

    /// Keeps a register, or lets it not be 0 if some lane is active. Changes SCC.
    pub(super) fn or_active(&self, text: &mut Text, goal: u16) {
        self.or(text, goal, goal, EXEC);
        if self.lanes == 64 {
            self.or(text, goal, goal, EXEC + 1);
        }
    }

    /// Adds the active lanes to a mask of lanes. Changes SCC.
    pub(super) fn collect_active(&self, text: &mut Text, mask: u16) {
        let op = match self.lanes {
            32 => self.opcodes.or,
            _ => self.opcodes.or_64,
        };
        let (own, active) = (Source::Scalar(mask), Source::Scalar(EXEC));
        Self::sop2(text, op, mask, own, active);
    }

    /// Sets a bit of a register if a mask has a lane. Changes SCC and `free`.
    pub(super) fn set_bit_if_any(
        &self,
        text: &mut Text,
        goal: u16,
        bit: u16,
        mask: u16,
        free: u16,
    ) {
        let op = match self.lanes {
            32 => self.opcodes.compare_not_equal,
            _ => self.opcodes.compare_not_equal_64,
        };
        text.push(0xbf00_0000 | op << 16 | ZERO << 8 | u32::from(mask));
        let bits = Source::Constant(1 << bit);
        Self::sop2(text, self.opcodes.select, free, bits, Source::Constant(0));
        self.or(text, goal, goal, free);
    }

    /// vector = 1 where it is not 0.
    pub(super) fn vector_at_most_one(&self, text: &mut Text, vector: u16) {
        let op = self.opcodes.vector_minimum;
        let vector = u32::from(vector);
        text.push(op << 25 | vector << 17 | vector << 9 | (ZERO + 1));
    }

    /// goal = 1 if it is not 0. Changes SCC.
    pub(super) fn at_most_one(&self, text: &mut Text, goal: u16) {
        self.wait_for_scalars(text);
        let one = Source::Constant(1);
        Self::sop2(text, self.opcodes.minimum, goal, Source::Scalar(goal), one);
    }

    /// Sets a bit of a register. Keeps SCC.
    pub(super) fn set_bit(&self, text: &mut Text, goal: u16, bit: u16) {
        Self::sop1(
            text,
            self.opcodes.set_bit,
            goal,
            Source::Constant(bit.into()),
        );
    }

    /// goal = a bit of a register. Changes SCC.
    pub(super) fn take_bit(&self, text: &mut Text, goal: u16, register: u16, bit: u16) {
        let field = Source::Constant(u32::from(bit) | 1 << 16);
        Self::sop2(
            text,
            self.opcodes.take_field,
            goal,
            Source::Scalar(register),
            field,
        );
    }

    /// Sets bits of a register. Changes SCC.
    pub(super) fn set_bits(&self, text: &mut Text, goal: u16, bits: u32) {
        let (old, bits) = (Source::Scalar(goal), Source::Constant(bits));
        Self::sop2(text, self.opcodes.or, goal, old, bits);
    }

    /// Copies or sets a mask of the wave's lanes.
    pub(super) fn move_mask(&self, text: &mut Text, goal: u16, source: Source) {
        match self.lanes {
            32 => self.move_32(text, goal, source),
            _ => self.move_64(text, goal, source),
        }
    }

    /// goal = the active lanes. Activates all. Changes SCC.
    pub(super) fn activate_all(&self, text: &mut Text, goal: u16) {
        let op = self.opcodes.save_and_activate[usize::from(self.lanes / 64)];
        Self::sop1(text, op, goal, Source::Constant(u32::MAX));
    }

    /// Activates the first `count` lanes.
    pub(super) fn activate_first(&self, text: &mut Text, count: u16) {
        match self.lanes {
            32 => {
                let mask = u32::try_from((1_u64 << count) - 1).unwrap_or(u32::MAX);
                self.move_32(text, EXEC, Source::Constant(mask));
            }
            _ if count >= 64 => self.move_64(text, EXEC, Source::Constant(u32::MAX)),
            _ => {
                let (count, first) = (Source::Constant(count.into()), Source::Constant(0));
                Self::sop2(text, self.opcodes.mask, EXEC, count, first);
            }
        }
    }

    /// goal = the number of active lanes. Changes SCC.
    pub(super) fn count_active(&self, text: &mut Text, goal: u16) {
        let op = match self.lanes {
            32 => self.opcodes.count_32,
            _ => self.opcodes.count_64,
        };
        Self::sop1(text, op, goal, Source::Scalar(EXEC));
    }

    /// goal = SCC.
    pub(super) fn save_scc(&self, text: &mut Text, goal: u16) {
        let op = self.opcodes.select;
        Self::sop2(text, op, goal, Source::Constant(1), Source::Constant(0));
    }

    /// SCC = source, which is 0 or 1.
    pub(super) fn restore_scc(&self, text: &mut Text, source: u16) {
        let op = self.opcodes.compare_not_equal;
        text.push(0xbf00_0000 | op << 16 | ZERO << 8 | u32::from(source));
    }

    /// Sets a pair to the address of `goal`. Changes SCC.
    pub(super) fn address(&self, text: &mut Text, pair: u16, goal: super::text::Goal) {
        Self::sop1(text, self.opcodes.get_pc, pair, Source::Constant(0));
        self.add_distance(text, pair, goal, text.len());
    }

    /// Adds to a pair that has the address of the place `origin` the distance to `goal`. Changes SCC.
    pub(super) fn add_distance(
        &self,
        text: &mut Text,
        pair: u16,
        goal: super::text::Goal,
        origin: usize,
    ) {
        // The text sets both constants.
        let wide = Source::Constant(0x1234_5678);
        self.wait_for_scalars(text);
        self.wait_for_masks(text);
        text.refer(goal, text.len() - origin);
        self.add(text, pair, pair, wide);
        self.add_with_carry(text, pair + 1, pair + 1, wide);
    }

    /// Adds a constant to a pair. Changes SCC.
    pub(super) fn advance(&self, text: &mut Text, pair: u16, bytes: u32) {
        self.wait_for_scalars(text);
        self.add(text, pair, pair, Source::Constant(bytes));
        self.add_with_carry(text, pair + 1, pair + 1, Source::Constant(0));
    }

    pub(super) fn jump(&self, text: &mut Text, pair: u16) {
        self.wait_for_scalars(text);
        let op = self.opcodes.set_pc;
        Self::sop1(text, op, 0, Source::Scalar(pair));
    }

    pub(super) fn call(&self, text: &mut Text, pair: u16, goal: Label) {
        let word = 0xb000_0000 | self.opcodes.call << 23 | u32::from(pair) << 16;
        text.branch(word, goal);
    }

    pub(super) fn branch(&self, text: &mut Text, goal: Label) {
        text.branch(self.branch_word(), goal);
    }

    /// `s_branch` without a distance.
    pub(super) fn branch_word(&self) -> u32 {
        Self::sopp(self.opcodes.branch, 0)
    }

    /// `s_nop` of one state.
    pub(super) fn nothing_word(&self) -> u32 {
        Self::sopp(self.opcodes.nothing, 0)
    }

    pub(super) fn branch_if_scc(&self, text: &mut Text, goal: Label) {
        text.branch(Self::sopp(self.opcodes.branch_on_scc, 0), goal);
    }

    pub(super) fn nothing(&self, text: &mut Text, states: u16) {
        text.push(Self::sopp(self.opcodes.nothing, states - 1));
    }

    /// Waits between a vector comparison that writes EXEC and an access to lanes.
    pub(super) fn wait_behind_comparison(&self, text: &mut Text) {
        if self.is_gfx94() {
            self.nothing(text, 4);
        }
    }

    /// Waits until vector instructions can read a scalar register that [`Self::read_lane`] has written.
    pub(super) fn wait_behind_lane(&self, text: &mut Text) {
        if self.is_gfx94() {
            self.nothing(text, 2);
        }
        // depctr_va_sdst(0)
        self.wait_for_results(text, 0xf1ff);
    }

    /// Keeps the values of a pair of scalar registers in the first lanes of a vector register, at the entry of a function.
    pub(super) fn keep_pair(&self, text: &mut Text, first: u16, vector: u16) {
        // A load of the caller may still write to them.
        self.wait_for_memory(text);
        if self.is_gfx12()
            && let Some(op) = opcode(self.target, "SOPP", "s_wait_kmcnt")
        {
            text.push(Self::sopp(op.into(), 0));
        }
        for lane in 0..PAIR {
            self.write_lane(text, vector, Source::Scalar(first + lane), lane);
        }
    }

    /// Waits until any instruction can read vector registers that a matrix instruction has written, before all that is known.
    pub(super) fn wait_for_matrices(&self, text: &mut Text) {
        // 19 states ("Required software-inserted wait states" in AMD's guides of CDNA 2 and 3).
        self.nothing(text, 16);
        self.nothing(text, 3);
    }

    /// An accumulator = a vector register, on gfx9.
    pub(super) fn write_accumulator(&self, text: &mut Text, goal: u16, vector: u16) {
        self.move_accumulator(text, "v_accvgpr_write_b32", goal, vector);
    }

    /// A vector register = an accumulator, on gfx9.
    pub(super) fn read_accumulator(&self, text: &mut Text, goal: u16, accumulator: u16) {
        self.move_accumulator(text, "v_accvgpr_read_b32", goal, accumulator);
    }

    fn move_accumulator(&self, text: &mut Text, name: &str, goal: u16, source: u16) {
        if let Some(op) = opcode(self.target, "VOP3P", name) {
            // Bits of op_sel_hi that LLVM sets, and that mean nothing here.
            text.push(0xd380_4000 | u32::from(op) << 16 | u32::from(goal));
            text.push(0x1800_0000 | (VGPR + u32::from(source)));
        }
    }

    /// Waits until any instruction can read scalar registers that [`Self::read_lane`] has written: those that follow are not
    /// known.
    pub(super) fn wait_behind_lanes(&self, text: &mut Text) {
        if self.target.generation() == Generation::Gfx9 {
            // An access to memory reads a scalar register that a vector instruction has written 5 states before.
            self.nothing(text, 5);
        }
        self.wait_behind_lane(text);
    }

    /// Vector instructions wait for the result of one scalar instruction after [`Self::read_lane`] with the same result.
    pub(super) fn waits_behind_sums(&self) -> bool {
        self.is_gfx94()
    }

    /// Waits after [`Self::read_lane`] and one scalar instruction with the same result until a vector instruction can read it.
    pub(super) fn wait_behind_sum(&self, text: &mut Text) {
        // LLVM's hazard recognizer looks for the last vector instruction that wrote the register, 2 states before.
        if self.is_gfx94() {
            self.nothing(text, 1);
        }
    }

    /// Waits until instructions can read scalar registers that scalar instructions have written, and that vector instructions
    /// read before that, as LLVM does on gfx12.
    pub(super) fn wait_for_scalars(&self, text: &mut Text) {
        // depctr_sa_sdst(0)
        self.wait_for_results(text, 0xfffe);
    }

    /// Waits until instructions can read scalar registers that scalar instructions have written, and that vector instructions
    /// have read as masks before that, as LLVM does on gfx11 in waves of 64.
    fn wait_for_masks(&self, text: &mut Text) {
        if self.lanes == 64 {
            // depctr_sa_sdst(0)
            self.wait_on_gfx11(text, 0xfffe);
        }
    }

    /// Waits until instructions can read vector registers that transcendental instructions have written, before all that is
    /// known, as LLVM does on gfx11.
    pub(super) fn wait_for_transcendentals(&self, text: &mut Text) {
        // depctr_va_vdst(0)
        self.wait_on_gfx11(text, 0x0fff);
    }

    fn wait_on_gfx11(&self, text: &mut Text, counters: u16) {
        if self.target.generation() == Generation::Gfx11
            && let Some(op) = opcode(self.target, "SOPP", "s_waitcnt_depctr")
        {
            text.push(Self::sopp(op.into(), counters));
        }
    }

    fn wait_for_results(&self, text: &mut Text, counters: u16) {
        if self.is_gfx12()
            && let Some(op) = opcode(self.target, "SOPP", "s_wait_alu")
        {
            text.push(Self::sopp(op.into(), counters));
        }
    }

    pub(super) fn end(&self, text: &mut Text) {
        text.push(Self::sopp(self.opcodes.end, 0));
    }

    /// Waits for all accesses that may still write to vector registers.
    pub(super) fn wait_for_memory(&self, text: &mut Text) {
        let wait = |text: &mut Text, name: &str| {
            if let Some(op) = opcode(self.target, "SOPP", name) {
                text.push(Self::sopp(op.into(), 0));
            }
        };
        if self.is_gfx12() {
            for name in [
                "s_wait_loadcnt",
                "s_wait_samplecnt",
                "s_wait_bvhcnt",
                "s_wait_dscnt",
            ] {
                wait(text, name);
            }
            return;
        }
        wait(text, "s_waitcnt");
        if !self.is_gfx9()
            && let Some(op) = opcode(self.target, "SOPK", "s_waitcnt_vscnt")
        {
            // NULL is register 124.
            text.push(0xb000_0000 | u32::from(op) << 23 | 124 << 16);
        }
    }

    fn vop3(&self, text: &mut Text, op: u32, goal: u32, sources: [u32; 3]) {
        let first = match self.is_gfx9() {
            true => 0xd000_0000,
            false => 0xd400_0000,
        };
        text.push(first | op << 16 | goal);
        text.push(sources[0] | sources[1] << 9 | sources[2] << 18);
    }

    /// A scalar register = a lane of a vector register.
    pub(super) fn read_lane(&self, text: &mut Text, goal: u16, vector: u16, lane: u16) {
        let lane = ZERO + u32::from(lane);
        let op = self.opcodes.read_lane;
        // LLVM's hazard recognizer wants a wait state between v_writelane_b32 and v_readlane_b32 of one VGPR.
        if self.is_gfx94() {
            text.part_lanes(|text| self.nothing(text, 1));
        }
        self.vop3(text, op, goal.into(), [VGPR + u32::from(vector), lane, 0]);
    }

    /// A lane of a vector register = a scalar register, which a scalar instruction has written, or a small constant.
    pub(super) fn write_lane(&self, text: &mut Text, vector: u16, source: Source, lane: u16) {
        if matches!(source, Source::Scalar(_)) {
            self.wait_for_scalars(text);
        }
        self.write_known_lane(text, vector, source, lane);
    }

    /// A lane of a vector register = a scalar register, which no instruction has written since the last wait, or a small constant.
    pub(super) fn write_known_lane(&self, text: &mut Text, vector: u16, source: Source, lane: u16) {
        let (operand, literal) = source.operand();
        debug_assert!(literal.is_none(), "lanes take small constants");
        let op = self.opcodes.write_lane;
        self.vop3(
            text,
            op,
            vector.into(),
            [operand, ZERO + u32::from(lane), 0],
        );
        text.wrote_lane();
    }

    /// A vector register = a scalar one, or a constant.
    pub(super) fn vector_move(&self, text: &mut Text, vector: u16, source: Source) {
        if matches!(source, Source::Scalar(_)) {
            self.wait_for_scalars(text);
        }
        let (operand, literal) = source.operand();
        self.vop1(text, vector, operand);
        text.extend(literal);
    }

    pub(super) fn vector_copy(&self, text: &mut Text, vector: u16, source: u16) {
        self.vop1(text, vector, VGPR + u32::from(source));
    }

    fn vop1(&self, text: &mut Text, vector: u16, operand: u32) {
        let op = self.opcodes.vector_move;
        text.push(0x7e00_0000 | u32::from(vector) << 17 | op << 9 | operand);
    }

    /// vector = constant + vector.
    pub(super) fn vector_add(&self, text: &mut Text, vector: u16, constant: u32) {
        let op = self.opcodes.vector_add;
        let vector = u32::from(vector);
        let (operand, literal) = Source::Constant(constant).operand();
        text.push(op << 25 | vector << 17 | vector << 9 | operand);
        text.extend(literal);
    }

    /// goal = vector * scalar.
    pub(super) fn vector_multiply(&self, text: &mut Text, goal: u16, vector: u16, scalar: u16) {
        let op = self.opcodes.vector_multiply;
        let sources = [u32::from(scalar), VGPR + u32::from(vector), 0];
        self.vop3(text, op, goal.into(), sources);
    }

    /// Sets a pair of scalar registers to the address of this place, and a vector register to the distance from it to the word
    /// of each active lane, if the counter `goal` is that of the first. `is_wide`: lanes after the 32nd are active.
    pub(super) fn lane_words(
        &self,
        text: &mut Text,
        pair: u16,
        vector: u16,
        goal: super::text::Goal,
        is_wide: bool,
    ) {
        const SHIFT: u32 = 3;
        let number = u32::from(vector);
        Self::sop1(text, self.opcodes.get_pc, pair, Source::Constant(0));
        let start = text.len();
        let op = self.opcodes.count_below;
        self.vop3(text, op, number, [MINUS_ONE, ZERO, 0]);
        if is_wide {
            let op = self.opcodes.count_below_high;
            self.vop3(text, op, number, [MINUS_ONE, VGPR + number, 0]);
        }
        if self.is_gfx9() {
            // VOP3 has no constants there.
            let op = self.opcodes.shift_left;
            text.push(op << 25 | number << 17 | number << 9 | (ZERO + SHIFT));
            let op = self.opcodes.vector_add;
            text.push(op << 25 | number << 17 | number << 9 | LITERAL);
        } else {
            let op = self.opcodes.shift_left_add;
            self.vop3(text, op, number, [VGPR + number, ZERO + SHIFT, LITERAL]);
        }
        text.refer_at_once(goal, text.len() - start);
        text.push(0);
    }

    /// Sets a pair of scalar registers to the address of this place, and a vector register to the distance from it to the word of
    /// a counter, in each active lane.
    pub(super) fn point_at(
        &self,
        text: &mut Text,
        pair: u16,
        vector: u16,
        goal: super::text::Goal,
    ) {
        Self::sop1(text, self.opcodes.get_pc, pair, Source::Constant(0));
        self.vop1(text, vector, LITERAL);
        text.refer_at_once(goal, 1);
        text.push(0);
    }

    /// Sets a pair of vector registers to a small constant.
    pub(super) fn vector_move_64(&self, text: &mut Text, vector: u16, value: u16) {
        let value = ZERO + u32::from(value);
        self.vop3(
            text,
            self.opcodes.shift_left_64,
            vector.into(),
            [ZERO, value, 0],
        );
    }

    /// Adds a pair of vector registers, as 64 bits, to the memory at `base` + `address` + `offset`, in each active lane.
    /// The counters are the device's, and no other agent writes them meanwhile (LLVM's "Memory Model" for agents).
    pub(super) fn atomic_add(
        &self,
        text: &mut Text,
        address: u16,
        data: u16,
        base: u16,
        offset: u32,
    ) {
        self.access(text, self.opcodes.atomic, [address, data, base], offset);
    }

    /// Sets the bits of a vector register in 32 bits of memory there.
    pub(super) fn atomic_or(
        &self,
        text: &mut Text,
        address: u16,
        data: u16,
        base: u16,
        offset: u32,
    ) {
        self.access(text, self.opcodes.atomic_or, [address, data, base], offset);
    }

    /// Stores the distance in a vector register, which is not 0, in 32 bits of memory there.
    pub(super) fn store_mark(&self, text: &mut Text, address: u16, base: u16, offset: u32) {
        self.access(text, self.opcodes.store, [address, address, base], offset);
    }

    /// Accesses the memory at `base` + `address` + `offset`, in each active lane.
    fn access(&self, text: &mut Text, op: u32, [address, data, base]: [u16; 3], offset: u32) {
        let (address, data, base) = (u32::from(address), u32::from(data), u32::from(base));
        if self.is_gfx12() {
            // The scope is the device.
            text.push(0xee00_0000 | op << 14 | base);
            text.push(data << 23 | 2 << 18);
            text.push(offset << 8 | address);
            return;
        }
        let segment = match self.is_gfx9() {
            true => 2 << 14,
            false => 2 << 16,
        };
        text.push(0xdc00_0000 | op << 18 | segment | offset);
        text.push(address | data << 8 | base << 16);
    }
}

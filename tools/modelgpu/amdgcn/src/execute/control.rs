//! Branches, barriers, hardware registers, and instructions that order memory. The interpreter
//! completes each access before the next instruction, so waits and cache operations do nothing.

use modelgpu_isa::{Banks, FloatFormat, Generation, Instruction, Operand, Target, inline_constant};

use super::operation::{Condition, Control};
use super::scalar_memory::CYCLES;
use super::value::Kind;
use super::{Operation, Surroundings, scalar_source, unmodelled};
use crate::error::Fault;
use crate::lanes::active;
use crate::wave::{Arrival, Mode, State, Wave};

/// The bit of [`Wave::indexed`] that says that indexing is on.
const INDEXING: u8 = 0x80;

const OTHER_BARRIER: &str = "a barrier other than the workgroup's (-1)";

const fn control(control: Control) -> Operation {
    Operation::Control(control)
}

const fn branch(condition: Condition) -> Operation {
    Operation::Control(Control::Branch(condition))
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("s_nop", control(Control::Nothing)),
    ("s_waitcnt", control(Control::Nothing)),
    ("s_sleep", control(Control::Nothing)),
    ("s_setprio", control(Control::Nothing)),
    ("s_wakeup", control(Control::Nothing)),
    ("s_incperflevel", control(Control::Nothing)),
    ("s_decperflevel", control(Control::Nothing)),
    ("s_ttracedata", control(Control::Nothing)),
    ("s_icache_inv", control(Control::Nothing)),
    ("s_dcache_inv", control(Control::Nothing)),
    ("s_dcache_inv_vol", control(Control::Nothing)),
    ("s_dcache_wb", control(Control::Nothing)),
    ("s_dcache_wb_vol", control(Control::Nothing)),
    ("s_dcache_discard", control(Control::Nothing)),
    ("s_dcache_discard_x2", control(Control::Nothing)),
    ("s_atc_probe", control(Control::Nothing)),
    ("s_atc_probe_buffer", control(Control::Nothing)),
    ("s_clause", control(Control::Nothing)),
    ("s_delay_alu", control(Control::Nothing)),
    ("s_gl1_inv", control(Control::Nothing)),
    ("s_set_inst_prefetch_distance", control(Control::Nothing)),
    ("s_ttracedata_imm", control(Control::Nothing)),
    ("s_wait_event", control(Control::Nothing)),
    ("s_wait_idle", control(Control::Nothing)),
    ("s_waitcnt_depctr", control(Control::Nothing)),
    ("s_waitcnt_expcnt", control(Control::Nothing)),
    ("s_waitcnt_lgkmcnt", control(Control::Nothing)),
    ("s_waitcnt_vmcnt", control(Control::Nothing)),
    ("s_waitcnt_vscnt", control(Control::Nothing)),
    ("s_sleep_var", control(Control::Nothing)),
    ("s_wait_alu", control(Control::Nothing)),
    ("s_wait_loadcnt", control(Control::Nothing)),
    ("s_wait_storecnt", control(Control::Nothing)),
    ("s_wait_samplecnt", control(Control::Nothing)),
    ("s_wait_bvhcnt", control(Control::Nothing)),
    ("s_wait_expcnt", control(Control::Nothing)),
    ("s_wait_dscnt", control(Control::Nothing)),
    ("s_wait_kmcnt", control(Control::Nothing)),
    ("s_wait_loadcnt_dscnt", control(Control::Nothing)),
    ("s_wait_xcnt", control(Control::Nothing)),
    ("s_wait_asynccnt", control(Control::Nothing)),
    // The model refuses the instructions that this one waits for.
    ("s_wait_tensorcnt", control(Control::Nothing)),
    ("s_setprio_inc_wg", control(Control::Nothing)),
    ("flat_prefetch_b8", control(Control::Nothing)),
    ("global_prefetch_b8", control(Control::Nothing)),
    ("s_wait_storecnt_dscnt", control(Control::Nothing)),
    ("s_prefetch_inst", control(Control::Nothing)),
    ("s_prefetch_inst_pc_rel", control(Control::Nothing)),
    ("s_prefetch_data", control(Control::Nothing)),
    ("s_prefetch_data_pc_rel", control(Control::Nothing)),
    ("s_buffer_prefetch_data", control(Control::Nothing)),
    ("global_inv", control(Control::Nothing)),
    ("global_wb", control(Control::Nothing)),
    ("global_wbinv", control(Control::Nothing)),
    ("v_pipeflush", control(Control::Nothing)),
    ("buffer_gl0_inv", control(Control::Nothing)),
    ("buffer_gl1_inv", control(Control::Nothing)),
    ("ds_nop", control(Control::Nothing)),
    ("v_nop", control(Control::Nothing)),
    // The model has no exceptions that an instruction could clear.
    ("v_clrexcp", control(Control::Nothing)),
    ("buffer_wbinvl1", control(Control::Nothing)),
    ("buffer_wbinvl1_vol", control(Control::Nothing)),
    ("buffer_wbl2", control(Control::Nothing)),
    ("buffer_invl2", control(Control::Nothing)),
    ("buffer_inv", control(Control::Nothing)),
    ("s_endpgm", control(Control::End)),
    ("s_barrier", control(Control::Barrier)),
    ("s_barrier_signal", control(Control::Signal)),
    ("s_barrier_wait", control(Control::Wait)),
    ("s_trap", control(Control::Trap)),
    ("s_sendmsg", control(Control::SendMessage)),
    ("s_sendmsg_rtn_b64", control(Control::Ask)),
    ("s_round_mode", control(Control::SetModeField(0))),
    ("s_denorm_mode", control(Control::SetModeField(4))),
    ("s_branch", branch(Condition::Always)),
    ("s_cbranch_scc0", branch(Condition::SccIs(false))),
    ("s_cbranch_scc1", branch(Condition::SccIs(true))),
    ("s_cbranch_vccz", branch(Condition::VccIsZero(true))),
    ("s_cbranch_vccnz", branch(Condition::VccIsZero(false))),
    ("s_cbranch_execz", branch(Condition::ExecIsZero(true))),
    ("s_cbranch_execnz", branch(Condition::ExecIsZero(false))),
    // No debugger sets the bits that these test.
    ("s_cbranch_cdbgsys", branch(Condition::Never)),
    ("s_cbranch_cdbguser", branch(Condition::Never)),
    ("s_cbranch_cdbgsys_or_user", branch(Condition::Never)),
    ("s_cbranch_cdbgsys_and_user", branch(Condition::Never)),
    ("s_getpc_b64", control(Control::GetPc)),
    ("s_setpc_b64", control(Control::SetPc)),
    ("s_swappc_b64", control(Control::SwapPc)),
    ("s_call_b64", control(Control::Call)),
    ("s_getreg_b32", control(Control::GetRegister)),
    ("s_setreg_b32", control(Control::SetRegister)),
    ("s_setreg_imm32_b32", control(Control::SetRegisterLiteral)),
    ("s_get_shader_cycles_u64", control(Control::Cycles)),
    ("s_set_vgpr_msb", control(Control::SetBanks)),
    ("s_add_pc_i64", control(Control::AddPc)),
    ("s_set_gpr_idx_on", control(Control::IndexOn)),
    ("s_set_gpr_idx_off", control(Control::IndexOff)),
    ("s_set_gpr_idx_idx", control(Control::IndexValue)),
    ("s_set_gpr_idx_mode", control(Control::IndexOperands)),
];

/// A control instruction that touches the wave alone.
#[derive(Clone, Copy)]
pub(crate) enum ControlStep {
    Nothing,
    Branch {
        condition: Condition,
        /// From the next instruction, in bytes.
        offset: i64,
    },
}

impl ControlStep {
    #[inline(always)]
    pub(super) fn execute(self, wave: &mut Wave) {
        if let Self::Branch { condition, offset } = self
            && condition.holds(wave)
        {
            wave.pc = wave.pc.wrapping_add_signed(offset);
        }
    }
}

impl Control {
    pub(super) fn reads_clock(self, instruction: &Instruction) -> bool {
        match self {
            Self::Ask | Self::Cycles => true,
            Self::GetRegister => matches!(
                RegisterField::new(instruction).register,
                RegisterField::SHADER_CYCLES | RegisterField::SHADER_CYCLES_HIGH
            ),
            _ => false,
        }
    }

    /// The instruction with resolved operands; `None` if it touches more than the wave.
    pub(super) fn step(self, instruction: &Instruction) -> Option<ControlStep> {
        match self {
            Self::Nothing => Some(ControlStep::Nothing),
            Self::Branch(condition) => Some(ControlStep::Branch {
                condition,
                offset: i64::from(instruction.immediate) * 4,
            }),
            _ => None,
        }
    }

    pub(super) fn execute(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        surroundings: &Surroundings<'_>,
    ) -> Result<(), Fault> {
        let next = wave.pc;
        let target = next.wrapping_add_signed(i64::from(instruction.immediate) * 4);
        match self {
            Self::Nothing => {}
            Self::End => wave.state = State::Ended,
            Self::Barrier => wave.state = State::AtBarrier,
            Self::Signal => {
                // The barrier's number is in the field of a source.
                if inline_constant(instruction.src[0], FloatFormat::Single) != Some(u64::MAX) {
                    return Err(unmodelled(instruction, OTHER_BARRIER));
                }
                wave.arrival = Arrival::Signalled;
            }
            Self::Wait => {
                if instruction.immediate != -1 {
                    return Err(unmodelled(instruction, OTHER_BARRIER));
                }
                match wave.arrival {
                    Arrival::Complete => wave.arrival = Arrival::None,
                    _ => wave.state = State::AtBarrier,
                }
            }
            Self::Trap => {
                return Err(Fault::Trap {
                    number: instruction.immediate as u16,
                    lane: active(wave.exec()).next().map(|lane| lane as u8),
                });
            }
            Self::SendMessage => {
                const INTERRUPT: i32 = 1;
                /// The wave needs its vector registers no more.
                const DEALLOC_VGPRS: i32 = 3;
                let is_early = matches!(
                    surroundings.target.generation(),
                    Generation::Gfx9 | Generation::Gfx10
                );
                let message = if is_early { 0xf } else { 0xff };
                match instruction.immediate & message {
                    INTERRUPT => (surroundings.interrupt)(wave.m0()),
                    DEALLOC_VGPRS if !is_early => {}
                    _ => return Err(unmodelled(instruction, "a message other than an interrupt")),
                }
            }
            Self::Ask => {
                const GET_REALTIME: u16 = 0x83;
                // The message is in the field of a source.
                if instruction.src[0].0 != GET_REALTIME {
                    return Err(unmodelled(instruction, "a message other than for the time"));
                }
                wave.set_pair(instruction.dst, (surroundings.clock)());
            }
            Self::SetModeField(place) => {
                let value = (instruction.immediate as u32 & 15) << place;
                wave.mode = Mode(wave.mode.0 & !(15 << place) | value);
            }
            Self::Branch(condition) => {
                if condition.holds(wave) {
                    wave.pc = target;
                }
            }
            Self::GetPc => wave.set_pair(instruction.dst, next),
            Self::SetPc => wave.pc = wave.pair(instruction.src[0]),
            Self::SwapPc => {
                wave.pc = wave.pair(instruction.src[0]);
                wave.set_pair(instruction.dst, next);
            }
            Self::Call => {
                wave.pc = target;
                wave.set_pair(instruction.dst, next);
            }
            Self::GetRegister => {
                let field = RegisterField::new(instruction);
                let generation = surroundings.target.generation();
                let is_gfx9 = generation == Generation::Gfx9;
                let is_gfx12 = generation == Generation::Gfx12;
                let cycles = || (surroundings.clock)().wrapping_mul(CYCLES);
                let value = match field.register {
                    // If the bit is always set, the register has none.
                    RegisterField::MODE if surroundings.target.always_clamps_nan() => {
                        wave.mode.0 & !Mode::CLAMPS_NAN & !Banks(u8::MAX).to_mode()
                            | wave.banks.to_mode()
                    }
                    // No workgroup is in a cluster.
                    RegisterField::IB_STS2 if surroundings.target == Target::Gfx1250 => 0,
                    RegisterField::MODE => wave.mode.0,
                    RegisterField::HW_ID if is_gfx9 => wave.place.hw_id(),
                    RegisterField::HW_ID1 if !is_gfx9 => wave.place.hw_id1(),
                    RegisterField::SHADER_CYCLES if is_gfx12 => cycles() as u32,
                    RegisterField::SHADER_CYCLES_HIGH if is_gfx12 => (cycles() >> 32) as u32,
                    RegisterField::SHADER_CYCLES if !is_gfx9 => cycles() as u32 & 0xf_ffff,
                    RegisterField::XCC_ID if surroundings.target.has_xcc_id() => {
                        wave.place.xcc_id()
                    }
                    RegisterField::SH_MEM_BASES => {
                        let base = |aperture: u64| (aperture >> 48) as u32;
                        base(wave.apertures.shared) << 16 | base(wave.apertures.private)
                    }
                    _ if !is_gfx9 => {
                        return Err(unmodelled(
                            instruction,
                            "a hardware register other than MODE, HW_ID1, SH_MEM_BASES and SHADER_CYCLES",
                        ));
                    }
                    _ => {
                        return Err(unmodelled(
                            instruction,
                            "a hardware register other than MODE, HW_ID, SH_MEM_BASES and, on gfx942, XCC_ID",
                        ));
                    }
                };
                wave.set_word(instruction.dst, value >> field.offset & field.mask);
            }
            Self::SetRegister => {
                let value = wave.word(instruction.dst);
                let field = RegisterField::new(instruction);
                if surroundings.target.max_vgprs() > 256
                    && field.mask << field.offset & Banks(u8::MAX).to_mode() != 0
                {
                    return Err(unmodelled(instruction, "a write of the banks of registers"));
                }
                set_mode(value, instruction, wave, surroundings.target)?;
            }
            Self::SetRegisterLiteral => {
                let value = instruction.literal as u32;
                set_mode(value, instruction, wave, surroundings.target)?;
                // The banks come from the literal, whichever field it is for (LLVM's `handleSetregMode`).
                if surroundings.target.max_vgprs() > 256 {
                    wave.banks = Banks::from_mode(value);
                }
            }
            Self::Cycles => {
                wave.set_pair(instruction.dst, (surroundings.clock)().wrapping_mul(CYCLES));
            }
            Self::SetBanks => wave.banks = Banks(instruction.immediate as u8),
            Self::AddPc => {
                let distance = scalar_source(instruction, 0, Kind::I64, wave)?;
                wave.pc = next.wrapping_add(distance);
            }
            Self::IndexOn => {
                let index = scalar_source(instruction, 0, Kind::B32, wave)? as u32;
                // The second source field is a constant: the operands to index. M0 keeps it too.
                let enables = u32::from(instruction.src[1].0) & 15;
                wave.indexed = enables as u8 | INDEXING;
                let m0 = wave.m0() & !0xf0ff | index & 0xff | enables << 12;
                wave.set_word(Operand::M0, m0);
            }
            Self::IndexOff => wave.indexed = 0,
            Self::IndexOperands => {
                let enables = instruction.immediate as u32 & 15;
                if wave.indexed & INDEXING != 0 {
                    wave.indexed = enables as u8 | INDEXING;
                }
                wave.set_word(Operand::M0, wave.m0() & !0xf000 | enables << 12);
            }
            Self::IndexValue => {
                let index = scalar_source(instruction, 0, Kind::B32, wave)? as u32;
                wave.set_word(Operand::M0, wave.m0() & !0xff | index & 0xff);
            }
        }
        Ok(())
    }
}

impl Condition {
    fn holds(self, wave: &Wave) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::SccIs(value) => wave.scc == value,
            Self::VccIsZero(value) => (wave.vcc() == 0) == value,
            Self::ExecIsZero(value) => (wave.exec() == 0) == value,
        }
    }
}

/// A part of a hardware register, as the immediate of s_getreg and s_setreg names it.
struct RegisterField {
    /// The register's number.
    register: u32,
    offset: u32,
    mask: u32,
}

impl RegisterField {
    /// The rounding and denormal modes.
    const MODE: u32 = 1;
    /// The wave's place in its XCC.
    const HW_ID: u32 = 4;
    /// The wave's place, on RDNA.
    const HW_ID1: u32 = 23;
    /// The low 20 bits of a counter of cycles on RDNA 3, and 32 bits on RDNA 4.
    const SHADER_CYCLES: u32 = 29;
    /// Among others, the size of a workgroup's cluster, on gfx1250.
    const IB_STS2: u32 = 28;
    /// The other bits, on RDNA 4.
    const SHADER_CYCLES_HIGH: u32 = 30;
    /// The halves of the address of the wave's scratch, on RDNA 2. Kernels set them for flat addresses, which the model
    /// finds by their aperture.
    const FLAT_SCRATCH: [u32; 2] = [20, 21];
    /// Bits 63 to 48 of the apertures of scratch (low half) and of LDS (high half). clang before 16 reads them
    /// here (LLVM's `getSegmentAperture`).
    const SH_MEM_BASES: u32 = 15;
    /// The wave's XCC, from gfx940 on.
    const XCC_ID: u32 = 20;

    fn new(instruction: &Instruction) -> Self {
        let immediate = instruction.immediate as u32;
        let size = (immediate >> 11 & 31) + 1;
        Self {
            register: immediate & 0x3f,
            offset: immediate >> 6 & 31,
            mask: u32::MAX >> (32 - size),
        }
    }
}

fn set_mode(
    value: u32,
    instruction: &Instruction,
    wave: &mut Wave,
    target: Target,
) -> Result<(), Fault> {
    let field = RegisterField::new(instruction);
    if target.generation() == Generation::Gfx10
        && RegisterField::FLAT_SCRATCH.contains(&field.register)
    {
        return Ok(());
    }
    if field.register != RegisterField::MODE {
        return Err(unmodelled(
            instruction,
            "a hardware register other than MODE",
        ));
    }
    let mut place = field.mask << field.offset;
    if target.always_clamps_nan() {
        place &= !Mode::CLAMPS_NAN;
    }
    wave.mode = Mode(wave.mode.0 & !place | value << field.offset & place);
    Ok(())
}

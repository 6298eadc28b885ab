//! A kernel dispatch under way: splits the grid into workgroups and gives each wave the initial
//! registers of the hardware (LLVM's AMDGPUUsage, "Initial Kernel Execution State").

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use modelgpu_isa::{Banks, Operand, Target};

use crate::code_object::{Files, KernelDescriptor, KernelIdentity};
use crate::compute_units::ComputeUnits;
use crate::error::{DispatchError, Site};
use crate::execute::{LdsAccess, LdsWatch, PRIVATE_SEGMENT_BUFFER, Sighting, Simd};
use crate::grid_barriers::GridBarriers;
use crate::hazards::{HazardSighting, HazardWatch};
use crate::lanes::{LANES, Words};
use crate::memory::{AddressSpace, View};
use crate::packet::DispatchPacket;
use crate::state::RegisterState;
use crate::trace::Trace;
use crate::warning::{BeyondLds, Hazard, LdsMistake, Stuck};
use crate::wave::{Apertures, Arrival, Mode, State, Wave};
use crate::workers::Workers;
use crate::workgroup::{Interruption, Workgroup};

/// The most work-items of a workgroup.
pub const MAX_WORKGROUP: u64 = 1024;

/// Scratch bytes of a kernel with a dynamic stack, for calls whose depth the compiler did not know.
const DYNAMIC_STACK: u64 = 16 * 1024;

/// Waves that a compute unit holds: 8 for each of its 4 SIMDs (AMD's CDNA3 instruction set guide).
const WAVES_OF_UNIT: u32 = 32;

/// The initial contents of LDS. A kernel that reads LDS before it writes there sees this pattern.
const LDS_GARBAGE: u8 = 0xa5;

/// The trap registers with a workgroup's id (Y in the low half and Z in the high one, then X), and between
/// them one with the wave's number from bit 25 on (LLVM's AMDGPUUsage, "Architected SGPRs").
const TTMP7: Operand = Operand(108 + 7);

const TTMP8: Operand = Operand(108 + 8);

const TTMP9: Operand = Operand(108 + 9);

/// The workgroup's place in its cluster, on gfx1250.
const TTMP6: Operand = Operand(108 + 6);

/// Instructions of a thread without any progress of the dispatch after which it is called stuck.
pub const STUCK: u64 = 1 << 24;

/// The inputs of a dispatch beyond its packet.
#[derive(Clone, Copy)]
pub struct DispatchContext<'a> {
    /// The kernel's state, if the packet sets it in registers. The packet's kernel object is then the address of
    /// its first instruction, and not that of a descriptor.
    pub state: Option<&'a RegisterState>,
    /// Address of the packet, `dispatch_ptr` in the kernel.
    pub packet_address: u64,
    /// Address of the queue's `amd_queue_t`.
    pub queue_address: u64,
    /// The aperture of LDS in the flat address space; the low 32 bits are 0.
    pub shared_aperture: u64,
    /// The aperture of scratch in the flat address space; the low 32 bits are 0.
    pub private_aperture: u64,
    /// The packet's index in its queue.
    pub dispatch_id: u64,
    /// The interpreter calls this once per dispatch, at the first access beyond the dispatch's LDS.
    pub beyond_lds: &'a (dyn Fn(BeyondLds) + Sync),
    /// If it is there, the interpreter looks for mistakes with LDS, and calls this for the first of each
    /// kind in each workgroup.
    pub mistakes: Option<&'a (dyn Fn(LdsMistake) + Sync)>,
    /// If it is there, the interpreter looks for results that code uses too early, and calls this for the first use at
    /// each instruction in each workgroup.
    pub hazards: Option<&'a (dyn Fn(Hazard) + Sync)>,
    /// The interpreter calls this once per dispatch, if no workgroup has made progress for
    /// [`STUCK`] instructions.
    pub stuck: &'a (dyn Fn(Stuck) + Sync),
    /// The interpreter calls this when a wave sends the host an interrupt. The argument is M0: the
    /// low bits of an event's id.
    pub interrupt: &'a (dyn Fn(u32) + Sync),
    /// The GPU's clock in ticks of 10 ns. It never goes back.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
    /// The files of code objects, in which the interpreter looks for source lines.
    pub files: &'a dyn Files,
    /// The place for the executions of each instruction, if they are to be counted.
    pub trace: Option<&'a Trace>,
    /// The threads that run the workgroups. The other functions here are called on these threads.
    pub workers: &'a dyn Workers,
    /// The interpreter polls this: true ends the dispatch with [`DispatchError::Cancelled`].
    pub cancelled: &'a AtomicBool,
}

/// The counts of a finished dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions, each counted once per wave.
    pub instructions: u64,
    /// Waves.
    pub waves: u64,
    /// Workgroups.
    pub workgroups: u64,
}

/// Bytes of scratch per work-item.
pub(crate) fn scratch_size(packet: &DispatchPacket, descriptor: &KernelDescriptor) -> u64 {
    let fixed = u64::from(packet.private_segment_size);
    if descriptor.uses_dynamic_stack {
        fixed.max(u64::from(descriptor.private_segment_size) + DYNAMIC_STACK)
    } else {
        fixed
    }
    .next_multiple_of(16)
}

/// The state that all workgroups of a dispatch share.
pub(crate) struct Dispatch<'a> {
    pub target: Target,
    pub packet: &'a DispatchPacket,
    pub descriptor: KernelDescriptor,
    pub context: &'a DispatchContext<'a>,
    pub memory: &'a dyn AddressSpace,
    pub barriers: Arc<GridBarriers>,
    /// Bytes of LDS of a workgroup.
    pub allotted: u32,
    pub simd: Simd,
    /// The ids of the work-items of each wave of a whole workgroup.
    pub items: Vec<Words>,
}

/// The ids of a wave's work-items in a workgroup, with the three dimensions in one word.
pub(crate) fn item_ids(size: [u32; 3], first: usize) -> Words {
    let first = first as u32;
    let [mut x, mut y, mut z] = [
        first % size[0],
        first / size[0] % size[1],
        first / size[0] / size[1],
    ];
    std::array::from_fn(|_| {
        let id = x | y << 10 | z << 20;
        x += 1;
        if x == size[0] {
            (x, y) = (0, y + 1);
        }
        if y == size[1] {
            (y, z) = (0, z + 1);
        }
        id
    })
}

impl Dispatch<'_> {
    /// Workgroups per dimension, partial ones included.
    fn groups(&self) -> [u32; 3] {
        std::array::from_fn(|dimension| {
            self.packet.grid_size[dimension].div_ceil(self.packet.workgroup_size[dimension])
        })
    }

    /// The number of workgroups.
    pub(crate) fn workgroups(&self) -> u64 {
        self.groups().into_iter().map(u64::from).product()
    }

    /// The most workgroups that the hardware holds at once, by waves and LDS.
    pub(crate) fn capacity(&self) -> u64 {
        let items: u32 = self.packet.workgroup_size.iter().product();
        let waves = items.div_ceil(self.descriptor.wave_size().lanes() as u32);
        let by_waves = WAVES_OF_UNIT / waves;
        let by_lds = self
            .target
            .max_lds()
            .checked_div(self.allotted)
            .unwrap_or(u32::MAX);
        let units = ComputeUnits::for_target(self.target).units();
        u64::from(units) * u64::from(by_waves.min(by_lds).max(1))
    }

    /// Makes a workgroup the one with a number, before its first instructions. Uses its memory again, and
    /// takes and leaves waves in `spare`.
    pub(crate) fn begin(&self, number: u64, workgroup: &mut Workgroup, spare: &mut Vec<Wave>) {
        let groups = self.groups().map(u64::from);
        workgroup.number = number;
        workgroup.id = [
            number % groups[0],
            number / groups[0] % groups[1],
            number / groups[0] / groups[1],
        ]
        .map(|place| place as u32);
        workgroup.lds.clear();
        workgroup.lds.resize(self.allotted as usize, LDS_GARBAGE);
        workgroup.watch = self
            .context
            .mistakes
            .map(|_| Box::new(LdsWatch::new(self.allotted as usize)));
        self.prepare(workgroup, spare);
        workgroup.hazards = self.context.hazards.map(|_| {
            let size = self.descriptor.wave_size().of_instructions();
            let vectors = self.descriptor.registers(self.target).vectors;
            let waves = workgroup.waves.len();
            Box::new(HazardWatch::new(self.target, size, waves, vectors))
        });
    }

    /// Describes an access beyond LDS.
    pub(crate) fn beyond_lds(
        &self,
        workgroup: [u32; 3],
        wave: usize,
        access: LdsAccess,
    ) -> BeyondLds {
        BeyondLds {
            site: Box::new(self.site(workgroup, wave, access.pc)),
            mnemonic: access.mnemonic,
            access: access.access,
            size: access.size,
            address: access.address,
            requested: self.packet.group_segment_size,
            allotted: self.allotted,
        }
    }

    /// The size of a workgroup. Workgroups at the grid's edges may be smaller.
    fn size(&self, group: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|dimension| {
            let full = self.packet.workgroup_size[dimension];
            let before = u64::from(group[dimension]) * u64::from(full);
            let left = u64::from(self.packet.grid_size[dimension]) - before;
            left.min(full.into()) as u32
        })
    }

    /// Sets up the waves of a workgroup.
    fn prepare(&self, workgroup: &mut Workgroup, spare: &mut Vec<Wave>) {
        let size = self.size(workgroup.id);
        let items = size.iter().product::<u32>() as usize;
        let scratch = scratch_size(self.packet, &self.descriptor) as usize;
        let apertures = Apertures::new(
            self.context.shared_aperture,
            self.context.private_aperture,
            self.target,
        );
        let units = ComputeUnits::for_target(self.target);
        let wave_size = self.descriptor.wave_size();
        let lanes = wave_size.lanes();
        let waves = &mut workgroup.waves;
        let count = items.div_ceil(lanes);
        // The system takes longer to give a wave's memory than the wave to run a short kernel.
        spare.extend(waves.drain(count.min(waves.len())..));
        waves.resize_with(count, || {
            spare.pop().unwrap_or_else(|| Wave::new(self.simd))
        });
        for (number, wave) in waves.iter_mut().enumerate() {
            let first = number * lanes;
            wave.size = wave_size;
            wave.all_lanes = wave_size.mask();
            wave.state = State::Running;
            wave.arrival = Arrival::None;
            wave.scc = false;
            wave.apertures = apertures;
            wave.simd = self.simd;
            wave.scratch.resize(scratch);
            wave.indexed = 0;
            wave.banks = Banks::default();
            wave.grid_wait = None;
            wave.place = units.place(workgroup.number, number as u32);
            wave.mode = Mode::from_rsrc1(self.descriptor.rsrc1, self.target);
            wave.pc = self
                .packet
                .kernel_object
                .wrapping_add_signed(self.descriptor.entry_offset);
            let active = (items - first).min(lanes);
            wave.set_mask(Operand::EXEC, u64::MAX >> (LANES - active));
            // Most workgroups are whole.
            let ids = match self.items.get(number) {
                Some(ids) if size == self.packet.workgroup_size => *ids,
                _ => item_ids(size, first),
            };
            if self.target.has_packed_ids() {
                wave.vectors[0] = ids;
                continue;
            }
            for dimension in 0..self.descriptor.item_id_dimensions() {
                wave.vectors[dimension] = ids.map(|id| id >> (10 * dimension) & 0x3ff);
            }
        }
        // All waves have the values of the first one.
        if let Some((first, others)) = waves.split_first_mut() {
            let count = self.set_scalars(workgroup.id, first);
            for wave in others {
                wave.scalars[..count].copy_from_slice(&first.scalars[..count]);
            }
        }
        if self.target.has_architected_ids() {
            let [x, y, z] = workgroup.id;
            for (number, wave) in waves.iter_mut().enumerate() {
                // No workgroup is in a cluster.
                wave.set_word(TTMP6, 0);
                wave.set_word(TTMP7, y | z << 16);
                wave.set_word(TTMP8, (number as u32 & 31) << 25);
                wave.set_word(TTMP9, x);
            }
        }
    }

    /// Sets the user SGPRs that the descriptor enables, then the system SGPRs. Returns their number.
    fn set_scalars(&self, group: [u32; 3], wave: &mut Wave) -> usize {
        let descriptor = &self.descriptor;
        let next = Cell::new(0);
        let mut push = |enabled: bool, words: &[u32]| {
            if enabled {
                for word in words {
                    wave.set_word(Operand::scalar(next.get()), *word);
                    next.set(next.get() + 1);
                }
            }
        };
        if let Some(state) = self.context.state {
            push(
                true,
                &state.user_data[..(descriptor.user_sgprs(self.target) as usize).min(16)],
            );
        } else {
            self.push_user_scalars(&mut push);
        }
        while next.get() < descriptor.user_sgprs(self.target) {
            push(true, &[0]);
        }
        if self.target.has_architected_ids() {
            return next.get() as usize;
        }
        for (dimension, id) in group.into_iter().enumerate() {
            push(descriptor.workgroup_id(dimension), &[id]);
        }
        push(descriptor.workgroup_info(), &[0]);
        let has_wave_offset =
            descriptor.private_segment() && !self.target.has_architected_flat_scratch();
        push(has_wave_offset, &[0]);
        next.get() as usize
    }

    /// Passes the words of the user SGPRs that the descriptor enables to `push`, in order.
    fn push_user_scalars(&self, push: &mut impl FnMut(bool, &[u32])) {
        let descriptor = &self.descriptor;
        let pair = |value: u64| [value as u32, (value >> 32) as u32];
        push(descriptor.private_segment_buffer(), &PRIVATE_SEGMENT_BUFFER);
        push(
            descriptor.dispatch_ptr(),
            &pair(self.context.packet_address),
        );
        push(descriptor.queue_ptr(), &pair(self.context.queue_address));
        push(
            descriptor.kernarg_segment_ptr(),
            &pair(self.packet.kernarg_address),
        );
        push(descriptor.dispatch_id(), &pair(self.context.dispatch_id));
        // Scratch has no address in device memory: its flat addresses lie in the aperture.
        push(descriptor.flat_scratch_init(), &pair(0));
        push(
            descriptor.private_segment_size_sgpr(),
            &[self.packet.private_segment_size],
        );
        // Except on gfx1250, the model reserves the SGPRs of preloaded kernel arguments but does not fill them,
        // like hardware with old firmware. The compiler starts such a kernel with a prologue of 256
        // bytes that loads them. Only newer firmware skips the prologue.
        let mut memory = View::new(self.memory);
        for place in 0..u64::from(descriptor.kernarg_preload_length) {
            let offset = 4 * (u64::from(descriptor.kernarg_preload_offset) + place);
            let word = match self.target {
                Target::Gfx1250 => memory.load(self.packet.kernarg_address.wrapping_add(offset), 4),
                _ => Ok(0),
            };
            push(true, &[word.unwrap_or_default() as u32]);
        }
    }

    /// Tells of the mistakes with LDS that the workgroup's watch has seen since the last call.
    pub(crate) fn tell_mistakes(&self, workgroup: &mut Workgroup) {
        let (Some(tell), Some(watch)) = (self.context.mistakes, &mut workgroup.watch) else {
            return;
        };
        let id = workgroup.id;
        for sighting in [watch.race.take(), watch.unwritten.take()]
            .into_iter()
            .flatten()
        {
            let Sighting {
                wave, pc, other, ..
            } = sighting;
            tell(LdsMistake {
                site: Box::new(self.site(id, wave, pc)),
                mnemonic: sighting.mnemonic,
                lane: sighting.lane as u8,
                address: sighting.address,
                other: other.map(|(wave, pc)| Box::new(self.site(id, wave, pc))),
            });
        }
    }

    /// Reports the hazards that the workgroup's watch has seen since the last call.
    pub(crate) fn report_hazards(&self, workgroup: &mut Workgroup) {
        let (Some(report), Some(watch)) = (self.context.hazards, &mut workgroup.hazards) else {
            return;
        };
        let id = workgroup.id;
        for HazardSighting { wave, at, finding } in watch.take() {
            let earlier = finding.earlier.map(|earlier| {
                let site = self.site(id, wave, earlier.pc);
                (earlier.mnemonic, Box::new(site))
            });
            report(Hazard {
                site: Box::new(self.site(id, wave, at.pc)),
                mnemonic: at.mnemonic,
                rule: finding.rule,
                problem: finding.problem,
                earlier,
                remedy: finding.remedy.to_string(),
            });
        }
    }

    /// The error for an interruption of a workgroup.
    pub(crate) fn error(&self, workgroup: [u32; 3], interruption: Interruption) -> DispatchError {
        match interruption {
            Interruption::Cancelled => DispatchError::Cancelled,
            Interruption::Fault { wave, pc, fault } => {
                let site = Box::new(self.site(workgroup, wave, pc));
                DispatchError::Fault { site, fault }
            }
        }
    }

    pub(crate) fn site(&self, workgroup: [u32; 3], wave: usize, pc: u64) -> Site {
        let identity = KernelIdentity::find(self.memory, self.packet.kernel_object);
        Site {
            offset: identity.offset(pc),
            source: identity.line(self.memory, self.context.files, pc),
            kernel: identity.kernel,
            code_object: identity.code_object.to_string(),
            pc,
            workgroup,
            wave: wave as u32,
        }
    }
}

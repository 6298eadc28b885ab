//! Dispatch geometry and the registers that a wave starts with.

use std::sync::atomic::{AtomicBool, Ordering};

use modelgpu_amdgcn::code_object::Files;
use modelgpu_amdgcn::memory::{AddressSpace, Arena, Region};
use modelgpu_amdgcn::{
    Argument, Code, DispatchContext, DispatchError, DispatchPacket, Launch, Program, ScopedWorkers,
    Target, dispatch,
};
use modelgpu_testing::{AssemblyKernel, assemble};

/// Each work-item writes its packed ids and its workgroup's ids, at the index of its coordinates in
/// a grid of 16 x 8 x 8.
const IDS: &str = "
    s_load_dwordx4 s[12:15], s[4:5], 0x0
    v_and_b32 v1, 0x3ff, v0
    v_bfe_u32 v2, v0, 10, 10
    v_bfe_u32 v3, v0, 20, 10
    s_waitcnt lgkmcnt(0)
    s_load_dwordx4 s[16:19], s[14:15], 0x0
    s_waitcnt lgkmcnt(0)
    s_mul_i32 s20, WORKGROUP_X, s16
    s_mul_i32 s21, WORKGROUP_Y, s17
    s_mul_i32 s22, WORKGROUP_Z, s18
    v_add_u32 v1, s20, v1
    v_add_u32 v2, s21, v2
    v_add_u32 v3, s22, v3
    v_lshl_add_u32 v3, v3, 3, v2
    v_lshl_add_u32 v3, v3, 4, v1
    v_lshlrev_b32 v3, 3, v3
    s_lshl_b32 s20, WORKGROUP_Y, 8
    s_or_b32 s20, s20, WORKGROUP_X
    s_lshl_b32 s21, WORKGROUP_Z, 16
    s_or_b32 s20, s20, s21
    v_mov_b32 v1, s20
    global_store_dwordx2 v3, v[0:1], s[12:13]";

const CELLS: [u32; 3] = [16, 8, 8];

fn ids(target: Target, grid: [u32; 3], block: [u32; 3]) -> (Vec<u64>, u64, u64) {
    // From gfx12 on, trap registers have the workgroup's ids, and no others do (LLVM's "User Guide for AMDGPU Backend",
    // "Initial Kernel Execution State").
    let in_trap_registers = "
    s_mov_b32 s6, ttmp9
    s_and_b32 s7, ttmp7, 0xffff
    s_lshr_b32 s8, ttmp7, 16";
    // Targets before gfx90a have an id in each of three registers.
    let in_three = "
    v_lshl_or_b32 v0, v1, 10, v0
    v_lshl_or_b32 v0, v2, 20, v0";
    let first = match target {
        Target::Gfx1201 | Target::Gfx1250 => in_trap_registers,
        _ if !target.has_packed_ids() => in_three,
        _ => "",
    };
    let body = format!("{first}{IDS}")
        .replace("WORKGROUP_X", "s6")
        .replace("WORKGROUP_Y", "s7")
        .replace("WORKGROUP_Z", "s8");
    let kernel = AssemblyKernel {
        name: "ids".into(),
        body,
    };
    let more = ".amdhsa_system_sgpr_workgroup_id_y 1
                .amdhsa_system_sgpr_workgroup_id_z 1
                .amdhsa_system_vgpr_workitem_id 2";
    let mut program =
        Program::load(&assemble(target, &[kernel], 2, more)).expect("a linked object");
    let cells = CELLS.iter().product::<u32>() as usize;
    let output = program.arena_mut().allocate(&vec![0xff; 8 * cells]);
    let sizes: Vec<u8> = block
        .iter()
        .chain(&[0])
        .flat_map(|size| size.to_le_bytes())
        .collect();
    let sizes = program.arena_mut().allocate(&sizes);
    let statistics = program
        .launch(&Launch {
            kernel: "ids".into(),
            grid,
            block,
            dynamic_lds: 0,
            arguments: vec![Argument::Pointer(output), Argument::Pointer(sizes)],
        })
        .expect("a kernel that ends");
    let bytes = program
        .arena()
        .read(output, 8 * cells as u64)
        .expect("the output");
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    (words, statistics.workgroups, statistics.waves)
}

#[test]
fn every_work_item_runs_once_partial_workgroups_included() {
    for &target in Target::WAVE64 {
        for (grid, block, groups, waves) in [
            ([16, 8, 8], [16, 8, 8], 1, 16),
            ([16, 8, 8], [4, 4, 4], 16, 16),
            // Partial in each dimension: 13 = 5+5+3, 7 = 3+3+1, 5 = 2+2+1.
            ([13, 7, 5], [5, 3, 2], 27, 27),
            ([16, 1, 1], [10, 1, 1], 2, 2),
            ([1, 1, 1], [16, 8, 8], 1, 1),
            // 90 work-items each: a full wave and a partial one.
            ([9, 5, 8], [9, 5, 2], 4, 8),
        ] {
            let (cells, ran_groups, ran_waves) = ids(target, grid, block);
            assert_eq!(
                (ran_groups, ran_waves),
                (groups, waves),
                "{grid:?} by {block:?}"
            );
            for (number, cell) in cells.into_iter().enumerate() {
                let number = number as u32;
                let place = [
                    number % CELLS[0],
                    number / CELLS[0] % CELLS[1],
                    number / CELLS[0] / CELLS[1],
                ];
                let inside = (0..3).all(|d| place[d] < grid[d]);
                let [x, y, z]: [u64; 3] = std::array::from_fn(|d| (place[d] % block[d]).into());
                let [gx, gy, gz]: [u64; 3] = std::array::from_fn(|d| (place[d] / block[d]).into());
                let want = x | y << 10 | z << 20 | (gx | gy << 8 | gz << 16) << 32;
                let want = if inside { want } else { u64::MAX };
                assert_eq!(cell, want, "{target} {grid:?} by {block:?} at {place:?}");
            }
        }
    }
}

#[test]
fn a_packet_says_what_its_bytes_say() {
    let packet = DispatchPacket {
        workgroup_size: [64, 2, 3],
        grid_size: [1000, 20, 30],
        private_segment_size: 44,
        group_segment_size: 55,
        kernel_object: 0x1122_3344_5566_7788,
        kernarg_address: 0x99aa_bbcc_ddee_ff00,
        completion_signal: 0x77,
    };
    let mut bytes = packet.to_bytes();
    assert_eq!(DispatchPacket::parse(&bytes), packet);
    // hsa_kernel_dispatch_packet_t's offsets.
    assert_eq!(bytes[12..16], 1000u32.to_le_bytes());
    assert_eq!(bytes[32..40], packet.kernel_object.to_le_bytes());
    // A packet with fewer dimensions ignores the other sizes.
    bytes[2] = 1;
    let line = DispatchPacket {
        workgroup_size: [64, 1, 1],
        grid_size: [1000, 1, 1],
        ..packet
    };
    assert_eq!(DispatchPacket::parse(&bytes), line);
}

/// A program's arena. A test increments its generation.
struct Watched<'a>(&'a Arena);

// SAFETY: an arena's regions stay valid as long as it lives.
unsafe impl AddressSpace for Watched<'_> {
    fn region(&self, address: u64) -> Option<Region> {
        self.0.region(address)
    }

    fn generation(&self) -> u64 {
        self.0.generation()
    }
}

/// Runs a one-wave kernel through the public entry point; it writes four dwords.
struct NoFiles;

impl Files for NoFiles {
    fn visit(&self, _: &mut dyn FnMut(&[u8]) -> bool) {}
}

fn run_entry_point(
    target: Target,
    body: &str,
    cancelled: &AtomicBool,
) -> Result<Vec<u32>, DispatchError> {
    let kernel = AssemblyKernel {
        name: "entry".into(),
        body: body.into(),
    };
    let more = ".amdhsa_user_sgpr_dispatch_id 1";
    let mut program =
        Program::load(&assemble(target, &[kernel], 1, more)).expect("a linked object");
    let output = program.arena_mut().allocate(&[0; 16]);
    let kernarg = program.arena_mut().allocate(&output.to_le_bytes());
    let packet = DispatchPacket {
        workgroup_size: [64, 1, 1],
        grid_size: [64, 1, 1],
        private_segment_size: modelgpu_testing::SCRATCH_SIZE as u32,
        group_segment_size: 0,
        kernel_object: program.object().symbols["entry.kd"].address,
        kernarg_address: kernarg,
        completion_signal: 0,
    };
    let packet_address = program.arena_mut().allocate(&packet.to_bytes());
    let context = DispatchContext {
        state: None,
        packet_address,
        queue_address: 0x1234_5678_9abc,
        shared_aperture: 7 << 32,
        private_aperture: 9 << 32,
        dispatch_id: 0xabc_0000_0001,
        beyond_lds: &|warning| panic!("{warning}"),
        mistakes: None,
        hazards: None,
        stuck: &|stuck| panic!("{stuck}"),
        interrupt: &|data| panic!("an interrupt with {data}"),
        clock: &|| 0,
        files: &NoFiles,
        trace: None,
        workers: &ScopedWorkers {
            threads: 1,
            alone: 0,
        },
        cancelled,
    };
    let mut code = Code::new(target);
    dispatch(&mut code, &Watched(program.arena()), &packet, &context)?;
    let bytes = program.arena().read(output, 16).expect("the output");
    Ok(bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect())
}

#[test]
fn pointers_and_ids_of_the_dispatch() {
    // The order on gfx942 is dispatch pointer, queue pointer, kernel arguments, dispatch id.
    let body = "
        s_load_dwordx2 s[12:13], s[4:5], 0x0
        s_load_dword s14, s[0:1], 0xc
        s_mov_b64 s[16:17], src_private_base
        s_waitcnt lgkmcnt(0)
        v_mov_b32 v0, 0
        v_mov_b32 v2, s14
        v_mov_b32 v3, s2
        v_mov_b32 v4, s7
        v_mov_b32 v5, s17
        global_store_dwordx4 v0, v[2:5], s[12:13]";
    let words = run_entry_point(Target::Gfx942, body, &AtomicBool::new(false)).expect("an end");
    assert_eq!(words, [64, 0x5678_9abc, 0xabc, 9]);
}

#[test]
fn a_cancelled_dispatch_ends() {
    let cancelled = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let endless =
            scope.spawn(|| run_entry_point(Target::Gfx90a, "1:\ns_branch 1b", &cancelled));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!endless.is_finished());
        cancelled.store(true, Ordering::Relaxed);
        endless.join().expect("no panic")
    });
    assert_eq!(result, Err(DispatchError::Cancelled));
}

#[test]
fn code_that_is_replaced_is_decoded_again() {
    // Both programs lie at the same addresses, and this thread keeps decoded instructions.
    let body = |value: u32| {
        format!(
            "s_load_dwordx2 s[12:13], s[4:5], 0x0
             v_mov_b32 v0, 0
             v_mov_b32 v1, {value}
             s_waitcnt lgkmcnt(0)
             global_store_dword v0, v1, s[12:13]"
        )
    };
    for value in [5, 6, 7] {
        let words = run_entry_point(Target::Gfx90a, &body(value), &AtomicBool::new(false));
        assert_eq!(words.expect("an end")[0], value);
    }
}

#[test]
fn waves_of_a_workgroup_meet_at_barriers() {
    // Each of 16 waves adds its number to LDS. After the barrier all waves see the sum. A wave that
    // loops until another wave's store also makes progress.
    let body = "
        s_load_dwordx2 s[12:13], s[4:5], 0x0
        v_mov_b32 v1, 0
        v_mov_b32 v2, 0
        ds_write_b32 v1, v2
        ds_write_b32 v1, v2 offset:4
        s_barrier
        v_mov_b32 v2, 1
        ds_add_u32 v1, v2
        s_barrier
        ds_read_b32 v8, v1
        v_cmp_eq_u32 vcc, 0, v0
        s_and_saveexec_b64 s[20:21], vcc
        s_cbranch_execz 1f
        2:
        ds_read_b32 v4, v1 offset:4
        v_cmp_eq_u32 vcc, 15, v4
        s_cbranch_vccz 2b
        1:
        s_mov_b64 exec, s[20:21]
        v_and_b32 v5, 63, v0
        v_cmp_eq_u32 vcc, 0, v5
        v_cmp_ne_u32 s[22:23], 0, v0
        s_and_b64 exec, vcc, s[22:23]
        ds_add_u32 v1, v2 offset:4
        s_mov_b64 exec, -1
        s_barrier
        ds_read_b32 v9, v1 offset:4
        v_lshlrev_b32 v6, 3, v0
        s_waitcnt lgkmcnt(0)
        global_store_dwordx2 v6, v[8:9], s[12:13]";
    for &target in Target::WAVE64 {
        let kernel = AssemblyKernel {
            name: "meet".into(),
            body: body.into(),
        };
        let mut program =
            Program::load(&assemble(target, &[kernel], 1, "")).expect("a linked object");
        let output = program.arena_mut().allocate(&[0; 8 * 1024]);
        let launch = Launch {
            kernel: "meet".into(),
            grid: [1024, 1, 1],
            block: [1024, 1, 1],
            dynamic_lds: 0,
            arguments: vec![Argument::Pointer(output)],
        };
        program.launch(&launch).expect("an end");
        let bytes = program.arena().read(output, 8 * 1024).expect("the output");
        let want = [1024u32.to_le_bytes(), 15u32.to_le_bytes()].concat();
        assert!(bytes.chunks_exact(8).all(|item| item == want), "{target}");
    }
}

#[test]
fn registers_are_set_aside_for_preloaded_arguments() {
    // Two of them lie between the kernel arguments' address in s[4:5] and the workgroup's number.
    let body = "
        s_load_dwordx2 s[12:13], s[4:5], 0x0
        s_lshl_b32 s14, s8, 2
        v_mov_b32 v1, s14
        v_mov_b32 v2, s8
        v_add_u32 v2, 7, v2
        s_waitcnt lgkmcnt(0)
        global_store_dword v1, v2, s[12:13]";
    let kernel = AssemblyKernel {
        name: "preloads".into(),
        body: body.into(),
    };
    let more = ".amdhsa_user_sgpr_kernarg_preload_length 2";
    let object = assemble(Target::Gfx942, &[kernel], 1, more);
    let mut program = Program::load(&object).expect("a linked object");
    let output = program.arena_mut().allocate(&[0; 8]);
    let launch = Launch {
        kernel: "preloads".into(),
        grid: [128, 1, 1],
        block: [64, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(output)],
    };
    program.launch(&launch).expect("an end");
    let written = program.arena().read(output, 8).expect("the output");
    assert_eq!(written, [7, 0, 0, 0, 8, 0, 0, 0]);
}

//! The limits of local memory. The model allots it in the hardware's units. Beyond them reads give
//! 0 and writes have no effect.

use modelgpu_amdgcn::{Access, Argument, Launch, Program, Target};
use modelgpu_testing::{AssemblyKernel, LDS_SIZE, assemble};

/// Runs a body on one wave that has its lane's number in v0. Returns v10 to v13, lane by lane.
fn run(program: &mut Program, dynamic_lds: u32) -> Vec<[u32; 4]> {
    let output = program.arena_mut().allocate(&[0; 16 * 64]);
    let launch = Launch {
        kernel: "beyond".into(),
        grid: [64, 1, 1],
        block: [64, 1, 1],
        dynamic_lds,
        arguments: vec![Argument::Pointer(output)],
    };
    program.launch(&launch).expect("the kernel goes on");
    let bytes = program.arena().read(output, 16 * 64).expect("the output");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes
        .chunks_exact(16)
        .map(|lane| std::array::from_fn(|place| word(&lane[4 * place..][..4])))
        .collect()
}

fn program(target: Target, body: &str) -> Program {
    let body = format!(
        "s_load_dwordx2 s[8:9], s[4:5], 0x0
         v_mov_b32 v10, 0x5a5a5a5a
         v_mov_b32 v11, v10
         v_mov_b32 v12, v10
         v_mov_b32 v13, v10
         s_waitcnt lgkmcnt(0)
         {body}
         s_waitcnt vmcnt(0) lgkmcnt(0)
         v_lshlrev_b32 v1, 4, v0
         global_store_dwordx4 v1, v[10:13], s[8:9]"
    );
    let kernel = AssemblyKernel {
        name: "beyond".into(),
        body,
    };
    Program::load(&assemble(target, &[kernel], 1, "")).expect("an object that was just linked")
}

/// The unit of LDS in bytes (LLVM's AMDGPUUsage, GRANULATED_LDS_SIZE), and the bytes that the kernel's
/// own LDS takes.
fn unit(target: Target) -> (usize, usize) {
    let unit = if target == Target::Gfx950 { 1280 } else { 512 };
    (unit, LDS_SIZE.next_multiple_of(unit))
}

#[test]
fn allotted_in_the_hardwares_units() {
    for &target in Target::WAVE64 {
        // A launch with some more has the whole next unit.
        let (unit, own) = unit(target);
        let body = format!(
            "v_mov_b32 v2, {}
             v_mov_b32 v3, 77
             ds_write_b32 v2, v3
             s_waitcnt lgkmcnt(0)
             ds_read_b32 v10, v2
             ds_read_b32 v11, v2 offset:4",
            own + unit - 4
        );
        for (more, wanted) in [
            (0, [0, 0]),
            (1, [77, 0]),
            (unit, [77, 0]),
            (unit + 1, [77, 0xa5a5_a5a5]),
        ] {
            let mut program = program(target, &body);
            let results = run(&mut program, (own - LDS_SIZE + more) as u32);
            assert_eq!(results[5][..2], wanted, "{target}, {more} bytes more");
            assert_eq!(program.warnings().len(), usize::from(more != unit + 1));
        }
    }
}

#[test]
fn reads_beyond_give_zero() {
    // An access that begins inside and ends beyond has its first half. The test tries every size,
    // also through the flat address space.
    for &target in Target::WAVE64 {
        let (_, own) = unit(target);
        let body = format!(
            "v_mov_b32 v2, {}
             v_mov_b32 v3, 0x77
             ds_write_b32 v2, v3
             ds_read_b64 v[10:11], v2
             v_mov_b32 v4, {own}
             ds_read_u16 v12, v4
             s_mov_b64 s[10:11], src_shared_base
             v_mov_b32 v5, s11
             flat_load_dword v13, v[4:5]",
            own - 4
        );
        let mut program = program(target, &body);
        assert_eq!(run(&mut program, 0), [[0x77, 0, 0, 0]; 64], "{target}");
    }
}

#[test]
fn writes_and_atomics_beyond_are_dropped() {
    // An address with all bits set, and the wrap of one with its offset: 16 is inside.
    let body = "v_mov_b32 v2, -1
         v_mov_b32 v3, 9
         ds_write_b32 v2, v3
         ds_write_b128 v2, v[2:5]
         ds_add_rtn_u32 v10, v2, v3
         v_mov_b32 v4, 16
         ds_write_b32 v4, v3
         v_mov_b32 v2, -4
         ds_write2_b32 v2, v3, v3 offset0:1 offset1:2
         ds_read_b32 v11, v4
         v_mov_b32 v12, 0
         v_mov_b32 v13, 0";
    for &target in Target::WAVE64 {
        let mut program = program(target, body);
        assert_eq!(run(&mut program, 0), [[0, 9, 0, 0]; 64], "{target}");
    }
}

#[test]
fn one_of_two_addresses_may_be_beyond() {
    // The sums of a register and its offsets are -4 and 0.
    let body = "v_mov_b32 v2, -4
         v_mov_b32 v3, 9
         ds_write2_b32 v2, v3, v3 offset0:0 offset1:1
         ds_read2_b32 v[10:11], v2 offset0:0 offset1:1
         v_mov_b32 v12, 0
         v_mov_b32 v13, 0";
    for &target in Target::WAVE64 {
        let mut program = program(target, body);
        assert_eq!(run(&mut program, 0), [[0, 9, 0, 0]; 64], "{target}");
    }
}

#[test]
fn the_first_access_is_told() {
    let body = "v_lshlrev_b32 v2, 8, v0
         v_mov_b32 v3, 9
         ds_write_b32 v2, v3 offset:16
         ds_read_b32 v4, v2";
    let mut program = program(Target::Gfx90a, body);
    run(&mut program, 0);
    run(&mut program, 100);
    let [first, second] = program.warnings() else {
        panic!("{:?}", program.warnings())
    };
    // Lane 32 is the first whose address is beyond.
    assert_eq!(
        (first.mnemonic, first.access, first.size, first.address),
        ("ds_write_b32", Access::Write, 4, LDS_SIZE as u64 + 16)
    );
    assert_eq!((first.requested, first.allotted), (8192, 8192));
    assert_eq!((second.requested, second.allotted), (8292, 8704));
    // The instruction's own address, as a disassembly prints it: two long and six short
    // instructions come first.
    assert_eq!(first.site.pc % 0x100, 2 * 8 + 6 * 4, "{first}");
    let text = first.to_string();
    for part in [
        "kernel beyond, workgroup (0, 0, 0), wave 0, pc 0x",
        "ds_write_b32: write of 4 bytes at LDS address 0x2010, beyond the workgroup's 0x2000 bytes \
         (the launch asks for 0x2000)",
        "reads there give 0 and writes are dropped",
    ] {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

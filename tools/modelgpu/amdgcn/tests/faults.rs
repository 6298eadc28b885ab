//! Errors that the user sees for a kernel's mistakes and for features that are not modelled.

use modelgpu_amdgcn::code_object::LoadError;
use modelgpu_amdgcn::{
    Access, Argument, DispatchError, Fault, File, Launch, LaunchError, LdsMistake, Program, Space,
    Target,
};
use modelgpu_testing::{AssemblyKernel, assemble, compile_hip, is_rdna, repository, text, tool};

/// A program with one kernel, `broken`, with this body and two pointers in s[8:11].
fn program(target: Target, body: &str) -> Program {
    let body = format!(
        "s_load_dwordx4 s[8:11], s[4:5], 0x0
         v_lshlrev_b32 v1, 2, v0
         s_waitcnt lgkmcnt(0)
         {body}"
    );
    let kernel = AssemblyKernel {
        name: "broken".into(),
        body,
    };
    Program::load(&assemble(target, &[kernel], 2, "")).expect("an object that was just linked")
}

#[test]
fn registers_beyond_the_descriptor() {
    // LLVM's AMDGPUUsage has the units: 8 VGPRs from gfx90a on, and 4 before; 4 in RDNA's waves of 64; 16 SGPRs, of which VCC and others
    // are 6, on CDNA. RDNA's waves have all SGPRs.
    const ASKED: &str = ".amdhsa_next_free_vgpr 18\n.amdhsa_next_free_sgpr 20";
    let with = |target: Target, body: &str| {
        let own = match target {
            _ if is_rdna(target) => "",
            _ if !target.has_unified_registers() => "",
            _ => "\n.amdhsa_accum_offset 12",
        };
        let kernel = AssemblyKernel {
            name: "broken".into(),
            body: body.into(),
        };
        let object = assemble(target, &[kernel], 2, &format!("{ASKED}{own}"));
        launch(&mut Program::load(&object).expect("an object that was just linked"))
    };
    for &target in Target::WAVE64 {
        let (vectors, accumulators, scalars) = match target {
            _ if is_rdna(target) => (20, 0, 106),
            Target::Gfx906 => (20, 0, 32),
            // Each of the two files has as many.
            Target::Gfx908 => (20, 20, 32),
            _ => (12, 12, 32),
        };
        let mut cases = vec![
            (File::Vector, vectors, "v_mov_b32 v{}, 1"),
            (File::Vector, vectors, "v_mov_b32 v0, v{}"),
            (File::Scalar, scalars, "s_mov_b32 s{}, 1"),
        ];
        if accumulators > 0 {
            cases.push((
                File::Accumulator,
                accumulators,
                "v_accvgpr_write_b32 a{}, v0",
            ));
        }
        for (file, count, text) in cases {
            let body = |number: u16| text.replace("{}", &number.to_string());
            let last = with(target, &body(count - 1));
            last.unwrap_or_else(|error| panic!("{target} {}: {error}", body(count - 1)));
            if count == 106 {
                continue;
            }
            let Err(LaunchError::Dispatch(DispatchError::Fault { site, fault })) =
                with(target, &body(count))
            else {
                panic!("{target} {} ends", body(count));
            };
            assert_eq!(site.kernel, "broken");
            let Fault::BeyondRegisters {
                file: found,
                needed,
                allotted,
                ..
            } = fault
            else {
                panic!("{target} {}: {fault}", body(count));
            };
            let beyond = (file, needed - allotted);
            assert_eq!((found, 1), beyond, "{target} {}: {fault}", body(count));
        }
    }
    let Err(error) = with(Target::Gfx90a, "v_mov_b32 v12, 1") else {
        panic!("v12 of 12")
    };
    let message = error.to_string();
    let wanted = "v_mov_b32: v12 is beyond the 12 VGPRs that the kernel's descriptor allots; \
                  raise .amdhsa_next_free_vgpr or .amdhsa_accum_offset to 13 or more";
    assert!(message.contains(wanted), "{message}");
}

/// Two workgroups of two waves on two buffers of 256 bytes.
fn launch(program: &mut Program) -> Result<(), LaunchError> {
    let first = program.arena_mut().allocate(&[1; 256]);
    let second = program.arena_mut().allocate(&[2; 256]);
    let launch = Launch {
        kernel: "broken".into(),
        grid: [256, 1, 1],
        block: [128, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(first), Argument::Pointer(second)],
    };
    program.launch(&launch).map(drop)
}

fn dispatch_error(body: &str) -> DispatchError {
    match launch(&mut program(Target::Gfx90a, body)) {
        Err(LaunchError::Dispatch(error)) => error,
        other => panic!("{body} ends with {other:?}"),
    }
}

fn fault(body: &str) -> Fault {
    match dispatch_error(body) {
        DispatchError::Fault { fault, .. } => fault,
        other => panic!("{body} ends with {other}"),
    }
}

#[test]
fn an_out_of_bounds_load_names_its_place() {
    // The second wave of the first workgroup is beyond the buffer.
    let error = dispatch_error("global_load_dword v2, v1, s[8:9]");
    let DispatchError::Fault { site, fault } = &error else {
        panic!("{error}")
    };
    assert_eq!(site.kernel, "broken");
    assert_eq!((site.workgroup, site.wave), ([0, 0, 0], 1));
    let Fault::OutOfBounds {
        space,
        access,
        size,
        address,
        ..
    } = *fault
    else {
        panic!("{fault}")
    };
    assert_eq!((space, access, size), (Space::Global, Access::Read, 4));
    assert_eq!(address & 0xffff, 256);
    assert!(error.is_memory_fault());
    assert_eq!(error.fault_address(), Some(address));
    let message = error.to_string();
    for part in [
        "kernel broken, workgroup (0, 0, 0), wave 1, pc 0x",
        "code object at 0x700000000000 for gfx90a with one kernel",
        "global_load_dword: out-of-bounds read of 4 bytes at global address 0x",
        " by lane 0",
    ] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    // objdump prints this offset for the instruction, the fifth dword of the kernel.
    assert_eq!(
        site.offset.expect("an ELF image") % 0x100,
        0x10,
        "{message}"
    );
}

#[test]
fn stores_and_atomics_out_of_bounds() {
    for (body, expected) in [
        (
            "global_store_dwordx2 v1, v[2:3], s[10:11] offset:-64",
            Access::Write,
        ),
        (
            "global_atomic_add v1, v2, s[10:11] offset:256",
            Access::Atomic,
        ),
    ] {
        let Fault::OutOfBounds { access, space, .. } = fault(body) else {
            panic!("{body}")
        };
        assert_eq!((access, space), (expected, Space::Global));
    }
    let Fault::OutOfBounds {
        access: Access::Read,
        ..
    } = fault("s_load_dword s0, s[8:9], 0x100")
    else {
        panic!("a scalar load")
    };
}

#[test]
fn scratch_has_a_limit() {
    let fault = fault("v_mov_b32 v2, 0x1000\nscratch_store_dword v2, v3, off");
    let Fault::OutOfBounds { space, limit, .. } = fault else {
        panic!("{fault}")
    };
    let allotted = modelgpu_testing::SCRATCH_SIZE as u64;
    assert_eq!((space, limit), (Space::Scratch, Some(allotted)));
}

#[test]
fn misaligned_atomics() {
    let fault = fault("v_mov_b32 v1, 2\nglobal_atomic_add v1, v2, s[8:9]");
    assert!(
        matches!(fault, Fault::MisalignedAtomic { size: 4, .. }),
        "{fault}"
    );
}

#[test]
fn unmodelled_instructions_are_named() {
    let error = dispatch_error("s_sethalt 1");
    let message = error.to_string();
    assert!(
        message.starts_with("kernel broken, workgroup (0, 0, 0), wave 0, pc 0x"),
        "{message}"
    );
    assert!(
        message.contains(" of code object at 0x700000000000 for gfx90a"),
        "{message}"
    );
    assert!(
        message.ends_with(
            "the instruction s_sethalt is not modelled: it halts the wave for a debugger"
        ),
        "{message}"
    );
    assert!(!error.is_memory_fault());
    assert_eq!(error.fault_address(), None);
}

#[test]
fn unmodelled_forms_are_named() {
    for (body, mnemonic, form) in [
        (
            "v_alignbit_b32 v2, v1, v0, v0 clamp",
            "v_alignbit_b32",
            "the integer clamp modifier",
        ),
        (
            "s_sendmsg sendmsg(MSG_SAVEWAVE)",
            "s_sendmsg",
            "a message other than an interrupt",
        ),
        (
            "s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)",
            "s_getreg_b32",
            "a hardware register other than MODE, HW_ID, SH_MEM_BASES and, on gfx942, XCC_ID",
        ),
        // gfx90a has one XCC, and no register for it.
        (
            "s_getreg_b32 s0, hwreg(20)",
            "s_getreg_b32",
            "a hardware register other than MODE, HW_ID, SH_MEM_BASES and, on gfx942, XCC_ID",
        ),
        (
            "s_setreg_imm32_b32 hwreg(HW_REG_HW_ID, 0, 4), 3",
            "s_setreg_imm32_b32",
            "a hardware register other than MODE",
        ),
        (
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3
             v_fma_mix_f32 v2, v0, v0, v0",
            "v_fma_mix_f32",
            "this rounding mode",
        ),
        (
            "scratch_load_dword v2, off lds",
            "scratch_load_dword",
            "a copy to LDS",
        ),
        (
            "buffer_load_format_x v2, off, s[0:3], 0",
            "buffer_load_format_x",
            "the scratch buffer",
        ),
        (
            "tbuffer_load_format_x v2, off, s[8:11], 0 format:0x6f",
            "tbuffer_load_format_x",
            "this format",
        ),
        (
            "v_mfma_f32_16x16x4f32 v[0:3], v4, v5, v[0:3] cbsz:1",
            "v_mfma_f32_16x16x4f32",
            "this cbsz and abid",
        ),
        (
            "v_mfma_f64_4x4x4f64 v[0:1], v[4:5], v[6:7], v[0:1] blgp:1",
            "v_mfma_f64_4x4x4f64",
            "blgp",
        ),
    ] {
        let wanted = Fault::Unmodelled {
            mnemonic,
            detail: Some(form),
        };
        assert_eq!(fault(body), wanted);
        assert_eq!(
            wanted.to_string(),
            format!("the instruction {mnemonic} is not modelled with {form}")
        );
    }
}

#[test]
fn interrupts_carry_m0() {
    // Each of the four waves sends a different M0: its first work-item's number plus 5.
    let body = "v_add_u32 v2, 5, v0
         v_readfirstlane_b32 s20, v2
         s_mov_b32 m0, s20
         s_nop 0
         s_sendmsg sendmsg(MSG_INTERRUPT)";
    let mut program = program(Target::Gfx942, body);
    launch(&mut program).expect("the kernel ends well");
    assert_eq!(program.interrupts(), [5, 69, 5, 69]);
    assert!(program.executed_mnemonics().contains("s_sendmsg"));
}

#[test]
fn code_that_is_none() {
    assert_eq!(
        fault(".long 0xf4000000\n.long 0x12345678"),
        Fault::IllegalInstruction {
            words: [0xf400_0000, 0x1234_5678],
            target: "gfx90a"
        }
    );
    assert_eq!(
        fault("s_mov_b64 s[8:9], 8\ns_setpc_b64 s[8:9]"),
        Fault::Fetch { address: 8 }
    );
    let trap = |lane| Fault::Trap { number: 2, lane };
    assert_eq!(fault("s_trap 2"), trap(Some(0)));
    assert_eq!(fault("s_mov_b64 exec, 0x28\ns_trap 2"), trap(Some(3)));
    assert_eq!(fault("s_mov_b64 exec, 0\ns_trap 2"), trap(None));
}

#[test]
fn the_shipped_fault_kernels() {
    for (source, kernel, message) in [
        (
            "out_of_bounds",
            "_Z19reads_out_of_boundsPKjPjy",
            "out-of-bounds read of 4 bytes",
        ),
        (
            "unmodelled",
            "_Z5haltsPf",
            "the instruction s_sethalt is not modelled",
        ),
    ] {
        for &target in Target::WAVE64 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let object = directory.path().join("kernel.co");
            let path = repository("testdata/faults")
                .join(source)
                .with_extension("hip");
            let file = compile_hip(&path, target.name(), &["-O1"], &object);
            let mut program = Program::load(&file).expect("an object");
            let buffers =
                [0; 2].map(|_| Argument::Pointer(program.arena_mut().allocate(&[0; 256])));
            let distance = Argument::Bytes((1u64 << 30).to_le_bytes().to_vec());
            let all = [buffers[0].clone(), buffers[1].clone(), distance];
            let count = if source == "unmodelled" { 1 } else { 3 };
            let launch = Launch {
                kernel: kernel.into(),
                grid: [64, 1, 1],
                block: [64, 1, 1],
                dynamic_lds: 0,
                arguments: all[..count].to_vec(),
            };
            let error = program.launch(&launch).expect_err("a fault").to_string();
            assert!(
                error.contains(&format!("kernel {kernel}")),
                "{target}: {error}"
            );
            assert!(error.contains(message), "{target}: {error}");
        }
    }
}

#[test]
fn launches_that_cannot_be() {
    let mut program = program(Target::Gfx942, "");
    let pointer = Argument::Pointer(0);
    let launch = Launch {
        kernel: "broken".into(),
        grid: [64, 1, 1],
        block: [64, 1, 1],
        dynamic_lds: 0,
        arguments: vec![pointer.clone(), pointer],
    };
    for (change, message) in [
        (
            Launch {
                kernel: "no".into(),
                ..launch.clone()
            },
            "the code object has no kernel no",
        ),
        (
            Launch {
                arguments: vec![],
                ..launch.clone()
            },
            "kernel broken: 0 arguments given, 2 wanted",
        ),
        (
            Launch {
                arguments: vec![Argument::Bytes(vec![0; 3]); 2],
                ..launch.clone()
            },
            "kernel broken: argument 0 has 3 bytes, 8 wanted",
        ),
        (
            Launch {
                block: [32, 33, 1],
                ..launch.clone()
            },
            "kernel broken: a workgroup of 32 x 33 x 1 work-items; 1 to 1024 are possible",
        ),
        (
            Launch {
                block: [0, 1, 1],
                ..launch.clone()
            },
            "kernel broken: a workgroup of 0 x 1 x 1 work-items; 1 to 1024 are possible",
        ),
        (
            Launch {
                grid: [64, 0, 1],
                ..launch.clone()
            },
            "kernel broken: a grid of 64 x 0 x 1 work-items",
        ),
        (
            Launch {
                dynamic_lds: 65536,
                ..launch.clone()
            },
            "kernel broken: 73728 bytes of LDS; at most 65536 are possible",
        ),
    ] {
        let error = program.launch(&change).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn malformed_code_objects() {
    let kernel = AssemblyKernel {
        name: "fine".into(),
        body: String::new(),
    };
    let object = assemble(Target::Gfx90a, &[kernel], 0, "");
    let load = |bytes: &[u8]| Program::load(bytes).err().expect("an error");
    assert!(matches!(load(b"no ELF file"), LoadError::Elf(_)));
    let changed = |offset: usize, value: u8| {
        let mut bytes = object.clone();
        bytes[offset] = value;
        bytes
    };
    // e_machine, and EF_AMDGPU_MACH.
    assert!(matches!(load(&changed(18, 62)), LoadError::Machine(62)));
    assert_eq!(
        load(&changed(48, 0x2c)).to_string(),
        format!(
            "e_flags {:#x} name none of {}",
            u32::from(object[49]) << 8 | 0x2c,
            Target::names()
        )
    );
    // No truncation and no single wrong byte in the headers may crash.
    for length in 0..object.len() {
        let _ = Program::load(&object[..length]);
    }
    for offset in 0..0x200 {
        for value in [0, 1, 0x7f, 0xff] {
            let _ = Program::load(&changed(offset, value));
        }
    }
}

#[test]
fn undefined_device_symbols() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let (source, object, linked) = (path("a.s"), path("a.o"), path("a.co"));
    std::fs::write(&source, ".data\n.globl table\ntable:\n.quad elsewhere\n").expect("a file");
    let assembler = [
        "-triple=amdgcn-amd-amdhsa",
        "-mcpu=gfx90a",
        "-filetype=obj",
        text(&source),
        "-o",
    ];
    tool("llvm-mc-22", &[&assembler[..], &[text(&object)]].concat());
    tool(
        "ld.lld-22",
        &["-shared", text(&object), "-o", text(&linked)],
    );
    let error = Program::load(&std::fs::read(&linked).expect("the linker's output")).err();
    assert_eq!(
        error.expect("an error").to_string(),
        "undefined device symbol elsewhere"
    );
}

/// Clang numbers the lines of its input.
#[test]
fn a_fault_names_its_source_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("broken.hip");
    let code = "
        extern \"C\" __attribute__((global)) void broken(int *first, int *second) {
          int item = __builtin_amdgcn_workitem_id_x();
          second[item & 63] = 1;
          if (item == 70)
            first[1 << 20] = second[item & 63];
        }";
    std::fs::write(&source, code).expect("a test can write into its directory");
    let object = directory.path().join("broken.co");
    for &target in Target::WAVE64 {
        for (debug, place) in [
            ("-gline-tables-only", ", at /"),
            ("-g", "/broken.hip:6:"),
            ("-g0", "with one kernel: global_store_"),
        ] {
            let file = compile_hip(&source, target.name(), &["-O1", debug], &object);
            let mut program = Program::load(&file).expect("an object that was just linked");
            let Err(error) = launch(&mut program) else {
                panic!("the store has no memory")
            };
            let message = error.to_string();
            // Work-item 70, in waves of 64 or, on RDNA, of 32.
            let wave = if is_rdna(target) { 2 } else { 1 };
            let wave = format!("kernel broken, workgroup (0, 0, 0), wave {wave}");
            for part in [wave.as_str(), place, " by lane 6"] {
                assert!(
                    message.contains(part),
                    "{debug}: {message:?} lacks {part:?}"
                );
            }
        }
    }
}

/// A kernel on one workgroup of two waves: its statements, on `cells` of LDS and `item`.
fn mistakes(statements: &str, watches: bool) -> Vec<LdsMistake> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("shared.hip");
    let code = format!(
        "
        static __attribute__((shared)) int cells[128];
        static __attribute__((device)) void barrier() {{
          __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");
          __builtin_amdgcn_s_barrier();
          __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");
        }}
        extern \"C\" __attribute__((global)) void shared(volatile int *first, int *second) {{
          int item = __builtin_amdgcn_workitem_id_x();
          {statements}
        }}"
    );
    std::fs::write(&source, code).expect("a test can write into its directory");
    let object = directory.path().join("shared.co");
    let options = ["-O1", "-gline-tables-only"];
    let file = compile_hip(&source, "gfx942", &options, &object);
    let mut program = Program::load(&file).expect("an object that was just linked");
    if watches {
        program.watch_lds();
    }
    let first = program.arena_mut().allocate(&[0; 512]);
    let launch = Launch {
        kernel: "shared".into(),
        grid: [128, 1, 1],
        block: [128, 1, 1],
        dynamic_lds: 0,
        arguments: vec![Argument::Pointer(first), Argument::Pointer(first)],
    };
    program.launch(&launch).expect("an end");
    program.mistakes().to_vec()
}

#[test]
fn races_and_unwritten_bytes_of_lds_are_told() {
    let exchange = "cells[item] = item; BARRIER first[item] = cells[item ^ 64];";
    let good = exchange.replace("BARRIER", "barrier();");
    let racing = exchange.replace(
        "BARRIER",
        "__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, \"workgroup\");",
    );
    assert_eq!(mistakes(&good, true), []);
    assert_eq!(mistakes(&racing, false), []);
    let told = mistakes(&racing, true);
    let race = told
        .iter()
        .find(|mistake| mistake.other.is_some())
        .unwrap_or_else(|| panic!("no race: {told:?}"));
    let message = race.to_string();
    for part in [
        "kernel shared, workgroup (0, 0, 0), wave 1, pc 0x",
        "/shared.hip:10:",
        " at LDS address 0x",
        ": a data race with wave 0, which accessed it at pc 0x",
        " since the last barrier",
    ] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    // Atomics of two waves do not race.
    let atomic = "if (item == 0) cells[0] = 0; barrier(); \
        __hip_atomic_fetch_add(cells, item, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); \
        barrier(); first[item] = cells[0];";
    assert_eq!(mistakes(atomic, true), []);
    // Two waves write a byte without a barrier.
    let told = mistakes(
        "cells[item & 63] = item; barrier(); first[item] = cells[item & 63];",
        true,
    );
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].other.is_some(), "{told:?}");
    // Nobody writes the upper half.
    let half = "if (item < 64) cells[item] = item; barrier(); first[item] = cells[item];";
    let told = mistakes(half, true);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].site.wave, told[0].lane, told[0].address),
        (1, 0, 256)
    );
    let message = told[0].to_string();
    let part = "a read of local memory that no work-item has written";
    assert!(message.ends_with(part), "{message}");
}

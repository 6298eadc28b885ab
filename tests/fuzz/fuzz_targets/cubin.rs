//! A code object of an NVIDIA GPU, whatever machine the ELF is for: its variables, attributes and memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::codeobject::CodeObject;
use rocov::format::codeobject::cuda::{CubinProfile, EM_CUDA, Pointer, Variable};

/// The place of `e_machine`.
const MACHINE: std::ops::Range<usize> = 18..20;

fuzz_target!(|file: &[u8]| {
    let mut cubin = file.to_vec();
    let Some(machine) = cubin.get_mut(MACHINE) else {
        return;
    };
    machine.copy_from_slice(&EM_CUDA.to_le_bytes());
    let Ok(elf) = CodeObject::parse(cubin.as_slice()) else {
        return;
    };
    let _ = (elf.target(), elf.kernels(), elf.is_mapped());
    let _ = (elf.mapped_functions(), elf.copies_tables());
    if let Ok(profile) = CubinProfile::of(&cubin) {
        let is_of = |pointer: &Pointer, variables: &[Variable]| {
            variables.iter().any(|it| it.name == pointer.variable)
        };
        for record in &profile.records {
            let counters = record.counters.as_ref();
            assert!(counters.is_none_or(|it| is_of(it, &profile.counters)));
            let bitmap = record.bitmap.as_ref();
            assert!(bitmap.is_none_or(|it| is_of(it, &profile.bitmaps)));
        }
    }
    let Ok(memory) = elf.memory() else { return };
    for (_, range) in elf.profile_sections().iter() {
        let end = range.map_or(0, |range| range.address + range.size);
        assert!(end <= memory.len() as u64, "sections are in the memory");
    }
});

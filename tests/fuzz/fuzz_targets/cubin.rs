//! A code object of an NVIDIA GPU, whatever machine the ELF is for: its variables, attributes and memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::codeobject::CodeObject;
use rocov::format::codeobject::cuda::{EM_CUDA, is_instrumented, laid_out};

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
    let _ = (elf.target(), elf.kernels());
    let Ok(Some(laid_out)) = laid_out(&cubin) else {
        return;
    };
    assert!(matches!(is_instrumented(&cubin), Ok(true)));
    for variable in &laid_out.counted {
        let end = variable.address.checked_add(variable.size);
        assert!(end.is_some_and(|end| end <= laid_out.size), "{variable:?} is in the memory");
    }
    // The rest of rocov reads this one.
    let elf = CodeObject::parse(laid_out.elf.as_slice()).expect("an ELF of our own");
    let _ = (elf.kernels(), elf.is_mapped(), elf.mapped_functions(), elf.copies_tables());
    let Ok(memory) = elf.memory() else { return };
    for (_, range) in elf.profile_sections().iter() {
        let end = range.map_or(0, |range| range.address + range.size);
        assert!(end <= memory.len() as u64, "sections are in the memory");
    }
});

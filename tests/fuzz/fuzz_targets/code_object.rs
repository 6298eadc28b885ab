//! A device ELF from a program or a file: every read of its parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::codeobject::{CodeObject, Identity};

fuzz_target!(|file: &[u8]| {
    let identity = Identity::from_image(file);
    let Ok(elf) = CodeObject::parse(file) else {
        return;
    };
    if let Ok(identity) = identity {
        let again = Identity::from_digits(identity.as_str());
        assert_eq!(again, Some(identity), "an identity is made of digits");
    }
    let _ = (elf.build_id(), elf.target(), elf.clang_version());
    let _ = (elf.sections(), elf.profile_sections());
    let _ = (elf.variables(b"__prof"), elf.memory());
    let _ = elf.non_atomic_functions();
    for function in elf.mapped_functions().unwrap_or_default() {
        let has_file = |file: u32| function.files.get(file as usize).is_some();
        assert!(function.regions.iter().all(|region| has_file(region.file)));
    }
    let Ok(kernels) = elf.kernels() else { return };
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    if let Ok(sources) = elf.sources(names.iter().copied()) {
        assert_eq!(sources.len(), names.len(), "a source for each function");
    }
});

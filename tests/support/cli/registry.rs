//! Kernel registries as librocov writes them, of runs that the tests make up.

use std::path::Path;

use rocov::format::codeobject::Kernel;
use rocov::format::registry::model::{
    AgentRecord, CodeObjectRecord, Document, KernelAddress, LoadRecord, ProcessRecord, Unload,
};

use super::profile;

/// Bytes of device memory of every load.
pub const LOAD_BYTES: u64 = 0x3000;
/// The offset of the descriptor of the first kernel in a load; those of others follow.
pub const DESCRIPTOR: u64 = 0x40;
/// The offset of the first instruction of the first kernel in a load; those of others follow.
pub const ENTRY: u64 = 0x1000;

/// A kernel of this name with numbers that tell it from others.
pub fn kernel(name: &str, number: u32) -> Kernel {
    Kernel {
        name: name.to_owned(),
        kernarg_size: 16,
        kernarg_align: 8,
        group_size: 1000 + number,
        private_size: 2000 + number,
        sgprs: 20 + number,
        vgprs: 40 + number,
        agprs: 8 * number,
        sgpr_spills: number,
        vgpr_spills: 2 * number,
        wavefront_size: 64,
        max_workgroup_size: 1024,
        instrumented: true,
        source: Some("/src/kernel.hip".to_owned()),
        ..Kernel::default()
    }
}

/// A code object, of this identity if there is no ELF.
pub fn code_object(identity: &str, kernels: Vec<Kernel>) -> CodeObjectRecord {
    CodeObjectRecord {
        identity: identity.to_owned(),
        target: "gfx90a:xnack-".to_owned(),
        size: 4000,
        clang: Some(22),
        instrumented: true,
        file: None,
        kernels,
        damage: None,
    }
}

/// The code object of an ELF.
pub fn code_object_of(elf: &Path, kernels: Vec<Kernel>) -> CodeObjectRecord {
    code_object(&profile::identity(elf), kernels)
}

/// A load at `base` from one generation to before another.
pub fn load(
    object: &CodeObjectRecord,
    base: u64,
    generation: u64,
    unload: Option<u64>,
) -> LoadRecord {
    let kernels = (0..).zip(&object.kernels);
    LoadRecord {
        generation,
        time: 1000 * generation,
        agent: 0,
        executable: 0x5500 + generation,
        uri: format!("file:///app/{}#offset=4096&size=4000", object.identity),
        base,
        size: LOAD_BYTES,
        delta: base,
        code_object: Some(object.identity.clone()),
        host: None,
        profile: None,
        partial: None,
        kernels: kernels
            .map(|(number, kernel)| KernelAddress {
                name: kernel.name.clone(),
                object: base + DESCRIPTOR + 0x40 * number,
                entry: base + ENTRY + 0x100 * number,
            })
            .collect(),
        unload: unload.map(|generation| Unload {
            generation,
            time: 1000 * generation,
        }),
    }
}

/// A process that made these loads of these code objects.
pub fn document(pid: u32, objects: &[CodeObjectRecord], loads: Vec<LoadRecord>) -> Document {
    let agent = AgentRecord {
        index: 0,
        name: "gfx90a".to_owned(),
        isa: Some("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-".to_owned()),
        uuid: Some("GPU-4f1d".to_owned()),
        node: Some(2),
    };
    Document {
        code_objects: objects.to_vec(),
        processes: vec![ProcessRecord {
            pid,
            host: "node7".to_owned(),
            start: 500,
            epoch: 1_700_000_000_000_000_000,
            command: vec!["app".to_owned(), "a b".to_owned()],
            agents: vec![agent],
            hosts: Vec::new(),
            loads,
            device_code: None,
            never_loaded: Vec::new(),
            stops: Vec::new(),
            notes: Vec::new(),
        }],
        ..Document::default()
    }
}

/// Writes a document as librocov names it.
pub fn write(document: &Document, directory: &Path) {
    let name = format!("{}.kernels.json", document.processes[0].pid);
    std::fs::write(directory.join(name), document.to_json()).unwrap();
}

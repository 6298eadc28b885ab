//! The library reads names, instruction sets, UUIDs and nodes of GPU agents from a real runtime.
//! They must match those of the modelled driver.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use rocov::device::Device;
use rocov::device::hsa::{HSA_LIBRARY, HsaDevice, Runtime};

use crate::support::command::run;
use crate::support::gpu::Stack;

/// The test below that runs in a separate process with GPUs.
const INSIDE: &str = "agents::printed_by_a_process_with_gpus";

#[test]
fn agents_say_what_the_driver_says() {
    for stack in Stack::all() {
        let names = match stack {
            // Its runtime is older than gfx942.
            Stack::Debian12 => ["gfx90a", "gfx90a"],
            _ => ["gfx942", "gfx90a"],
        };
        let gpus = names.join(",");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = stack.launcher(&gpus, directory.path());
        command.arg(std::env::current_exe().expect("a test knows its own path"));
        command.args([INSIDE, "--exact", "--ignored", "--nocapture"]);
        let ended = run(&mut command).success();
        let (_, said) = ended.stdout.split_once("agents:\n").expect("the heading");
        let said: Vec<&str> = said.lines().take(names.len()).collect();
        let expected = names.iter().enumerate().map(|(index, name)| {
            let isa = format!("amdgcn-amd-amdhsa--{name}:sramecc+:xnack-");
            // The model has one CPU node, and numbers its devices by it.
            let node = index + 1;
            let uuid = format!("GPU-fa4e6000{node:08x}");
            format!(
                "{name} {index}: {:?} {:?} {:?}",
                Some(isa),
                Some(uuid),
                Some(node)
            )
        });
        assert_eq!(said, expected.collect::<Vec<_>>(), "{gpus} on {stack:?}");
    }
}

#[test]
#[ignore = "runs within agents_say_what_the_driver_says, in a process with GPUs"]
fn printed_by_a_process_with_gpus() {
    // SAFETY: the runtime's initialisers may run at any time, and hsa_init takes no arguments.
    unsafe {
        let hsa = libloading::Library::new(HSA_LIBRARY).expect("an HSA runtime");
        let hsa_init: libloading::Symbol<unsafe extern "C" fn() -> u32> =
            hsa.get("hsa_init").expect("hsa_init");
        assert_eq!(hsa_init(), 0, "status of hsa_init");
        // The runtime has threads now, so the library must stay loaded.
        std::mem::forget(hsa);
    }
    let device =
        HsaDevice::attach(&Runtime::new(), &std::sync::Arc::default()).expect("a whole runtime");
    let agents = device.expect("a running one").agents().expect("its agents");
    println!("agents:");
    for agent in agents {
        println!("{agent}: {:?} {:?} {:?}", agent.isa, agent.uuid, agent.node);
    }
}

//! The meaning of an address at a moment, by the document.

use crate::format::registry::model::{KernelAddress, LoadRecord, ProcessRecord};

impl ProcessRecord {
    /// The code object that held `address` when `generation` was the last event of the process. Addresses are
    /// reused after an unload.
    #[must_use]
    pub fn lookup(&self, address: u64, generation: u64) -> Option<&LoadRecord> {
        self.loads
            .iter()
            .filter(|load| load.holds(address) && load.is_there(generation))
            // If two match, nobody saw the end of the earlier one.
            .max_by_key(|load| load.generation)
    }
}

impl LoadRecord {
    /// Returns whether the load's device memory contains `address`.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        let past_start = address.checked_sub(self.base);
        past_start.is_some_and(|offset| offset < self.size)
    }

    /// Returns whether the code object is loaded when `generation` is the last event.
    #[must_use]
    pub fn is_there(&self, generation: u64) -> bool {
        let has_ended = |end: crate::format::registry::model::Unload| end.generation <= generation;
        self.generation <= generation && !self.unload.is_some_and(has_ended)
    }

    /// The kernel whose kernel object (descriptor) or first instruction is at `address`.
    #[must_use]
    pub fn kernel_at(&self, address: u64) -> Option<&KernelAddress> {
        let is_at = |kernel: &&KernelAddress| kernel.object == address || kernel.entry == address;
        self.kernels.iter().find(is_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::registry::model::Unload;

    fn load(generation: u64, unload: Option<u64>, base: u64, kernel: &str) -> LoadRecord {
        LoadRecord {
            generation,
            time: 0,
            agent: 0,
            executable: 0x55,
            uri: String::new(),
            base,
            size: 0x2000,
            delta: base,
            code_object: None,
            host: None,
            profile: None,
            partial: None,
            kernels: vec![KernelAddress {
                name: kernel.to_owned(),
                object: base + 0x40,
                entry: base + 0x1000,
            }],
            unload: unload.map(|generation| Unload {
                generation,
                time: 0,
            }),
        }
    }

    fn process(loads: Vec<LoadRecord>) -> ProcessRecord {
        ProcessRecord {
            pid: 1,
            host: String::new(),
            start: 0,
            epoch: 0,
            command: Vec::new(),
            agents: Vec::new(),
            hosts: Vec::new(),
            loads,
            device_code: None,
            never_loaded: Vec::new(),
            stops: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn an_address_that_is_used_again_has_the_kernel_of_its_time() {
        let process = process(vec![
            load(1, Some(3), 0x1000, "first"),
            load(2, None, 0x9000, "elsewhere"),
            load(4, Some(5), 0x1000, "second"),
        ]);
        for (generation, expected) in [
            (0, None),
            (1, Some("first")),
            (2, Some("first")),
            (3, None),
            (4, Some("second")),
            (5, None),
        ] {
            for address in [0x1040, 0x2000] {
                let load = process.lookup(address, generation);
                let kernel = load.and_then(|load| load.kernel_at(address));
                let name = kernel.map(|kernel| kernel.name.as_str());
                assert_eq!(name, expected, "{address:#x} at {generation}");
            }
        }
    }

    #[test]
    fn an_address_beside_kernels_is_of_a_load_alone() {
        let process = process(vec![load(1, None, 0x1000, "kernel")]);
        for (address, is_there) in [
            (0xfff, false),
            (0x1000, true),
            (0x2fff, true),
            (0x3000, false),
        ] {
            let load = process.lookup(address, 9);
            assert_eq!(load.is_some(), is_there, "{address:#x}");
            assert!(load.is_none_or(|load| load.kernel_at(address).is_none()));
        }
    }

    #[test]
    fn a_load_whose_end_was_not_seen_gives_way() {
        let process = process(vec![
            load(1, None, 0x1000, "old"),
            load(2, None, 0x2000, "new"),
        ]);
        let load = process.lookup(0x2040, 2).unwrap();
        assert_eq!(load.generation, 2);
    }
}

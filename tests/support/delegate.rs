//! Devices in front of another device, which count, change or fail single calls.

use std::sync::Arc;

use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol, Take, TakeParts,
};

/// The calls of a device in front of another. The other carries out each call that it does not define itself, apart from
/// [`Delegate::read_each`], which calls [`Delegate::read`] for each range, and [`Delegate::read_parts`], which reads none.
#[allow(missing_docs, reason = "each function is that of `Device`")]
#[allow(
    clippy::missing_errors_doc,
    reason = "each function is that of `Device`"
)]
pub trait Delegate {
    /// The device behind this one.
    fn device(&self) -> &dyn Device;

    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        self.device().agents()
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        self.device().executables()
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        self.device().code_objects(executable)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.device().symbol(executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.device().image(code_object)
    }

    fn held_image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.image(code_object)
    }

    fn source(&self, code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        self.device().source(code_object)
    }

    fn has_lasting_image(&self, code_object: &LoadedCodeObject) -> bool {
        self.device().has_lasting_image(code_object)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.device().read(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        for (place, range) in ranges.iter().enumerate() {
            let mut bytes = vec![0; range.len as usize];
            let read = match bytes.is_empty() {
                true => Ok(()),
                false => self.read(range.start, &mut bytes),
            };
            take(place, read.map(|()| bytes.as_slice()));
        }
    }

    fn read_parts(&self, _loads: &[Vec<DeviceRange>], _take: &mut TakeParts<'_>) -> usize {
        0
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.device().write(address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        self.device().executions()
    }
}

/// A [`Delegate`] as a device.
pub struct AsDevice<'a>(pub &'a dyn Delegate);

impl Device for AsDevice<'_> {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        self.0.agents()
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        self.0.executables()
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        self.0.code_objects(executable)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.0.symbol(executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.0.image(code_object)
    }

    fn held_image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        self.0.held_image(code_object)
    }

    fn source(&self, code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        self.0.source(code_object)
    }

    fn has_lasting_image(&self, code_object: &LoadedCodeObject) -> bool {
        self.0.has_lasting_image(code_object)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.0.read(address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        self.0.read_each(ranges, take);
    }

    fn read_parts(&self, loads: &[Vec<DeviceRange>], take: &mut TakeParts<'_>) -> usize {
        self.0.read_parts(loads, take)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.0.write(address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        self.0.executions()
    }
}

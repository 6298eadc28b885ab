//! Devices in front of another device.

use std::sync::Arc;

use super::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, Executions, LoadedCodeObject,
    Symbol, Take, one_by_one,
};

/// A device in front of another: it has the other carry out every call that it does not define itself.
///
/// Tests use it to count, change or fail single calls. [`Delegate::read_each`] calls [`Delegate::read`] for each
/// range.
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
        one_by_one(ranges, take, |address, into| self.read(address, into));
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.device().write(address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        self.device().executions()
    }
}

impl<T: Delegate> Device for T {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        Delegate::agents(self)
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        Delegate::executables(self)
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        Delegate::code_objects(self, executable)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        Delegate::symbol(self, executable, agent, name)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        Delegate::image(self, code_object)
    }

    fn source(&self, code_object: &LoadedCodeObject) -> Option<Arc<str>> {
        Delegate::source(self, code_object)
    }

    fn has_lasting_image(&self, code_object: &LoadedCodeObject) -> bool {
        Delegate::has_lasting_image(self, code_object)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        Delegate::read(self, address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        Delegate::read_each(self, ranges, take);
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        Delegate::write(self, address, from)
    }

    fn executions(&self) -> Option<&dyn Executions> {
        Delegate::executions(self)
    }
}

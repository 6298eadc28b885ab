//! A device on which a call of the interface fails, by script.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, LoadedCodeObject, Symbol, Take,
};

use crate::fixture::Place;
use crate::support::fake_device::FakeDevice;

/// A call of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Agents,
    Executables,
    CodeObjects,
    Symbol,
    Image,
    /// A read or a seek in the result of [`Call::Image`].
    ImageRead,
    Read,
    /// A range of `read_each`.
    ReadEach,
    Write,
}

impl Call {
    /// The failing function of the real runtime.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Agents => "hsa_iterate_agents",
            Self::Executables => "hsa_ven_amd_loader_iterate_executables",
            Self::CodeObjects => "hsa_ven_amd_loader_executable_iterate_loaded_code_objects",
            Self::Symbol => "hsa_executable_get_symbol_by_name",
            Self::Image | Self::ImageRead => "an image",
            Self::Read | Self::Write => "hsa_memory_copy",
            Self::ReadEach => "hsa_amd_memory_async_copy",
        }
    }
}

/// The kind of failure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The runtime's function returns this status.
    Status(u32),
    /// The runtime does not have the function.
    Missing,
    /// The memory is not allocated.
    NotAllocated,
    /// The system returns this error number.
    Io(i32),
    /// The call succeeds with half of the requested bytes.
    Short,
    /// The second half of the bytes is from another time.
    Torn,
    /// Another thread destroys the executable just before the call.
    Destroyed,
    /// The call returns a changed answer.
    Agents(fn(&mut Vec<Agent>)),
    CodeObjects(fn(&mut Vec<LoadedCodeObject>)),
    Symbol(fn(&mut Option<Symbol>)),
}

/// The number of failures: one, or all from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    FromThenOn,
}

#[derive(Debug, Default)]
struct Script {
    fault: Cell<Option<(Call, usize, Fault, Times)>>,
    counts: RefCell<BTreeMap<Call, usize>>,
    struck: RefCell<Vec<Option<Place>>>,
}

impl Script {
    /// The fault of this call, which is about `place`, if the place is known.
    fn strikes(&self, call: Call, place: Option<Place>) -> Option<Fault> {
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry(call).or_default();
        *count += 1;
        let (of, number, fault, times) = self.fault.get()?;
        let is_now = *count - 1 == number || (*count > number && times == Times::FromThenOn);
        if of != call || !is_now {
            return None;
        }
        // A destroyed executable loses all its places.
        let place = match fault {
            Fault::Destroyed => place.map(|(executable, _)| (executable, 0)),
            _ => place,
        };
        self.struck.borrow_mut().push(place);
        Some(fault)
    }
}

/// A device in memory with failing calls.
pub(crate) struct Scripted<'a> {
    pub(crate) device: &'a RefCell<FakeDevice>,
    /// True if the device can copy ranges together; otherwise each range fails, and the caller
    /// copies it separately.
    pub(crate) reads_each: bool,
    script: Rc<Script>,
}

impl<'a> Scripted<'a> {
    /// Makes a device without faults, which counts calls.
    pub(crate) fn quiet(device: &'a RefCell<FakeDevice>) -> Self {
        Scripted {
            device,
            reads_each: true,
            script: Rc::default(),
        }
    }

    /// From now on, the call with this number, counted from 0, fails.
    pub(crate) fn arm(&self, call: Call, number: usize, fault: Fault, times: Times) {
        self.script.counts.borrow_mut().clear();
        self.script.fault.set(Some((call, number, fault, times)));
    }

    /// From now on, no call fails.
    pub(crate) fn disarm(&self) {
        self.script.fault.set(None);
    }

    /// The number of calls of each kind.
    pub(crate) fn calls(&self) -> BTreeMap<Call, usize> {
        self.script.counts.borrow().clone()
    }

    /// The places of the failed calls; `None` for an unknown place.
    pub(crate) fn struck(&self) -> Vec<Option<Place>> {
        self.script.struck.borrow().clone()
    }

    fn at(&self, address: u64) -> Option<Place> {
        let device = self.device.borrow();
        let executables = device.executables().expect("the fake does not fail");
        let loaded = executables
            .into_iter()
            .flat_map(|executable| device.code_objects(executable).expect("nor does it here"));
        loaded
            .into_iter()
            .find(|code_object| {
                code_object.segment.contains(&DeviceRange {
                    start: address,
                    len: 0,
                })
            })
            .map(|code_object| (code_object.executable, code_object.agent))
    }

    /// Applies the fault. If the fault is an error, returns it.
    fn happen(&self, call: Call, fault: Fault, place: Option<Place>) -> Result<(), DeviceError> {
        match fault {
            Fault::Destroyed => {
                if let Some((executable, _)) = place {
                    self.device.borrow_mut().unload(executable);
                }
                Ok(())
            }
            Fault::Status(status) => Err(DeviceError::Call {
                call: call.name(),
                status,
            }),
            Fault::Missing => Err(DeviceError::MissingFunction {
                library: "libhsa-runtime64.so.1",
                symbol: call.name(),
                reason: "undefined symbol".into(),
            }),
            Fault::NotAllocated => Err(DeviceError::NotAllocated {
                range: DeviceRange { start: 8, len: 8 },
                found: DeviceRange { start: 8, len: 0 },
            }),
            Fault::Io(number) => Err(DeviceError::Image {
                uri: "memory://1".into(),
                source: io::Error::from_raw_os_error(number),
            }),
            _ => Ok(()),
        }
    }

    /// Counts a call about `place`. Returns a fault that is not an error.
    fn call(&self, call: Call, place: Option<Place>) -> Result<Option<Fault>, DeviceError> {
        let fault = self.script.strikes(call, place);
        if let Some(fault) = fault {
            self.happen(call, fault, place)?;
        }
        Ok(fault)
    }

    fn copy(&self, call: Call, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let fault = self.call(call, self.at(address))?;
        let device = self.device.borrow();
        let half = into.len() / 2;
        match fault {
            Some(Fault::Short) => device.read(address, &mut into[..half]),
            Some(Fault::Torn) => {
                let read = device.read(address, into);
                into[half..].fill(0xa5);
                read
            }
            _ => device.read(address, into),
        }
    }
}

impl Device for Scripted<'_> {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let fault = self.call(Call::Agents, None)?;
        let mut agents = self.device.borrow().agents()?;
        if let Some(Fault::Agents(change)) = fault {
            change(&mut agents);
        }
        Ok(agents)
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        self.call(Call::Executables, None)?;
        self.device.borrow().executables()
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let fault = self.call(Call::CodeObjects, Some((executable, 0)))?;
        let mut loaded = self.device.borrow().code_objects(executable)?;
        if let Some(Fault::CodeObjects(change)) = fault {
            change(&mut loaded);
        }
        Ok(loaded)
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        let fault = self.call(Call::Symbol, Some((executable, agent)))?;
        let mut symbol = self.device.borrow().symbol(executable, agent, name)?;
        if let Some(Fault::Symbol(change)) = fault {
            change(&mut symbol);
        }
        Ok(symbol)
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        let place = (code_object.executable, code_object.agent);
        self.call(Call::Image, Some(place))?;
        Ok(Box::new(ScriptedImage {
            image: self.device.borrow().image(code_object)?,
            script: self.script.clone(),
            place,
        }))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.copy(Call::Read, address, into)
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        for (place, range) in ranges.iter().enumerate() {
            let mut bytes = vec![0; range.len as usize];
            let read = match range.len {
                0 => Ok(()),
                _ if !self.reads_each => Err(DeviceError::NoCpu),
                _ => self.copy(Call::ReadEach, range.start, &mut bytes),
            };
            take(place, read.map(|()| bytes.as_slice()));
        }
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.call(Call::Write, self.at(address))?;
        self.device.borrow().write(address, from)
    }
}

/// An ELF with failing reads.
#[derive(Debug)]
struct ScriptedImage {
    image: Box<dyn ElfImage>,
    script: Rc<Script>,
    place: Place,
}

impl ScriptedImage {
    fn call(&self) -> io::Result<Option<Fault>> {
        match self.script.strikes(Call::ImageRead, Some(self.place)) {
            Some(Fault::Io(number)) => Err(io::Error::from_raw_os_error(number)),
            fault => Ok(fault),
        }
    }
}

impl Read for ScriptedImage {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.call()? {
            // End of the file.
            Some(Fault::Short) => Ok(0),
            Some(Fault::Torn) => {
                let len = self.image.read(into)?;
                into[len / 2..len].fill(0xa5);
                Ok(len)
            }
            _ => self.image.read(into),
        }
    }
}

impl Seek for ScriptedImage {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.call()?;
        self.image.seek(to)
    }
}

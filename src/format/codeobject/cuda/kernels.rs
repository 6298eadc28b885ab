//! The kernels of a cubin, with the resources that they take.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::{SHT_SYMTAB, STT_FUNC};
use object::read::ReadRef;
use object::read::elf::Sym;

use crate::format::codeobject::Kernel;
use crate::format::codeobject::cuda::info::{
    ANNOTATIONS, Attribute, FRAME_SIZE, MAX_THREADS, MIN_STACK_SIZE, ONE_ARCHITECTURE, PARAM_SIZE,
    REGISTERS, SPILL, attributes,
};
use crate::format::codeobject::cuda::target;
use crate::format::codeobject::elf::{CodeObject, ElfSection};
use crate::format::codeobject::error::CodeObjectError;
use crate::format::codeobject::kernel_sources::Functions;

/// `STO_CUDA_ENTRY`, a bit of `st_other`: the function is a kernel.
const ENTRY: u8 = 0x10;
/// The attributes of all kernels.
const INFO: &str = ".nv.info";
/// The symbol of a cubin whose sections of shared memory begin with the driver's part.
const RESERVED_SHARED: &[u8] = b".nv.reservedSmem.offset0";
/// The size of the driver's part of shared memory in bytes (CUDA C++ Programming Guide, "Compute Capabilities": "1 KB
/// of shared memory per thread block is reserved").
const RESERVED_SHARED_BYTES: u32 = 1024;
/// The number of threads in a warp.
const WARP: u32 = 32;
/// The most threads in a block on all architectures (CUDA C++ Programming Guide, "Compute Capabilities").
const MAX_BLOCK: u32 = 1024;

/// The functions of the symbol table.
struct Symbols<'data> {
    /// The kernels by their numbers in the symbol table.
    kernels: Vec<(usize, &'data [u8])>,
    /// True if sections of shared memory begin with the driver's part.
    reserves_shared: bool,
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The target of a cubin.
    pub(in crate::format::codeobject) fn cubin_target(&self) -> Result<String, CodeObjectError> {
        let (flags, abi_version) = self.flags();
        let compatibility = self.attributes(".nv.compat").unwrap_or_default();
        let is_for_one = compatibility
            .iter()
            .any(|attribute| attribute.kind == ONE_ARCHITECTURE && attribute.number() == 1);
        let target = target::from_flags(flags, abi_version, is_for_one);
        target.ok_or(CodeObjectError::UnknownProcessor { found: flags })
    }

    /// The kernels of a cubin by name.
    pub(in crate::format::codeobject) fn cubin_kernels(
        &self,
    ) -> Result<Vec<Kernel>, CodeObjectError> {
        let symbols = self.function_symbols()?;
        let names = symbols.kernels.iter();
        let names = names.map(|(_, name)| String::from_utf8_lossy(name).into_owned());
        let names: Vec<String> = names.collect();
        let functions = Functions::named(names.iter().map(String::as_str));
        let counted = functions.counted(self)?;
        let sources = functions.sources(self);
        let sources = sources.unwrap_or_else(|_| vec![None; names.len()]);

        let common = self.attributes(INFO)?;
        let [registers, stacks, frames] =
            [REGISTERS, MIN_STACK_SIZE, FRAME_SIZE].map(|kind| function_values(&common, kind));
        let sections = self.sections()?;
        self.check_total("sections of attributes", info_sizes(&sections))?;
        let sizes = Sizes::new(&sections);
        let mut kernels = Vec::with_capacity(names.len());
        let all = symbols.kernels.iter().zip(names).zip(counted).zip(sources);
        for ((((number, _), name), instrumented), source) in all {
            let own = self.attributes(&format!("{INFO}.{name}"))?;
            let own_number = |kind| {
                own.iter()
                    .find(|attribute| attribute.kind == kind)
                    .map(Attribute::number)
            };
            let stack = stacks.get(number).or_else(|| frames.get(number));
            let size_in = |sizes: &HashMap<&str, u64>| {
                saturated(sizes.get(name.as_str()).copied().unwrap_or(0))
            };
            let shared = size_in(&sizes.shared);
            let reserved = match symbols.reserves_shared {
                true => RESERVED_SHARED_BYTES,
                false => 0,
            };
            kernels.push(Kernel {
                kernarg_size: own_number(PARAM_SIZE).unwrap_or(0),
                kernarg_align: 8,
                group_size: shared.saturating_sub(reserved),
                private_size: stack.copied().unwrap_or(0),
                constant_size: size_in(&sizes.constant).saturating_add(sizes.common_constant),
                vgprs: registers.get(number).copied().unwrap_or(0),
                vgpr_spills: spills(&own),
                wavefront_size: WARP,
                max_workgroup_size: block(&own),
                name,
                instrumented,
                source,
                ..Kernel::default()
            });
        }
        Ok(kernels)
    }

    fn attributes(&self, section: &str) -> Result<Vec<Attribute<'data>>, CodeObjectError> {
        let data = self.section(section.as_bytes())?;
        Ok(attributes(section, data)?)
    }

    fn function_symbols(&self) -> Result<Symbols<'data>, CodeObjectError> {
        let table = self.sections.symbols(LittleEndian, self.data, SHT_SYMTAB)?;
        let names = self.names_of(&table)?;
        let mut symbols = Symbols {
            kernels: Vec::new(),
            reserves_shared: false,
        };
        let mut named = 0_u64;
        for (index, symbol) in table.enumerate() {
            let name = symbol.name(LittleEndian, names)?;
            // All symbols could have one long name.
            named = named.saturating_add(name.len() as u64);
            self.check_total("names of symbols", [named].into_iter())?;
            symbols.reserves_shared |= name == RESERVED_SHARED;
            let is_kernel = symbol.st_type() == STT_FUNC
                && symbol.st_other.0 & ENTRY != 0
                && !symbol.is_undefined(LittleEndian);
            if is_kernel {
                symbols.kernels.push((index.0, name));
            }
        }
        Ok(symbols)
    }
}

/// The sizes of sections with attributes.
fn info_sizes(sections: &[ElfSection]) -> impl Iterator<Item = u64> {
    let named = sections
        .iter()
        .filter(|section| section.name.starts_with(INFO));
    named.map(|section| section.size)
}

/// The values of an attribute that has a function's number before each, by that number.
fn function_values(attributes: &[Attribute<'_>], kind: u8) -> HashMap<usize, u32> {
    let all = attributes.iter().filter(|attribute| attribute.kind == kind);
    let pairs = all.filter_map(|attribute| {
        let mut words = attribute.words();
        Some((words.next()? as usize, words.next()?))
    });
    pairs.collect()
}

/// The number of instructions that store or load a spilled register.
fn spills(attributes: &[Attribute<'_>]) -> u32 {
    let annotations = attributes
        .iter()
        .filter(|attribute| attribute.kind == ANNOTATIONS);
    let kinds = annotations.flat_map(|annotation| annotation.words().step_by(2));
    let spills = kinds.filter(|kind| *kind == SPILL).count();
    u32::try_from(spills).unwrap_or(u32::MAX)
}

/// The most threads in a block.
fn block(attributes: &[Attribute<'_>]) -> u32 {
    let bounds = attributes
        .iter()
        .find(|attribute| attribute.kind == MAX_THREADS);
    let threads = bounds.map(|bound| bound.words().take(3).fold(1, u32::saturating_mul));
    threads.unwrap_or(MAX_BLOCK)
}

/// The sizes of sections of memory, in bytes.
struct Sizes<'a> {
    /// The shared memory of each kernel.
    shared: HashMap<&'a str, u64>,
    /// The constant memory of each kernel.
    constant: HashMap<&'a str, u64>,
    /// The constant memory that all kernels share.
    common_constant: u32,
}

impl<'a> Sizes<'a> {
    fn new(sections: &'a [ElfSection]) -> Self {
        let (mut shared, mut constant) = (HashMap::new(), HashMap::new());
        let mut common = 0_u64;
        for section in sections {
            if let Some(kernel) = section.name.strip_prefix(".nv.shared.") {
                shared.insert(kernel, section.size);
            } else if let Some(bank) = section.name.strip_prefix(".nv.constant") {
                let after = bank.trim_start_matches(|character: char| character.is_ascii_digit());
                match after.strip_prefix('.') {
                    Some(kernel) => {
                        let sum: &mut u64 = constant.entry(kernel).or_default();
                        *sum = sum.saturating_add(section.size);
                    }
                    None if after.is_empty() => common = common.saturating_add(section.size),
                    None => {}
                }
            }
        }
        Self {
            shared,
            constant,
            common_constant: saturated(common),
        }
    }
}

fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

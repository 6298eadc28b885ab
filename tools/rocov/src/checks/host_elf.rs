//! Checks the properties of a program or library that decide whether it can be drained.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use memchr::memmem;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, elf};
use rocov::format::codeobject::cuda::EM_CUDA;

use super::finding::Finding;

/// The start of the names of records that newer clangs register with HIP as variables of the device.
const RECORD: &[u8] = b"__profd_";
/// The library that compiles while a program runs.
const COMPILES_AT_RUN_TIME: &str = "libhiprtc.so";

/// Mode bits of programs that run as somebody else.
const SET_ID: u32 = 0o6000;

/// A file of the host that is an ELF.
pub(super) struct Host<'a> {
    path: &'a Path,
    elf: ElfFile64<'a>,
}

impl<'a> Host<'a> {
    /// `None` if it is not an ELF of a host.
    pub(super) fn parse(path: &'a Path, bytes: &'a [u8]) -> Option<Self> {
        let elf = ElfFile64::parse(bytes).ok()?;
        let machine = elf.elf_header().e_machine(elf.endian());
        let is_host = machine != elf::EM_AMDGPU && machine.0 != EM_CUDA;
        is_host.then_some(Self { path, elf })
    }

    /// Finds the obstacles to draining it.
    pub(super) fn check(&self, variables: &BTreeSet<Vec<u8>>) -> Vec<Finding> {
        let checks = [
            self.is_static(),
            self.runs_as_another(),
            self.registers(variables),
            self.compiles_at_run_time(),
        ];
        checks.into_iter().flatten().collect()
    }

    /// Programs without a loader have no LD_PRELOAD. Libraries have none either, and an entry point
    /// seldom: their names distinguish them from programs.
    fn is_static(&self) -> Option<Finding> {
        let endian = self.elf.endian();
        let mut segments = self.elf.elf_program_headers().iter();
        let is_program =
            self.elf.elf_header().e_type(endian) == elf::ET_EXEC || self.elf.entry() != 0;
        let has_loader = segments.any(|segment| segment.p_type(endian) == elf::PT_INTERP);
        let name = self.path.file_name().unwrap_or_default();
        let is_library = name.to_string_lossy().contains(".so");
        (is_program && !has_loader && !is_library).then(|| {
            Finding::missing(
                self.path.display(),
                "a static program, into which nothing can be preloaded",
                "link it with librocov.a: `rocov flags --link`",
            )
        })
    }

    /// The loader takes no LD_PRELOAD from another user.
    fn runs_as_another(&self) -> Option<Finding> {
        let mode = fs::metadata(self.path).ok()?.permissions().mode();
        (mode & SET_ID != 0).then(|| {
            Finding::missing(
                self.path.display(),
                "a setuid or setgid program, for which nothing is preloaded or written",
                "run a copy without these mode bits",
            )
        })
    }

    /// HIP ends a program whose host part registers a variable that its device part lacks. That is so
    /// of profile records if only one part is instrumented, or a linker dropped them.
    fn registers(&self, variables: &BTreeSet<Vec<u8>>) -> Option<Finding> {
        let names = self.registered_records();
        let mut missing = names.iter().filter(|name| !variables.contains(*name));
        let first = missing.next()?;
        Some(Finding::missing(
            self.path.display(),
            format!(
                "registers {} with HIP, but none of its code objects contains it: HIP aborts",
                String::from_utf8_lossy(first)
            ),
            "compile and link with -Xarch_host or -Xarch_device before each -fprofile option, as \
             `rocov flags` prints them, or use a HIP that accepts them",
        ))
    }

    /// Names of records among the constants of the host: those that are given to HIP. Its own records
    /// have symbols, and no constants.
    fn registered_records(&self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let constants = self
            .elf
            .sections()
            .filter(|section| section.name().is_ok_and(|name| name.starts_with(".rodata")));
        for data in constants.filter_map(|section| section.data().ok()) {
            for at in memmem::find_iter(data, RECORD) {
                let is_start = at == 0 || data[at - 1] == 0;
                let name = data[at..].split(|byte| *byte == 0).next();
                // The bare prefix is a constant of tools that look for such names.
                let name = name.filter(|name| is_start && name.len() > RECORD.len());
                names.extend(name.map(<[u8]>::to_vec));
            }
        }
        names
    }

    /// Finds code that is compiled at run time, and so without the flags of this build.
    fn compiles_at_run_time(&self) -> Option<Finding> {
        let mut symbols = self.elf.dynamic_symbols();
        let is_of_it = |symbol: &[u8]| symbol.starts_with(b"hiprtc");
        let uses = symbols.any(|symbol| symbol.name_bytes().is_ok_and(is_of_it));
        uses.then(|| {
            Finding::warning(
                self.path.display(),
                format!("compiles GPU code as it runs ({COMPILES_AT_RUN_TIME})"),
                "that code is not instrumented, unless the program passes the options of `rocov flags --hiprtc --clang \
                 COMPILER` to hiprtcCompileProgram; COMPILER is the clang of the HIP that it uses",
            )
        })
    }
}

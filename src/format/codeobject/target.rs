//! The target of a code object, from the flags of its ELF (LLVM's AMDGPUUsage, "ELF Header").

use crate::format::codeobject::cuda;

/// `EI_ABIVERSION` of code object version 3, the last version whose flags have one bit for each feature.
const ABI_VERSION_3: u8 = 1;

/// Processors by the low byte of `e_flags` (`EF_AMDGPU_MACH`).
const PROCESSORS: [(u8, &str); 56] = [
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
    (0x3c, "gfx805"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5a, "gfx1251"),
    (0x5b, "gfx12-5-generic"),
    (0x5f, "gfx9-4-generic"),
];

/// Generic processors, each with the processors that run its code (LLVM's AMDGPUUsage, "Generic processors").
const GENERIC: [(&str, &[&str]); 7] = [
    (
        "gfx9-generic",
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    ),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    (
        "gfx10-1-generic",
        &["gfx1010", "gfx1011", "gfx1012", "gfx1013"],
    ),
    (
        "gfx10-3-generic",
        &[
            "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
        ],
    ),
    (
        "gfx11-generic",
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
        ],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
    ("gfx12-5-generic", &["gfx1250", "gfx1251"]),
];

/// Returns whether a loader takes code for `target`, such as `gfx90a:xnack-`, for an agent with the
/// instruction set `isa`, such as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`. The code must be for the
/// agent's processor, or for a generic one that includes it. The agent must have every feature set as the
/// target names it. A cubin runs on its own architecture and on later ones of the major version.
#[must_use]
pub fn runs_on(target: &str, isa: &str) -> bool {
    if let Some(runs) = cuda::runs_on(target, isa) {
        return runs;
    }
    let isa = isa.rsplit_once("--").map_or(isa, |(_triple, isa)| isa);
    let mut of_agent = isa.split(':');
    let mut of_code = target.split(':');
    let agents = of_agent.next().unwrap_or_default();
    let takes = |codes: &str| {
        let generic = GENERIC.iter().find(|(name, _)| *name == codes);
        codes == agents || generic.is_some_and(|(_, processors)| processors.contains(&agents))
    };
    of_code.next().is_some_and(takes)
        && of_code.all(|feature| of_agent.clone().any(|has| has == feature))
}

/// Returns whether `name` begins as the name of a GPU's processor does: `gfx90a`, `sm_90`.
#[must_use]
pub fn is_processor(name: &str) -> bool {
    ["gfx", "sm_"].iter().any(|start| name.starts_with(start))
}

/// Returns whether `target` is a generic processor. A loader prefers code for the exact processor.
#[must_use]
pub fn is_generic(target: &str) -> bool {
    let processor = target.split(':').next();
    GENERIC.iter().any(|(name, _)| Some(*name) == processor)
}

/// The processor for a version number of the Linux driver (`gfx_target_version`: major * 10000 + minor * 100
/// + stepping): 90010 is gfx90a. `None` for 0, the number of a CPU.
#[must_use]
pub fn processor_of_version(version: u64) -> Option<String> {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    (version > 0).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

/// Processor and features, such as `gfx90a:xnack-`. `None` for an unknown processor.
///
/// A feature that is not named may be on or off. Version 3 could not name a feature that is off.
pub(super) fn from_flags(flags: u32, abi_version: u8) -> Option<String> {
    let number = (flags & 0xff) as u8;
    let (_, processor) = PROCESSORS.iter().find(|(known, _)| *known == number)?;
    // 0: not supported, 1: any, 2: off, 3: on.
    let [xnack, sramecc] = if abi_version <= ABI_VERSION_3 {
        [flags >> 8 & 1, flags >> 9 & 1].map(|bit| 3 * bit)
    } else {
        [flags >> 8 & 3, flags >> 10 & 3]
    };
    let setting = |name: &str, value| match value {
        2 => format!(":{name}-"),
        3 => format!(":{name}+"),
        _ => String::new(),
    };
    Some(format!(
        "{processor}{}{}",
        setting("sramecc", sramecc),
        setting("xnack", xnack)
    ))
}

#[cfg(test)]
mod tests {
    use crate::format::codeobject::target::{
        GENERIC, PROCESSORS, is_generic, processor_of_version, runs_on,
    };

    #[test]
    fn code_runs_where_its_features_are_as_it_says() {
        let isa = "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-";
        for (target, expected) in [
            ("gfx90a", true),
            ("gfx90a:xnack-", true),
            ("gfx90a:sramecc+:xnack-", true),
            ("gfx90a:xnack+", false),
            ("gfx90a:sramecc+:xnack+", false),
            ("gfx90", false),
            ("gfx942", false),
        ] {
            assert_eq!(runs_on(target, isa), expected, "{target}");
        }
        assert!(runs_on("gfx90a", "gfx90a"));
        assert!(!runs_on("gfx90a:xnack-", "gfx90a"));
    }
    #[test]
    fn generic_code_runs_on_the_processors_that_it_includes() {
        let isa = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-";
        assert!(runs_on("gfx9-4-generic", isa));
        assert!(runs_on("gfx9-4-generic:xnack-", isa));
        assert!(!runs_on("gfx9-4-generic:xnack+", isa));
        assert!(!runs_on("gfx9-generic", isa));
        assert!(is_generic("gfx9-4-generic:xnack-") && !is_generic("gfx942"));
        let is_known = |name| PROCESSORS.iter().any(|(_, known)| *known == name);
        for (generic, processors) in GENERIC {
            assert!(is_known(generic), "{generic}");
            assert!(
                processors.iter().all(|processor| is_known(processor)),
                "{generic}"
            );
        }
        let generic = PROCESSORS
            .iter()
            .filter(|(_, name)| name.ends_with("-generic"));
        assert_eq!(generic.count(), GENERIC.len());
    }

    #[test]
    fn processors_have_the_drivers_version_numbers() {
        for (version, processor) in [
            (0, None),
            (90_010, Some("gfx90a")),
            (90_402, Some("gfx942")),
            (100_306, Some("gfx1036")),
            (110_501, Some("gfx1151")),
        ] {
            assert_eq!(processor_of_version(version).as_deref(), processor);
        }
    }
}

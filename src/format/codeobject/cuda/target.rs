//! The target of a cubin, from the flags of its ELF (`EF_CUDA_*` in LLVM's BinaryFormat/ELF.h).

/// The first `EI_ABIVERSION` that has the number of the architecture in the second byte of the flags. ptxas 13 writes
/// it for all architectures, ptxas 12 from sm_100 on.
const SECOND_BYTE: u8 = 8;
/// `EF_CUDA_ACCELERATORS_V1` and `EF_CUDA_ACCELERATORS`: code for one architecture alone, such as sm_90a.
const ONE_ARCHITECTURE: [u32; 2] = [0x800, 0x8];
/// The number of the oldest architecture, sm_10.
const OLDEST: u32 = 10;

/// The target, such as `sm_90` or `sm_90a`. `None` if the flags name none. `is_for_one` is true if anything else in the
/// cubin says that it is for one architecture alone.
pub(super) fn from_flags(flags: u32, abi_version: u8, is_for_one: bool) -> Option<String> {
    let is_new = abi_version >= SECOND_BYTE;
    let number = if is_new { flags >> 8 } else { flags } & 0xff;
    let is_for_one = is_for_one || flags & ONE_ARCHITECTURE[usize::from(is_new)] != 0;
    let suffix = if is_for_one { "a" } else { "" };
    (number >= OLDEST).then(|| format!("sm_{number}{suffix}"))
}

/// Returns whether the driver takes a cubin for `target`, such as `sm_80`, on a GPU of the architecture `gpu`, such as
/// `sm_86`: the major version is equal, and the minor one no later. Code for one architecture alone (`sm_90a`) runs there
/// only, and code for a family (`sm_100f`) as other code does (CUDA C++ Programming Guide, "Binary Compatibility",
/// "Family-Specific Features"). `None` if one of the two is not an NVIDIA architecture.
pub(in crate::format::codeobject) fn runs_on(target: &str, gpu: &str) -> Option<bool> {
    let (code, suffix) = version(target)?;
    let (gpu, _) = version(gpu)?;
    Some(match suffix {
        "a" => code == gpu,
        _ => code / 10 == gpu / 10 && code <= gpu,
    })
}

/// The rank of a cubin's target among those that a GPU could take: the driver takes the one for the latest
/// architecture, and code for that alone before other code. `None` for targets of other GPUs.
#[must_use]
pub fn rank(target: &str) -> Option<(u32, bool)> {
    version(target).map(|(number, suffix)| (number, suffix == "a"))
}

/// The number of an architecture, and the letter after it.
fn version(architecture: &str) -> Option<(u32, &str)> {
    let version = architecture.strip_prefix("sm_")?;
    let digits = version.trim_end_matches(|character: char| character.is_ascii_lowercase());
    Some((digits.parse().ok()?, &version[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags as ptxas 12.9 and 13.5 write them.
    #[test]
    fn both_layouts_of_flags_name_the_architecture() {
        for (flags, abi_version, is_for_one, target) in [
            (0x5a_055a, 7, false, Some("sm_90")),
            (0x5a_0d5a, 7, false, Some("sm_90a")),
            (0x600_5a04, 8, false, Some("sm_90")),
            (0x600_5a04, 8, true, Some("sm_90a")),
            (0x600_640a, 8, false, Some("sm_100a")),
            (0x600_7802, 8, false, Some("sm_120")),
            (0x600_4b04, 8, false, Some("sm_75")),
            (0, 7, false, None),
        ] {
            let found = from_flags(flags, abi_version, is_for_one);
            assert_eq!(found.as_deref(), target, "{flags:#x}");
        }
    }

    #[test]
    fn the_latest_and_most_special_code_ranks_highest() {
        let targets = ["gfx90a", "sm_80", "sm_86", "sm_90", "sm_90a"];
        assert!(targets.is_sorted_by_key(|target| rank(target)));
    }

    #[test]
    fn code_runs_on_later_minor_versions() {
        for (target, gpu, runs) in [
            ("sm_80", "sm_80", Some(true)),
            ("sm_80", "sm_86", Some(true)),
            ("sm_86", "sm_80", Some(false)),
            ("sm_80", "sm_90", Some(false)),
            ("sm_90a", "sm_90", Some(true)),
            ("sm_100a", "sm_103", Some(false)),
            ("sm_100f", "sm_103", Some(true)),
            ("gfx90a", "sm_90", None),
            ("sm_90", "gfx90a", None),
            ("sm_", "sm_90", None),
        ] {
            assert_eq!(runs_on(target, gpu), runs, "{target} on {gpu}");
        }
    }
}

//! Takes the PTX that fits a GPU best.

use rocov::format::bundle::{BundleError, PackedPtx, packed_ptx, ptx_architecture, runs_ptx};

use crate::driver::Capability;
use crate::loss::Loss;

/// PTX that a GPU runs, and the options with which nvcc would have compiled it.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) text: String,
    pub(crate) options: String,
}

/// The PTX of a fat binary that fits best: of the highest architecture that the GPU has.
///
/// # Errors
/// Fails if the fat binary is damaged, or has no PTX that the GPU runs.
pub(crate) fn best(fat_binary: &[u8], gpu: Capability) -> Result<Chosen, Loss> {
    let mut all = packed_ptx(fat_binary).map_err(damaged)?;
    if all.is_empty() {
        return Err(Loss::NoPtx { gpu });
    }
    all.sort_by_key(|ptx| std::cmp::Reverse(ptx.architecture()));
    let mut found = Vec::new();
    for ptx in &all {
        let architecture = ptx.architecture();
        // Later ones are not unpacked: a fat binary has those for many GPUs.
        if architecture > number(gpu) {
            found.push(architecture.to_string());
            continue;
        }
        let text = ptx.text().map_err(damaged)?;
        let own = ptx_architecture(&text).unwrap_or_else(|| architecture.to_string());
        if !runs_ptx(number(gpu), &own) {
            found.push(own);
            continue;
        }
        return chosen(&text, ptx);
    }
    Err(Loss::NoneFits { gpu, found })
}

fn chosen(text: &[u8], ptx: &PackedPtx<'_>) -> Result<Chosen, Loss> {
    Ok(Chosen {
        text: as_text(text)?,
        options: ptx.options(),
    })
}

/// PTX as text.
///
/// # Errors
/// Fails if it is not UTF-8.
pub(crate) fn as_text(bytes: &[u8]) -> Result<String, Loss> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|error| Loss::Damaged(format!("its PTX is not UTF-8: {error}")))?;
    Ok(text.to_owned())
}

fn damaged(error: BundleError) -> Loss {
    Loss::Damaged(error.to_string())
}

/// The number of a compute capability, such as 90.
fn number((major, minor): Capability) -> u64 {
    let number = major.saturating_mul(10).saturating_add(minor);
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_runs_ptx_of_its_own_and_earlier_architectures() {
        for (architecture, gpu, expected) in [
            ("75", (9, 0), true),
            ("90", (9, 0), true),
            ("90a", (9, 0), true),
            ("90a", (10, 0), false),
            ("100", (9, 0), false),
            ("100f", (10, 3), true),
            ("100f", (12, 0), false),
            ("100a", (10, 3), false),
            ("103f", (10, 0), false),
            ("x", (9, 0), false),
            ("", (9, 0), false),
            ("90z", (9, 0), false),
        ] {
            assert_eq!(
                runs_ptx(number(gpu), architecture),
                expected,
                "{architecture} {gpu:?}"
            );
        }
    }
}

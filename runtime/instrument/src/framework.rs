//! The frameworks for Python that make code in memory, by the names of kernels.
//!
//! Only names that no programmer writes identify the framework. Those of Triton's kernels, of CuPy's `RawKernel` and of JAX may be
//! anything, so their code stays without one.

/// A framework whose kernels have names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    CuPy,
    Numba,
    TorchCompile,
    Warp,
}

impl Framework {
    /// The framework that made code with these kernels, if all of them have names of one.
    pub(crate) fn from_kernels<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut names = names.into_iter().map(Self::from_kernel);
        let first = names.next()??;
        names.all(|other| other == Some(first)).then_some(first)
    }

    fn from_kernel(name: &str) -> Option<Self> {
        // The categories of Inductor's kernels: torch/_inductor/codegen/triton.py.
        let inductor = ["for", "per", "poi", "red", "spl", "tem"];
        let category = name
            .strip_prefix("triton_")
            .and_then(|rest| rest.split_once("_fused_"));
        let warp = ["_cuda_kernel_forward", "_cuda_kernel_backward"];
        if category.is_some_and(|(category, _)| inductor.contains(&category)) {
            Some(Self::TorchCompile)
        } else if name.starts_with("cupy_") {
            Some(Self::CuPy)
        } else if name.starts_with("_ZN6cudapy") {
            Some(Self::Numba)
        } else if warp.iter().any(|end| name.ends_with(end)) {
            Some(Self::Warp)
        } else {
            None
        }
    }

    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CuPy => "CuPy",
            Self::Numba => "Numba-CUDA",
            Self::TorchCompile => "torch.compile",
            Self::Warp => "Warp",
        }
    }

    /// The way to have its code counted.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::CuPy => "unset CUPY_CACHE_DIR, or name an empty directory there",
            Self::Numba => "leave out cache=True, or name an empty directory in NUMBA_CACHE_DIR",
            Self::TorchCompile => "unset TORCHINDUCTOR_CACHE_DIR, or name an empty directory there",
            Self::Warp => {
                "set warp.config.cuda_output to \"ptx\"; the driver must be as new as Warp's CUDA toolkit"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_name_the_framework_that_made_them() {
        use Framework::{CuPy, Numba, TorchCompile, Warp};
        // Names as these frameworks give them, and names that programmers give.
        for (names, expected) in [
            (&["triton_poi_fused_add_mul_0"][..], Some(TorchCompile)),
            (&["triton_per_fused__softmax_1"], Some(TorchCompile)),
            (&["cupy_add__float32_float32_float32"], Some(CuPy)),
            (
                &["_ZN6cudapy8__main__3addB2v1B94cw51E5ArrayIfLi1E1C7mutable7alignedE"],
                Some(Numba),
            ),
            (
                &[
                    "add_1b6d14b0_cuda_kernel_forward",
                    "add_1b6d14b0_cuda_kernel_backward",
                ],
                Some(Warp),
            ),
            (&["cupy_add__float32_float32_float32", "add"], None),
            (&["triton_fused_attention"], None),
            (&["triton_my_fused_add"], None),
            (&["_ZN7cudapy23addEv"], None),
            (&["_Z3addPf"], None),
            (&[], None),
        ] {
            assert_eq!(
                Framework::from_kernels(names.iter().copied()),
                expected,
                "{names:?}"
            );
        }
    }
}

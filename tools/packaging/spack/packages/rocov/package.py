# Spack's recipe: `spack repo add tools/packaging/spack`, then `spack install rocov`.

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Rocov(Package):
    """Line coverage and PGO counters of GPU code: which lines of a HIP or CUDA program's kernels ran, and how
    often."""

    # A release has no page yet: SPACK_ROCOV_SOURCE names a clone of the repository.
    git = os.environ.get("SPACK_ROCOV_SOURCE", "https://example.invalid/rocov.git")

    license("Apache-2.0 OR MIT", checked_by="maintainers")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")
    depends_on("git", type="run")

    # The modelled GPU and librocov know this ABI only.
    requires("target=x86_64:", "platform=linux")

    def install(self, spec, prefix):
        os.environ["ROCOV_PARTS"] = "installed"
        cargo = Executable("cargo")
        cargo("build", "--release", "--locked", "-p", "rocov-cli", "-p", "rocov-runtime", "-p", "rocov-instrument",
              "-p", "rocov-rocprofiler", "-p", "modelgpu-kfd")
        Executable("tools/packaging/finish")("target/release", "stage-build")
        Executable("tools/packaging/stage")("stage-build", prefix)

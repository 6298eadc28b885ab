# A stand-in for ROCm's package of this name, which CMake's language HIP needs. Debian 12's package adds
# /usr/include as a system directory, which hides the C++ library's own headers. The flags of HIP's headers and
# libraries come from testdata/sample/debian12.cfg.
add_library(hip-lang::device INTERFACE IMPORTED)
set_target_properties(hip-lang::device PROPERTIES
  INTERFACE_COMPILE_OPTIONS
    "$<$<COMPILE_LANGUAGE:HIP>:SHELL:-mllvm -amdgpu-early-inline-all=true>")
set(_CMAKE_HIP_DEVICE_RUNTIME_TARGET hip-lang::device)

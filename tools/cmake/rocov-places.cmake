# The places of rocov's files: an installation has this file in PREFIX/lib/cmake/rocov or
# PREFIX/share/cmake/rocov, and a checkout of the source has it in tools/cmake.

get_filename_component(_rocov_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(EXISTS "${_rocov_root}/runtime/device/rocov_device.h")
  set(_rocov_bin "${_rocov_root}/target/release")
  if(DEFINED ENV{CARGO_TARGET_DIR})
    set(_rocov_bin "$ENV{CARGO_TARGET_DIR}/release")
  endif()
  set(_rocov_include "${_rocov_root}/runtime/include")
else()
  get_filename_component(_rocov_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  set(_rocov_bin "${_rocov_root}/bin")
  set(_rocov_include "${_rocov_root}/include")
endif()

find_program(ROCOV_EXECUTABLE rocov HINTS "${_rocov_bin}" DOC "The command rocov")
mark_as_advanced(ROCOV_EXECUTABLE)

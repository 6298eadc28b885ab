# The CMake package of rocov: line coverage of GPU code.
#
#   find_package(rocov REQUIRED)
#   rocov_add_coverage(my_kernels)
#
# The second line compiles and links a target with the flags of `rocov flags`, and adds the target `coverage`,
# which builds the project, runs ctest under `rocov run --per-test` and writes pages for a browser. See the
# chapter "CMake" of rocov's book.
#
# These variables, of the command line or of a preset, have effect at find_package and after it:
#   ROCOV_EXECUTABLE        the command; default: the one next to this file, else the one on the PATH
#   ROCOV_COVERAGE          ON: all targets that follow are compiled for coverage; OFF: none, and
#                           rocov_add_coverage does nothing
#   ROCOV_COUNTERS          fast, llvm or reached; for rocov_add_coverage without COUNTERS, too
#   ROCOV_HOST              ON: host code counts too
#   ROCOV_LABEL_TESTS       ON: programs that link GoogleTest get the listener of rocov_gtest.h, so that each test has
#                           a label
# and these in the target `coverage`:
#   ROCOV_COVERAGE_TARGET   its name (default: coverage, or rocov-coverage if the project has one of that name)
#   ROCOV_GPU               the argument of `rocov run --gpu`, such as model
#   ROCOV_CTEST_ARGUMENTS   more arguments of ctest, a list
#   ROCOV_REPORT_ARGUMENTS  more arguments of `rocov report`, such as gates, a list
#
# It gives these targets:
#   rocov::rocov            the command, to run
#   rocov::headers          the directory of rocov.h and rocov_gtest.h, to link with

# Generator expressions read properties of any name from interface libraries since 3.19, and
# `rocov run --per-test` needs 3.20.
if(CMAKE_VERSION VERSION_LESS 3.20)
  set(rocov_FOUND FALSE)
  set(rocov_NOT_FOUND_MESSAGE "rocov needs CMake 3.20 or later, and this is ${CMAKE_VERSION}")
  return()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/rocov-places.cmake")
if(NOT ROCOV_EXECUTABLE)
  set(rocov_FOUND FALSE)
  string(CONCAT rocov_NOT_FOUND_MESSAGE
    "the command rocov is neither in ${_rocov_bin} nor on the PATH: "
    "set ROCOV_EXECUTABLE to its path")
  return()
endif()

if(NOT TARGET rocov::rocov)
  add_executable(rocov::rocov IMPORTED)
  set_target_properties(rocov::rocov PROPERTIES IMPORTED_LOCATION "${ROCOV_EXECUTABLE}")
  add_library(rocov::headers INTERFACE IMPORTED)
  set_target_properties(rocov::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_rocov_include}")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/rocov-coverage.cmake")

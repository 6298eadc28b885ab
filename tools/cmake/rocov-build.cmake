# Compiles a whole project for coverage without a change to it:
#
#   cmake -B build -DCMAKE_PROJECT_INCLUDE=PREFIX/lib/cmake/rocov/rocov-build.cmake
#
# CMake includes this file after each call of project(). The first is the top directory's.
if(NOT DEFINED ROCOV_COVERAGE)
  set(ROCOV_COVERAGE ON)
endif()
set(rocov_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE PATH "The directory of rocov-config.cmake")
find_package(rocov REQUIRED)

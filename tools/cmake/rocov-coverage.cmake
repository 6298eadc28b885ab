# Compiles targets for coverage, and makes the target `coverage`.
#
# The flags of a language are known when the language is enabled, which may be after find_package. So options of
# targets are generator expressions that read them from properties of `rocov::flags`, and the end of the
# top directory fills these in.

# Compiles and links targets of this project for coverage.
#
#   rocov_add_coverage(TARGET... [COUNTERS fast|llvm|reached] [HOST]
#                      [SOURCES FILE...] [CONFIGURATIONS NAME...])
#
# COUNTERS        the way of counting: see `rocov flags --help`; the best one by default
# HOST            code of the host counts too
# SOURCES         only these sources of the targets count
# CONFIGURATIONS  only these configurations count, such as Debug
#
# An interface library hands the flags on to the targets that link it.
function(rocov_add_coverage)
  cmake_parse_arguments(PARSE_ARGV 0 _rocov "HOST" "COUNTERS" "SOURCES;CONFIGURATIONS")
  if(NOT _rocov_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rocov_add_coverage: no target is named: name one")
  endif()
  foreach(_rocov_keyword IN LISTS _rocov_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "rocov_add_coverage: ${_rocov_keyword} has no value: add one, or leave it out")
  endforeach()
  _rocov_check_counters("rocov_add_coverage: COUNTERS" "${_rocov_COUNTERS}")
  foreach(_rocov_target IN LISTS _rocov_UNPARSED_ARGUMENTS)
    _rocov_check_target("${_rocov_target}")
  endforeach()
  if(DEFINED ROCOV_COVERAGE AND NOT ROCOV_COVERAGE)
    return()
  endif()

  if(NOT _rocov_COUNTERS)
    set(_rocov_COUNTERS "${ROCOV_COUNTERS}")
    _rocov_check_counters(ROCOV_COUNTERS "${_rocov_COUNTERS}")
  endif()
  if(ROCOV_HOST)
    set(_rocov_HOST TRUE)
  endif()
  _rocov_options("${_rocov_COUNTERS}" "${_rocov_HOST}" "${_rocov_CONFIGURATIONS}" _rocov_compile _rocov_link _rocov_set)
  foreach(_rocov_target IN LISTS _rocov_UNPARSED_ARGUMENTS)
    get_target_property(_rocov_aliased "${_rocov_target}" ALIASED_TARGET)
    if(_rocov_aliased)
      set(_rocov_target "${_rocov_aliased}")
    endif()
    _rocov_take_back("${_rocov_target}")
    get_target_property(_rocov_type "${_rocov_target}" TYPE)
    set(_rocov_scope PRIVATE)
    set(_rocov_link_scope PRIVATE)
    if(_rocov_type STREQUAL "INTERFACE_LIBRARY")
      set(_rocov_scope INTERFACE)
      set(_rocov_link_scope INTERFACE)
    elseif(_rocov_type MATCHES "^(STATIC|OBJECT)_LIBRARY$")
      # The program that links its objects also links their GPU code (-fgpu-rdc) and the host's runtime.
      set(_rocov_link_scope INTERFACE)
    endif()
    target_link_options("${_rocov_target}" ${_rocov_link_scope} "$<BUILD_INTERFACE:${_rocov_link}>")
    if(_rocov_SOURCES)
      set_property(
        SOURCE ${_rocov_SOURCES} TARGET_DIRECTORY "${_rocov_target}"
        APPEND PROPERTY COMPILE_OPTIONS "${_rocov_compile}")
    else()
      target_compile_options("${_rocov_target}" ${_rocov_scope} "$<BUILD_INTERFACE:${_rocov_compile}>")
    endif()
  endforeach()
endfunction()

# Fails if the value of `name` is no way of counting. An empty one leaves the choice to `rocov flags`.
function(_rocov_check_counters name counters)
  if(counters AND NOT counters MATCHES "^(fast|llvm|reached)$")
    message(FATAL_ERROR "${name} is ${counters}: it may be fast, llvm or reached")
  endif()
endfunction()

# Fails if the target is not one that this project compiles or hands flags on by.
function(_rocov_check_target target)
  if(NOT TARGET "${target}")
    message(FATAL_ERROR
      "rocov_add_coverage: there is no target ${target}: call rocov_add_coverage after add_library or "
      "add_executable, and check its options")
  endif()
  get_target_property(imported "${target}" IMPORTED)
  get_target_property(type "${target}" TYPE)
  if(imported)
    message(FATAL_ERROR
      "rocov_add_coverage: ${target} is imported, and this project does not compile it: name a target that it "
      "compiles")
  endif()
  if(NOT type MATCHES "_LIBRARY$|^EXECUTABLE$")
    message(FATAL_ERROR
      "rocov_add_coverage: ${target} is a custom target: name a library or an executable")
  endif()
endfunction()

# Sets `compile` and `link` to the options of a way of counting, as generator expressions, and `used` to its name. Has the
# end of the top directory make the flags and the target `coverage`.
function(_rocov_options counters host configurations compile link used)
  set(set default)
  if(counters)
    set(set "${counters}")
  endif()
  if(host)
    string(APPEND set _host)
  endif()
  set_property(GLOBAL APPEND PROPERTY _rocov_sets "${set}")
  if(NOT TARGET rocov::flags)
    add_library(rocov::flags INTERFACE IMPORTED GLOBAL)
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _rocov_finish)
  endif()
  set(compiling "")
  set(linking "")
  foreach(language IN ITEMS HIP CUDA CXX C)
    set(flags "$<TARGET_PROPERTY:rocov::flags,${set}_${language}>")
    string(APPEND compiling "$<$<COMPILE_LANGUAGE:${language}>:${flags}>")
    string(APPEND linking "$<$<LINK_LANGUAGE:${language}>:${flags}>")
  endforeach()
  if(configurations)
    string(REPLACE ";" "," configurations "${configurations}")
    set(compiling "$<$<CONFIG:${configurations}>:${compiling}>")
    set(linking "$<$<CONFIG:${configurations}>:${linking}>")
  endif()
  set(${compile} "${compiling}" PARENT_SCOPE)
  set(${link} "${linking}" PARENT_SCOPE)
  set(${used} "${set}" PARENT_SCOPE)
endfunction()

# Removes the options of ROCOV_COVERAGE=ON from a target that gets options of its own.
function(_rocov_take_back target)
  foreach(property IN ITEMS COMPILE_OPTIONS LINK_OPTIONS)
    get_target_property(options "${target}" ${property})
    if(options AND _rocov_all_${property})
      list(REMOVE_ITEM options "${_rocov_all_${property}}")
      set_property(TARGET "${target}" PROPERTY ${property} "${options}")
    endif()
  endforeach()
endfunction()

# Makes the flags of all languages and ways of counting that are in use, and the target `coverage`.
function(_rocov_finish)
  get_property(sets GLOBAL PROPERTY _rocov_sets)
  list(REMOVE_DUPLICATES sets)
  get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(language IN ITEMS HIP CUDA CXX C)
    if(NOT language IN_LIST enabled)
      continue()
    endif()
    foreach(set IN LISTS sets)
      _rocov_flags(${language} ${set} flags)
      set_property(TARGET rocov::flags PROPERTY ${set}_${language} "${flags}")
    endforeach()
  endforeach()
  if(HIP_HIPCC_EXECUTABLE)
    _rocov_find_hip("${sets}" "${enabled}")
  endif()
  if(ROCOV_LABEL_TESTS)
    _rocov_label_tests("${enabled}")
  endif()
  _rocov_add_target("${sets}")
endfunction()

# Makes the flags of hipcc, which the commands of CMake's module FindHIP call, whatever compiles C++.
function(_rocov_find_hip sets enabled)
  set(CMAKE_HIPCC_COMPILER "${HIP_HIPCC_EXECUTABLE}")
  foreach(set IN LISTS sets)
    _rocov_flags(HIPCC ${set} flags)
    # They link in the language HIP, which need not be enabled.
    if(NOT HIP IN_LIST enabled)
      set_property(TARGET rocov::flags PROPERTY ${set}_HIP "${flags}")
    endif()
    # FindHIP writes a list of words into a script.
    string(REGEX REPLACE "^SHELL:" "" words "${flags}")
    string(REPLACE " " ";" words "${words}")
    set_property(TARGET rocov::flags PROPERTY ${set}_HIPCC "${words}")
  endforeach()
endfunction()

# Adds a source with the listener of rocov_gtest.h to each program of the project that links GoogleTest.
function(_rocov_label_tests enabled)
  if(NOT CXX IN_LIST enabled)
    message(WARNING "rocov: ROCOV_LABEL_TESTS needs C++: enable the language CXX")
    return()
  endif()
  set(source "${CMAKE_BINARY_DIR}/rocov/label_tests.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include <rocov_gtest.h>\nROCOV_LABEL_TESTS;\n" @ONLY)
  set(directories "${CMAKE_SOURCE_DIR}")
  while(directories)
    list(POP_FRONT directories directory)
    get_property(subdirectories DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
    list(APPEND directories ${subdirectories})
    get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type "${target}" TYPE)
      if(NOT type STREQUAL "EXECUTABLE")
        continue()
      endif()
      _rocov_links_gtest("${target}" links)
      if(links)
        # No target_link_libraries: it takes keywords, or it takes none, as the project does.
        set_property(TARGET "${target}" APPEND PROPERTY SOURCES "${source}")
        set_property(TARGET "${target}" APPEND PROPERTY LINK_LIBRARIES ${CMAKE_DL_LIBS})
        set_property(
          SOURCE "${source}" TARGET_DIRECTORY "${target}"
          PROPERTY INCLUDE_DIRECTORIES "${_rocov_include}")
      endif()
    endforeach()
  endwhile()
endfunction()

# Sets `result` to whether a target links GoogleTest, itself or by another target.
function(_rocov_links_gtest target result)
  set(${result} FALSE PARENT_SCOPE)
  set(waiting "${target}")
  set(seen "")
  while(waiting)
    list(POP_FRONT waiting next)
    list(APPEND seen "${next}")
    foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(libraries "${next}" ${property})
      # A library may be in generator expressions: $<LINK_ONLY:GTest::gtest>.
      string(REGEX MATCHALL "[A-Za-z0-9_.:/+-]+" words "${libraries}")
      foreach(word IN LISTS words)
        if(word MATCHES "^[A-Z_]+:([^:].*)$")
          set(word "${CMAKE_MATCH_1}")
        endif()
        if(word MATCHES "(^|:|/|lib)(gtest|gmock)(_main)?(\\.a|\\.so[.0-9]*)?$")
          set(${result} TRUE PARENT_SCOPE)
          return()
        endif()
        if(TARGET "${word}" AND NOT word IN_LIST seen AND NOT word IN_LIST waiting)
          list(APPEND waiting "${word}")
        endif()
      endforeach()
    endforeach()
  endwhile()
endfunction()

# Sets `result` to the option with the flags of a language for a way of counting.
function(_rocov_flags language set result)
  set(${result} "" PARENT_SCOPE)
  _rocov_clang("${CMAKE_${language}_COMPILER}" clang release)
  set(has_host FALSE)
  if(set MATCHES "_host$")
    set(has_host TRUE)
  endif()
  if(NOT release)
    if(language MATCHES "^(HIP|HIPCC|CUDA)$")
      message(WARNING
        "rocov: ${CMAKE_${language}_COMPILER} is not clang, and ${language} code that it compiles does not count: "
        "set CMAKE_${language}_COMPILER to clang++")
    elseif(has_host)
      message(STATUS
        "rocov: ${CMAKE_${language}_COMPILER} is not clang, and ${language} code that it compiles does not count")
    endif()
    return()
  endif()
  if(language STREQUAL "C")
    # C code is the host's.
    if(has_host)
      set(${result} "SHELL:-fprofile-instr-generate -fcoverage-mapping -fprofile-update=atomic" PARENT_SCOPE)
    endif()
    return()
  endif()

  set(arguments --clang "${clang}")
  if(language STREQUAL "CUDA")
    # `rocov flags` needs any of NVIDIA's architectures, and CMake names those of the target.
    list(APPEND arguments --offload-arch=sm_52)
  endif()
  if(has_host)
    list(APPEND arguments --host)
  endif()
  string(REGEX REPLACE "_host$" "" counters "${set}")
  if(NOT counters STREQUAL "default")
    list(APPEND arguments "--counters=${counters}")
  endif()
  execute_process(
    COMMAND "${ROCOV_EXECUTABLE}" flags ${arguments}
    RESULT_VARIABLE status OUTPUT_VARIABLE words ERROR_VARIABLE said
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " arguments "${arguments}")
    set(about "rocov: no flags for ${language}: `rocov flags ${arguments}` failed:\n${said}")
    if(language STREQUAL "CXX")
      # Such code need not be for GPUs.
      message(WARNING "${about}")
      return()
    endif()
    message(FATAL_ERROR "${about}")
  endif()
  if(said)
    string(REGEX REPLACE "^rocov: " "" said "${said}")
    message(STATUS "rocov flags for ${language}: ${said}")
  endif()
  string(REPLACE " --offload-arch=sm_52" "" words "${words}")
  _rocov_option("${language}" "${release}" "${words}" option)
  set(${result} "${option}" PARENT_SCOPE)
endfunction()

# Sets `clang` to the clang that `compiler` is or calls, as hipcc does, and `release` to its release of LLVM, empty
# if it is none.
function(_rocov_clang compiler clang release)
  set(${clang} "${compiler}" PARENT_SCOPE)
  set(${release} "" PARENT_SCOPE)
  execute_process(COMMAND "${compiler}" --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "clang version ([0-9]+)")
    set(${release} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    get_filename_component(name "${compiler}" NAME)
    if(name MATCHES "^hipcc" AND version MATCHES "InstalledDir: ([^\n]+)")
      set(${clang} "${CMAKE_MATCH_1}/clang++" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Sets `result` to one option with all of `words`.
#
# They go to a file: some releases of ccache drop -Xarch_device from a command, and CMake removes words that it
# has seen. ccache knows the file by its name, which thus has a hash of its contents. clang before 16 takes one
# such file only, which may be the user's.
function(_rocov_option language release words result)
  if(release LESS 16)
    set(${result} "SHELL:${words}" PARENT_SCOPE)
    return()
  endif()
  set(contents "${words}")
  if(words MATCHES "-fpass-plugin=([^ ]+)")
    file(SHA256 "${CMAKE_MATCH_1}" plugin)
    string(APPEND contents "\n# The plugin's SHA-256: ${plugin}")
  endif()
  string(APPEND contents "\n")
  string(SHA256 hash "${contents}")
  string(SUBSTRING "${hash}" 0 12 hash)
  string(TOLOWER "${language}" name)
  set(file "${CMAKE_BINARY_DIR}/rocov/${name}-${hash}.cfg")
  if(NOT EXISTS "${file}")
    file(WRITE "${file}" "${contents}")
  endif()
  set(${result} "--config=${file}" PARENT_SCOPE)
endfunction()

# Adds the target that runs the tests and writes the pages. It builds first, as `all` does. `sets` are the ways of
# counting that are in use.
function(_rocov_add_target sets)
  set(name "${ROCOV_COVERAGE_TARGET}")
  if(NOT name)
    set(name coverage)
    if(TARGET coverage)
      set(name rocov-coverage)
      message(STATUS "rocov: the project has a target coverage: rocov's is ${name}")
    endif()
  endif()
  set(data "${CMAKE_BINARY_DIR}/rocov-data")
  set(pages "${CMAKE_BINARY_DIR}/coverage")
  get_property(is_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(is_multi)
    string(APPEND data "/$<CONFIG>")
    string(APPEND pages "/$<CONFIG>")
  endif()
  _rocov_built_by_all("${CMAKE_SOURCE_DIR}" built)
  set(binaries "")
  if(sets MATCHES "_host")
    # Host code of a static library is in the programs that link it.
    foreach(target IN LISTS built)
      get_target_property(type "${target}" TYPE)
      if(type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
        list(APPEND binaries "$<TARGET_FILE:${target}>")
      endif()
    endforeach()
  endif()
  add_custom_target("${name}"
    COMMAND "${CMAKE_COMMAND}"
      "-DROCOV=${ROCOV_EXECUTABLE}" "-DCTEST=${CMAKE_CTEST_COMMAND}" "-DBUILD=${CMAKE_BINARY_DIR}"
      "-DCONFIGURATION=$<CONFIG>" "-DDATA=${data}" "-DPAGES=${pages}" "-DGPU=${ROCOV_GPU}"
      "-DHOST_BINARIES=${binaries}" "-DCTEST_ARGUMENTS=${ROCOV_CTEST_ARGUMENTS}"
      "-DREPORT_ARGUMENTS=${ROCOV_REPORT_ARGUMENTS}"
      -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/rocov-run.cmake"
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" USES_TERMINAL VERBATIM)
  if(built)
    add_dependencies("${name}" ${built})
  endif()
endfunction()

# Sets `result` to the targets that `all` builds in a directory and those below.
function(_rocov_built_by_all directory result)
  set(found "")
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type "${target}" TYPE)
    get_target_property(is_excluded "${target}" EXCLUDE_FROM_ALL)
    if(NOT is_excluded AND NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND found "${target}")
    endif()
  endforeach()
  get_property(directories DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS directories)
    get_property(is_excluded DIRECTORY "${below}" PROPERTY EXCLUDE_FROM_ALL)
    if(NOT is_excluded)
      _rocov_built_by_all("${below}" more)
      list(APPEND found ${more})
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Directories below have the options of this one already.
if(ROCOV_COVERAGE AND NOT _rocov_all_COMPILE_OPTIONS)
  _rocov_check_counters(ROCOV_COUNTERS "${ROCOV_COUNTERS}")
  _rocov_options(
    "${ROCOV_COUNTERS}" "${ROCOV_HOST}" "" _rocov_all_COMPILE_OPTIONS _rocov_all_LINK_OPTIONS _rocov_all_SET)
  add_compile_options("${_rocov_all_COMPILE_OPTIONS}")
  add_link_options("${_rocov_all_LINK_OPTIONS}")
  # hip_add_library and hip_add_executable of CMake's module FindHIP compile by commands of their own, which get no
  # options of directories and targets, but this variable. FindHIP removes it if the cache has none of its name.
  set(HIP_CLANG_FLAGS "" CACHE STRING "Semicolon delimited flags for CLANG")
  list(APPEND HIP_CLANG_FLAGS "$<TARGET_PROPERTY:rocov::flags,${_rocov_all_SET}_HIPCC>")
endif()

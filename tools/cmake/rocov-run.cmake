# The command of the target `coverage`: runs ctest with a label for each test, and reports. The variables come from
# rocov-coverage.cmake.

set(gpu "")
if(GPU)
  set(gpu --gpu "${GPU}")
endif()
set(configuration "")
if(CONFIGURATION)
  set(configuration -C "${CONFIGURATION}")
endif()
set(report "${ROCOV}" report "${DATA}" --per-test)
foreach(binary IN LISTS HOST_BINARIES)
  list(APPEND report --host-binary "${binary}")
endforeach()
list(APPEND report ${REPORT_ARGUMENTS})

# Counts of earlier runs would add up.
if(EXISTS "${DATA}")
  execute_process(COMMAND "${ROCOV}" clean "${DATA}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(
  COMMAND "${ROCOV}" run ${gpu} -o "${DATA}" --per-test --
    "${CTEST}" --test-dir "${BUILD}" ${configuration} --output-on-failure ${CTEST_ARGUMENTS}
  RESULT_VARIABLE tests)

# The user's arguments may choose further formats, each with its file.
execute_process(COMMAND ${report} --table - --html "${PAGES}" RESULT_VARIABLE status)
if(status MATCHES "^[03]$")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "Pages for a browser: ${PAGES}/index.html")
endif()

if(NOT tests EQUAL 0)
  message(FATAL_ERROR "ctest ended with ${tests}, so the counts may not be those of all tests")
elseif(NOT status EQUAL 0)
  message(FATAL_ERROR "rocov report ended with ${status}")
endif()

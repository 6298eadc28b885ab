# The version of this package: that of Cargo.toml, which a test compares. Before 1.0, a minor version may drop
# what an earlier one had.
set(PACKAGE_VERSION 0.1.0)

set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN
      AND (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX
        OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE"
          AND PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
elseif(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  set(PACKAGE_VERSION_EXACT TRUE)
elseif(PACKAGE_VERSION VERSION_GREATER PACKAGE_FIND_VERSION)
  # `find_package(rocov 0)` takes each version that starts with 0, and `find_package(rocov 0.1)` those of 0.1.
  set(_rocov_series "${PACKAGE_FIND_VERSION_MAJOR}")
  if(PACKAGE_FIND_VERSION_COUNT GREATER 1)
    string(APPEND _rocov_series ".${PACKAGE_FIND_VERSION_MINOR}")
  endif()
  string(FIND "${PACKAGE_VERSION}." "${_rocov_series}." _rocov_place)
  if(_rocov_place EQUAL 0)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
  unset(_rocov_place)
  unset(_rocov_series)
endif()

# find_package(orrery): the library as orrery::orrery, and the cards' compiler as ORRERY_CC.
if(TARGET orrery::orrery)
  return()
endif()
get_filename_component(ORRERY_SDK "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ORRERY_CC "${ORRERY_SDK}/bin/orrery-cc")
add_library(orrery::orrery SHARED IMPORTED)
set_target_properties(orrery::orrery PROPERTIES
  IMPORTED_LOCATION "${ORRERY_SDK}/lib/liborrery.so"
  INTERFACE_INCLUDE_DIRECTORIES "${ORRERY_SDK}/include")

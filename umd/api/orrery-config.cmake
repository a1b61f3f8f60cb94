# find_package(orrery): the library as orrery::orrery, the cards' compiler as ORRERY_CC, and for kernels the functions
# orrery_kernel and orrery_embed_kernel.
get_filename_component(ORRERY_SDK "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ORRERY_CC "${ORRERY_SDK}/bin/orrery-cc")
foreach(part lib/liborrery.so bin/orrery-cc include/orrery/orrery.h)
  if(NOT EXISTS "${ORRERY_SDK}/${part}")
    set(orrery_FOUND FALSE)
    set(orrery_NOT_FOUND_MESSAGE "${ORRERY_SDK}/${part} is not there: install the component sdk again.")
    return()
  endif()
endforeach()
include("${CMAKE_CURRENT_LIST_DIR}/orrery_kernel.cmake")
# Variables are of the caller's scope, and a target is there for all: each call sets those.
if(NOT TARGET orrery::orrery)
  add_library(orrery::orrery SHARED IMPORTED)
  set_target_properties(orrery::orrery PROPERTIES
    IMPORTED_LOCATION "${ORRERY_SDK}/lib/liborrery.so"
    INTERFACE_INCLUDE_DIRECTORIES "${ORRERY_SDK}/include")
endif()

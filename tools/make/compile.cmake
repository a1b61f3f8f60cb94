# How each target is compiled. Most of what a build costs is parsing the same headers again and optimising what never
# matters, so what runs for each instruction, event or packet is *hot* and optimised, and all else is not; and the
# headers that nearly every file includes are compiled once for each kind of target.
#
# Hot are emulator/, firmware/, umd/, the benchmarks, the fuzzers and what calls orrery_hot(), but not what calls
# orrery_cold(), nor, with sanitizers, the runtime, which waits for cards most of the time. The top CMakeLists.txt calls
# orrery_compile_rules() when all targets are known.

# orrery_hot(TARGET...): optimise these too.
function(orrery_hot)
  set_target_properties(${ARGN} PROPERTIES ORRERY_HOT ON)
endfunction()

# orrery_cold(TARGET...): what runs once, such as the parsers of options.
function(orrery_cold)
  set_target_properties(${ARGN} PROPERTIES ORRERY_COLD ON)
endfunction()

# orrery_cold_sources(TARGET FILE...): adds such files to a hot target; as objects of a target of their own, for a
# precompiled header serves one level of optimisation.
function(orrery_cold_sources target)
  add_library(${target}_cold OBJECT ${ARGN})
  target_link_libraries(${target}_cold PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cold>)
  orrery_cold(${target}_cold)
endfunction()

set(orrery_common_headers
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <condition_variable> <cstdint> <cstdio> <cstring> <deque> <expected>
  <filesystem> <fstream> <functional> <iterator> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream>
  <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# One precompiled header: NAME, then the headers beyond the common ones.
function(orrery_precompiled name)
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE orrery_options fmt::fmt)
  target_precompile_headers(${name} PRIVATE ${orrery_common_headers} ${ARGN})
endfunction()

function(orrery_all_targets result folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(next ${below})
    orrery_all_targets(more ${next})
    list(APPEND targets ${more})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

function(orrery_compile_rules)
  set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)
  # A compiler cache shares objects among checkouts; a precompiled header, which holds paths, is in the way of that. With
  # g++ none are used either, so that one compiler sees each file with its own includes alone.
  set(precompile ON)
  if(CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(precompile OFF)
  endif()
  orrery_all_targets(targets ${CMAKE_SOURCE_DIR})
  if(precompile)
    orrery_precompiled(precompiled_hot)
    orrery_precompiled(precompiled_shared) # position-independent
    set_target_properties(precompiled_shared PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(ORRERY_SANITIZE)
      target_compile_options(precompiled_shared PRIVATE -O0)
    endif()
    if(ORRERY_FUZZING)
      target_compile_options(precompiled_hot PRIVATE -fsanitize=fuzzer-no-link)
      target_compile_options(precompiled_shared PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    orrery_precompiled(precompiled_tools <nlohmann/json.hpp>)
    target_compile_options(precompiled_tools PRIVATE -O0)
    if(ORRERY_TESTS)
      orrery_precompiled(precompiled_tests <gtest/gtest.h> <gmock/gmock.h>)
      target_compile_options(precompiled_tests PRIVATE -O0)
      target_link_libraries(precompiled_tests PRIVATE GTest::gtest GTest::gmock)
    endif()
  endif()

  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(folder ${target} SOURCE_DIR)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    if(NOT type MATCHES "EXECUTABLE|STATIC_LIBRARY|OBJECT_LIBRARY")
      continue()
    endif()
    get_target_property(hot ${target} ORRERY_HOT)
    get_target_property(cold ${target} ORRERY_COLD)
    get_target_property(shared ${target} POSITION_INDEPENDENT_CODE)
    if(NOT cold AND (hot OR folder MATCHES "^(emulator|firmware|umd|tests/bench|tests/fuzz)"))
      set(header precompiled_hot)
      if(shared)
        set(header precompiled_shared)
        if(ORRERY_SANITIZE)
          target_compile_options(${target} PRIVATE -O0)
        endif()
      endif()
      if(ORRERY_FUZZING)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
      endif()
    else()
      set(header precompiled_tools)
      if(folder MATCHES "^tests")
        set(header precompiled_tests)
      endif()
      target_compile_options(${target} PRIVATE -O0)
    endif()
    if(precompile)
      target_precompile_headers(${target} REUSE_FROM ${header})
      # These are C++.
      get_target_property(sources ${target} SOURCES)
      list(FILTER sources INCLUDE REGEX "\\.c$")
      foreach(source ${sources})
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/${folder})
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endforeach()
    endif()
  endforeach()
endfunction()

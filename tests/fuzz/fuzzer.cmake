# orrery_fuzzer(NAME SOURCES file... LIBS lib... [CORPUS folder])
#
# The sources define LLVMFuzzerTestOneInput. In a build with clang and AddressSanitizer (the asan preset) NAME
# is a libFuzzer program that ctest (label fuzz) runs for ORRERY_FUZZ_SECONDS, starting from CORPUS (default:
# the folder "corpus" beside the CMakeLists.txt) and from what earlier runs found (kept in the build folder).
# The coverage instrumentation of the libraries comes from tools/make/compile.cmake. In
# all other builds NAME runs every file of CORPUS once, so that old findings stay found with every compiler.
#
# Fuzz longer: ORRERY_FUZZ_SECONDS=600 ctest -L fuzz, or the CMake variable of that name.
set(ORRERY_FUZZ_SECONDS 5 CACHE STRING "Seconds that each fuzzer runs in the asan preset's tests")

function(orrery_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_CORPUS)
    set(ARG_CORPUS corpus)
  endif()
  get_filename_component(corpus ${ARG_CORPUS} ABSOLUTE)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE orrery_options ${ARG_LIBS})
  if(ORRERY_FUZZING)
    set(found ${CMAKE_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${found}/corpus)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND sh -c
      "exec \"$0\" -max_total_time=\${ORRERY_FUZZ_SECONDS:-${ORRERY_FUZZ_SECONDS}} -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix=${found}/ ${found}/corpus ${corpus}"
      $<TARGET_FILE:${name}>)
  else()
    target_sources(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${corpus})
  endif()
  orrery_label(${name} fuzz)
  set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
endfunction()

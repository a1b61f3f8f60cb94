# orrery_simd_sources(target file...): compiles the files into the target once for each set of host instructions,
# with ORR_SIMD as the namespace of what they define. They call nothing but each other, and define no function that
# the linker could take for another file's (templates of the standard library): that one would need a newer host.
function(orrery_simd_sources target)
  set(kinds portable)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(APPEND kinds avx2)
    # With sanitizers each kind takes minutes to compile, and all have the same source.
    if(NOT ORRERY_BRIEF)
      list(APPEND kinds avx512)
      target_compile_definitions(${target} PRIVATE ORR_SIMD_AVX512)
    endif()
  endif()
  set(common -fno-math-errno -fno-strict-aliasing -ffp-contract=off -fomit-frame-pointer -O3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND common -Wno-pass-failed) # a loop that cannot be vectorised on this kind of host is no mistake
  else()
    list(APPEND common -Wno-maybe-uninitialized) # g++ 12 warns of its own headers of intrinsics
  endif()
  set(flags_portable)
  set(flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt)
  if(ORRERY_BRIEF AND ORRERY_SANITIZE MATCHES undefined)
    list(APPEND flags_avx2 -fno-sanitize=undefined)
  endif()
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
  foreach(kind ${kinds})
    set(copies)
    foreach(file ${ARGN})
      get_filename_component(stem ${file} NAME_WE)
      set(copy ${CMAKE_CURRENT_BINARY_DIR}/${stem}_${kind}.cc)
      file(GENERATE OUTPUT ${copy} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
      set_source_files_properties(${copy} PROPERTIES SKIP_PRECOMPILE_HEADERS ON OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file}
        COMPILE_OPTIONS "-DORR_SIMD=${kind};${flags_${kind}};${common}")
      list(APPEND copies ${copy})
    endforeach()
    target_sources(${target} PRIVATE ${copies})
  endforeach()
endfunction()

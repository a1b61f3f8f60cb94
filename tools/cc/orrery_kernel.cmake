# orrery_kernel(TARGET FILE [OPTIONS ...]): compiles a kernel with orrery-cc to bin/TARGET.elf as part of
# the normal build. OPTIONS go to orrery-cc.
function(orrery_kernel target file)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  get_filename_component(source ${file} ABSOLUTE)
  set(output ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${target}.elf)
  add_custom_command(OUTPUT ${output}
    COMMAND orrery-cc ${ARG_OPTIONS} -o ${output} ${source}
    DEPENDS ${source} orrery-cc
      ${CMAKE_SOURCE_DIR}/umd/include/orrery/kernel.h
      ${CMAKE_SOURCE_DIR}/emulator/include/orrery/hw/kernel_abi.h
      ${CMAKE_SOURCE_DIR}/tools/cc/runtime/memory.cc
    COMMENT "Compiling kernel ${target}.elf"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${output})
endfunction()

# orrery_kernel(TARGET FILE... [OPTIONS ...]): compiles kernels with orrery-cc to bin/TARGET.elf as part of
# the normal build, and again when a header that they include has changed. OPTIONS go to orrery-cc.
function(orrery_kernel target)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(source ${file} ABSOLUTE)
    list(APPEND sources ${source})
  endforeach()
  set(output ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${target}.elf)
  add_custom_command(OUTPUT ${output}
    COMMAND orrery-cc ${ARG_OPTIONS} -MF ${output}.d -o ${output} ${sources}
    DEPFILE ${output}.d
    DEPENDS ${sources} orrery-cc ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/runtime/memory.cc
    COMMENT "Compiling kernel ${target}.elf"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${output})
endfunction()

# orrery_embed_kernel(TARGET KERNEL...): what orrery_kernel(KERNEL ...) makes travels inside the program, so that it is one
# file to copy into a guest. orrery/embedded_kernel.hpp says how it reaches them.
function(orrery_embed_kernel target)
  foreach(kernel IN LISTS ARGN)
    set(image ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${kernel}.elf)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${kernel}_image.cc)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embedded_kernel.cc.in ${source} @ONLY)
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${image})
    add_dependencies(${target} ${kernel})
  endforeach()
endfunction()

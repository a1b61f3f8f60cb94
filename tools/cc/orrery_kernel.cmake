# Part of this tree and, beside orrery-config.cmake, of the SDK, where orrery-cc is no target but the program ORRERY_CC.

# Where the module of a kernel lies: with the programs, if the project has a folder for them.
function(orrery_kernel_module variable target)
  set(folder ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  if(NOT folder)
    set(folder ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  set(${variable} ${folder}/${target}.elf PARENT_SCOPE)
endfunction()

# orrery_kernel(TARGET FILE... [OPTIONS ...]): compiles kernels with orrery-cc to TARGET.elf as part of
# the normal build, and again when a header that they include has changed. OPTIONS go to orrery-cc.
function(orrery_kernel target)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(source ${file} ABSOLUTE)
    list(APPEND sources ${source})
  endforeach()
  orrery_kernel_module(output ${target})
  if(ORRERY_CC)
    set(compiler ${ORRERY_CC})
    set(needed ${ORRERY_CC})
  else() # a target of this tree, perhaps a later one
    set(compiler orrery-cc)
    set(needed orrery-cc ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/runtime/memory.cc)
  endif()
  add_custom_command(OUTPUT ${output}
    COMMAND ${compiler} ${ARG_OPTIONS} -MF ${output}.d -o ${output} ${sources}
    DEPFILE ${output}.d
    DEPENDS ${sources} ${needed}
    COMMENT "Compiling kernel ${target}.elf"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${output})
  set_target_properties(${target} PROPERTIES ORRERY_MODULE ${output})
endfunction()

# orrery_embed_kernel(TARGET KERNEL...): what orrery_kernel(KERNEL ...) makes travels inside the program, so that it is one
# file to copy into a guest. orrery/embedded_kernel.hpp says how it reaches them.
function(orrery_embed_kernel target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  foreach(kernel IN LISTS ARGN)
    if(NOT kernel MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "orrery_embed_kernel(${target}): ${kernel} becomes a name of C++, so it has letters, digits and _")
    endif()
    orrery_kernel_module(image ${kernel})
    if(TARGET ${kernel})
      get_target_property(image ${kernel} ORRERY_MODULE)
    endif()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${kernel}_image.cc)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embedded_kernel.cc.in ${source} @ONLY)
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${image})
    add_dependencies(${target} ${kernel})
  endforeach()
endfunction()

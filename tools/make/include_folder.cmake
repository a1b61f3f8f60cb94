# One folder of headers for programs outside this checkout, beside the libraries of the build: include/orrery holds the
# runtime's headers and what they include.
set(include_folder ${CMAKE_BINARY_DIR}/include/orrery)
file(MAKE_DIRECTORY ${include_folder})
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/umd/include/orrery/*)
foreach(header ${headers} ${CMAKE_SOURCE_DIR}/emulator/include/orrery/hw)
  get_filename_component(name ${header} NAME)
  file(CREATE_LINK ${header} ${include_folder}/${name} SYMBOLIC)
endforeach()

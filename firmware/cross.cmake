# The cross build: clang and lld for rv64imac, freestanding. The C++ standard library is not used; the C headers are
# clang's own and, for <assert.h>, picolibc's; memcpy and the like come from picolibc.
#
# Outputs in build/<preset>/firmware/: orrery-fw.elf (with debug information), orrery-fw.bin (the signed
# image), orrery-fw.symbols (symbols and sources for recordings), dev.key and dev.pub (a key pair of this build tree, made once). Target: firmware.
find_program(ORRERY_RV_CLANG NAMES clang++-19 clang++ REQUIRED)
find_program(ORRERY_RV_GCC NAMES riscv64-unknown-elf-g++)
set(picolibc /usr/lib/picolibc/riscv64-unknown-elf)
find_path(ORRERY_RV_INCLUDE assert.h PATHS ${picolibc}/include NO_DEFAULT_PATH REQUIRED)
find_library(ORRERY_RV_LIBC libc.a PATHS ${picolibc}/lib/rv64imac/lp64 ${picolibc}/lib/release/rv64imac/lp64
  NO_DEFAULT_PATH REQUIRED)

set(out ${CMAKE_CURRENT_BINARY_DIR})
set(cross_sources main/crt0.S main/main.cc ${logic_sources})
file(GLOB hashed_sources CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/sched/*/*.h ${CMAKE_CURRENT_SOURCE_DIR}/sched/*/*.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/*/*.S ${CMAKE_CURRENT_SOURCE_DIR}/*/*.ld ${CMAKE_CURRENT_SOURCE_DIR}/*.cmake
  ${CMAKE_SOURCE_DIR}/firmware/include/orrery/fw/*.h ${CMAKE_SOURCE_DIR}/emulator/include/orrery/hw/*.h)

# The build id: version and a hash of all sources, so that equal sources give equal images anywhere.
add_custom_command(
  OUTPUT ${out}/build_id.txt ${out}/gen/firmware_build_id.h
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${out} "-DSOURCES=${hashed_sources}"
          -P ${CMAKE_CURRENT_SOURCE_DIR}/build_id.cmake
  DEPENDS ${hashed_sources} ${CMAKE_CURRENT_SOURCE_DIR}/build_id.cmake
  COMMENT "Firmware build id" VERBATIM)

set(rv_flags
  -march=rv64imac_zicsr -mabi=lp64 -mcmodel=medany
  -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-asynchronous-unwind-tables
  -fno-stack-protector -ffunction-sections -fdata-sections -fno-pic
  -O2 -g -Wall -Wextra -Wshadow -Wconversion -Werror
  -DORRERY_FW_CARD
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
  -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/firmware/include -I${CMAKE_SOURCE_DIR}/emulator/include
  -I${out}/gen -isystem ${ORRERY_RV_INCLUDE})
set(rv_clang_flags --target=riscv64-unknown-elf -std=c++20 -nostdlibinc -flto ${rv_flags})
set(rv_gcc_flags -std=c++20 ${rv_flags})
set(linker_script ${CMAKE_CURRENT_SOURCE_DIR}/main/link.ld)

# One command an object, so that a change rebuilds what it touches.
function(orrery_rv_objects result folder compiler)
  set(objects)
  foreach(source ${cross_sources})
    set(object ${out}/${folder}/${source}.o)
    get_filename_component(dir ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${dir})
    # SRAM is short: what is not on the way of a packet is built for size.
    set(size)
    if(source MATCHES "mailbox/|sched/.*/(deadlock|gang|inspect|lifecycle|packets|policy|quota|restart|retire|wait_table|waits)[.]cc")
      set(size -Os)
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${compiler} ${ARGN} ${size} -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${out}/gen/firmware_build_id.h
      DEPFILE ${object}.d
      COMMENT "Firmware (${folder}) ${source}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

orrery_rv_objects(objects card ${ORRERY_RV_CLANG} ${rv_clang_flags})
set(link ${ORRERY_RV_CLANG} --target=riscv64-unknown-elf -march=rv64imac_zicsr -mabi=lp64 -nostdlib -static -fuse-ld=lld
  -flto -O2 -Wl,-mllvm,-disable-machine-licm -Wl,--gc-sections -Wl,--build-id=none -Wl,-T,${linker_script})
add_custom_command(
  OUTPUT ${out}/orrery-fw.elf
  COMMAND ${link} ${objects} ${ORRERY_RV_LIBC} -o ${out}/orrery-fw.elf
  DEPENDS ${objects} ${linker_script}
  COMMENT "Link orrery-fw.elf" VERBATIM)
add_custom_command(
  OUTPUT ${out}/orrery-fw-stripped.elf
  COMMAND ${link} -Wl,--strip-all ${objects} ${ORRERY_RV_LIBC} -o ${out}/orrery-fw-stripped.elf
  DEPENDS ${objects} ${linker_script}
  COMMENT "Link orrery-fw-stripped.elf" VERBATIM)

add_custom_command(
  OUTPUT ${out}/dev.key ${out}/dev.pub
  COMMAND orrery-fwsign keygen --keep ${out}/dev.key ${out}/dev.pub
  COMMENT "Development key pair of this build tree" VERBATIM)
add_custom_command(
  OUTPUT ${out}/orrery-fw.bin
  COMMAND orrery-fwsign sign --key ${out}/dev.key --elf ${out}/orrery-fw-stripped.elf --out ${out}/orrery-fw.bin
          --build-id-file ${out}/build_id.txt
  DEPENDS ${out}/orrery-fw-stripped.elf ${out}/dev.key ${out}/build_id.txt orrery-fwsign
  COMMENT "Sign orrery-fw.bin" VERBATIM)
# What recordings carry along, so that they can be read anywhere (docs/trace.md).
set(shown_sources ${hashed_sources})
list(FILTER shown_sources INCLUDE REGEX "[.](h|cc|S)$")
add_custom_command(
  OUTPUT ${out}/orrery-fw.symbols
  COMMAND orrery-fwsign symbols --elf ${out}/orrery-fw.elf --build-id-file ${out}/build_id.txt
          --root ${CMAKE_SOURCE_DIR} --out ${out}/orrery-fw.symbols ${shown_sources}
  DEPENDS ${out}/orrery-fw.elf ${out}/build_id.txt ${shown_sources} orrery-fwsign
  COMMENT "Pack orrery-fw.symbols" VERBATIM)
add_custom_target(firmware ALL DEPENDS ${out}/orrery-fw.elf ${out}/orrery-fw.bin ${out}/orrery-fw.symbols)

# The second compiler: shows that the sources need no clang. Not part of the default build.
if(ORRERY_RV_GCC)
  orrery_rv_objects(gcc_objects gcc ${ORRERY_RV_GCC} ${rv_gcc_flags})
  add_custom_command(
    OUTPUT ${out}/orrery-fw-gcc.elf
    COMMAND ${ORRERY_RV_GCC} -march=rv64imac_zicsr -mabi=lp64 -nostdlib -static -Wl,--gc-sections -Wl,--build-id=none
            -Wl,-T,${linker_script} ${gcc_objects} ${ORRERY_RV_LIBC} -o ${out}/orrery-fw-gcc.elf
    DEPENDS ${gcc_objects} ${linker_script}
    COMMENT "Link orrery-fw-gcc.elf" VERBATIM)
  add_custom_target(firmware-gcc DEPENDS ${out}/orrery-fw-gcc.elf)
endif()

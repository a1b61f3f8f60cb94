# orrery_vm_test(NAME COMMAND program argument... [KERNEL lts|backports|both|debug] [CARDS n] [OPTIONS option...]
#                [TIMEOUT seconds] [STATUS n] [RECORD times] [IN_STEP] [SANITIZED] [NO_DEBUG | DEBUG_COMMAND program argument...]
#                [LONG | LONG_COMMAND program argument...])
#
# One ctest entry a kernel: NAME for lts, NAME_backports for backports. It runs COMMAND in a VM with CARDS cards (default
# 1) and passes if the command ends with STATUS (default 0) and the guest kernel reported no trouble. A program of this
# build is found by its name. OPTIONS go to orrery-vm. The logs of a run lie under build/vm-tests/<name>.
# With LONG the entry for backports is one of `make test-long`, and no other ctest run sees it; LONG_COMMAND is what that
# entry runs instead of COMMAND.
# With IN_STEP the cards keep step (--sync lockstep), and no message may come to a card or switch after its model time.
# With RECORD the run is recorded, and each card's recording is then replayed so many times, bit-exactly.
#
# Each test for lts is also NAME_debug, on the debug kernel: without recording, with DEBUG_COMMAND if there is one, not with
# NO_DEBUG. `make test-debug` runs those and what is for that kernel only (KERNEL debug); no other ctest run sees them.
#
# In a build with sanitizers only tests marked SANITIZED exist, under the name NAME_sanitized: orrery-vm and the cards are
# those of that build, the guest's programs and the firmware those of the release build.
# Sets `result` to what stands before the command of a test whose cards keep step, and to nothing for others.
function(orrery_in_step result keeps_step logs)
  set(before)
  if(keeps_step)
    set(before ${CMAKE_SOURCE_DIR}/tests/vm/nothing_late.sh ${logs})
  endif()
  set(${result} ${before} PARENT_SCOPE)
endfunction()

function(orrery_vm_test name)
  cmake_parse_arguments(ARG "SANITIZED;NO_DEBUG;LONG;IN_STEP" "KERNEL;CARDS;TIMEOUT;STATUS;RECORD"
    "COMMAND;OPTIONS;DEBUG_COMMAND;LONG_COMMAND" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_COMMAND)
    message(FATAL_ERROR "orrery_vm_test(${name}): COMMAND is missing, or unknown words: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT DEFINED ARG_CARDS)
    set(ARG_CARDS 1)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 240)
  endif()
  if(NOT ARG_STATUS)
    set(ARG_STATUS 0)
  endif()
  if(NOT ARG_KERNEL)
    set(ARG_KERNEL lts)
  elseif(ARG_KERNEL STREQUAL both)
    set(ARG_KERNEL lts backports)
  endif()
  if(ARG_IN_STEP)
    list(APPEND ARG_OPTIONS --sync lockstep)
  endif()
  set(suffix "")
  if(ORRERY_SANITIZE)
    if(NOT ARG_SANITIZED)
      return()
    endif()
    set(ARG_KERNEL lts)
    set(suffix _sanitized)
    list(APPEND ARG_OPTIONS --programs ${CMAKE_SOURCE_DIR}/build/release/bin)
  endif()
  if(NOT ARG_NO_DEBUG AND NOT ORRERY_SANITIZE AND ARG_KERNEL MATCHES "lts|debug")
    set(test ${name}_debug)
    if(NOT ARG_DEBUG_COMMAND)
      set(ARG_DEBUG_COMMAND ${ARG_COMMAND})
    endif()
    # orrery-vm gives this kernel six times the limit.
    math(EXPR ctest_timeout "6 * ${ARG_TIMEOUT} + 240")
    orrery_in_step(in_step "${ARG_IN_STEP}" ${CMAKE_SOURCE_DIR}/build/vm-tests/${test})
    add_test(NAME ${test} CONFIGURATIONS debug-kernel COMMAND ${CMAKE_SOURCE_DIR}/tests/vm/expect_status.sh ${ARG_STATUS}
      ${in_step} $<TARGET_FILE:orrery-vm> --cards ${ARG_CARDS} --kernel debug --timeout ${ARG_TIMEOUT}
      --logs ${CMAKE_SOURCE_DIR}/build/vm-tests/${test} ${ARG_OPTIONS} -- ${ARG_DEBUG_COMMAND})
    set_tests_properties(${test} PROPERTIES LABELS debug-kernel TIMEOUT ${ctest_timeout})
    list(REMOVE_ITEM ARG_KERNEL debug)
  endif()
  if(ARG_LONG_COMMAND)
    set(ARG_LONG TRUE)
  else()
    set(ARG_LONG_COMMAND ${ARG_COMMAND})
  endif()
  if(ARG_LONG AND NOT "backports" IN_LIST ARG_KERNEL AND NOT ORRERY_SANITIZE)
    message(FATAL_ERROR "orrery_vm_test(${name}): LONG is of the entry for backports, and there is none")
  endif()
  math(EXPR ctest_timeout "${ARG_TIMEOUT} + 60")
  foreach(kernel ${ARG_KERNEL})
    set(test ${name}${suffix})
    set(command ${ARG_COMMAND})
    set(label vm)
    set(configuration)
    if(kernel STREQUAL backports)
      set(test ${name}_backports)
      if(ARG_LONG)
        set(label long)
        set(configuration CONFIGURATIONS long)
        set(command ${ARG_LONG_COMMAND})
      endif()
    endif()
    set(record)
    set(options ${ARG_OPTIONS})
    if(ARG_RECORD AND NOT ORRERY_SANITIZE)
      set(folder ${CMAKE_BINARY_DIR}/recordings/${test})
      set(record ${CMAKE_SOURCE_DIR}/tests/vm/trace/record.sh $<TARGET_FILE:replay_times> ${ARG_RECORD} ${folder}
        ${ARG_CARDS})
      list(APPEND options --record ${folder})
    endif()
    orrery_in_step(in_step "${ARG_IN_STEP}" ${CMAKE_SOURCE_DIR}/build/vm-tests/${test})
    add_test(NAME ${test} ${configuration} COMMAND ${record} ${CMAKE_SOURCE_DIR}/tests/vm/expect_status.sh ${ARG_STATUS}
      ${in_step} $<TARGET_FILE:orrery-vm> --cards ${ARG_CARDS} --kernel ${kernel} --timeout ${ARG_TIMEOUT}
      --logs ${CMAKE_SOURCE_DIR}/build/vm-tests/${test} ${options} -- ${command})
    # A VM has two CPUs, but one of them at work most of the time: two VMs share a machine of two cores well.
    set_tests_properties(${test} PROPERTIES LABELS ${label})
    orrery_limit(${test} ${ctest_timeout})
  endforeach()
endfunction()

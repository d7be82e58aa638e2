# add_emulated_cuda_sources(target mode sources...): compiles CUDA sources for the emulated device
# and adds them to a target. README.md in this folder tells how the emulator works.
#
#   mode      fast or checked; the sources see it as NEEDLE_CUDA_EMULATED, a string
#   sources   .cu files, and the .cuh files that they include
#
# The target gets the runtime too. A module holds one emulated device: give all sources in one call.

set(NEEDLE_EMULATOR_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(NEEDLE_CU2CPP "${CMAKE_CURRENT_LIST_DIR}/../../tools/cu2cpp.py")

# What kernels are compiled with. Line tables for messages, in a form that every addr2line reads; a
# stack that grows touches each page, so that none jumps over a fiber's guard page; assertions hold.
set(NEEDLE_EMULATOR_KERNEL_OPTIONS -g1 -gdwarf-4 -fstack-clash-protection -UNDEBUG)
set(NEEDLE_EMULATOR_fast_OPTIONS -O2)
# The instrumentation calls the runtime's own hooks; no sanitizer library is linked.
set(NEEDLE_EMULATOR_checked_OPTIONS -O1 -fno-tree-vectorize
  -fsanitize=thread -fsanitize=bounds,alignment -DNEEDLE_EMULATOR_CHECKED)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # else `a[i] += 1` counts as a write alone
  list(APPEND NEEDLE_EMULATOR_checked_OPTIONS -mllvm -tsan-instrument-read-before-write=1)
endif()

# The runtime, once for each mode: never instrumented, and never optimised together with kernels.
function(needle_add_emulator_runtime mode)
  if(TARGET cuda_emulator_${mode})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${NEEDLE_EMULATOR_DIR}/*.cc")
  add_library(cuda_emulator_${mode} OBJECT ${sources})
  target_include_directories(cuda_emulator_${mode} PRIVATE "${NEEDLE_EMULATOR_DIR}/include")
  target_compile_options(cuda_emulator_${mode} PRIVATE -O2)
  if(TARGET needle_options)
    target_link_libraries(cuda_emulator_${mode} PRIVATE needle_options)
  endif()
  set_target_properties(cuda_emulator_${mode} PROPERTIES
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_VISIBILITY_PRESET hidden
    POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF)
  ### UNTIL hw5
  # # One unit: nobody edits the runtime here, so the first build is what counts.
  # set_target_properties(cuda_emulator_${mode} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  ### END UNTIL
  if(mode STREQUAL "checked")
    target_compile_definitions(cuda_emulator_${mode} PRIVATE NEEDLE_EMULATOR_CHECKED)
  endif()
endfunction()

function(add_emulated_cuda_sources target mode)
  if(NOT mode MATCHES "^(fast|checked)$")
    message(FATAL_ERROR "add_emulated_cuda_sources: the mode is fast or checked, not ${mode}")
  endif()
  needle_add_emulator_runtime(${mode})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:cuda_emulator_${mode}>)

  # Rewritten sources lie in the build folder as the originals lie to each other, so that an
  # #include "..." finds the rewritten file first, and all others in the originals' folders.
  set(rewritten_root "${CMAKE_CURRENT_BINARY_DIR}/${target}.emulated")
  set(headers)
  set(translation_units)
  set(folders)
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(folder "${path}" DIRECTORY)
    get_filename_component(name "${source}" NAME)
    set(rewritten "${rewritten_root}${path}")
    if(source MATCHES "\\.cu$")
      string(APPEND rewritten ".cc")
      list(APPEND translation_units "${rewritten}")
    else()
      list(APPEND headers "${rewritten}")
    endif()
    list(APPEND folders "${folder}")
    add_custom_command(
      OUTPUT "${rewritten}"
      COMMAND "${Python_EXECUTABLE}" "${NEEDLE_CU2CPP}" "${path}" "${rewritten}"
      DEPENDS "${path}" "${NEEDLE_CU2CPP}"
      COMMENT "Rewriting ${name} for the emulated device (${mode})"
      VERBATIM)
  endforeach()
  list(REMOVE_DUPLICATES folders)

  set_source_files_properties(${translation_units} PROPERTIES
    COMPILE_OPTIONS "${NEEDLE_EMULATOR_KERNEL_OPTIONS};${NEEDLE_EMULATOR_${mode}_OPTIONS}"
    OBJECT_DEPENDS "${headers}")
  target_sources(${target} PRIVATE ${translation_units} ${headers})
  target_include_directories(${target} BEFORE PRIVATE "${NEEDLE_EMULATOR_DIR}/include")
  target_include_directories(${target} PRIVATE ${folders})
  target_compile_definitions(${target} PRIVATE NEEDLE_CUDA_EMULATED="${mode}")
endfunction()

# The standard library's headers, compiled once for all targets of a kind, and the sources of a layer several at a time: half of the time of a build from nothing. Off for
# who works on nexar: ccache gives more, and without it a header that a source forgets to include is noticed.
option(NEXAR_PRECOMPILE "Compile the standard library's headers once" OFF)

# nexar_precompile(TARGET KIND): targets of a KIND are compiled with the same flags. The first of them pays.
function(nexar_precompile target kind)
  if(NOT NEXAR_PRECOMPILE)
    return()
  endif()
  if(kind STREQUAL layers OR kind STREQUAL tool_layers)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # Those that include themselves for each kind of CPU, and those with names of their own that others have too.
    set(alone buffer_pool.cc float_kernels.cc frame_type.cc group_compressed.cc half_kernels.cc integer_kernels.cc quarter_kernels.cc record_writer.cc reduce_op.cc
              seed.cc select_kernels.cc shared_memory.cc)
    set_source_files_properties(${alone} tcp/record_writer.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # what is defined for one must be for all
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF)
  # What g++ says of inlined code of the standard library is hidden when that comes from a system header, and not when it comes from here.
  target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized)
  get_property(first GLOBAL PROPERTY NEXAR_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  set_property(GLOBAL PROPERTY NEXAR_PRECOMPILED_${kind} ${target})
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
                            <thread> <unordered_map> <vector> <fmt/format.h> ${ARGN})
endfunction()

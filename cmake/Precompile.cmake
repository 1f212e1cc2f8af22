# The standard library's headers, compiled once for all targets of a kind, and the sources of a layer or of a test several at a time: half of the time of a build from nothing. Off for
# who works on nexar: ccache gives more, and without it a header that a source forgets to include is noticed.
option(NEXAR_PRECOMPILE "Compile the standard library's headers once" OFF)

# nexar_precompile(TARGET KIND): targets of a KIND are compiled with the same flags. The first of them pays.
function(nexar_precompile target kind)
  if(NOT NEXAR_PRECOMPILE)
    return()
  endif()
  if(kind STREQUAL tool)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    # Each command has its own Options.
    set_source_files_properties(bench_collective.cc bench_join.cc bench_p2p.cc bench_rpc.cc doctor.cc info.cc run.cc seed.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  elseif(kind STREQUAL tests)
    # Tests of a program read the same headers: test_mesh with sanitizers takes 22 s of a core file by file, and 10 s so.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    # Those with names of their own that others have too.
    set_source_files_properties(cluster/failure_detector_test.cc collective/outcomes_test.cc crypto/identity_test.cc crypto/private_key_test.cc rpc/served_table_test.cc
                                runtime/rpc_test.cc tensor/device_group_test.cc tensor/device_operation_test.cc tensor/oracle_test.cc transport/shm_link_test.cc
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  elseif(kind STREQUAL layers OR kind STREQUAL tool_layers)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # Those that include themselves for each kind of CPU, those with names of their own that others have too, and the one with the
    # kernel's form of a header of the C library.
    set(alone buffer_pool.cc float_kernels.cc frame_type.cc group_compressed.cc half_kernels.cc integer_kernels.cc quarter_kernels.cc record_writer.cc reduce_op.cc
              seed.cc select_kernels.cc shared_memory.cc stream_path.cc)
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

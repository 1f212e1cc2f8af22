# `cmake --install`: headers, both libraries, the tool, a CMake package and a pkg-config file.
#
#   find_package(nexar)                      gives nexar::nexar, the shared library
#   find_package(nexar COMPONENTS static)    gives nexar::static as well, and looks for what it is linked to

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nexar)

install(TARGETS nexar EXPORT nexar-targets FILE_SET HEADERS)
install(TARGETS nexar_static EXPORT nexar-static-targets FILE_SET HEADERS)
install(TARGETS nexar_tool)
if(TARGET manual)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${PROJECT_BINARY_DIR}/manual/nexar.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME nexar)
endif()
install(EXPORT nexar-targets NAMESPACE nexar:: DESTINATION ${package_dir})
install(EXPORT nexar-static-targets NAMESPACE nexar:: DESTINATION ${package_dir})

set(with_ipsec_mb FALSE)
set(ipsec_mb_flag "")
if(IpsecMb_FOUND)  # it has no pkg-config file of its own to require
  set(with_ipsec_mb TRUE)
  set(ipsec_mb_flag "-lIPSec_MB ")
  install(FILES cmake/FindIpsecMb.cmake DESTINATION ${package_dir})
endif()

configure_package_config_file(cmake/nexar-config.cmake.in nexar-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(nexar-config-version.cmake COMPATIBILITY SameMinorVersion)
# Relative to itself, so that the installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE prefix_from_pkgconfig)
install(FILES cmake/FindNgtcp2.cmake DESTINATION ${package_dir})
configure_file(cmake/nexar.pc.in nexar.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nexar-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/nexar-config-version.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nexar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# QUIC: ngtcp2 and its GnuTLS helper, which have pkg-config files and no CMake package that is the same everywhere. Gives Ngtcp2::Ngtcp2.

find_path(Ngtcp2_INCLUDE_DIR ngtcp2/ngtcp2_crypto_gnutls.h)
find_library(Ngtcp2_LIBRARY ngtcp2)
find_library(Ngtcp2_CRYPTO_LIBRARY ngtcp2_crypto_gnutls)
mark_as_advanced(Ngtcp2_INCLUDE_DIR Ngtcp2_LIBRARY Ngtcp2_CRYPTO_LIBRARY)
if(Ngtcp2_INCLUDE_DIR)
  file(STRINGS ${Ngtcp2_INCLUDE_DIR}/ngtcp2/version.h version_line REGEX "define NGTCP2_VERSION ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Ngtcp2_VERSION "${version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ngtcp2 REQUIRED_VARS Ngtcp2_LIBRARY Ngtcp2_CRYPTO_LIBRARY Ngtcp2_INCLUDE_DIR VERSION_VAR Ngtcp2_VERSION)
if(Ngtcp2_FOUND AND NOT TARGET Ngtcp2::Ngtcp2)
  add_library(Ngtcp2::Ngtcp2 UNKNOWN IMPORTED)
  set_target_properties(Ngtcp2::Ngtcp2 PROPERTIES IMPORTED_LOCATION ${Ngtcp2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Ngtcp2_INCLUDE_DIR}
                                                  INTERFACE_LINK_LIBRARIES ${Ngtcp2_CRYPTO_LIBRARY})
endif()

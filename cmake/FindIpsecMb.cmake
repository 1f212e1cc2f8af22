# Intel's multi-buffer crypto library, which comes without a CMake package or a pkg-config file. Gives IpsecMb::IpsecMb.

find_path(IpsecMb_INCLUDE_DIR intel-ipsec-mb.h)
find_library(IpsecMb_LIBRARY IPSec_MB)
mark_as_advanced(IpsecMb_INCLUDE_DIR IpsecMb_LIBRARY)
if(IpsecMb_INCLUDE_DIR)
  file(STRINGS ${IpsecMb_INCLUDE_DIR}/intel-ipsec-mb.h version_line REGEX "define IMB_VERSION_STR")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" IpsecMb_VERSION "${version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(IpsecMb REQUIRED_VARS IpsecMb_LIBRARY IpsecMb_INCLUDE_DIR VERSION_VAR IpsecMb_VERSION)
if(IpsecMb_FOUND AND NOT TARGET IpsecMb::IpsecMb)
  add_library(IpsecMb::IpsecMb UNKNOWN IMPORTED)
  set_target_properties(IpsecMb::IpsecMb PROPERTIES IMPORTED_LOCATION ${IpsecMb_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${IpsecMb_INCLUDE_DIR})
endif()

// The names of nodes, clusters and hosts. The first two are 128 random bits: nobody hands them out, and none is used twice.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace nexar {

inline constexpr std::size_t kIdBytes = 16;

// A node: one process, for as long as it lives.
struct NodeId {
  std::array<std::byte, kIdBytes> bytes{};
  friend auto operator<=>(const NodeId&, const NodeId&) = default;  // NOLINT: clang-tidy 14 takes its zero for a pointer
};

// A cluster: everything that one authority vouches for.
struct ClusterId {
  std::array<std::byte, kIdBytes> bytes{};
  friend auto operator<=>(const ClusterId&, const ClusterId&) = default;  // NOLINT: clang-tidy 14 takes its zero for a pointer
};

// A host, as far as memory can be shared: made from the kernel's boot id, the network namespace and NEXAR_HOST_ID.
struct HostId {
  std::array<std::byte, kIdBytes> bytes{};
  friend auto operator<=>(const HostId&, const HostId&) = default;  // NOLINT: clang-tidy 14 takes its zero for a pointer
};

// Two digits for each byte, in lower case.
std::string to_hex(base::ByteView bytes);
inline std::string to_string(const NodeId& id) { return to_hex(id.bytes); }
inline std::string to_string(const ClusterId& id) { return to_hex(id.bytes); }
inline std::string to_string(const HostId& id) { return to_hex(id.bytes); }

// What to_hex made of an id; nothing for any other text, also for digits in upper case: an id has one spelling.
std::optional<std::array<std::byte, kIdBytes>> id_from_hex(std::string_view text);

}  // namespace nexar

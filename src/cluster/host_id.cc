#include "cluster/host_id.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "io/random.h"

namespace nexar::cluster {

HostId host_id(const io::HostMarks& marks, std::string_view chosen) {
  std::array<std::byte, 16> numbers;  // the length of the first text keeps the two apart
  base::store_le<std::uint64_t>(numbers.data(), marks.boot_id.size());
  base::store_le(numbers.data() + 8, marks.network_namespace);
  crypto::Sha256Stream stream;
  stream.update(numbers);
  stream.update(std::as_bytes(std::span(marks.boot_id)));
  stream.update(std::as_bytes(std::span(chosen)));
  const crypto::Sha256 digest = stream.finish();
  HostId id;
  std::copy_n(digest.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

HostId this_host(std::string_view chosen) {
  const io::HostMarks marks = io::host_marks();
  if (!marks.boot_id.empty()) return host_id(marks, chosen);
  HostId alone;
  io::system_random().fill(alone.bytes);
  return alone;
}

}  // namespace nexar::cluster

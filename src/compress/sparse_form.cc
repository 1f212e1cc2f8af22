#include "compress/sparse_form.h"

#include <utility>

#include <fmt/format.h>

namespace nexar::compress {
namespace {

template <typename... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorCode::kInvalidArgument, "a sparse tensor " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

Result<SparseForm> parse_sparse(base::ByteView bytes, std::uint64_t count, DataType type) {
  if (bytes.size() < kIndexBytes) return bad("of {} bytes ends inside its k", bytes.size());
  SparseForm form;
  form.k = base::load_le<std::uint32_t>(bytes.data());
  if (form.k > count) return bad("of {} elements says that it holds {}", count, form.k);
  const std::uint64_t needed = sparse_bytes(form.k, size_of(type));
  if (bytes.size() < needed) return bad("with k = {} has {} bytes and needs {}", form.k, bytes.size(), needed);
  form.indices = bytes.data() + kIndexBytes;
  form.values = form.indices + std::size_t{form.k} * kIndexBytes;

  std::uint64_t next = 0;  // the least that the index at hand may be
  for (std::uint32_t i = 0; i < form.k; ++i) {
    const std::uint32_t index = form.index(i);
    if (index < next) return bad("has index {} at position {}, which is not above the one before it", index, i);
    if (index >= count) return bad("of {} elements has index {} at position {}", count, index, i);
    next = std::uint64_t{index} + 1;
  }
  return form;
}

}  // namespace nexar::compress

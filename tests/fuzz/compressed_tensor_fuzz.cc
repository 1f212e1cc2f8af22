// Any bytes are refused, or are a sparse tensor that is written as the same bytes. Input: type, count as u16, then the form.
#include <algorithm>
#include <array>
#include <vector>

#include "fuzz.h"
#include "nexar/compressed_tensor.h"

namespace nexar {
namespace {

void try_form(base::ByteView form, std::uint64_t count, DataType type) {
  const Result<CompressedTensor> tensor = CompressedTensor::decode(form, count, type);
  if (!tensor) {
    NEXAR_ASSERT(tensor.error().code() == ErrorCode::kInvalidArgument, "what is wrong with the bytes is said");
    return;
  }
  NEXAR_ASSERT(std::ranges::equal(tensor->encode(), form), "a sparse tensor has one encoding");
  const std::span<const std::uint32_t> indices = tensor->indices();
  for (std::size_t i = 0; i < indices.size(); ++i)
    NEXAR_ASSERT(indices[i] < count && (i == 0 || indices[i] > indices[i - 1]), "indices ascend and are in range");
}

}  // namespace
}  // namespace nexar

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const nexar::base::ByteView bytes = nexar::fuzz::view(data, size);
  const std::uint64_t count = nexar::base::load_le<std::uint16_t>(bytes.data() + 1);
  nexar::try_form(bytes.subspan(3), count, static_cast<nexar::DataType>(data[0] % 5));  // i8 is the fifth, and refused
  return 0;
}

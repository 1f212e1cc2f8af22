// Whatever bytes a compressor is given as a contribution, it refuses them and adds nothing, or takes all of them; and what it makes of any
// tensor it takes. Input: compressor, type, count as u16 (of which 11 bits), then the form or the tensor.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "compress/random_k.h"
#include "compress/top_k.h"
#include "fuzz.h"
#include "nexar/compressor.h"

namespace nexar {
namespace {

constexpr CompressionContext kContext = {.group = 1, .sequence = 2, .seed = 3};

// The sparse ones also with shards so short that inputs have several.
const std::array<std::shared_ptr<const Compressor>, 8>& compressors() {
  static const std::array<std::shared_ptr<const Compressor>, 8> kAll = {
      Compressor::none(),
      Compressor::int8(),
      Compressor::fp8(),
      Compressor::sign(),
      Compressor::top_k(0.1).value(),
      Compressor::random_k(0.1).value(),
      std::make_shared<compress::TopK>(0.3, 10),
      std::make_shared<compress::RandomK>(0.7, 10),
  };
  return kAll;
}

template <typename N>
bool try_sum(const Compressor& compressor, base::ByteView form, DataType type, std::size_t count) {
  std::vector<N> sum(count, N{1});
  const Result<void> added = compressor.add(form, type, kContext, std::span(sum));
  if (added) return true;
  NEXAR_ASSERT(added.error().code() == ErrorCode::kInvalidArgument, "what is wrong with the bytes is said");
  NEXAR_ASSERT(std::ranges::all_of(sum, [](N x) { return x == 1; }), "nothing is added before everything is checked");
  return false;
}

bool try_form(const Compressor& compressor, base::ByteView form, DataType type, std::size_t count) {
  const bool added =
      type == DataType::kF64 ? try_sum<double>(compressor, form, type, count) : try_sum<float>(compressor, form, type, count);
  std::vector<std::byte> residual(count * size_of(type));
  NEXAR_ASSERT(compressor.subtract(form, type, kContext, residual).has_value() == added, "both decoders agree");
  NEXAR_ASSERT(compressor.decompress(form, type, kContext, residual).has_value() == added, "both decoders agree");
  return added;
}

void try_tensor(const Compressor& compressor, base::ByteView bytes, DataType type) {
  const base::ByteView tensor = bytes.first(bytes.size() / size_of(type) * size_of(type));
  const std::size_t count = tensor.size() / size_of(type);
  std::vector<std::byte> out(compressor.bytes_max(count, type));
  const Result<std::size_t> length = compressor.compress(tensor, type, kContext, out);
  NEXAR_ASSERT(length.has_value() && *length <= out.size(), "any tensor is compressed");
  NEXAR_ASSERT(try_form(compressor, base::ByteView(out).first(*length), type, count), "what is written is read");
}

}  // namespace
}  // namespace nexar

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const nexar::base::ByteView bytes = nexar::fuzz::view(data, size);
  const nexar::Compressor& compressor = *nexar::compressors()[data[0] % nexar::compressors().size()];
  const auto type = static_cast<nexar::DataType>(data[1] % 4);
  const std::size_t count = nexar::base::load_le<std::uint16_t>(bytes.data() + 2) % 2048;
  nexar::try_form(compressor, bytes.subspan(4), type, count);
  nexar::try_tensor(compressor, bytes.subspan(4), type);
  return 0;
}

#include "wire/error_text.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "wire/limits.h"

namespace nexar::wire {
namespace {

// The numbers of the codes travel.
static_assert(static_cast<int>(ErrorCode::kInvalidArgument) == 0 && static_cast<int>(ErrorCode::kMismatch) == 1 &&
              static_cast<int>(ErrorCode::kPeerLost) == 2 && static_cast<int>(ErrorCode::kTimeout) == 3 &&
              static_cast<int>(ErrorCode::kOverloaded) == 4 && static_cast<int>(ErrorCode::kRefused) == 5 &&
              static_cast<int>(ErrorCode::kUnsupported) == 6 && static_cast<int>(ErrorCode::kCancelled) == 7 &&
              static_cast<int>(ErrorCode::kDevice) == 8 && static_cast<int>(ErrorCode::kIo) == 9 &&
              static_cast<int>(ErrorCode::kInternal) == 10);

constexpr std::uint8_t kHasOperation = 1;
constexpr std::uint8_t kHasEpoch = 2;
constexpr std::uint8_t kHasCause = 4;
constexpr std::uint8_t kFacts = kHasOperation | kHasEpoch | kHasCause;

void put_one(const Error& error, bool with_cause, Writer& writer) {
  unsigned facts = with_cause ? kHasCause : 0u;
  if (error.sequence()) facts |= kHasOperation;
  if (error.epoch()) facts |= kHasEpoch;

  writer.number(static_cast<std::uint8_t>(error.code()));
  writer.number(static_cast<std::uint8_t>(facts));
  writer.text(error.sentence(), kTextBytesMax);
  if (error.sequence()) {
    writer.text(error.operation(), kNameBytesMax);
    writer.number(*error.sequence());
  }
  if (error.epoch()) writer.number(*error.epoch());
  const auto ranks = error.ranks().first(std::min<std::size_t>(error.ranks().size(), kErrorRanksMax));
  writer.number(static_cast<std::uint16_t>(ranks.size()));
  for (const Rank rank : ranks) writer.number(rank);
}

std::vector<Rank> get_ranks(Reader& reader) {
  const auto count = reader.number<std::uint16_t>();
  if (count > kErrorRanksMax) reader.fail("names more ranks than allowed");
  const base::ByteView bytes = reader.bytes(count * sizeof(Rank));
  std::vector<Rank> ranks(bytes.size() / sizeof(Rank));  // of bytes that are here
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = base::load_le<Rank>(bytes.data() + i * sizeof(Rank));
  return ranks;
}

struct OneError {
  Error error;
  bool has_cause;
};

OneError get_one(Reader& reader) {
  const auto code = reader.number<std::uint8_t>();
  if (code > static_cast<std::uint8_t>(ErrorCode::kInternal)) reader.fail("has an error code that does not exist");
  const auto facts = reader.number<std::uint8_t>();
  if ((facts & ~kFacts) != 0) reader.fail("has facts of an error that do not exist");
  Error error(static_cast<ErrorCode>(code), std::string(reader.text(kTextBytesMax)));
  if ((facts & kHasOperation) != 0) {
    std::string operation(reader.text(kNameBytesMax));
    error = std::move(error).with_operation(std::move(operation), reader.number<Sequence>());
  }
  if ((facts & kHasEpoch) != 0) error = std::move(error).with_epoch(reader.number<Epoch>());
  if (const std::vector<Rank> ranks = get_ranks(reader); !ranks.empty()) error = std::move(error).with_ranks(ranks);
  return {std::move(error), (facts & kHasCause) != 0};
}

}  // namespace

void put_error(const Error& error, Writer& writer) {
  const Error* one = &error;
  for (std::uint32_t depth = 0; one != nullptr; ++depth) {
    const Error* cause = depth < kErrorCausesMax ? one->cause() : nullptr;
    put_one(*one, cause != nullptr, writer);
    one = cause;
  }
}

Error get_error(Reader& reader) {
  std::vector<Error> chain;  // the reported error first, its first cause last
  for (bool more = true; more && !reader.failed();) {
    if (chain.size() > kErrorCausesMax) {
      reader.fail("has an error with more causes than allowed");
      break;
    }
    OneError one = get_one(reader);
    chain.push_back(std::move(one.error));
    more = one.has_cause;
  }
  if (chain.empty()) return Error(ErrorCode::kInternal, "nothing was read");
  Error error = chain.back();
  for (auto above = chain.rbegin() + 1; above != chain.rend(); ++above) error = std::move(*above).with_cause(std::move(error));
  return error;
}

bool same(const Error& a, const Error& b) {
  const auto equal = [](const Error& x, const Error& y) {
    return x.code() == y.code() && x.sentence() == y.sentence() && std::ranges::equal(x.ranks(), y.ranks()) &&
           x.operation() == y.operation() && x.sequence() == y.sequence() && x.epoch() == y.epoch();
  };
  const Error* one = &a;
  const Error* other = &b;
  for (; one != nullptr && other != nullptr; one = one->cause(), other = other->cause())
    if (!equal(*one, *other)) return false;
  return one == nullptr && other == nullptr;
}

}  // namespace nexar::wire

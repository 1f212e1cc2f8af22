#include "nexar/error.h"

#include <array>
#include <atomic>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "nexar/result.h"

namespace nexar {
namespace {

constexpr std::array<std::string_view, 11> kCodeNames = {"invalid_argument", "mismatch",  "peer_lost", "timeout", "overloaded", "refused",
                                                         "unsupported",      "cancelled", "device",    "io",      "internal"};

}  // namespace

std::string_view to_string(ErrorCode code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "unknown";
}

struct Error::Detail {
  Detail(ErrorCode c, std::string s) : code(c), sentence(std::move(s)) {}
  Detail(const Detail& other)
      : code(other.code),
        sentence(other.sentence),
        ranks(other.ranks),
        operation(other.operation),
        sequence(other.sequence),
        epoch(other.epoch),
        cause(other.cause) {}
  Detail& operator=(const Detail&) = delete;

  ErrorCode code;
  std::string sentence;
  std::vector<Rank> ranks;
  std::string operation;
  std::optional<Sequence> sequence;
  std::optional<Epoch> epoch;
  std::optional<Error> cause;
  std::atomic<std::size_t> owners = 1;
};

Error::Error(ErrorCode code, std::string sentence) : detail_(new Detail(code, std::move(sentence))) {}

void Error::retain() const noexcept { detail_->owners.fetch_add(1, std::memory_order_relaxed); }

void Error::release() const noexcept {
  if (detail_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete detail_;  // NOLINT: clang-tidy does not follow the count
}

const Error::Detail& Error::detail() const {
  NEXAR_ASSERT(detail_ != nullptr, "an Error is not used after it was moved from");
  return *detail_;
}

// The description, made this error's own: copies keep theirs.
Error::Detail& Error::own() {
  if (detail().owners.load(std::memory_order_acquire) != 1) {
    auto* copy = new Detail(*detail_);
    release();
    detail_ = copy;
  }
  return *detail_;
}

Error Error::with_ranks(std::span<const Rank> ranks) && {
  own().ranks.assign(ranks.begin(), ranks.end());
  return std::move(*this);
}

Error Error::with_rank(Rank rank) && { return std::move(*this).with_ranks({&rank, 1}); }

Error Error::with_operation(std::string name, Sequence sequence) && {
  Detail& mine = own();
  mine.operation = std::move(name);
  mine.sequence = sequence;
  return std::move(*this);
}

Error Error::with_epoch(Epoch epoch) && {
  own().epoch = epoch;
  return std::move(*this);
}

Error Error::with_cause(Error cause) && {
  own().cause = std::move(cause);
  return std::move(*this);
}

ErrorCode Error::code() const { return detail().code; }
const std::string& Error::sentence() const { return detail().sentence; }
std::span<const Rank> Error::ranks() const { return detail().ranks; }
const std::string& Error::operation() const { return detail().operation; }
std::optional<Sequence> Error::sequence() const { return detail().sequence; }
std::optional<Epoch> Error::epoch() const { return detail().epoch; }
const Error* Error::cause() const { return detail().cause ? &*detail().cause : nullptr; }

std::string Error::to_string() const {
  const Detail& all = detail();
  std::vector<std::string> facts;
  if (!all.operation.empty()) facts.push_back(fmt::format("{} #{}", all.operation, all.sequence.value_or(0)));
  if (!all.ranks.empty()) facts.push_back(fmt::format("{} {}", all.ranks.size() == 1 ? "rank" : "ranks", fmt::join(all.ranks, ", ")));
  if (all.epoch) facts.push_back(fmt::format("epoch {}", *all.epoch));

  std::string text = fmt::format("{}: {}", nexar::to_string(all.code), all.sentence);
  if (!facts.empty()) text += fmt::format(" ({})", fmt::join(facts, ", "));
  if (all.cause) text += "; cause: " + all.cause->to_string();
  return text;
}

Exception::Exception(Error error) : std::runtime_error(error.to_string()), error_(std::move(error)) {}

namespace detail {

void wrong_result_access(const char* wanted, const Error* error) {
  const std::string sentence = error == nullptr ? fmt::format("the {} of a Result without one was taken", wanted)
                                                : fmt::format("the {} of a failed Result was taken: {}", wanted, error->to_string());
  base::assert_failed("Result access", sentence.c_str(), "nexar/result.h", 0);
}

}  // namespace detail
}  // namespace nexar

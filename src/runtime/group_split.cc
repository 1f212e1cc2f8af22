// How a group is divided into others.
#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "runtime/collective_state.h"

namespace nexar {
namespace {

// What each rank says: whether it has a color, the color, the key.
constexpr std::size_t kSaidBytes = 12;
using Said = std::array<std::byte, kSaidBytes>;

Said said(std::optional<int> color, int key) {
  Said bytes{};
  base::store_le<std::int32_t>(bytes.data(), color ? 1 : 0);
  base::store_le<std::int32_t>(bytes.data() + 4, color.value_or(0));
  base::store_le<std::int32_t>(bytes.data() + 8, key);
  return bytes;
}

// The same on all ranks that give this color in this call, and on no others: groups of one epoch are few, 64 bits are many.
std::uint64_t child_id(Epoch epoch, std::uint64_t parent, std::uint64_t split, int color) {
  std::array<std::byte, 32> facts{};
  base::store_le(facts.data(), epoch);
  base::store_le(facts.data() + 8, parent);
  base::store_le(facts.data() + 16, split);
  base::store_le<std::int64_t>(facts.data() + 24, color);
  const std::uint64_t id = base::hash64({reinterpret_cast<const char*>(facts.data()), facts.size()});
  return id > runtime::kWorldGroup ? id : id + 2;  // 0 is no group
}

// Members of the new group, by key and then by rank in this one.
std::vector<Rank> chosen(std::span<const std::byte> all, int color) {
  std::vector<std::pair<int, Rank>> by_key;
  for (std::size_t rank = 0; rank * kSaidBytes < all.size(); ++rank) {
    const std::byte* one = all.data() + rank * kSaidBytes;
    if (base::load_le<std::int32_t>(one) == 1 && base::load_le<std::int32_t>(one + 4) == color)
      by_key.emplace_back(base::load_le<std::int32_t>(one + 8), static_cast<Rank>(rank));
  }
  std::sort(by_key.begin(), by_key.end());
  std::vector<Rank> ranks;
  for (const auto& [key, rank] : by_key) ranks.push_back(rank);
  return ranks;
}

}  // namespace

Result<std::optional<Group>> Group::split(std::optional<int> color, int key, const CallOptions& options) const {
  const Said mine = said(color, key);
  std::vector<std::byte> all(static_cast<std::size_t>(size()) * kSaidBytes);
  std::uint64_t number = 0;
  const auto describe = [&](runtime::CollectiveState& state) {
    number = ++record_->splits;
    state.elements(kSaidBytes, DataType::kU8).buffers(mine.data(), all.data());
  };
  if (auto gathered = runtime::run_collective(*core_, *record_, OperationId::kAllGather, options, describe); !gathered)
    return std::move(gathered).error();
  if (!color) return std::optional<Group>();
  const std::vector<Rank> ranks = chosen(all, *color);
  std::vector<Rank> members;
  for (const Rank one : ranks) members.push_back(record_->world_rank(one));
  const auto self = static_cast<Rank>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  runtime::GroupRecord* record = core_->add_group(child_id(core_->view().epoch, id(), number, *color), std::move(members), self);
  if (record == nullptr) return Error(ErrorCode::kCancelled, "the node was closed while a group was split");
  if (auto agreed = core_->agree_on_memory(*record); !agreed) return std::move(agreed).error();
  return std::optional<Group>(Group(core_, record));
}

}  // namespace nexar

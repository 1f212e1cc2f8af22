#include "plan/hosts.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace nexar::plan {

Hosts::Hosts(std::span<const int> host_of_rank) {
  Table table;
  std::map<int, Rank> numbers;
  for (std::size_t i = 0; i < host_of_rank.size(); ++i) {
    const auto [found, added] = numbers.emplace(host_of_rank[i], static_cast<Rank>(numbers.size()));
    if (added) table.ranks.emplace_back();
    std::vector<Rank>& here = table.ranks[static_cast<std::size_t>(found->second)];
    table.hosts.push_back(found->second);
    table.positions.push_back(static_cast<Rank>(here.size()));
    here.push_back(static_cast<Rank>(i));
    table.hash = (table.hash ^ static_cast<std::uint64_t>(found->second + 1)) * 0x9e3779b97f4a7c15u;  // as in Shape::hash()
    table.hash ^= table.hash >> 29;
  }
  if (table.ranks.size() < 2 || table.ranks.size() == host_of_rank.size()) return;
  const auto [fewest, most] =
      std::minmax_element(table.ranks.begin(), table.ranks.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  table.fewest = static_cast<Rank>(fewest->size());
  table.most = static_cast<Rank>(most->size());
  table_ = std::make_shared<const Table>(std::move(table));
}

std::string Hosts::to_text() const {
  if (!has_levels()) return {};
  if (fewest() == most()) return fmt::format("on {} hosts of {}", count(), most());
  return fmt::format("on {} hosts of {} to {}", count(), fewest(), most());
}

Strips::Strips(const Hosts& hosts, std::uint64_t count) : hosts_(hosts), count_(count) {
  std::vector<Rank> sizes;  // hosts of one size cut alike
  for (Rank host = 0; host < hosts.count(); ++host) sizes.push_back(hosts.ranks_on(host));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<std::uint64_t> ends;
  for (const Rank size : sizes) {
    const Cut cut = Cut::chunks(count, size);
    for (Rank i = 0; i < size; ++i) ends.push_back(cut.piece(i).end());
  }
  std::sort(ends.begin(), ends.end());
  std::uint64_t first = 0;
  for (const std::uint64_t end : ends) {
    if (end > first) extents_.push_back({first, end - first});
    first = end;
  }
}

Rank Strips::owner(Rank host, const Extent& strip) const {
  const std::span<const Rank> ranks = hosts_.ranks(host);
  return ranks[static_cast<std::size_t>(Cut::chunks(count_, static_cast<Rank>(ranks.size())).piece_at(strip.first))];
}

std::vector<Rank> Strips::owners(const Extent& strip) const {
  std::vector<Rank> owners;
  owners.reserve(static_cast<std::size_t>(hosts_.count()));
  for (Rank host = 0; host < hosts_.count(); ++host) owners.push_back(owner(host, strip));
  return owners;
}

}  // namespace nexar::plan

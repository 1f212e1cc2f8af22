#include "launch/hosts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::launch {
namespace {

Error invalid(std::string sentence) { return {ErrorCode::kInvalidArgument, std::move(sentence)}; }

Result<HostSlots> parse_host(std::string_view part) {
  HostSlots host;
  const std::size_t colon = part.rfind(':');
  const bool bare_v6 = part.find(':') != colon && !part.starts_with('[');
  const bool bracket_ends_it = part.ends_with(']');
  std::string_view name = part;
  if (colon != std::string_view::npos && !bare_v6 && !bracket_ends_it) {
    name = part.substr(0, colon);
    const std::optional<std::uint64_t> slots = base::parse_number(part.substr(colon + 1));
    if (!slots || *slots == 0 || *slots > static_cast<std::uint64_t>(kWorldMax))
      return invalid(fmt::format("--hosts: \"{}\" has no number of slots from 1 to {} after its colon", part, kWorldMax));
    host.slots = static_cast<int>(*slots);
  }
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  if (name.empty()) return invalid(fmt::format("--hosts: a host without a name in \"{}\"", part));
  if (name.starts_with('-')) return invalid(fmt::format("--hosts: \"{}\" is no name of a host", name));  // it would be an option of ssh
  host.name = name;
  return host;
}

int slots_of(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    Result<HostSlots> host = parse_host(text.substr(begin, end - begin));
    if (!host) return host.error();
    hosts.push_back(*std::move(host));
    begin = end + 1;
    if (slots_of(hosts) > kWorldMax) return invalid(fmt::format("--hosts: more than {} slots", kWorldMax));
  }
  return hosts;
}

Result<std::vector<Place>> place_ranks(int world, const std::vector<HostSlots>& hosts) {
  const int slots = slots_of(hosts);
  if (world == 0) world = slots;
  if (world == 0) return invalid("give the number of ranks with -n");
  if (world < 1 || world > kWorldMax) return invalid(fmt::format("-n: {} ranks; a world has from 1 to {}", world, kWorldMax));
  std::vector<Place> places;
  if (hosts.empty()) {
    for (int rank = 0; rank < world; ++rank) places.push_back({"", rank, world});
    return places;
  }
  if (world > slots)
    return invalid(fmt::format("-n: {} ranks, but --hosts has {} slots; write HOST:SLOTS for more on a host", world, slots));
  // A host that is named twice is one host.
  std::map<std::string, int> used;
  for (const HostSlots& host : hosts)
    for (int slot = 0; slot < host.slots && static_cast<int>(places.size()) < world; ++slot)
      places.push_back({host.name, used[host.name]++, 0});
  for (Place& place : places) place.local_size = used[place.host];
  return places;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(*std::move(word));
      word.reset();
      continue;
    }
    if (!word) word.emplace();
    if (escapes)
      word->push_back(text[++i]);
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else
      word->push_back(c);
  }
  if (quote != 0) return invalid(fmt::format("a {} without its end in: {}", quote, text));
  if (word) words.push_back(*std::move(word));
  if (words.empty()) return invalid("a command without words");
  return words;
}

}  // namespace nexar::launch

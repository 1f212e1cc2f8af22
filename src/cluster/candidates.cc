#include "cluster/candidates.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::cluster {
namespace {

// An address, or all addresses that begin with the same bits.
struct Network {
  io::Address address;
  std::size_t bits;

  bool holds(const io::Address& other) const {
    const base::ByteView a = address.ip();
    const base::ByteView b = other.ip();
    if (a.size() != b.size()) return false;
    const std::size_t whole = bits / 8;
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) return false;
    if (bits % 8 == 0) return true;
    const auto mask = static_cast<std::byte>(0xff00u >> bits % 8);
    return (a[whole] & mask) == (b[whole] & mask);
  }
};

std::optional<io::Address> parse_ip(std::string_view text) {
  const Result<io::Address> address =
      io::Address::parse(text.find(':') != text.npos ? fmt::format("[{}]:0", text) : fmt::format("{}:0", text));
  if (!address) return std::nullopt;
  return *address;
}

// `10.0.0.1`, `10.0.0.0/8`, `fd00::/64`.
std::optional<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ip(text.substr(0, slash));
  if (!address) return std::nullopt;
  const std::size_t all = address->ip().size() * 8;
  if (slash == text.npos) return Network{*address, all};
  const auto bits = base::parse_number(text.substr(slash + 1));
  if (!bits || *bits > all) return std::nullopt;
  return Network{*address, static_cast<std::size_t>(*bits)};
}

std::string list(const std::vector<io::InterfaceAddress>& present) {
  std::string text;
  for (const io::InterfaceAddress& one : present)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", one.name, one.address.host(), one.is_up ? "" : " (down)");
  return text.empty() ? "none" : text;
}

class Choice {
 public:
  explicit Choice(const CandidateRules& rules) : rules_(rules) {}

  bool can_be_told(const io::Address& address) const {
    const bool v4 = address.family() == io::Address::Family::kV4;
    if (address.is_link_local() && (!v4 || rules_.interfaces.empty())) return false;
    return !address.is_any() && (v4 ? rules_.v4 : rules_.v6);
  }

  // Returns whether it is among the candidates, or was one too many.
  bool add(const io::Address& address) {
    if (!can_be_told(address)) return false;
    const io::Address told = address.with_port(rules_.port);
    if (chosen_.size() < kCandidatesMax && std::ranges::find(chosen_, told) == chosen_.end()) chosen_.push_back(told);
    return true;
  }

  // All of `some`, the one that is used towards the seed before the others. Returns whether there was any.
  bool add_all(const std::vector<io::Address>& some) {
    bool any = false;
    for (const bool first : {true, false})
      for (const io::Address& address : some)
        if ((address == rules_.towards_seed.with_port(0)) == first) any |= add(address);
    return any;
  }

  std::vector<io::Address>& chosen() { return chosen_; }

 private:
  const CandidateRules& rules_;
  std::vector<io::Address> chosen_;
};

}  // namespace

Result<std::vector<io::Address>> choose_candidates(const std::vector<io::InterfaceAddress>& present, const CandidateRules& rules) {
  Choice choice(rules);
  const auto refuse = [&](std::string sentence) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}; this host has: {}", sentence, list(present)));
  };
  for (const std::string& pattern : rules.interfaces) {
    const bool is_name = std::ranges::any_of(present, [&](const auto& one) { return one.name == pattern; });
    const auto network = parse_network(pattern);
    if (!is_name && !network) return refuse(fmt::format("'{}' is neither an interface of this host nor an address or network", pattern));
    std::vector<io::Address> fitting;
    for (const io::InterfaceAddress& one : present)
      if (one.is_up && (is_name ? one.name == pattern : network->holds(one.address))) fitting.push_back(one.address);
    if (!choice.add_all(fitting)) return refuse(fmt::format("'{}' names no address of this host that peers could use", pattern));
  }
  if (!rules.interfaces.empty()) return std::move(choice.chosen());

  std::vector<io::Address> others;
  std::vector<io::Address> loopback;
  for (const io::InterfaceAddress& one : present)
    if (one.is_up) (one.is_loopback || one.address.is_loopback() ? loopback : others).push_back(one.address);
  const bool seed_is_here = rules.towards_seed.is_loopback();
  if (rules.towards_seed) choice.add(rules.towards_seed);
  if (seed_is_here) choice.add_all(loopback);
  const bool any = choice.add_all(others);
  if (!any && !seed_is_here && !choice.add_all(loopback) && choice.chosen().empty())
    return refuse("there is no address that peers could use");
  return std::move(choice.chosen());
}

}  // namespace nexar::cluster

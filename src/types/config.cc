#include "nexar/config.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/units.h"
#include "types/config_text.h"

namespace nexar {
namespace {

using types::Text;

// One row of the table of fields. A field is `agreed` when ranks that differ in it would do different things in the same call.
struct Field {
  std::string_view name;
  bool agreed;
  std::string_view accepted;
  bool (*parse)(Config&, std::string_view text);
  std::string (*format)(const Config&);
};

template <auto member>
using MemberType = std::remove_cvref_t<decltype(std::declval<Config>().*member)>;

template <auto member>
Field field(std::string_view name, bool agreed) {
  using T = MemberType<member>;
  return {name, agreed, Text<T>::kAccepted,
          [](Config& config, std::string_view text) {
            auto value = Text<T>::parse(text);
            if (!value) return false;
            config.*member = *std::move(value);
            return true;
          },
          [](const Config& config) { return Text<T>::format(config.*member); }};
}

// The token is a secret: it is read, and never shown.
Field token_field() {
  Field token = field<&Config::token>("token", false);
  token.format = [](const Config& config) -> std::string { return config.token.empty() ? "none" : "set"; };
  return token;
}

// No time at all needs no unit.
Field spin_field() {
  Field spin = field<&Config::spin>("spin", false);
  spin.accepted = "0, or a duration such as 50us";
  spin.parse = [](Config& config, std::string_view text) {
    const std::optional<Config::Duration> value = text == "0" ? Config::Duration::zero() : Text<Config::Duration>::parse(text);
    if (value) config.spin = *value;
    return value.has_value();
  };
  return spin;
}

constexpr bool kAgreed = true;
constexpr bool kLocal = false;

const auto& fields() {
  static const std::array kFields = {
      field<&Config::topology>("topology", kAgreed),
      field<&Config::entry_timeout>("entry_timeout", kLocal),
      field<&Config::progress_timeout>("progress_timeout", kLocal),
      field<&Config::rpc_timeout>("rpc_timeout", kLocal),
      field<&Config::recovery_timeout>("recovery_timeout", kLocal),
      field<&Config::p2p_timeout>("p2p_timeout", kLocal),
      field<&Config::reproducible>("reproducible", kAgreed),
      field<&Config::memory_budget>("memory_budget", kLocal),
      field<&Config::shm_budget>("shm_budget", kLocal),
      field<&Config::large_msg_bytes>("large_msg_bytes", kAgreed),
      field<&Config::pipeline_segment_bytes>("pipeline_segment_bytes", kAgreed),
      field<&Config::ring_max_world>("ring_max_world", kAgreed),
      field<&Config::heartbeat_interval>("heartbeat_interval", kAgreed),
      field<&Config::heartbeat_timeout>("heartbeat_timeout", kAgreed),
      field<&Config::elastic_enabled>("elastic_enabled", kAgreed),
      field<&Config::min_world>("min_world", kAgreed),
      field<&Config::max_world>("max_world", kAgreed),
      field<&Config::resize_timeout>("resize_timeout", kLocal),
      field<&Config::recovery_policy>("recovery_policy", kAgreed),
      field<&Config::transport>("transport", kAgreed),
      field<&Config::encrypt_bulk>("encrypt_bulk", kAgreed),
      field<&Config::tcp_lanes>("tcp_lanes", kAgreed),
      field<&Config::compressed_all_reduce_max_bytes>("compressed_all_reduce_max_bytes", kAgreed),
      field<&Config::rpc_workers>("rpc_workers", kLocal),
      field<&Config::rpc_spare_workers>("rpc_spare_workers", kLocal),
      field<&Config::rpc_queue>("rpc_queue", kLocal),
      field<&Config::rpc_calls_per_peer>("rpc_calls_per_peer", kLocal),
      field<&Config::rpc_bytes_per_peer>("rpc_bytes_per_peer", kLocal),
      token_field(),
      field<&Config::token_file>("token_file", kLocal),
      field<&Config::seed>("seed", kLocal),
      field<&Config::host_id>("host_id", kLocal),
      field<&Config::log>("log", kLocal),
      spin_field(),
  };
  return kFields;
}

std::string variable_of(std::string_view name) {
  std::string variable = "NEXAR_";
  for (const char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

// Which variables set the fields that a sentence speaks of: what the reader has to change.
std::string origin_of(std::string_view sentence, const std::vector<std::string_view>& given) {
  std::string origin;
  for (const std::string_view name : given)
    if (sentence.find(name) != std::string_view::npos) origin += (origin.empty() ? "; set by " : ", ") + variable_of(name);
  return origin;
}

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

// A timeout of zero would end every operation before it began.
Result<void> check_positive(std::string_view name, Config::Duration value) {
  if (value > Config::Duration::zero()) return {};
  return invalid(fmt::format("{} is {}; it must be longer than nothing", name, base::format_duration(value)));
}

Result<void> check_at_least(std::string_view name, std::uint64_t value, std::uint64_t least) {
  if (value >= least) return {};
  return invalid(fmt::format("{} is {}; it must be at least {}", name, base::format_size(value), base::format_size(least)));
}

// Less than one eager message for each of a handful of peers is not a working node.
constexpr std::uint64_t kMemoryBudgetMin = 1ull << 20;
// Below a page the headers of a segment cost more than it carries.
constexpr std::uint64_t kSegmentBytesMin = 4096;

Result<void> check_durations(const Config& config) {
  const std::array<std::pair<std::string_view, Config::Duration>, 7> durations = {{
      {"entry_timeout", config.entry_timeout},
      {"progress_timeout", config.progress_timeout},
      {"rpc_timeout", config.rpc_timeout},
      {"recovery_timeout", config.recovery_timeout},
      {"p2p_timeout", config.p2p_timeout.value_or(Config::Duration::max())},
      {"heartbeat_interval", config.heartbeat_interval},
      {"resize_timeout", config.resize_timeout},
  }};
  for (const auto& [name, value] : durations)
    if (auto checked = check_positive(name, value); !checked) return checked;
  if (config.spin < Config::Duration::zero()) return invalid("spin is less than nothing; 0 means never to spin");
  if (config.heartbeat_timeout <= config.heartbeat_interval)
    return invalid(
        fmt::format("heartbeat_timeout is {} and heartbeat_interval {}; the timeout must be longer, or every peer would look lost",
                    base::format_duration(config.heartbeat_timeout), base::format_duration(config.heartbeat_interval)));
  return {};
}

Result<void> check_sizes(const Config& config) {
  const std::array<std::pair<std::string_view, std::pair<std::uint64_t, std::uint64_t>>, 4> sizes = {{
      {"memory_budget", {config.memory_budget, kMemoryBudgetMin}},
      {"shm_budget", {config.shm_budget.value_or(kMemoryBudgetMin), kMemoryBudgetMin}},
      {"pipeline_segment_bytes", {config.pipeline_segment_bytes, kSegmentBytesMin}},
      {"large_msg_bytes", {config.large_msg_bytes, config.pipeline_segment_bytes}},
  }};
  for (const auto& [name, bounds] : sizes)
    if (auto checked = check_at_least(name, bounds.first, bounds.second); !checked) return checked;
  return {};
}

// One thread feeds them all, so more connections do not make it faster.
constexpr std::uint32_t kLanesMax = 4;

Result<void> check_lanes(const Config& config) {
  if (config.tcp_lanes >= 1 && config.tcp_lanes <= kLanesMax) return {};
  return invalid(fmt::format("tcp_lanes is {}; it must be from 1 to {}; transport quic is without any", config.tcp_lanes, kLanesMax));
}

// More threads than this are not what a node is for.
constexpr std::uint32_t kRpcThreadsMax = 4096;

Result<void> check_rpc(const Config& config) {
  const std::array<std::pair<std::string_view, std::uint64_t>, 4> counts = {{
      {"rpc_workers", config.rpc_workers},
      {"rpc_queue", config.rpc_queue},
      {"rpc_calls_per_peer", config.rpc_calls_per_peer},
      {"rpc_bytes_per_peer", config.rpc_bytes_per_peer},
  }};
  for (const auto& [name, value] : counts)
    if (value == 0) return invalid(fmt::format("{} is 0; nothing could be called", name));
  if (config.rpc_workers > kRpcThreadsMax || config.rpc_spare_workers > kRpcThreadsMax)
    return invalid(fmt::format("rpc_workers is {} and rpc_spare_workers {}; each may be {} at most", config.rpc_workers,
                               config.rpc_spare_workers, kRpcThreadsMax));
  return {};
}

Result<void> check_world(const Config& config) {
  const Topology& topology = config.topology;
  if (topology.kind == Topology::Kind::kKRegular && (topology.degree < 2 || topology.degree % 2 != 0))
    return invalid(fmt::format("topology k_regular has degree {}; it must be even and at least 2", topology.degree));
  if (config.min_world == 0) return invalid("min_world is 0; a world has at least 1 rank");
  if (config.ring_max_world == 0) return invalid("ring_max_world is 0; it must be at least 1");
  if (config.max_world != 0 && config.max_world < config.min_world)
    return invalid(fmt::format("max_world is {} and min_world {}; the largest world cannot be smaller than the smallest", config.max_world,
                               config.min_world));
  return {};
}

// Host and port are split at the last colon, so that an IPv6 address in brackets can be one of them. Names are resolved when joining.
Result<void> check_identity(const Config& config) {
  if (!config.token.empty() && !config.token_file.empty()) return invalid("token and token_file are both set; give one of them");
  if (config.seed.empty()) return {};
  const std::size_t colon = config.seed.rfind(':');
  const std::string_view port_text = colon == std::string::npos ? "" : std::string_view(config.seed).substr(colon + 1);
  const std::uint64_t port = base::parse_number(port_text).value_or(0);
  const bool bare_ipv6 = config.seed.find(':') != colon && config.seed.front() != '[';
  if (colon == 0 || bare_ipv6 || port == 0 || port > 65535)
    return invalid(fmt::format("seed is \"{}\"; it must be host:port or [ipv6]:port with a port from 1 to 65535", config.seed));
  return {};
}

}  // namespace

Result<Config> Config::from_env() {
  return from_variables([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

Result<Config> Config::from_variables(const Lookup& lookup) {
  Config config;
  std::vector<std::string_view> given;
  for (const Field& field : fields()) {
    const std::string variable = variable_of(field.name);
    const std::optional<std::string> text = lookup(variable);
    if (!text) continue;
    given.push_back(field.name);
    if (text->empty() || !field.parse(config, *text))
      return invalid(fmt::format("{} is \"{}\"; accepted is {}", variable, *text, field.accepted));
  }
  if (auto valid = config.validate(); !valid) return invalid(valid.error().sentence() + origin_of(valid.error().sentence(), given));
  return config;
}

Result<void> Config::validate() const {
  for (const auto check : {check_durations, check_sizes, check_lanes, check_rpc, check_world, check_identity})
    if (auto checked = check(*this); !checked) return checked;
  return {};
}

std::uint64_t Config::shm_budget_for(std::uint32_t local_ranks) const {
  return shm_budget.value_or((64ull << 20) + (4ull << 20) * local_ranks);
}

std::string Config::to_string() const {
  std::string text;
  for (const Field& field : fields()) text += fmt::format("{}={}\n", field.name, field.format(*this));
  return text;
}

std::string Config::agreed() const {
  std::string text;
  for (const Field& field : fields())
    if (field.agreed) text += fmt::format("{}={}\n", field.name, field.format(*this));
  return text;
}

std::uint64_t Config::digest() const { return base::hash64(agreed()); }

}  // namespace nexar

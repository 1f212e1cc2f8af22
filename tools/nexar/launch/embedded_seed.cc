#include "launch/embedded_seed.h"

#include <fmt/format.h>

#include "cluster/host_port.h"
#include "io/address.h"
#include "io/udp_socket.h"

namespace nexar::launch {
namespace {

// Any port of a host that is only asked for its route; nothing is sent.
constexpr std::uint16_t kDiscard = 9;

// Our address on the way to a host.
Result<io::Address> address_towards(const std::string& host) {
  const auto unknown = [&](const Error& cause) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("cannot tell at which address {} reaches this host; give it with --listen", host))
        .with_cause(cause);
  };
  const Result<std::vector<io::Address>> addresses = io::resolve(host, kDiscard);
  if (!addresses) return unknown(addresses.error());
  Result<io::UdpSocket> socket =
      io::UdpSocket::open(addresses->front().family() == io::Address::Family::kV6 ? io::Address::any_v6(0) : io::Address::any_v4(0));
  if (!socket) return unknown(socket.error());
  if (const Result<void> connected = socket->connect(addresses->front()); !connected) return unknown(connected.error());
  return socket->local_address().with_port(0);
}

// An address with or without a port; a port of 0 when there is none.
Result<io::Address> parse_listen(const std::string& text) {
  if (Result<io::Address> address = io::Address::parse(text)) return address;
  for (const std::string& with_port : {text + ":0", "[" + text + "]:0"})
    if (Result<io::Address> address = io::Address::parse(with_port)) return address;
  if (const Result<cluster::HostPort> named = cluster::parse_host_port(text)) {
    const Result<std::vector<io::Address>> addresses = io::resolve(named->host, named->port);
    if (!addresses) return addresses.error();
    return addresses->front();
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("--listen: \"{}\" is no address such as 10.0.0.1, 10.0.0.1:7070 or [fd00::1]:7070", text));
}

}  // namespace

Result<EmbeddedSeed> start_seed(const std::string& listen, const std::vector<Place>& places, std::chrono::nanoseconds formation) {
  const std::string& first_host = places.at(0).host;
  Result<io::Address> bound = first_host.empty() ? io::Address::loopback_v4(0) : io::Address::any_v6(0);
  if (!listen.empty()) bound = parse_listen(listen);
  if (!bound) return bound.error();
  Result<io::Address> reached = *bound;
  if (bound->is_any()) reached = first_host.empty() ? Result<io::Address>(io::Address::loopback_v4(0)) : address_towards(first_host);
  if (!reached) return reached.error();

  Result<SeedCredentials> credentials = SeedCredentials::make();
  if (!credentials) return credentials.error();
  std::string token = credentials->token();
  Result<Seed> seed =
      Seed::start({bound->to_string(), static_cast<int>(places.size()), *std::move(credentials), formation, LogLevel::kWarning});
  if (!seed) return seed.error();
  const Result<io::Address> listening = io::Address::parse(seed->address());
  if (!listening) return listening.error();
  return EmbeddedSeed{*std::move(seed), reached->with_port(listening->port()).to_string(), std::move(token)};
}

}  // namespace nexar::launch

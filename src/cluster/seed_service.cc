#include "cluster/seed_service.h"

#include <bit>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cluster/join_proof.h"
#include "io/host.h"

namespace nexar::cluster {
namespace {

// Once, twice, four times: a flood is noticed, and does not fill a disk.
bool is_worth_telling(std::uint64_t count) { return std::has_single_bit(count); }

}  // namespace

Result<std::unique_ptr<SeedService>> SeedService::open(Environment environment, Options options,
                                                       std::function<void(Result<void>)> decided) {
  Result<crypto::PrivateKey> key = crypto::PrivateKey::parse(options.credentials.key.der().view());
  if (!key) return std::move(key).error();
  Result<crypto::Authority> authority = crypto::Authority::make(*std::move(key), options.credentials.cluster);
  if (!authority) return std::move(authority).error();
  const io::Address listen = options.listen;
  std::unique_ptr<SeedService> service(new SeedService(environment, std::move(options), *std::move(authority), std::move(decided)));
  auto endpoint = transport::quic::Endpoint::open_to_anybody({environment.loop, environment.random}, listen, service->authority_.key(),
                                                             service->authority_.certificate(), *service);
  if (!endpoint) return std::move(endpoint).error();
  service->endpoint_ = *std::move(endpoint);
  service->settle();
  return service;
}

SeedService::SeedService(Environment environment, Options options, crypto::Authority authority, std::function<void(Result<void>)> decided)
    : environment_(environment),
      cluster_(options.credentials.cluster),
      secret_(std::move(options.credentials.secret)),
      authority_(std::move(authority)),
      log_(std::move(options.log)),
      rendezvous_({options.world, options.formation}),
      decided_(std::move(decided)),
      timer_(environment.loop, [this] { carry_out(rendezvous_.expire(environment_.loop.now())); }),
      observers_(environment.loop, log_, crypto::Secret(secret_.view()), cluster_, [this] { return snapshot(); }) {}

// What the seed knows of the world: who was in it when it was formed.
Result<Observers::Snapshot> SeedService::snapshot() const {
  if (rendezvous_.view() == nullptr)
    return Error(ErrorCode::kRefused, fmt::format("the world is not complete: {}", rendezvous_.state().sentence()));
  Observers::Snapshot seen;
  seen.answer.name = io::process_name();
  seen.answer.counters.handshakes_refused = endpoint_->counters().handshakes_refused;
  seen.answer.counters.handshakes_dropped = endpoint_->counters().handshakes_dropped;
  seen.answer.counters.retries_sent = endpoint_->counters().retries_sent;
  seen.answer.counters.packets_ignored = endpoint_->counters().packets_ignored;
  seen.view = rendezvous_.view();
  return seen;
}

transport::LinkHandler* SeedService::on_link(transport::Link& link) {
  if (stopping_) return nullptr;
  if (strangers_.size() >= kStrangersMax) {
    const ClientId oldest = *strangers_.begin();
    strangers_.erase(oldest);
    ++counters_.strangers_dropped;
    if (SeedClient* client = find(oldest)) client->finish("others are waiting");
  }
  const ClientId id = next_id_++;
  strangers_.insert(id);
  return (clients_[id] = std::make_unique<SeedClient>(static_cast<SeedClient::Host&>(*this), environment_.loop, id, link)).get();
}

Result<crypto::Sha256> SeedService::proof(bool seed, const transport::Link& link) const {
  return join_proof(seed ? JoinRole::kSeed : JoinRole::kWorker, secret_.view(), cluster_, link);
}

void SeedService::on_proved(SeedClient& client) {
  strangers_.erase(client.id());
  carry_out(rendezvous_.proved(environment_.loop.now(), client.id()));
}

void SeedService::on_wrong_proof(SeedClient& client) {
  strangers_.erase(client.id());
  if (is_worth_telling(++counters_.wrong_proofs))
    log_.warning("cluster", "a caller does not know the secret",
                 {{"address", client.address().to_string()}, {"times", counters_.wrong_proofs}});
}

void SeedService::on_request(SeedClient& client, const wire::JoinRequest& request, const crypto::CertificateRequest& certificate) {
  if (request.wire_version != wire::kWireVersion) {
    rendezvous_.gone(client.id());
    return carry_out(
        {Rendezvous::Refuse{client.id(), Error(ErrorCode::kRefused, fmt::format("'{}' has wire version {}, and the seed has {}",
                                                                                request.name, request.wire_version, wire::kWireVersion))}});
  }
  Rendezvous::Request asked{.key = certificate.public_fingerprint(),
                            .host = request.host,
                            .cores = request.cores,
                            .plan_version = request.plan_version,
                            .agreed = request.agreed,
                            .name = request.name};
  if (request.rank >= 0) asked.rank = request.rank;
  Rendezvous::Birth birth{{}, environment_.clock.wall()};
  environment_.random.fill(birth.node.bytes);
  carry_out(rendezvous_.requested(environment_.loop.now(), client.id(), asked, birth));
}

void SeedService::on_ready(SeedClient& client, std::vector<io::Address> addresses) {
  carry_out(rendezvous_.ready(environment_.loop.now(), client.id(), std::move(addresses)));
}

// Who asks while its view is on the way has its answer.
void SeedService::on_ask(SeedClient& client) {
  if (rendezvous_.view() == nullptr) client.send_state(rendezvous_.state(), rendezvous_.deadline() - environment_.loop.now());
}

void SeedService::on_gone(SeedClient& client, const transport::LinkEnd& end) {
  const ClientId id = client.id();
  if (end.kind == transport::LinkEnd::Kind::kBroken && is_worth_telling(++counters_.broken_links))
    log_.info("cluster", "a caller was lost", {{"why", end.error.sentence()}, {"times", counters_.broken_links}});
  strangers_.erase(id);
  clients_.erase(id);
  rendezvous_.gone(id);
  settle();
}

void SeedService::carry_out(Rendezvous::Actions actions) {
  for (const Rendezvous::Action& action : actions) std::visit([this](const auto& one) { carry_out(one); }, action);
  settle();
}

void SeedService::carry_out(const Rendezvous::Accept& action) {
  SeedClient* client = find(action.client);
  if (client == nullptr) return;
  const Result<crypto::Certificate> certificate = authority_.issue(client->certificate_request(), action.node, action.issued);
  if (!certificate) return client->refuse(certificate.error());
  log_.info("cluster", "a node has come", {{"node", to_string(action.node)}, {"address", client->address().to_string()}});
  client->accept(action.rank, *certificate, authority_.certificate());
}

void SeedService::carry_out(const Rendezvous::Refuse& action) {
  ++counters_.refused;
  log_.warning("cluster", "a node may not join", {{"why", action.error.sentence()}});
  if (SeedClient* client = find(action.client)) client->refuse(action.error);
}

void SeedService::carry_out(const Rendezvous::SendView& action) {
  if (SeedClient* client = find(action.client)) client->send_view(action.view);
}

void SeedService::carry_out(const Rendezvous::Close& action) {
  ++counters_.dropped;
  if (SeedClient* client = find(action.client)) client->finish(action.reason);
}

SeedClient* SeedService::find(ClientId id) {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second.get();
}

// After every event: says what has been decided, and when it has to be looked at again.
void SeedService::settle() {
  if (decided_ && rendezvous_.view() != nullptr) std::exchange(decided_, nullptr)(Result<void>());
  if (decided_ && rendezvous_.failure()) std::exchange(decided_, nullptr)(*rendezvous_.failure());
  const base::Time next = rendezvous_.next_time();
  if (next == base::Time::max())
    timer_.cancel();
  else
    timer_.set(next);
}

void SeedService::stop() {
  stopping_ = true;
  observers_.stop("the seed is done");
  const Error stopped(ErrorCode::kCancelled, "the seed was stopped before the world was complete");
  for (const auto& [id, client] : clients_) {
    if (rendezvous_.view() == nullptr && !client->is_stranger())
      client->refuse(stopped);
    else
      client->finish("the seed is done");
  }
}

}  // namespace nexar::cluster

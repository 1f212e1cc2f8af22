#include "cluster/join_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/units.h"
#include "io/clock.h"
#include "io/random.h"

namespace nexar::cluster {
namespace {

using State = JoinConversation::State;

// Between attempts: doubling from the first to the last, and half of it random, so that nodes that failed together do not come together.
constexpr base::Duration kFirstPause = std::chrono::milliseconds(20);
constexpr base::Duration kLongestPause = std::chrono::seconds(1);

// How long an attempt waits for a handshake: short at first, because a seed that starts later does not hear what was sent before, then as
// long as a loaded one may take.
constexpr base::Duration kFirstHandshake = std::chrono::seconds(1);
constexpr base::Duration kLongestHandshake = std::chrono::seconds(3);

// The next address of the seed is tried this much after the one before, unless that has failed.
constexpr base::Duration kNextAddress = std::chrono::milliseconds(100);

// The seed answers at once, also in a storm; after this it has forgotten us.
constexpr base::Duration kAnswerLimit = std::chrono::seconds(10);

// How long a farewell may take, so that the seed need not find out by silence.
constexpr base::Duration kFarewellLimit = std::chrono::milliseconds(200);

constexpr std::size_t kShortFingerprint = 16;  // digits that people compare

std::string short_text(const crypto::Sha256& fingerprint) { return to_hex(fingerprint).substr(0, kShortFingerprint); }

std::string seconds(base::Duration duration) { return base::format_duration(std::chrono::round<std::chrono::milliseconds>(duration)); }

}  // namespace

Result<void> JoinClient::Pin::verify(const crypto::Certificate& certificate) {
  if (certificate.public_fingerprint() != token_.authority)
    return Error(ErrorCode::kRefused, fmt::format("the seed has key {}, and the token names {}",
                                                  short_text(certificate.public_fingerprint()), short_text(token_.authority)));
  return crypto::verify_authority(certificate, token_.authority, token_.cluster);
}

Result<std::unique_ptr<JoinClient>> JoinClient::open(Options options) {
  const base::Time now = io::real_clock().now();
  Result<HostPort> seed = parse_host_port(options.seed);
  if (!seed) return std::move(seed).error();
  if (seed->port == 0) return Error(ErrorCode::kInvalidArgument, fmt::format("'{}' has no port at which a seed could be", options.seed));
  Result<crypto::PrivateKey> key = crypto::PrivateKey::generate();
  if (!key) return std::move(key).error();
  const Result<crypto::CertificateRequest> request = crypto::CertificateRequest::make(*key);
  if (!request) return request.error();
  Result<std::unique_ptr<io::EpollLoop>> loop = io::EpollLoop::open();
  if (!loop) return std::move(loop).error();

  std::unique_ptr<JoinClient> client(new JoinClient(std::move(options), *std::move(seed), *std::move(key), *std::move(loop), now));
  wire::JoinRequest& asked = client->request_;
  const Options& given = client->options_;
  asked.plan_version = given.plan_version;
  asked.rank = given.rank.value_or(-1);
  asked.config_digest = given.config.digest();
  asked.host = given.host;
  asked.cores = given.cores;
  asked.agreed = given.config.agreed();
  asked.request.assign(request->der().begin(), request->der().end());
  asked.name = given.name;
  if (asked.rank < -1) return Error(ErrorCode::kInvalidArgument, fmt::format("rank {} cannot be asked for", asked.rank));
  return client;
}

JoinClient::JoinClient(Options options, HostPort seed, crypto::PrivateKey key, std::unique_ptr<io::EpollLoop> loop, base::Time now)
    : options_(std::move(options)),
      seed_(std::move(seed)),
      opened_(now),
      key_(std::move(key)),
      loop_(std::move(loop)),
      pin_(options_.token),
      backoff_(kFirstPause) {}

JoinClient::~JoinClient() { leave("the node has left"); }

Result<io::Address> JoinClient::own_address() const { return io::source_address(seed_address_); }

template <typename Done>
void JoinClient::run(base::Time until, Done done) {
  turn_until(std::min(until, options_.deadline), done);
}

template <typename Done>
void JoinClient::turn_until(base::Time until, Done done) {
  for (base::Time now = loop_->refresh(); !done() && now < until; now = loop_->refresh()) loop_->turn(until - now);
}

Result<crypto::Identity> JoinClient::enroll() {
  for (;;) {
    Result<void> done = enroll_once();
    if (done) break;
    if (refused_) return std::move(done).error();
    if (loop_->refresh() >= options_.deadline) return give_up(done.error()).error();
    pause();
  }
  Result<crypto::PrivateKey> key = crypto::PrivateKey::parse(key_.der().view());
  if (!key) return std::move(key).error();
  return crypto::Identity{*std::move(key), *certificate_, *authority_};
}

Result<JoinClient::Joined> JoinClient::wait_view(const std::vector<io::Address>& candidates) {
  if (candidates.empty() || candidates.size() > wire::kAddressesMax)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a node tells 1 to {} addresses, not {}", wire::kAddressesMax, candidates.size()));
  for (;;) {
    if (conversation_ == nullptr || conversation_->state() != State::kAccepted) {
      Result<crypto::Identity> again = enroll();
      if (!again) return std::move(again).error();
    }
    conversation_->tell(candidates);
    await_view();
    if (conversation_->state() == State::kComplete) break;
    if (conversation_->state() == State::kRefused) return *conversation_->error();
    if (loop_->refresh() >= options_.deadline) {
      if (conversation_->error()) return give_up(*conversation_->error()).error();
      if (conversation_->news()) return give_up(conversation_->news()->error).error();
      return give_up(Error(ErrorCode::kTimeout, "the seed waits for other nodes")).error();
    }
    pause();
    leave("the link has ended");
  }
  Joined joined{-1, std::move(conversation_->view())};
  leave("the node has its view");
  const std::optional<Rank> rank = joined.view.rank_of(certificate_->node());
  if (!rank) return Error(ErrorCode::kInternal, fmt::format("the seed at {} sent a view without this node", options_.seed));
  joined.rank = *rank;
  return joined;
}

// Until the conversation has an outcome or the time is over. At the deadline the seed is asked who is missing. Who left at once would be
// missing for the others too; where the seed's verdict is near, it is the same for all, and worth the rest of the grace.
void JoinClient::await_view() {
  const auto is_over = [this] { return conversation_->state() != State::kWaiting; };
  run(options_.deadline, is_over);
  if (is_over()) return;
  const base::Time limit = options_.deadline + kVerdictGrace;
  conversation_->ask();
  turn_until(limit, [&] { return is_over() || conversation_->news(); });
  if (is_over() || !conversation_->news()) return;
  const auto grace = std::max(limit - loop_->refresh(), base::Duration::zero());
  if (conversation_->news()->left_ns <= static_cast<std::uint64_t>(grace.count())) turn_until(limit, is_over);
}

Result<void> JoinClient::enroll_once() {
  leave("the node tries again");
  if (Result<void> connected = connect(); !connected) return connected;
  conversation_->begin();
  run(loop_->refresh() + kAnswerLimit, [this] {
    const State state = conversation_->state();
    return state == State::kAccepted || state == State::kRefused || state == State::kEnded;
  });
  refused_ = conversation_->state() == State::kRefused;
  if (conversation_->state() == State::kAccepted) {
    Result<void> accepted = accept_answer();
    refused_ = !accepted;
    return accepted;
  }
  if (conversation_->error()) return *conversation_->error();
  return Error(ErrorCode::kTimeout, fmt::format("{} did not answer", seed_address_.to_string()));
}

// Tries the addresses of the seed one after the other, a little apart, until a link stands.
Result<void> JoinClient::connect() {
  const Result<std::vector<io::Address>> resolved = options_.resolve(seed_.host, seed_.port);
  if (!resolved) return resolved.error();
  const base::Time begun = loop_->refresh();
  const base::Duration patience = std::min(kLongestHandshake, kFirstHandshake * ++attempts_);
  const std::size_t count = std::min(resolved->size(), kAddressesTried);
  std::optional<Error> last;
  for (std::size_t i = 0; i < count && conversation_ == nullptr; ++i) {
    if (Result<void> started = start((*resolved)[i]); !started) {
      last = std::move(started).error();
      continue;
    }
    const bool is_last = i + 1 == count;
    run(loop_->refresh() + (is_last ? patience : kNextAddress), [&] {
      const auto speaks = [](const auto& one) { return one->state() == State::kConnected || one->state() == State::kRefused; };
      const auto& all = attempt_.conversations;
      if (const auto found = std::find_if(all.begin(), all.end(), speaks); found != all.end()) conversation_ = found->get();
      const auto over = [](const auto& one) { return one->state() == State::kEnded; };
      return conversation_ != nullptr || (is_last ? std::all_of(all.begin(), all.end(), over) : over(all.back()));
    });
  }
  for (const auto& one : attempt_.conversations) {
    if (one.get() != conversation_) one->leave("another address answered");
    if (one->error()) last = one->error();
  }
  if (conversation_ == nullptr)
    return last ? *last
                : Error(ErrorCode::kTimeout,
                        fmt::format("{} did not answer within {}", resolved->front().to_string(), seconds(loop_->refresh() - begun)));
  seed_address_ = conversation_->seed();
  refused_ = conversation_->state() == State::kRefused;
  if (refused_) return *conversation_->error();
  return {};
}

Result<void> JoinClient::start(const io::Address& address) {
  if (const Result<io::Address> way = io::source_address(address); !way) return way.error();
  const bool v4 = address.family() == io::Address::Family::kV4;
  std::unique_ptr<transport::quic::Endpoint>& endpoint = v4 ? attempt_.v4 : attempt_.v6;
  if (endpoint == nullptr) {
    auto opened = transport::quic::Endpoint::open_anonymous({*loop_, io::system_random()},
                                                            v4 ? io::Address::any_v4(0) : io::Address::any_v6(0), pin_);
    if (!opened) return std::move(opened).error();
    endpoint = *std::move(opened);
  }
  auto conversation = std::make_unique<JoinConversation>(options_.token, request_);
  const Result<transport::Link*> link = endpoint->connect(address, *conversation);
  if (!link) return link.error();
  conversation->set_link(**link);
  attempt_.conversations.push_back(std::move(conversation));
  return {};
}

// The certificate must be of our key, of this cluster, and of the authority that the token names: the seed has proved to be that one, so
// anything else is a defect.
Result<void> JoinClient::accept_answer() {
  const wire::JoinAccept& answer = conversation_->answer();
  Result<crypto::Certificate> certificate = crypto::Certificate::parse(answer.certificate);
  if (!certificate) return std::move(certificate).error();
  Result<crypto::Certificate> authority = crypto::Certificate::parse(answer.authority);
  if (!authority) return std::move(authority).error();
  if (Result<void> pinned = pin_.verify(*authority); !pinned) return pinned;
  if (Result<void> valid = crypto::verify(*certificate, *authority, options_.token.cluster, io::real_clock().wall()); !valid) return valid;
  if (certificate->public_fingerprint() != key_.public_fingerprint())
    return Error(ErrorCode::kRefused, "the seed returned a certificate for another key");
  certificate_ = *std::move(certificate);
  authority_ = *std::move(authority);
  return {};
}

Result<void> JoinClient::give_up(const Error& last) const {
  Error error(ErrorCode::kTimeout,
              fmt::format("no world was joined through the seed at {} within {}", options_.seed, seconds(options_.deadline - opened_)));
  if (!last.ranks().empty()) error = std::move(error).with_ranks(last.ranks());
  return std::move(error).with_cause(last);
}

// Says goodbye to whatever links there are and drops them.
void JoinClient::leave(std::string_view reason) {
  const auto& all = attempt_.conversations;
  for (const auto& one : all) one->leave(reason);
  for (const auto* endpoint : {&attempt_.v4, &attempt_.v6})
    if (*endpoint != nullptr) (*endpoint)->flush();  // most links have nothing to wait for and end here
  const base::Time until = loop_->refresh() + kFarewellLimit;
  const auto gone = [&] { return std::none_of(all.begin(), all.end(), [](const auto& one) { return one->has_link(); }); };
  turn_until(until, gone);
  attempt_.v4.reset();
  attempt_.v6.reset();
  attempt_.conversations.clear();
  conversation_ = nullptr;
}

void JoinClient::pause() {
  const base::Duration half = backoff_ / 2;
  const auto extra = base::Duration(
      static_cast<base::Duration::rep>(io::system_random().number<std::uint32_t>() % static_cast<std::uint64_t>(half.count())));
  backoff_ = std::min(2 * backoff_, kLongestPause);
  run(loop_->refresh() + half + extra, [] { return false; });
}

}  // namespace nexar::cluster

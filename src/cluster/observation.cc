#include "cluster/observation.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "cluster/join_link.h"
#include "cluster/join_proof.h"
#include "cluster/node_address.h"
#include "crypto/secret.h"
#include "io/epoll_loop.h"
#include "io/random.h"
#include "transport/peer_verifier.h"
#include "transport/quic/endpoint.h"

namespace nexar::cluster {
namespace {

// Looked at at the same time: enough that round trips do not add up, few enough for one socket's buffer.
constexpr std::size_t kSightsAtOnce = 32;

// How long farewells may take, so that nodes need not find out by silence.
constexpr base::Duration kGoodbyeLimit = std::chrono::milliseconds(200);

// Certificates are not what an observer believes in; one of another cluster only saves it the question.
class OfCluster final : public transport::PeerVerifier {
 public:
  explicit OfCluster(const Token& token) : token_(token) {}
  Result<void> verify(const crypto::Certificate& certificate) override {
    if (certificate.cluster() != token_.cluster) return Error(ErrorCode::kRefused, "it is of another cluster than the token");
    return {};
  }

 private:
  const Token& token_;
};

// The question at one address.
class Question final : public JoinLink {
 public:
  Question(const Token& token, const Sight& sight, const io::Address& address) : token_(token), sight_(sight) { seen.address = address; }

  void set_link(transport::Link& link) { link_ = &link; }
  bool has_link() const { return link_ != nullptr; }
  bool is_complete() const { return state_ == State::kComplete; }
  bool is_over() const { return state_ == State::kComplete || state_ == State::kFailed; }
  const Error* error() const { return error_ ? &*error_ : nullptr; }
  void leave() {
    if (link_ != nullptr) link_->close("the observer has seen enough");
  }

  Observed seen;

 private:
  enum class State : std::uint8_t { kConnecting, kAsking, kView, kPeers, kComplete, kFailed };

  void on_ready() override {
    const crypto::Certificate* certificate = link_->peer_certificate();
    if (sight_.node && (certificate == nullptr || certificate->node() != *sight_.node))
      return fail(Error(ErrorCode::kRefused, fmt::format("at {} is another node", seen.address.to_string())));
    const Result<crypto::Sha256> proof = join_proof(JoinRole::kObserver, token_.secret.view(), token_.cluster, *link_);
    if (!proof) return fail(proof.error());
    state_ = State::kAsking;
    if (!send(*link_, wire::InfoRequest{*proof, sight_.view})) fail(Error(ErrorCode::kOverloaded, "there is no room for the question"));
  }

  bool expects(wire::FrameType type) const override {
    switch (type) {
      case wire::FrameType::kJoinRefuse:
      case wire::FrameType::kInfoAnswer: return state_ == State::kAsking;
      case wire::FrameType::kJoinView: return state_ == State::kView;
      case wire::FrameType::kInfoPeer: return state_ == State::kPeers;
      default: return false;
    }
  }

  Result<void> on_message(const wire::Header& header, base::ByteView payload) override {
    switch (header.type) {
      case wire::FrameType::kInfoAnswer: return take_answer(wire::decode_frame<wire::InfoAnswer>(header, payload));
      case wire::FrameType::kJoinView: return take_view(wire::decode_frame<wire::JoinView>(header, payload));
      case wire::FrameType::kInfoPeer: return take_peer(wire::decode_frame<wire::InfoPeer>(header, payload));
      default: break;
    }
    const Result<wire::JoinRefuse> refusal = wire::decode_frame<wire::JoinRefuse>(header, payload);
    if (!refusal) return refusal.error();
    fail(refusal->error);
    return {};
  }

  Result<void> take_answer(Result<wire::InfoAnswer> answer) {
    if (!answer) return std::move(answer).error();
    const Result<crypto::Sha256> expected = join_proof(JoinRole::kObserved, token_.secret.view(), token_.cluster, *link_);
    if (!expected) return expected.error();
    if (!crypto::equal_constant_time(*expected, answer->proof))
      return Error(ErrorCode::kRefused, fmt::format("{} does not know the secret of the token", seen.address.to_string()));
    seen.answer = *std::move(answer);
    state_ = sight_.view ? State::kView : State::kPeers;
    complete_if_all_is_here();
    return {};
  }

  Result<void> take_view(const Result<wire::JoinView>& part) {
    if (!part) return part.error();
    const Result<bool> last = add_view_part(seen.view, *part);
    if (!last) return last.error();
    if (*last) state_ = State::kPeers;
    complete_if_all_is_here();
    return {};
  }

  Result<void> take_peer(Result<wire::InfoPeer> peer) {
    if (!peer) return std::move(peer).error();
    seen.peers.push_back(*std::move(peer));
    complete_if_all_is_here();
    return {};
  }

  void complete_if_all_is_here() {
    if (state_ == State::kPeers && seen.peers.size() == seen.answer.peers) state_ = State::kComplete;
  }

  void fail(Error error) {
    if (is_over()) return;
    error_ = std::move(error);
    state_ = State::kFailed;
  }

  void on_goodbye(const wire::Goodbye& goodbye) override {
    fail(Error(ErrorCode::kPeerLost, fmt::format("{} closed the link: {}", seen.address.to_string(), goodbye.text)));
    link_->abort("goodbye");
  }
  void on_room(wire::Lane) override {}
  void on_end(const transport::LinkEnd& end) override {
    link_ = nullptr;
    fail(end.error);
  }

  const Token& token_;
  const Sight& sight_;
  transport::Link* link_ = nullptr;
  State state_ = State::kConnecting;
  std::optional<Error> error_;
};

// Some sights at the same time, from one socket for each kind of address.
class Lookout {
 public:
  explicit Lookout(const Token& token) : token_(token), verifier_(token) {}

  Result<void> open() {
    Result<std::unique_ptr<io::EpollLoop>> loop = io::EpollLoop::open();
    if (!loop) return std::move(loop).error();
    loop_ = *std::move(loop);
    return {};
  }

  std::vector<Result<Observed>> look(std::span<const Sight> sights, base::Duration patience) {
    std::vector<std::vector<std::unique_ptr<Question>>> all(sights.size());
    std::vector<std::optional<Error>> last(sights.size());
    for (std::size_t i = 0; i < sights.size(); ++i)
      for (const io::Address& address : sights[i].addresses)
        if (Result<std::unique_ptr<Question>> asked = ask(sights[i], address))
          all[i].push_back(*std::move(asked));
        else
          last[i] = asked.error();

    const auto is_answered = [](const auto& questions) {
      return std::any_of(questions.begin(), questions.end(), [](const auto& one) { return one->is_complete(); }) ||
             std::all_of(questions.begin(), questions.end(), [](const auto& one) { return one->is_over(); });
    };
    turn_until(patience, [&] { return std::all_of(all.begin(), all.end(), is_answered); });

    std::vector<Result<Observed>> results;
    for (std::size_t i = 0; i < sights.size(); ++i) results.push_back(result_of(sights[i], all[i], last[i], patience));
    for (const auto& questions : all)
      for (const auto& one : questions) one->leave();
    turn_until(kGoodbyeLimit, [&] {
      return std::all_of(all.begin(), all.end(), [](const auto& questions) {
        return std::none_of(questions.begin(), questions.end(), [](const auto& one) { return one->has_link(); });
      });
    });
    v4_.reset();  // before the questions that their links call
    v6_.reset();
    return results;
  }

 private:
  Result<std::unique_ptr<Question>> ask(const Sight& sight, const io::Address& address) {
    if (const Result<io::Address> way = io::source_address(address); !way) return way.error();
    const bool v4 = address.family() == io::Address::Family::kV4;
    std::unique_ptr<transport::quic::Endpoint>& endpoint = v4 ? v4_ : v6_;
    if (endpoint == nullptr) {
      auto opened = transport::quic::Endpoint::open_observer({*loop_, io::system_random()},
                                                             v4 ? io::Address::any_v4(0) : io::Address::any_v6(0), verifier_);
      if (!opened) return std::move(opened).error();
      endpoint = *std::move(opened);
    }
    auto question = std::make_unique<Question>(token_, sight, address);
    const Result<transport::Link*> link = endpoint->connect(address, *question);
    if (!link) return link.error();
    question->set_link(**link);
    return question;
  }

  // A refusal says more than silence at another address.
  static Result<Observed> result_of(const Sight& sight, std::vector<std::unique_ptr<Question>>& questions, std::optional<Error> error,
                                    base::Duration patience) {
    for (const auto& one : questions) {
      if (one->is_complete()) return std::move(one->seen);
      if (one->error() != nullptr && (!error || one->error()->code() == ErrorCode::kRefused)) error = *one->error();
    }
    if (error) return *std::move(error);
    std::vector<std::string> tried;
    for (const io::Address& address : sight.addresses) tried.push_back(address.to_string());
    if (tried.empty()) return Error(ErrorCode::kInvalidArgument, "there is no address to look at");
    return Error(ErrorCode::kTimeout,
                 fmt::format("nobody answered at {} within {}", fmt::join(tried, ", "), base::format_duration(patience)));
  }

  template <typename Done>
  void turn_until(base::Duration limit, Done done) {
    const base::Time until = loop_->refresh() + limit;
    for (base::Time now = loop_->refresh(); !done() && now < until; now = loop_->refresh()) loop_->turn(until - now);
  }

  const Token& token_;
  OfCluster verifier_;
  std::unique_ptr<io::EpollLoop> loop_;
  std::unique_ptr<transport::quic::Endpoint> v4_;
  std::unique_ptr<transport::quic::Endpoint> v6_;
};

}  // namespace

std::vector<Result<Observed>> observe(const Token& token, const std::vector<Sight>& sights, base::Duration patience) {
  std::vector<Result<Observed>> results;
  for (std::size_t first = 0; first < sights.size(); first += kSightsAtOnce) {
    const std::span<const Sight> some = std::span(sights).subspan(first, std::min(kSightsAtOnce, sights.size() - first));
    Lookout lookout(token);
    if (Result<void> opened = lookout.open(); !opened) {
      for (std::size_t i = 0; i < some.size(); ++i) results.push_back(opened.error());
      continue;
    }
    std::vector<Result<Observed>> seen = lookout.look(some, patience);
    std::move(seen.begin(), seen.end(), std::back_inserter(results));
  }
  return results;
}

}  // namespace nexar::cluster

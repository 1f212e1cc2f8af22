// What a formation keeps for strangers, over links that a test holds in its hand. Real ones are in the tests of the runtime.
#include "cluster/formation.h"

#include <deque>

#include <gtest/gtest.h>

#include "crypto/identity.h"
#include "io/clock.h"
#include "io/epoll_loop.h"

namespace nexar::cluster {
namespace {

class HeldLink final : public transport::Link {
 public:
  explicit HeldLink(crypto::Certificate certificate) : certificate_(std::move(certificate)) {}
  bool send(const wire::Header&, base::ByteView) override { return true; }
  void set_bulk_source(transport::BulkSource*) override {}
  void bulk_ready() override {}
  void set_handler(transport::LinkHandler&) override {}
  void close(wire::GoodbyeReason, std::string_view) override {}
  void abort(std::string_view) override {}
  void expel(std::string_view) override {}
  const crypto::Certificate* peer_certificate() const override { return &certificate_; }
  const io::Address& peer_address() const override { return address_; }
  Result<void> export_key(std::string_view, base::ByteView, base::ByteSpan) const override { return {}; }
  const transport::LaneCounters& counters(wire::Lane) const override { return counters_; }

 private:
  crypto::Certificate certificate_;
  io::Address address_;
  transport::LaneCounters counters_;
};

TEST(Formation, HoldsABoundedNumberOfLinksThatHaveNotSaidHello) {
  const auto authority = crypto::LocalAuthority::make({}).value();
  const auto loop = io::EpollLoop::open().value();
  const base::Logger log(LogLevel::kOff, {});
  Formation formation({*loop, io::system_random(), log, {}}, {}, {});
  std::deque<HeldLink> links;
  std::vector<transport::LinkHandler*> taken;
  const auto open = [&](std::size_t number) {
    NodeId node;
    base::store_le(node.bytes.data(), number);
    links.emplace_back(authority.make_node(node, io::real_clock().wall()).value().certificate);
    return formation.accept(links.back());
  };
  for (std::size_t i = 0; i < kGreetingsMax; ++i) {
    taken.push_back(open(i / kGreetingsPerMember));
    ASSERT_NE(taken.back(), nullptr) << i;
  }
  EXPECT_EQ(open(kGreetingsMax), nullptr) << "there are too many";
  taken[0]->on_end({transport::LinkEnd::Kind::kBroken, Error(ErrorCode::kIo, "gone")});
  taken[2]->on_end({transport::LinkEnd::Kind::kBroken, Error(ErrorCode::kIo, "gone")});
  EXPECT_NE(open(0), nullptr);
  EXPECT_EQ(open(0), nullptr) << "this one has two";
  EXPECT_NE(open(kGreetingsMax), nullptr);
}

}  // namespace
}  // namespace nexar::cluster

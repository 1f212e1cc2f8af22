#include "cluster/rendezvous.h"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

using namespace std::chrono_literals;

crypto::Sha256 key(int number) {
  crypto::Sha256 key{};
  key[0] = static_cast<std::byte>(number);
  return key;
}

// Speaks for clients, and keeps what they were answered. Node n has key n.
class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() { restart(2); }

  void restart(int world) { machine.emplace(Rendezvous::Options{world, 60s}); }

  static Rendezvous::Request request(int node, std::optional<Rank> rank = std::nullopt) {
    Rendezvous::Request asked;
    asked.key = key(node);
    asked.rank = rank;
    asked.agreed = "a=1\nb=2\n";
    asked.name = "node" + std::to_string(node);
    return asked;
  }

  Rendezvous::Actions ask(ClientId client, const Rendezvous::Request& asked) {
    EXPECT_TRUE(machine->proved(now, client).empty());
    NodeId fresh;
    fresh.bytes[0] = static_cast<std::byte>(++born);
    return machine->requested(now, client, asked, {fresh, std::chrono::sys_seconds(std::chrono::seconds(born))});
  }

  Rendezvous::Accept accepted(ClientId client, const Rendezvous::Request& asked) {
    const Rendezvous::Actions actions = ask(client, asked);
    EXPECT_FALSE(actions.empty());
    EXPECT_TRUE(std::holds_alternative<Rendezvous::Accept>(actions.back())) << refusal(actions);
    return std::get<Rendezvous::Accept>(actions.back());
  }

  static std::string refusal(const Rendezvous::Actions& actions) {
    if (actions.empty() || !std::holds_alternative<Rendezvous::Refuse>(actions.back())) return "none";
    return std::get<Rendezvous::Refuse>(actions.back()).error.to_string();
  }

  Rendezvous::Actions ready(ClientId client) {
    return machine->ready(now, client, {io::Address::loopback_v4(static_cast<std::uint16_t>(client))});
  }

  base::Time now{1000s};
  int born = 0;
  std::optional<Rendezvous> machine;
};

TEST_F(RendezvousTest, GivesARepeatedJoinTheSameNodeAndRank) {
  const auto first = accepted(1, request(7, 1));
  machine->gone(1);
  const auto again = accepted(2, request(7, 1));
  EXPECT_EQ(again.node, first.node);
  EXPECT_EQ(again.rank, 1);
  EXPECT_EQ(again.issued, first.issued) << "so that the certificate is the same";
  EXPECT_EQ(machine->members(), 1u);
}

TEST_F(RendezvousTest, ClosesTheOldLinkOfWhoComesAgain) {
  accepted(1, request(7));
  const Rendezvous::Actions actions = ask(2, request(7));
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<Rendezvous::Close>(actions[0]).client, 1u);
  EXPECT_EQ(std::get<Rendezvous::Accept>(actions[1]).client, 2u);
  EXPECT_TRUE(ready(1).empty()) << "the old link is forgotten";
  EXPECT_EQ(machine->clients(), 1u);
}

TEST_F(RendezvousTest, FormsWhenAllAreReadyAndTellsEverybodyTheSame) {
  accepted(1, request(1));
  accepted(2, request(2));
  EXPECT_TRUE(ready(2).empty());
  const Rendezvous::Actions actions = ready(1);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<Rendezvous::SendView>(actions[0]).client, 1u);
  EXPECT_EQ(std::get<Rendezvous::SendView>(actions[1]).client, 2u);
  EXPECT_EQ(std::get<Rendezvous::SendView>(actions[0]).view, std::get<Rendezvous::SendView>(actions[1]).view);
  EXPECT_EQ(machine->view()->members[0].addresses[0].port(), 1) << "ranks in the order of arrival";
  EXPECT_EQ(machine->view()->members[1].addresses[0].port(), 2);
  EXPECT_EQ(machine->next_time(), base::Time::max());
}

TEST_F(RendezvousTest, GivesAViewAgainToWhoLostIt) {
  const auto first = accepted(1, request(1));
  accepted(2, request(2, 0));
  ready(1);
  ready(2);
  machine->gone(1);
  const auto again = accepted(3, request(1));
  EXPECT_EQ(again.node, first.node);
  EXPECT_EQ(again.rank, 1);
  const Rendezvous::Actions actions = ready(3);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<Rendezvous::SendView>(actions[0]).view, machine->view());
  EXPECT_EQ(machine->view()->members[1].addresses[0].port(), 1) << "a view does not change";
}

TEST_F(RendezvousTest, KeepsARankThatIsAskedForLate) {
  restart(3);
  accepted(1, request(1));
  EXPECT_EQ(accepted(2, request(2)).rank, -1);
  EXPECT_EQ(accepted(3, request(3, 0)).rank, 0);
  for (const ClientId client : {1, 2, 3}) ready(client);
  EXPECT_EQ(machine->view()->members[0].addresses[0].port(), 3);
  EXPECT_EQ(machine->view()->members[1].addresses[0].port(), 1);
  EXPECT_EQ(machine->view()->members[2].addresses[0].port(), 2);
}

TEST_F(RendezvousTest, WaitsForAMemberThatIsAway) {
  accepted(1, request(1));
  ready(1);
  machine->gone(1);
  accepted(2, request(2));
  EXPECT_TRUE(ready(2).empty());
  EXPECT_EQ(machine->view(), nullptr);
  accepted(3, request(1));
  EXPECT_EQ(ready(3).size(), 2u);
}

TEST_F(RendezvousTest, GivesThePlaceOfWhoIsAwayToANewcomerThatFindsNoOther) {
  const auto lost = accepted(1, request(1));
  accepted(2, request(2));
  machine->gone(1);
  EXPECT_NE(accepted(3, request(3)).node, lost.node);
  EXPECT_EQ(refusal(ask(4, request(1))), "refused: 'node1' is one too many: the world of 2 has all its nodes");
}

TEST_F(RendezvousTest, GivesARankOfWhoIsAwayToWhoAsksForIt) {
  restart(3);
  accepted(1, request(1, 2));
  EXPECT_EQ(refusal(ask(2, request(2, 2))), "refused: 'node2' asks for rank 2, which 'node1' has (rank 2)");
  machine->gone(1);
  EXPECT_EQ(accepted(3, request(3, 2)).rank, 2);
  EXPECT_EQ(machine->members(), 1u);
}

TEST_F(RendezvousTest, RefusesWhatDiffersNamingBothSides) {
  accepted(1, request(1, 0));
  auto other = request(2);
  other.agreed = "a=1\nb=3\n";
  EXPECT_EQ(refusal(ask(2, other)), "refused: 'node2' is configured with b=3, and rank 0 (node1) with b=2");
  other.agreed = "a=1\n";
  EXPECT_EQ(refusal(ask(3, other)), "refused: 'node2' is configured with nothing, and rank 0 (node1) with b=2");
  other = request(2);
  other.plan_version = 4;
  EXPECT_EQ(refusal(ask(4, other)), "refused: 'node2' has plan version 4, and rank 0 (node1) has 0");
  EXPECT_EQ(machine->members(), 1u);
  EXPECT_EQ(machine->clients(), 1u);
}

TEST_F(RendezvousTest, TakesWhoIsHereForTheStandardAndNotWhoHasGone) {
  auto odd = request(1);
  odd.agreed = "a=9\n";
  accepted(1, odd);
  machine->gone(1);
  accepted(2, request(2));
  EXPECT_EQ(refusal(ask(3, odd)), "refused: 'node1' is configured with a=9, and 'node2' with a=1");
}

TEST_F(RendezvousTest, RefusesRanksThatAreNotInTheWorld) {
  EXPECT_EQ(refusal(ask(1, request(1, 2))), "refused: 'node1' asks for rank 2, and the world has ranks 0 to 1");
}

TEST_F(RendezvousTest, RefusesNewcomersOnceTheWorldIsFormed) {
  restart(1);
  accepted(1, request(1));
  ready(1);
  EXPECT_EQ(refusal(ask(2, request(2))), "refused: the world of 1 is complete");
}

TEST_F(RendezvousTest, NamesWhoIsMissingAtTheDeadline) {
  restart(4);
  accepted(1, request(1, 0));
  accepted(2, request(2, 1));
  accepted(3, request(3, 3));
  ready(1);
  machine->gone(3);
  EXPECT_EQ(machine->next_time(), now + kReadyTimeout) << "of the second, which has not said where it is";
  ready(2);
  now += 60s;
  EXPECT_EQ(machine->next_time(), now);
  const Rendezvous::Actions actions = machine->expire(now);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(refusal(actions),
            "timeout: 2 of 4 nodes have come within 1min: rank 0 (node1), rank 1 (node2); gone again: rank 3 (node3); missing: rank 2, 3 "
            "(ranks 2, 3)");
  EXPECT_EQ(refusal(ask(5, request(5))), refusal(actions)) << "whoever comes later is told the same";
  EXPECT_EQ(machine->next_time(), base::Time::max());
}

TEST_F(RendezvousTest, CountsTheDeadlineFromTheFirstRequest) {
  EXPECT_EQ(machine->next_time(), base::Time::max());
  now += 3600s;
  EXPECT_TRUE(machine->expire(now).empty());
  EXPECT_FALSE(machine->failure());
  accepted(1, request(1));
  ready(1);
  const base::Time first = now;
  now += 30s;
  machine->gone(1);
  accepted(2, request(1));
  ready(2);
  EXPECT_EQ(machine->next_time(), first + 60s) << "later ones do not prolong it";
  EXPECT_TRUE(machine->expire(first + 60s - 1ns).empty());
  EXPECT_EQ(machine->expire(first + 60s).size(), 1u);
  EXPECT_TRUE(machine->failure());
}

TEST_F(RendezvousTest, CountsWhoIsMissingWhenRanksWereNotAskedFor) {
  restart(20);
  for (int i = 1; i <= 10; ++i) {
    accepted(static_cast<ClientId>(i), request(i));
    ready(static_cast<ClientId>(i));
  }
  now += 60s;
  EXPECT_EQ(
      refusal(machine->expire(now)),
      "timeout: 10 of 20 nodes have come within 1min: 'node1', 'node2', 'node3', 'node4', 'node5', 'node6', 'node7', 'node8' and 2 more");
}

TEST_F(RendezvousTest, SaysWhoHasComeWhileItWaits) {
  restart(3);
  EXPECT_EQ(machine->state().sentence(), "0 of 3 nodes have come; missing: rank 0, 1, 2");
  accepted(1, request(1, 2));
  EXPECT_EQ(machine->state().to_string(),
            "timeout: 1 of 3 nodes have come: rank 2 (node1) without an address; missing: rank 0, 1 (ranks 0, 1)");
  ready(1);
  accepted(2, request(2));
  ready(2);
  EXPECT_EQ(machine->state().sentence(), "2 of 3 nodes have come: rank 2 (node1), 'node2'");
  machine->gone(2);
  EXPECT_EQ(machine->state().sentence(), "1 of 3 nodes have come: rank 2 (node1); gone again: 'node2'; missing: rank 0, 1");
  EXPECT_EQ(machine->deadline(), now + 60s);
  EXPECT_FALSE(machine->failure()) << "to ask decides nothing";
}

TEST_F(RendezvousTest, DropsAClientThatDoesNotAsk) {
  EXPECT_TRUE(machine->proved(now, 1).empty());
  EXPECT_EQ(machine->next_time(), now + kRequestTimeout);
  EXPECT_TRUE(machine->expire(now + kRequestTimeout - 1ns).empty());
  const Rendezvous::Actions actions = machine->expire(now + kRequestTimeout);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<Rendezvous::Close>(actions[0]).client, 1u);
  EXPECT_EQ(machine->clients(), 0u);
}

TEST_F(RendezvousTest, DropsAMemberThatDoesNotSayWhereItIs) {
  accepted(1, request(1));
  ASSERT_EQ(machine->expire(now + kReadyTimeout).size(), 1u);
  EXPECT_EQ(machine->members(), 1u) << "it is away";
  EXPECT_EQ(machine->clients(), 0u);
}

TEST_F(RendezvousTest, HasABoundOnClientsThatHaveNotAsked) {
  ClientId client = 0;
  while (client < 2 + kSpareClients) EXPECT_TRUE(machine->proved(now, ++client).empty());
  const Rendezvous::Actions actions = machine->proved(now, ++client);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<Rendezvous::Close>(actions[0]).client, client);
  EXPECT_EQ(machine->clients(), 2 + kSpareClients);
  machine->gone(1);
  EXPECT_TRUE(machine->proved(now, ++client).empty());
}

TEST_F(RendezvousTest, ForgetsClientsThatItDoesNotKnow) {
  machine->gone(17);
  EXPECT_TRUE(ready(17).empty());
  EXPECT_TRUE(machine->requested(now, 17, request(1), {}).empty());
}

}  // namespace
}  // namespace nexar::cluster

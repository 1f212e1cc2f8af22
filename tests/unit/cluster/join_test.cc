// Nodes join through a real seed over real sockets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cluster/join_fixture.h"

namespace nexar::cluster::test {
namespace {

TEST_F(JoinTest, WorldsOfSeveralSizesForm) {
  for (const int size : {1, 2, 3, 7, 16}) {
    const Seed seed = start_seed(size);
    const std::vector<Result<Joined>> joined = join_all(seed.address(), size);
    expect_world(joined);
    EXPECT_TRUE(seed.wait_formed());
  }
}

TEST_F(JoinTest, AStormOfNodesIsAWorldToo) {
  const Seed seed = start_seed(64);
  expect_world(join_all(seed.address(), 64));
}

TEST_F(JoinTest, RanksThatAreAskedForAreGiven) {
  const Seed seed = start_seed(4);
  std::vector<std::optional<Rank>> ranks = {3, std::nullopt, 0, std::nullopt};
  const std::vector<Result<Joined>> joined =
      join_all(seed.address(), 4, [&](int i, JoinClient::Options& options) { options.rank = ranks[static_cast<std::size_t>(i)]; });
  expect_world(joined);
  EXPECT_EQ(joined[0]->joined.rank, 3);
  EXPECT_EQ(joined[2]->joined.rank, 0);
}

TEST_F(JoinTest, AViewHasTheCoresThatEachNodeTold) {
  const Seed seed = start_seed(3);
  const std::vector<CoreSet> cores = {{0, 1}, {}, {1023}};
  const std::vector<Result<Joined>> joined = join_all(seed.address(), 3, [&](int i, JoinClient::Options& options) {
    options.rank = i;
    options.cores = cores[static_cast<std::size_t>(i)];
  });
  expect_world(joined);
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(joined[0]->joined.view.member(rank).cores, cores[static_cast<std::size_t>(rank)]);
}

TEST_F(JoinTest, AnIdentityIsVouchedForByTheAuthorityOfTheToken) {
  const Seed seed = start_seed(1);
  const Result<Joined> joined = join(options(seed.address()));
  ASSERT_TRUE(joined) << joined.error().to_string();
  EXPECT_EQ(joined->identity.authority.public_fingerprint(), token().authority);
  EXPECT_TRUE(crypto::verify(joined->identity.certificate, joined->identity.authority, token().cluster, io::real_clock().wall()));
  EXPECT_EQ(joined->identity.certificate.node(), joined->joined.view.members[0].node);
}

TEST_F(JoinTest, ANodeThatComesBeforeTheSeedWaitsForIt) {
  // The address of a seed that is gone again.
  const std::string address = start_seed(1).address();
  std::atomic<bool> started = false;
  Result<Joined> joined = Error(ErrorCode::kInternal, "not yet");
  std::thread early([&] {
    started = true;
    joined = join(options(address));
  });
  while (!started) std::this_thread::yield();
  const Seed seed = start_seed(1, address);
  early.join();
  EXPECT_TRUE(joined) << joined.error().to_string();
}

TEST_F(JoinTest, ASeedThatIsStoppedTellsThoseWhoWait) {
  Seed seed = start_seed(2);
  Result<Joined> joined = Error(ErrorCode::kInternal, "not yet");
  std::atomic<bool> enrolled = false;
  std::thread waiting([&] { joined = join(options(seed.address()), [&](JoinClient&) { enrolled = true; }); });
  while (!enrolled) std::this_thread::yield();
  seed.stop();
  waiting.join();
  EXPECT_EQ(joined.error().code(), ErrorCode::kCancelled) << joined.error().to_string();
  EXPECT_EQ(seed.wait_formed().error().code(), ErrorCode::kCancelled);
  seed.stop();
}

TEST_F(JoinTest, AWorldThatStaysIncompleteNamesWhoIsMissing) {
  const Seed seed = start_seed(3, "127.0.0.1:0", std::chrono::milliseconds(300));
  JoinClient::Options asked = options(seed.address());
  asked.rank = 1;
  asked.name = "host-a pid 12";
  const Result<Joined> joined = join(std::move(asked));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(joined.error().sentence(), "1 of 3 nodes have come within 300ms: rank 1 (host-a pid 12); missing: rank 0, 2");
  EXPECT_EQ(seed.wait_formed().error().sentence(), joined.error().sentence());
}

TEST_F(JoinTest, ANodeWaitsForTheVerdictOfItsSeedALittleLongerThanItsDeadline) {
  const Seed seed = start_seed(2, "127.0.0.1:0", std::chrono::milliseconds(2500));
  JoinClient::Options asked = options(seed.address(), std::chrono::seconds(2));
  asked.rank = 1;
  const Result<Joined> joined = join(std::move(asked));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().sentence(), "1 of 2 nodes have come within 2500ms: rank 1 (a node); missing: rank 0");
}

TEST_F(JoinTest, ANodeThatGivesUpBeforeItsSeedNamesWhoIsMissing) {
  Seed seed = start_seed(3);
  JoinClient::Options asked = options(seed.address(), std::chrono::milliseconds(500));
  asked.rank = 1;
  const base::Time before = io::real_clock().now();
  const Result<Joined> joined = join(std::move(asked));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(joined.error().to_string(), "timeout: no world was joined through the seed at " + seed.address() +
                                            " within 500ms (ranks 0, 2); cause: timeout: 1 of 3 nodes have come: rank 1 (a node); missing: "
                                            "rank 0, 2 (ranks 0, 2)")
      << "the reason once";
  EXPECT_EQ(std::vector<Rank>(joined.error().ranks().begin(), joined.error().ranks().end()), (std::vector<Rank>{0, 2}));
  EXPECT_LT(io::real_clock().now() - before, std::chrono::seconds(30)) << "the seed waits for a minute";
  // The place is free for whoever comes.
  expect_world(join_all(seed.address(), 3, [](int i, JoinClient::Options& one) { one.rank = i; }));
}

TEST_F(JoinTest, ANodeThatGivesUpBeforeItsSeedSaysHowManyHaveComeWhereNobodyAskedForARank) {
  Seed seed = start_seed(3);
  std::thread other([&] {
    const Result<Joined> joined = join(options(seed.address()));
    EXPECT_EQ(joined.error().code(), ErrorCode::kCancelled) << joined.error().to_string();
  });
  Result<Joined> joined = Error(ErrorCode::kInternal, "not yet");
  do {  // until the other one has come too
    joined = join(options(seed.address(), std::chrono::milliseconds(200)));
    ASSERT_FALSE(joined);
  } while (joined.error().to_string().find(": 1 of 3") != std::string::npos);
  EXPECT_NE(joined.error().to_string().find(": 2 of 3 nodes have come: 'a node', 'a node'"), std::string::npos)
      << joined.error().to_string();
  seed.stop();
  other.join();
}

TEST_F(JoinTest, ADifferenceInConfigurationIsNamed) {
  const Seed seed = start_seed(2);
  Result<Joined> first = Error(ErrorCode::kInternal, "not yet");
  std::atomic<bool> enrolled = false;
  std::thread waiting([&] {
    JoinClient::Options asked = options(seed.address());
    asked.rank = 0;
    asked.name = "host-a pid 1";
    first = join(std::move(asked), [&](JoinClient&) { enrolled = true; });
  });
  while (!enrolled) std::this_thread::yield();

  JoinClient::Options other = options(seed.address());
  other.name = "host-b pid 2";
  other.config.reproducible = true;
  const Result<Joined> refused = join(std::move(other));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().to_string(),
            "refused: 'host-b pid 2' is configured with reproducible=true, and rank 0 (host-a pid 1) with reproducible=false");

  JoinClient::Options newer = options(seed.address());
  newer.name = "host-c pid 3";
  newer.plan_version = 9;
  EXPECT_EQ(join(std::move(newer)).error().to_string(), "refused: 'host-c pid 3' has plan version 9, and rank 0 (host-a pid 1) has 0");

  EXPECT_TRUE(join(options(seed.address())));
  waiting.join();
  EXPECT_TRUE(first);
}

TEST_F(JoinTest, ANodeTooManyIsRefused) {
  const Seed seed = start_seed(1);
  ASSERT_TRUE(join(options(seed.address())));
  const Result<Joined> late = join(options(seed.address()));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().to_string(), "refused: the world of 1 is complete");
}

TEST_F(JoinTest, ARankOutOfRangeIsRefused) {
  const Seed seed = start_seed(2);
  JoinClient::Options asked = options(seed.address());
  asked.rank = 2;
  asked.name = "host-a pid 12";
  EXPECT_EQ(join(std::move(asked)).error().to_string(), "refused: 'host-a pid 12' asks for rank 2, and the world has ranks 0 to 1");
}

TEST_F(JoinTest, AnUnreachableSeedIsNamedAtTheDeadline) {
  const std::string address = start_seed(1).address();  // gone again
  const Result<Joined> joined = join(options(address, std::chrono::milliseconds(200)));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kTimeout);
  EXPECT_NE(joined.error().sentence().find("the seed at " + address + " within "), std::string::npos) << joined.error().to_string();
}

// A name with many addresses, the seed's at `place` among them, counted from 1; at the others nobody is.
TEST_F(JoinTest, TheFirstAddressesOfANameAreTriedAndNoMore) {
  const Seed seed = start_seed(1);
  const io::Address there = io::Address::parse(seed.address()).value();
  const auto at_place = [&](std::size_t place) {
    JoinClient::Options asked = options(seed.address(), std::chrono::seconds(2));
    asked.resolve = [=](const std::string&, std::uint16_t) -> Result<std::vector<io::Address>> {
      std::vector<io::Address> all(kAddressesTried + 4, io::Address::loopback_v4(9));
      all[place - 1] = there;
      return all;
    };
    return join(std::move(asked));
  };
  const Result<Joined> beyond = at_place(kAddressesTried + 1);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), ErrorCode::kTimeout) << beyond.error().to_string();
  const Result<Joined> last = at_place(kAddressesTried);
  EXPECT_TRUE(last) << last.error().to_string();
}

TEST_F(JoinTest, ANameThatDoesNotResolveIsNamedAtTheDeadline) {
  const Result<Joined> joined = join(options("nobody.invalid:7070", std::chrono::milliseconds(50)));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kTimeout);
  EXPECT_NE(joined.error().sentence().find("nobody.invalid"), std::string::npos) << joined.error().to_string();
}

TEST_F(JoinTest, AnAddressThatIsNoneIsRefusedAtOnce) {
  for (const char* bad : {"", "host", "host:", "host:0", "1.2.3.4:99999"})
    EXPECT_EQ(JoinClient::open(options(bad)).error().code(), ErrorCode::kInvalidArgument) << bad;
}

TEST_F(JoinTest, APortInUseIsNamed) {
  const Seed seed = start_seed(1);
  const Result<Seed> second = Seed::start({.listen = seed.address(), .world = 1, .credentials = credentials()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kIo);
  EXPECT_NE(second.error().sentence().find(seed.address()), std::string::npos) << second.error().to_string();
}

TEST_F(JoinTest, ASeedIsInertInAChildOfFork) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own locks may be held by a thread that the child does not have";
#endif
  std::optional<Seed> seed = start_seed(1);
  const pid_t child = fork();
  if (child == 0) {
    seed->stop();
    seed.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(join(options(seed->address()))) << "the parent's goes on";
}

TEST_F(JoinTest, ASeedListensOnIpv6AndByName) {
  for (const char* listen : {"[::1]:0", "[::]:0", "localhost:0"}) {
    const Seed seed = start_seed(2, listen);
    std::string address = seed.address();
    if (address.starts_with("[::]")) address = "127.0.0.1" + address.substr(4);
    expect_world(join_all(address, 2));
  }
}

TEST_F(JoinTest, ASeedOnOneAddressOfANameIsFound) {
  const Seed seed = start_seed(1);  // on 127.0.0.1; the name may mean ::1 first
  EXPECT_TRUE(join(options("localhost" + seed.address().substr(seed.address().rfind(':')))));
}

TEST_F(JoinTest, WhatCannotBeASeedIsRefused) {
  for (const int world : {0, -1, 65537})
    EXPECT_EQ(Seed::start({.listen = "127.0.0.1:0", .world = world, .credentials = credentials()}).error().code(),
              ErrorCode::kInvalidArgument);
  EXPECT_EQ(Seed::start({.listen = "127.0.0.1", .world = 1, .credentials = credentials()}).error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace nexar::cluster::test

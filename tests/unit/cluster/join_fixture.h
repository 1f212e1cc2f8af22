// A seed, and nodes that join it from threads of the test.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/join_client.h"
#include "cluster/seed_credentials.h"
#include "io/clock.h"
#include "nexar/seed.h"

namespace nexar::cluster::test {

// What one node has in the end.
struct Joined {
  crypto::Identity identity;
  JoinClient::Joined joined;
};

class JoinTest : public testing::Test {
 protected:
  JoinTest() : text_(format_seed_file(SeedCredentials::make().value().content())) {}

  // The same each time.
  SeedCredentials credentials() const {
    return SeedCredentials(std::make_unique<SeedCredentials::Content>(parse_seed_file(text_).value()));
  }
  Token token() const { return credentials().content().token(); }

  Seed start_seed(int world, const std::string& listen = "127.0.0.1:0",
                  std::chrono::nanoseconds formation = std::chrono::seconds(60)) const {
    return Seed::start({.listen = listen, .world = world, .credentials = credentials(), .formation = formation, .log = LogLevel::kOff})
        .value();
  }

  // Far more time than anything here takes.
  JoinClient::Options options(const std::string& seed, base::Duration patience = std::chrono::seconds(60)) const {
    return {seed, token(), std::nullopt, HostId{}, Config{}, 0, "a node", io::real_clock().now() + patience};
  }

  static Result<Joined> join(JoinClient::Options options, const std::function<void(JoinClient&)>& enrolled = {}) {
    Result<std::unique_ptr<JoinClient>> client = JoinClient::open(std::move(options));
    if (!client) return std::move(client).error();
    Result<crypto::Identity> identity = (*client)->enroll();
    if (!identity) return std::move(identity).error();
    if (enrolled) enrolled(**client);
    Result<JoinClient::Joined> joined = (*client)->wait_view({io::Address::loopback_v4(4711)});
    if (!joined) return std::move(joined).error();
    return Joined{*std::move(identity), *std::move(joined)};
  }

  std::vector<Result<Joined>> join_all(const std::string& seed, int count,
                                       const std::function<void(int, JoinClient::Options&)>& change = {}) const {
    std::vector<Result<Joined>> results;
    for (int i = 0; i < count; ++i) results.emplace_back(Error(ErrorCode::kInternal, "did not run"));
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      JoinClient::Options one = options(seed);
      if (change) change(i, one);
      threads.emplace_back([&results, i, given = std::make_shared<JoinClient::Options>(std::move(one))] {
        results[static_cast<std::size_t>(i)] = join(std::move(*given));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  // One view for all, and a rank for each.
  static void expect_world(const std::vector<Result<Joined>>& results) {
    std::set<Rank> ranks;
    for (const Result<Joined>& one : results) {
      ASSERT_TRUE(one) << one.error().to_string();
      EXPECT_EQ(one->joined.view, results.front()->joined.view);
      EXPECT_EQ(one->joined.view.members.size(), results.size());
      EXPECT_TRUE(ranks.insert(one->joined.rank).second) << "two nodes have rank " << one->joined.rank;
      EXPECT_EQ(one->joined.view.member(one->joined.rank).node, one->identity.certificate.node());
    }
  }

 private:
  std::string text_;
};

}  // namespace nexar::cluster::test

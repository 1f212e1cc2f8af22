#include "nexar/config.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace nexar {
namespace {

using namespace std::chrono_literals;
using Variables = std::map<std::string, std::string>;

Result<Config> read(const Variables& variables) {
  return Config::from_variables([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Config, DefaultsAreThoseOfTheContract) {
  const Config config = read({}).value();
  EXPECT_EQ(config.to_string(),
            "topology=full_mesh\nentry_timeout=10min\nprogress_timeout=30s\nrpc_timeout=30s\nrecovery_timeout=30s\np2p_timeout=none\n"
            "reproducible=false\nmemory_budget=256MiB\nshm_budget=none\nlarge_msg_bytes=8MiB\npipeline_segment_bytes=2MiB\n"
            "ring_max_world=8\nheartbeat_interval=1s\nheartbeat_timeout=5s\nelastic_enabled=false\nmin_world=1\nmax_world=0\n"
            "resize_timeout=1min\nrecovery_policy=automatic\ntransport=auto\nencrypt_bulk=true\ntcp_lanes=1\n"
            "compressed_all_reduce_max_bytes=4GiB\nrpc_workers=4\nrpc_spare_workers=64\nrpc_queue=1024\nrpc_calls_per_peer=1024\n"
            "rpc_bytes_per_peer=256MiB\ntoken=none\ntoken_file=none\nseed=none\nhost_id=none\nlog=warning\nspin=200us\n");
  EXPECT_EQ(config.shm_budget_for(4), (64u << 20) + 4 * (4u << 20));
}

TEST(Config, EveryFieldIsReadFromItsVariable) {
  const Variables variables = {{"NEXAR_TOPOLOGY", "k_regular:4"},
                               {"NEXAR_ENTRY_TIMEOUT", "1h"},
                               {"NEXAR_PROGRESS_TIMEOUT", "500ms"},
                               {"NEXAR_RPC_TIMEOUT", "2s"},
                               {"NEXAR_RECOVERY_TIMEOUT", "3s"},
                               {"NEXAR_P2P_TIMEOUT", "4s"},
                               {"NEXAR_REPRODUCIBLE", "true"},
                               {"NEXAR_MEMORY_BUDGET", "1GiB"},
                               {"NEXAR_SHM_BUDGET", "32MiB"},
                               {"NEXAR_LARGE_MSG_BYTES", "4MiB"},
                               {"NEXAR_PIPELINE_SEGMENT_BYTES", "1MiB"},
                               {"NEXAR_RING_MAX_WORLD", "16"},
                               {"NEXAR_HEARTBEAT_INTERVAL", "100ms"},
                               {"NEXAR_HEARTBEAT_TIMEOUT", "1s"},
                               {"NEXAR_ELASTIC_ENABLED", "true"},
                               {"NEXAR_MIN_WORLD", "2"},
                               {"NEXAR_MAX_WORLD", "64"},
                               {"NEXAR_RESIZE_TIMEOUT", "10s"},
                               {"NEXAR_RECOVERY_POLICY", "manual"},
                               {"NEXAR_TRANSPORT", "quic"},
                               {"NEXAR_ENCRYPT_BULK", "false"},
                               {"NEXAR_TCP_LANES", "4"},
                               {"NEXAR_COMPRESSED_ALL_REDUCE_MAX_BYTES", "0"},
                               {"NEXAR_RPC_WORKERS", "2"},
                               {"NEXAR_RPC_SPARE_WORKERS", "3"},
                               {"NEXAR_RPC_QUEUE", "5"},
                               {"NEXAR_RPC_CALLS_PER_PEER", "6"},
                               {"NEXAR_RPC_BYTES_PER_PEER", "1MiB"},
                               {"NEXAR_TOKEN_FILE", "/etc/nexar/token"},
                               {"NEXAR_SEED", "[::1]:4000"},
                               {"NEXAR_HOST_ID", "left"},
                               {"NEXAR_LOG", "debug"},
                               {"NEXAR_SPIN", "0"}};
  const Config config = read(variables).value();
  EXPECT_EQ(config.to_string(),
            "topology=k_regular:4\nentry_timeout=1h\nprogress_timeout=500ms\nrpc_timeout=2s\nrecovery_timeout=3s\np2p_timeout=4s\n"
            "reproducible=true\nmemory_budget=1GiB\nshm_budget=32MiB\nlarge_msg_bytes=4MiB\npipeline_segment_bytes=1MiB\n"
            "ring_max_world=16\nheartbeat_interval=100ms\nheartbeat_timeout=1s\nelastic_enabled=true\nmin_world=2\nmax_world=64\n"
            "resize_timeout=10s\nrecovery_policy=manual\ntransport=quic\nencrypt_bulk=false\ntcp_lanes=4\n"
            "compressed_all_reduce_max_bytes=0B\nrpc_workers=2\nrpc_spare_workers=3\nrpc_queue=5\nrpc_calls_per_peer=6\n"
            "rpc_bytes_per_peer=1MiB\ntoken=none\ntoken_file=/etc/nexar/token\nseed=[::1]:4000\nhost_id=left\nlog=debug\nspin=0ns\n");
  EXPECT_EQ(config.shm_budget_for(4), 32u << 20);
}

TEST(Config, ReadsTheRealEnvironment) {
  ASSERT_EQ(setenv("NEXAR_TRANSPORT", "shm", 1), 0);
  const Result<Config> config = Config::from_env();
  unsetenv("NEXAR_TRANSPORT");
  EXPECT_EQ(config.value().transport, Transport::kShm);
}

// What goes in, and a part of the sentence that must come out beside the variable's name.
struct Refusal {
  const char* variable;
  const char* value;
  const char* says;
};

TEST(Config, AValueThatDoesNotParseNamesVariableValueAndAcceptedForm) {
  const Refusal refusals[] = {
      {"NEXAR_TOPOLOGY", "ring", "full_mesh, hypercube or k_regular:K"},
      {"NEXAR_TOPOLOGY", "k_regular:", "k_regular:K"},
      {"NEXAR_TOPOLOGY", "k_regular:99999999999", "k_regular:K"},
      {"NEXAR_ENTRY_TIMEOUT", "30", "a duration such as 500ms"},
      {"NEXAR_P2P_TIMEOUT", "never", "none, or a duration"},
      {"NEXAR_REPRODUCIBLE", "yes", "true or false"},
      {"NEXAR_MEMORY_BUDGET", "lots", "a size such as"},
      {"NEXAR_SHM_BUDGET", "1.5GiB", "none, or a size"},
      {"NEXAR_RING_MAX_WORLD", "4294967296", "a whole number"},
      {"NEXAR_MIN_WORLD", "-1", "a whole number"},
      {"NEXAR_RECOVERY_POLICY", "auto", "automatic, manual or abort"},
      {"NEXAR_TRANSPORT", "rdma", "auto, shm, net, quic or tcp"},
      {"NEXAR_LOG", "loud", "off, error, warning, info, debug or trace"},
      {"NEXAR_SEED", "", "text"},
      {"NEXAR_SPIN", "50", "0, or a duration such as 50us"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Config> config = read({{refusal.variable, refusal.value}});
    ASSERT_FALSE(config) << refusal.variable << "=" << refusal.value;
    EXPECT_EQ(config.error().code(), ErrorCode::kInvalidArgument);
    const std::string& sentence = config.error().sentence();
    EXPECT_NE(sentence.find(refusal.variable), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("\"" + std::string(refusal.value) + "\""), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(refusal.says), std::string::npos) << sentence;
  }
}

TEST(Config, AValueOutOfRangeNamesTheVariableThatSetIt) {
  const Refusal refusals[] = {
      {"NEXAR_TOPOLOGY", "k_regular:3", "even"},
      {"NEXAR_TOPOLOGY", "k_regular:0", "at least 2"},
      {"NEXAR_ENTRY_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_PROGRESS_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_RPC_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_RECOVERY_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_P2P_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_RESIZE_TIMEOUT", "0s", "longer than nothing"},
      {"NEXAR_HEARTBEAT_INTERVAL", "0s", "longer than nothing"},
      {"NEXAR_HEARTBEAT_INTERVAL", "5s", "must be longer"},
      {"NEXAR_HEARTBEAT_TIMEOUT", "1s", "must be longer"},
      {"NEXAR_MEMORY_BUDGET", "64KiB", "at least 1MiB"},
      {"NEXAR_SHM_BUDGET", "0", "at least 1MiB"},
      {"NEXAR_PIPELINE_SEGMENT_BYTES", "1", "at least 4KiB"},
      {"NEXAR_LARGE_MSG_BYTES", "1MiB", "at least 2MiB"},
      {"NEXAR_RING_MAX_WORLD", "0", "at least 1"},
      {"NEXAR_MIN_WORLD", "0", "at least 1"},
      {"NEXAR_TCP_LANES", "0", "from 1 to 4"},
      {"NEXAR_TCP_LANES", "5", "from 1 to 4"},
      {"NEXAR_SEED", "localhost", "host:port"},
      {"NEXAR_SEED", ":4000", "host:port"},
      {"NEXAR_SEED", "localhost:0", "host:port"},
      {"NEXAR_SEED", "localhost:65536", "host:port"},
      {"NEXAR_SEED", "::1:4000", "[ipv6]:port"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Config> config = read({{refusal.variable, refusal.value}});
    ASSERT_FALSE(config) << refusal.variable << "=" << refusal.value;
    EXPECT_EQ(config.error().code(), ErrorCode::kInvalidArgument);
    const std::string& sentence = config.error().sentence();
    EXPECT_NE(sentence.find(std::string("set by ") + refusal.variable), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(refusal.says), std::string::npos) << sentence;
  }
}

TEST(Config, ImpossibleCombinationsAreRefused) {
  const Result<Config> world = read({{"NEXAR_MIN_WORLD", "4"}, {"NEXAR_MAX_WORLD", "2"}});
  ASSERT_FALSE(world);
  EXPECT_NE(world.error().sentence().find("NEXAR_MIN_WORLD, NEXAR_MAX_WORLD"), std::string::npos) << world.error().sentence();

  const Result<Config> token = read({{"NEXAR_TOKEN", "nxr1-secret"}, {"NEXAR_TOKEN_FILE", "/etc/nexar/token"}});
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().sentence().find("secret"), std::string::npos) << "a token never appears in an error";
}

TEST(Config, AFieldSetInCodeIsValidatedToo) {
  Config config;
  config.heartbeat_timeout = 1ms;
  ASSERT_FALSE(config.validate());
  EXPECT_NE(config.validate().error().sentence().find("heartbeat_timeout is 1ms"), std::string::npos);

  Config negative;
  negative.spin = -1us;
  ASSERT_FALSE(negative.validate());
  EXPECT_NE(negative.validate().error().sentence().find("spin is less than nothing"), std::string::npos);
}

TEST(Config, CallsNeedAWorkerAndRoom) {
  for (const char* variable : {"NEXAR_RPC_WORKERS", "NEXAR_RPC_QUEUE", "NEXAR_RPC_CALLS_PER_PEER", "NEXAR_RPC_BYTES_PER_PEER"}) {
    const Result<Config> config = read({{variable, "0"}});
    ASSERT_FALSE(config) << variable;
    EXPECT_NE(config.error().sentence().find(variable), std::string::npos) << config.error().sentence();
  }
  EXPECT_TRUE(read({{"NEXAR_RPC_SPARE_WORKERS", "0"}}));
  EXPECT_FALSE(read({{"NEXAR_RPC_SPARE_WORKERS", "5000"}}));
}

TEST(Config, TheTokenIsNeverPrinted) {
  const Config config = read({{"NEXAR_TOKEN", "nxr1-secret"}}).value();
  EXPECT_EQ(config.token, "nxr1-secret");
  EXPECT_EQ(config.to_string().find("secret"), std::string::npos);
  EXPECT_NE(config.to_string().find("token=set\n"), std::string::npos);
}

TEST(Config, TheDigestChangesWithWhatRanksMustAgreeOnAndWithNothingElse) {
  const Config standard = read({}).value();
  const Variables agreed = {{"NEXAR_TOPOLOGY", "hypercube"},
                            {"NEXAR_REPRODUCIBLE", "true"},
                            {"NEXAR_LARGE_MSG_BYTES", "16MiB"},
                            {"NEXAR_PIPELINE_SEGMENT_BYTES", "1MiB"},
                            {"NEXAR_RING_MAX_WORLD", "4"},
                            {"NEXAR_HEARTBEAT_INTERVAL", "2s"},
                            {"NEXAR_HEARTBEAT_TIMEOUT", "9s"},
                            {"NEXAR_ELASTIC_ENABLED", "true"},
                            {"NEXAR_MIN_WORLD", "2"},
                            {"NEXAR_MAX_WORLD", "9"},
                            {"NEXAR_RECOVERY_POLICY", "abort"},
                            {"NEXAR_TRANSPORT", "net"},
                            {"NEXAR_ENCRYPT_BULK", "false"},
                            {"NEXAR_COMPRESSED_ALL_REDUCE_MAX_BYTES", "1GiB"},
                            {"NEXAR_TCP_LANES", "2"}};
  std::set<std::uint64_t> digests = {standard.digest()};
  for (const auto& [variable, value] : agreed) digests.insert(read({{variable, value}}).value().digest());
  EXPECT_EQ(digests.size(), 1 + agreed.size()) << "each changes the digest, each differently";

  const Variables local = {{"NEXAR_ENTRY_TIMEOUT", "1s"},
                           {"NEXAR_PROGRESS_TIMEOUT", "1s"},
                           {"NEXAR_RPC_TIMEOUT", "1s"},
                           {"NEXAR_RECOVERY_TIMEOUT", "1s"},
                           {"NEXAR_P2P_TIMEOUT", "1s"},
                           {"NEXAR_MEMORY_BUDGET", "1GiB"},
                           {"NEXAR_SHM_BUDGET", "1GiB"},
                           {"NEXAR_RESIZE_TIMEOUT", "1s"},
                           {"NEXAR_TOKEN", "t"},
                           {"NEXAR_SEED", "a:1"},
                           {"NEXAR_LOG", "info"},
                           {"NEXAR_SPIN", "1ms"},
                           {"NEXAR_RPC_WORKERS", "9"},
                           {"NEXAR_RPC_SPARE_WORKERS", "9"},
                           {"NEXAR_RPC_QUEUE", "9"},
                           {"NEXAR_RPC_CALLS_PER_PEER", "9"},
                           {"NEXAR_RPC_BYTES_PER_PEER", "1MiB"}};
  for (const auto& [variable, value] : local) EXPECT_EQ(read({{variable, value}}).value().digest(), standard.digest()) << variable;
}

}  // namespace
}  // namespace nexar

// Many calls through one link: memory stays flat, and nothing is left over.
#include <deque>
#include <fstream>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "nexar/rpc.h"

namespace nexar::test {
namespace {

// Sanitizers are slow, so they get a tenth of everything; and they keep what was freed, so resident memory says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr std::size_t kShare = kSanitized ? 10 : 1;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// That many calls with 64 of them in flight; every tenth fails, every hundredth is large.
void call_many(const Rpc& rpc, std::size_t count) {
  struct Made {
    std::vector<std::byte> arguments;
    Operation call;
  };
  std::deque<Made> made;
  const auto end_first = [&] {
    const bool fails = made.front().arguments.size() == 10;
    const Result<Status> ended = made.front().call.wait();
    ASSERT_EQ(ended.has_value(), !fails);
    ASSERT_TRUE(fails || made.front().call.take_bytes() == made.front().arguments);
    made.pop_front();
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (made.size() == 64) end_first();
    const std::size_t bytes = i % 100 == 99 ? 70000 : i % 10 == 0 ? 10 : 8 + i % 2;
    Made& next = made.emplace_back();
    next.arguments.assign(bytes, static_cast<std::byte>(i));
    next.call = rpc.start_call(1, i % 3 == 0 ? "quick" : "pool", next.arguments);
  }
  while (!made.empty()) end_first();
}

void expect_flat_memory(std::size_t calls) {
  const std::vector<Node> nodes = Node::local(2).value();
  const auto handler = [](const RpcContext&, std::span<const std::byte> bytes) -> Result<std::vector<std::byte>> {
    if (bytes.size() == 10) return Error(ErrorCode::kUnsupported, "not of ten bytes");
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  ASSERT_TRUE(nodes[1].rpc().serve("quick", handler, {.quick = true}));
  ASSERT_TRUE(nodes[1].rpc().serve("pool", handler));
  call_many(nodes[0].rpc(), calls / 2);
  const std::size_t before = resident_bytes();
  call_many(nodes[0].rpc(), calls / 2);
  const std::size_t after = resident_bytes();
  EXPECT_TRUE(kSanitized || after <= before + (8u << 20)) << "resident memory grew over the second half from " << before << " to " << after;
  const RpcCounters caller = nodes[0].counters().value().rpc;
  EXPECT_EQ(caller.calls, calls / 2 * 2);
  EXPECT_EQ(caller.calling, 0u);
  EXPECT_EQ(caller.late_answers, 0u);
}

TEST(RpcVolume, ManyCallsKeepMemoryFlat) { expect_flat_memory(100'000 / kShare); }
TEST(RpcVolumeLong, TwoMillionCallsKeepMemoryFlat) { expect_flat_memory(2'000'000 / kShare); }

}  // namespace
}  // namespace nexar::test

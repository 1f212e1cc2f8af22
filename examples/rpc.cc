// Calls of functions on other ranks: rank 0 keeps a table of words and counts, the others add to it and ask.
//
//   nexar run -n 3 ./rpc
//
// Nobody writes a loop that waits for requests. What a rank serves is called on the node's own threads while main() does what it does.
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "nexar/node.h"
#include "nexar/rpc.h"

namespace {

// A function has a name and types, and both ends use the same one: here (word, how many) -> the new count, and (word) -> the count.
const nexar::TypedFunction<std::int64_t(std::string, std::int64_t)> kAdd("add");
const nexar::TypedFunction<std::int64_t(std::string)> kCount("count");

// What rank 0 keeps. Several calls may run at once, so it has a mutex.
class Table {
 public:
  std::int64_t add(const std::string& word, std::int64_t more) {
    const std::scoped_lock lock(mutex_);
    return counts_[word] += more;
  }

  // An error is a value like any other; it comes to whoever called.
  nexar::Result<std::int64_t> count(const std::string& word) const {
    const std::scoped_lock lock(mutex_);
    const auto found = counts_.find(word);
    if (found == counts_.end()) return nexar::Error(nexar::ErrorCode::kInvalidArgument, "nobody has counted " + word);
    return found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace

int main() {
  Table table;  // outlives the node, whose threads use it
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Rpc rpc = node.rpc();
  constexpr nexar::Rank kKeeper = 0;

  if (node.rank() == kKeeper) {
    rpc.serve(kAdd, [&](const std::string& word, std::int64_t more) { return table.add(word, more); }).value();
    rpc.serve(kCount, [&](const std::string& word) { return table.count(word); }).value();
  }
  // A function can be called when it is served, not before: everybody waits for that.
  node.world().barrier().value();

  if (node.rank() != kKeeper) {
    // Ten calls at once. Each travels by itself; they are answered in any order.
    std::vector<nexar::TypedCall<std::int64_t>> calls;
    for (int i = 0; i < 10; ++i) calls.push_back(rpc.start_call(kKeeper, kAdd, "apple", node.rank()));
    for (auto& call : calls) call.wait().value();
  }
  node.world().barrier().value();

  // One call, which waits for its answer. A rank may call itself.
  std::printf("rank %d: %lld apples\n", node.rank(), static_cast<long long>(rpc.call(kKeeper, kCount, "apple").value()));

  // How a call fails is a value too. The handler's own error is the cause; a lost rank or a deadline would be other codes.
  const nexar::Result<std::int64_t> pears = rpc.call(kKeeper, kCount, "pear");
  if (!pears && pears.error().cause() != nullptr) std::printf("rank %d: %s\n", node.rank(), pears.error().cause()->sentence().c_str());

  // Rank 0 stays until everybody has asked.
  node.world().barrier().value();
  node.close().value();
}

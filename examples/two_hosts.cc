// Two hosts by hand: no launcher, no ssh; a seed, its token, and this program on both.
//
//   a$ nexar seed --listen 0.0.0.0:7070 --world 2 --token-file token       makes the secret of this world, and waits
//   b$ scp a:token .                                                       whoever has the token may join
//   a$ ./two_hosts a:7070 token
//   b$ ./two_hosts a:7070 token
//
// The first to come is rank 0. docs/getting-started.md walks through it, and says what to do when the hosts do not find each other.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "nexar/node.h"
#include "nexar/seed.h"

namespace {

int run(const char* seed, const char* token_file) {
  // What `nexar run` puts into the environment can be said in code as well. The secret is in the file; it never is on a command line.
  nexar::JoinOptions options;
  options.seed = seed;
  options.token = nexar::read_token_file(token_file).value();
  nexar::Node node = nexar::Node::join(options).value();
  std::printf("rank %d of %d, on host %d of %d\n", node.rank(), node.size(), node.host_index(), node.hosts());

  // 64 MiB from each to each, added up.
  std::vector<float> values(16 << 20, static_cast<float>(node.rank() + 1));
  node.world().all_reduce(values.data(), values.data(), values.size(), nexar::DataType::kF32, nexar::ReduceOp::kSum).value();
  const float expected = static_cast<float>(node.size() * (node.size() + 1)) / 2;
  const auto wrong = std::count_if(values.begin(), values.end(), [&](float value) { return value != expected; });
  std::printf("rank %d: %zu sums, %lld of them wrong\n", node.rank(), values.size(), static_cast<long long>(wrong));

  // What carried them. Between hosts that is encrypted: QUIC for everything small, TCP for what is large, where TCP passes.
  const nexar::NodeCounters counters = node.counters().value();
  for (const nexar::PeerCounters& peer : counters.peers)
    if (peer.rank != node.rank())
      std::printf("rank %d reaches rank %d at %s by %s, large messages by %s\n", node.rank(), peer.rank, peer.address.c_str(),
                  peer.transport.c_str(), peer.bulk.transport == nexar::Transport::kTcp ? "tcp" : peer.transport.c_str());

  // A rank that has left has no link any more, so nobody leaves before both have looked.
  node.world().barrier().value();
  node.close().value();
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: two_hosts SEED_HOST:PORT TOKEN_FILE\n");
    return 2;
  }
  // value() throws what went wrong: no answer at that address, a token of another world, nobody else within a minute.
  try {
    return run(argv[1], argv[2]);
  } catch (const nexar::Exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

// `nexar seed`: a rendezvous in a process of its own; `nexar token new`: the secrets of a cluster, in files.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <poll.h>
#include <signal.h>

#include "commands.h"
#include "io/event_descriptor.h"
#include "io/thread.h"
#include "launch/hosts.h"
#include "launch/signals.h"
#include "nexar/seed.h"
#include "words.h"

namespace nexar::tool {
namespace {

struct TokenFiles {
  std::string seed;
  std::string token;
};

int make_token(const TokenFiles& files) {
  const SeedCredentials credentials = SeedCredentials::make().value();
  credentials.write(files.seed).value();
  const Result<void> written = write_token_file(files.token, credentials.token());
  if (!written) std::remove(files.seed.c_str());  // both or none
  written.value();
  return 0;
}

struct Options {
  std::string listen;
  int world = 0;
  TokenFiles files;  // one of them: the seed's to read, or the token's to write
  std::chrono::nanoseconds formation = std::chrono::seconds(60);
  bool once = false;
};

// Waits for the world on a thread of its own, so that signals are heard meanwhile. Owned by run(); stop the seed before it goes.
class Formation {
 public:
  Formation(const Seed& seed, io::EventDescriptor& done)
      : thread_(io::start_thread("nexar-formation", [this, &seed, &done] {
                  result_ = seed.wait_formed();
                  done.signal();
                }).value()) {}
  ~Formation() { join(); }

  const Result<void>& result() { return join(), result_; }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  Result<void> result_;
  std::thread thread_;
};

// The signal that asks us to end; 0 when the world was formed or failed to be.
int wait(const launch::Signals& signals, int formed) {
  for (;;) {
    pollfd descriptors[] = {{signals.descriptor(), POLLIN, 0}, {formed, POLLIN, 0}};
    poll(descriptors, 2, -1);
    while (const auto signal = signals.next())
      if (*signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP) return *signal;
    if (descriptors[1].revents != 0) return 0;
  }
}

int run(const Options& options) {
  const launch::Signals signals = launch::Signals::take().value();
  SeedCredentials credentials =
      options.files.seed.empty() ? SeedCredentials::make().value() : SeedCredentials::read(options.files.seed).value();
  const std::string token = credentials.token();
  Seed seed = Seed::start({options.listen, options.world, std::move(credentials), options.formation, LogLevel::kWarning}).value();
  // Only now: a seed that could not start leaves no file behind.
  if (!options.files.token.empty()) write_token_file(options.files.token, token).value();
  fmt::print("seed listening on {}\n", seed.address());
  std::fflush(stdout);

  io::EventDescriptor done = io::EventDescriptor::open().value();
  Formation formation(seed, done);
  if (wait(signals, done.fd()) == 0) {
    if (const Result<void>& formed = formation.result(); !formed) {
      fmt::print(stderr, "nexar seed: {}\n", formed.error().to_string());
      return 1;
    }
    fmt::print("world of {} formed\n", options.world);
    std::fflush(stdout);
    if (!options.once) static_cast<void>(wait(signals, -1));
  }
  seed.stop();
  return 0;
}

}  // namespace

void add_seed(CLI::App& app, Action& action) {
  auto* token = app.add_subcommand("token", "The secrets of a cluster");
  token->require_subcommand(1);
  auto* make = token->add_subcommand("new", "Makes those of a new cluster, in files that only their owner can read");
  auto files = std::make_shared<TokenFiles>();
  make->add_option("--seed-file", files->seed, "Where to write what the seed needs; an existing file is refused")->required();
  make->add_option("--token-file", files->token, "Where to write what every node needs; an existing file is refused")->required();
  add_examples(*token, {"nexar token new --seed-file seed --token-file token"});
  add_examples(*make, {"nexar token new --seed-file seed --token-file token    once; then copy `token` to every host"});
  make->callback([files, &action] { action = [files] { return make_token(*files); }; });

  auto* seed = app.add_subcommand("seed", "Runs the rendezvous of one world until it is interrupted");
  auto options = std::make_shared<Options>();
  seed->add_option("--listen", options->listen, "Where; port 0 lets the system choose")->type_name("HOST:PORT")->required();
  seed->add_option("--world", options->world, "How many nodes make the world")->check(CLI::Range(1, launch::kWorldMax))->required();
  auto* from = seed->add_option_group("secrets", "One of");
  from->add_option("--seed-file", options->files.seed, "The secrets of a cluster that exists");
  from->add_option("--token-file", options->files.token,
                   "Make a new cluster, and write what nodes need to this file; an existing one is refused");
  from->require_option(1);
  add_duration(*seed, "--formation", "How long after the first node the last one may come; 60s",
               [options](auto value) { options->formation = value; });
  seed->add_flag("--once", options->once, "End when the world is formed");
  add_examples(*seed, {"nexar seed --listen 0.0.0.0:7070 --world 4 --seed-file seed",
                       "nexar seed --listen 127.0.0.1:0 --world 2 --token-file token --once    a new cluster, until it is formed"});
  seed->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace nexar::tool

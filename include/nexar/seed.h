// The rendezvous at which nodes become a world.
//
// A cluster has two artefacts. The seed file holds the authority's key and the cluster's secret; it stays where the seed runs. The join
// token names that key and holds the secret; every node needs it. Who has the token may join or look; who has the file decides who is who.
//
//   Seed seed = Seed::start({.listen = "0.0.0.0:7070", .world = 4, .credentials = SeedCredentials::make().value()}).value();
//   // every process, on any host:
//   Node node = Node::join({.seed = "host:7070", .token = token}).value();
//
// The seed is not on the data path: once the world is formed it may end, and the world goes on.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "nexar/export.h"
#include "nexar/log.h"
#include "nexar/result.h"

namespace nexar {

// The secrets of one cluster: what a seed file holds. Move-only; wiped when it goes.
class NEXAR_API SeedCredentials {
 public:
  // Of a new cluster.
  static Result<SeedCredentials> make();

  // From a seed file. kIo when it cannot be read, kInvalidArgument when it is no seed file, kRefused when others than its owner may read
  // it; each names the file.
  static Result<SeedCredentials> read(const std::string& file);

  // Writes a seed file that only its owner can read. An existing file is refused (kInvalidArgument).
  Result<void> write(const std::string& file) const;

  // The join token: a secret, `nxr1-` and 128 letters and digits.
  std::string token() const;

  SeedCredentials(SeedCredentials&&) noexcept;
  SeedCredentials& operator=(SeedCredentials&&) noexcept;
  ~SeedCredentials();

  struct Content;
  const Content& content() const { return *content_; }  // for the runtime
  explicit SeedCredentials(std::unique_ptr<Content> content);

 private:
  std::unique_ptr<Content> content_;
};

// Writes a token into a file that only its owner can read. An existing file is refused (kInvalidArgument).
NEXAR_API Result<void> write_token_file(const std::string& file, const std::string& token);

// The token that a file holds. kIo when it cannot be read, kInvalidArgument when it holds no token, kRefused when others than its owner may
// read it; each names the file, none shows the content.
NEXAR_API Result<std::string> read_token_file(const std::string& file);

struct SeedOptions {
  std::string listen = "0.0.0.0:0";  // HOST:PORT; port 0 lets the system choose
  int world = 0;                     // how many nodes make the world
  SeedCredentials credentials;

  // How long after the first of them the last one may come; then those that have come are told who is missing. A seed to which nobody comes
  // waits for ever.
  std::chrono::nanoseconds formation = std::chrono::seconds(60);
  LogLevel log = LogLevel::kWarning;
};

// Runs the rendezvous on a thread of its own, from start() until it is destroyed. Move-only.
class NEXAR_API Seed {
 public:
  static Result<Seed> start(SeedOptions options);

  Seed(Seed&&) noexcept;
  Seed& operator=(Seed&&) noexcept;
  ~Seed();

  // Where it listens, with the port it got: HOST:PORT.
  const std::string& address() const;

  // Waits until the world is formed. kTimeout after the formation deadline, naming who has not come; kCancelled when stop() was called.
  Result<void> wait_formed() const;

  // Ends it; nodes that wait for the world are told. Idempotent.
  void stop();

  class Service;  // for the runtime

 private:
  explicit Seed(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace nexar

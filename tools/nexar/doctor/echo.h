// What answers the questions of another doctor: a UDP port and a TCP port, served by a thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "doctor/probe.h"
#include "doctor/surroundings.h"
#include "io/event_descriptor.h"
#include "io/stream_socket.h"
#include "io/udp_socket.h"
#include "nexar/ids.h"
#include "nexar/result.h"

namespace nexar::tool::doctor {

// The question names the run, so that a stranger gets no answer and cannot make an echo of us; the answer is short and names the rank that
// gives it, because an address may lead to somebody else.
class EchoDialect final : public Dialect {
 public:
  EchoDialect(std::uint64_t run, Rank rank) : run_(run), rank_(rank) {}
  std::vector<std::byte> question(std::uint32_t number, std::size_t bytes) const override;
  std::optional<std::uint32_t> answered(base::ByteView datagram) const override;

  // What the rank answers to a datagram; nothing when it is no question of this run.
  std::optional<std::vector<std::byte>> answer(base::ByteView datagram) const;

 private:
  std::uint64_t run_;
  Rank rank_;
};

// Serves from open() until it is destroyed.
class Echo {
 public:
  // At all addresses of this host, at ports that `ports` allows.
  static Result<std::unique_ptr<Echo>> open(const Ports& ports, const EchoDialect& dialect);
  ~Echo();

  std::uint16_t udp_port() const { return udp_.local_address().port(); }
  std::uint16_t tcp_port() const { return tcp_.local_address().port(); }

 private:
  Echo(io::UdpSocket udp, io::StreamListener tcp, io::EventDescriptor stop, const EchoDialect& dialect)
      : udp_(std::move(udp)), tcp_(std::move(tcp)), stop_(std::move(stop)), dialect_(dialect) {}
  void serve();
  void answer_datagrams();

  io::UdpSocket udp_;
  io::StreamListener tcp_;
  io::EventDescriptor stop_;
  EchoDialect dialect_;
  std::thread thread_;
};

}  // namespace nexar::tool::doctor

#include "transport/shm/listener.h"

#include <iterator>
#include <utility>

namespace nexar::transport::shm {

Result<std::unique_ptr<Listener>> Listener::open(io::Loop& loop, io::Random& random) {
  wire::HostName name;
  random.fill(name);
  Result<io::StreamListener> socket = io::StreamListener::listen_unix(channel_name(name));
  if (!socket) return std::move(socket).error();
  std::unique_ptr<Listener> listener(new Listener(loop, *std::move(socket), name));
  if (auto watched = loop.watch(listener->socket_.fd(), {.read = true}, *listener); !watched) {
    return std::move(watched).error();
  }
  listener->watched_ = true;
  return listener;
}

Listener::~Listener() {
  while (!strangers_.empty()) drop(strangers_.front());
  if (watched_) loop_.unwatch(socket_.fd());
}

// One turn takes at most as many as may wait here; an error of accept (no descriptor left) is tried again when the next one knocks.
void Listener::on_ready(io::Readiness) {
  for (std::size_t i = 0; i < kPendingMax; ++i) {
    Result<std::optional<io::StreamSocket>> socket = socket_.accept();
    if (!socket || !*socket) return;
    admit(**std::move(socket));
  }
}

void Listener::admit(io::StreamSocket socket) {
  Result<Channel> channel = Channel::accepted(std::move(socket));
  if (!channel) {
    ++counters_.other_users;
    return;
  }
  if (strangers_.size() == kPendingMax) {
    ++counters_.made_way;
    drop(strangers_.front());
  }
  Stranger& stranger = strangers_.emplace_back(*this, *std::move(channel));
  stranger.self = std::prev(strangers_.end());
  if (!loop_.watch(stranger.channel.socket.fd(), {.read = true}, stranger)) strangers_.pop_back();
}

void Listener::read(Stranger& stranger) {
  const Result<bool> here = stranger.channel.read_greeting();
  if (here && !*here) return;
  Channel channel = drop(stranger);
  const auto expected = here ? expected_.find(channel.peer.nonce) : expected_.end();
  if (expected == expected_.end()) {
    ++counters_.unknown_nonces;
    return;
  }
  ++counters_.accepted;
  const auto arrived = std::move(expected->second);
  expected_.erase(expected);
  arrived(std::move(channel));
}

Channel Listener::drop(Stranger& stranger) {
  loop_.unwatch(stranger.channel.socket.fd());
  Channel channel = std::move(stranger.channel);
  strangers_.erase(stranger.self);
  return channel;
}

}  // namespace nexar::transport::shm

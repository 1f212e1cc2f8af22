// A link until both ends have said hello.
//
//   caller                                  callee
//     | hello ------------------------------> |   checks it, answers
//     | <------------------------------ hello |   takes frames from here on
//     | ping, and whatever follows ---------> |   sends frames from here on
//
// Lanes keep no order among each other, so neither may send before it knows that the other takes frames: the caller knows it by the
// callee's hello, the callee by the first frame after the caller's.
//
// Thread: engine. Owned by whoever forms links; outlives its link, or hands it to another handler.
#pragma once

#include <cstdint>
#include <vector>

#include "nexar/result.h"
#include "transport/link.h"
#include "wire/link_messages.h"

namespace nexar::mesh {

class Greeting final : public transport::LinkHandler, private transport::Sink {
 public:
  enum class Side : std::uint8_t { kCaller, kCallee };

  class Owner {
   public:
    virtual ~Owner() = default;

    // The handshake is done; the certificate is known.
    virtual void on_authenticated(Greeting& greeting) = 0;
    // The peer's hello; the owner checks it and answers, hands the link over, or closes it.
    virtual void on_hello(Greeting& greeting, Epoch epoch, const wire::Hello& hello) = 0;
    // The peer does not want this link.
    virtual void on_goodbye(Greeting& greeting, const wire::Goodbye& goodbye) = 0;
    // The link has ended. The last call; the greeting may not be destroyed inside it.
    virtual void on_gone(Greeting& greeting, const transport::LinkEnd& end) = 0;
  };

  Greeting(Side side, Owner& owner) : side_(side), owner_(owner) {}

  void attach(transport::Link& link) { link_ = &link; }
  Side side() const { return side_; }
  transport::Link* link() const { return link_; }  // null after its end, and after release()

  void say_hello(const wire::Hello& hello, Epoch epoch);

  // The link goes to another handler; nothing is heard here any more.
  transport::Link& release(transport::LinkHandler& handler);

  // transport::LinkHandler
  void on_ready() override { owner_.on_authenticated(*this); }
  Result<transport::Sink*> on_frame(const wire::Header& header) override;
  Result<void> on_frame_end(const wire::Header& header) override;
  void on_room(wire::Lane) override {}
  void on_end(const transport::LinkEnd& end) override;

 private:
  void take(base::ByteView bytes) override { payload_.insert(payload_.end(), bytes.begin(), bytes.end()); }

  Side side_;
  Owner& owner_;
  transport::Link* link_ = nullptr;
  bool heard_ = false;  // the peer's hello
  std::vector<std::byte> payload_;
};

}  // namespace nexar::mesh

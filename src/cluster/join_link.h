// One end of a link between a node that joins and the seed: takes frames whole, one at a time, and only those that may come now.
//
// Thread: that of its loop. Owned by whoever opened or accepted the link.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "wire/frame.h"
#include "wire/link_messages.h"

namespace nexar::cluster {

class JoinLink : public transport::LinkHandler, private transport::Sink {
 public:
  JoinLink() = default;
  JoinLink(const JoinLink&) = delete;
  JoinLink& operator=(const JoinLink&) = delete;

 protected:
  // Whether such a frame may come now. Nothing is allocated for one that may not.
  virtual bool expects(wire::FrameType type) const = 0;

  // A frame that was expected. An error ends the link.
  virtual Result<void> on_message(const wire::Header& header, base::ByteView payload) = 0;

  // The other end has said its last word; the link is to be ended. It may come at any time.
  virtual void on_goodbye(const wire::Goodbye& goodbye) = 0;

  // False when the lane has no room.
  template <wire::Described M>
  [[nodiscard]] static bool send(transport::Link& link, const M& message) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {}, frame));
    return send_frame(link, frame);
  }

 private:
  static bool send_frame(transport::Link& link, base::ByteView frame);
  Result<transport::Sink*> on_frame(const wire::Header& header) final;
  Result<void> on_frame_end(const wire::Header& header) final;
  void take(base::ByteView bytes) final;

  std::vector<std::byte> payload_;
};

}  // namespace nexar::cluster

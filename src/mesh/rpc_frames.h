// Who takes the frames of the rpc lane. The mesh moves them and does not look inside.
#pragma once

#include <cstddef>
#include <vector>

#include "nexar/error.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "wire/header.h"

namespace nexar::mesh {

// Thread: engine. Outlives the mesh, or is taken out of it. May call the mesh back.
class RpcFrames {
 public:
  virtual ~RpcFrames() = default;

  // A whole frame has come; its payload may be taken. An error ends the link, with the sentence as the reason.
  virtual Result<void> on_rpc_frame(Rank from, const wire::Header& header, std::vector<std::byte>& payload) = 0;

  // The lane to a peer, which refused a frame, has room now.
  virtual void on_rpc_room(Rank to) = 0;

  // Nothing comes from the peer any more, and nothing reaches it: it has left or is lost, as `why` says.
  virtual void on_rpc_gone(Rank peer, const Error& why) = 0;
};

}  // namespace nexar::mesh

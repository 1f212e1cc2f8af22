// What ngtcp2 calls, and the settings that every connection starts with.
#pragma once

#include "base/time.h"
#include "transport/quic/compat.h"

namespace nexar::io {
class Random;
}

namespace nexar::transport::quic {

// The functions of a Connection that ngtcp2 calls; its user pointer is the Connection.
ngtcp2_callbacks connection_callbacks();

ngtcp2_settings connection_settings(std::size_t path_bytes, io::Random& random, base::Time now);
ngtcp2_transport_params connection_parameters(base::Duration idle_timeout);

// A new random connection id of ours.
ngtcp2_cid random_id(io::Random& random);

}  // namespace nexar::transport::quic

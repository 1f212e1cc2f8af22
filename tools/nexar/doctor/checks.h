// The checks of `nexar doctor`, one function each. A check looks at the real thing wherever it can: it opens the socket, sends the packet,
// allocates the memory. It changes nothing that outlives it.
#pragma once

#include "doctor/finding.h"
#include "doctor/surroundings.h"

namespace nexar::tool::doctor {

// Of this host alone.
Findings check_udp_buffers(const Surroundings& here);         // how much a UDP socket may hold
Findings check_offload(const Surroundings& here);             // whether the kernel cuts and joins datagrams
Findings check_interfaces(const Surroundings& here);          // which addresses peers are told, and their MTU
Findings check_firewall(const Surroundings& here);            // whether two ports can talk, over UDP and TCP
Findings check_memory(const Surroundings& here);              // what shared memory may take
Findings check_open_files(const Surroundings& here);          // whether the links of a world fit
Findings check_cpu(const Surroundings& here);                 // what encrypts and reduces
Findings check_congestion_control(const Surroundings& here);  // of TCP
Findings check_clock(const Surroundings& here);               // against the validity of certificates

// Of the way to the seed. No secret is needed or shown.
Findings check_seed(const Surroundings& here);

// Joins the world of the seed, and measures the way to every other rank, which runs the same. Needs a token.
Findings check_world(const Surroundings& here);

}  // namespace nexar::tool::doctor

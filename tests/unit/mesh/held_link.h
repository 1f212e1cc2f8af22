// A link without anybody at its other end.
#pragma once

#include <string>
#include <vector>

#include "transport/link.h"

namespace nexar::mesh {

// A link that a test holds in its hand: takes what it is told to take, and remembers.
class HeldLink final : public transport::Link {
 public:
  bool send(const wire::Header& header, base::ByteView) override {
    if (full) return false;
    sent.push_back(header);
    return true;
  }
  void set_bulk_source(transport::BulkSource*) override {}
  void bulk_ready() override {}
  void set_handler(transport::LinkHandler&) override {}
  using Link::close;
  void close(wire::GoodbyeReason, std::string_view text) override { closed = text; }
  void expel(std::string_view reason) override { aborted = reason; }
  const io::Address& peer_address() const override { return address_; }
  void abort(std::string_view reason) override { aborted = reason; }
  const crypto::Certificate* peer_certificate() const override { return nullptr; }
  Result<void> export_key(std::string_view, base::ByteView, base::ByteSpan) const override { return {}; }
  const transport::LaneCounters& counters(wire::Lane) const override { return counters_; }

  bool full = false;
  std::string aborted;
  std::string closed;
  std::vector<wire::Header> sent;

 private:
  io::Address address_;
  transport::LaneCounters counters_;
};

}  // namespace nexar::mesh

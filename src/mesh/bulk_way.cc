#include "mesh/bulk_way.h"

#include <algorithm>

namespace nexar::mesh {

void BulkWay::add(OutgoingStripe& stripe) {
  stripe.way = this;
  stripe.queued = true;
  waiting_bytes_ += stripe.range.end - stripe.position;
  stripes_.push_back(&stripe);
  wake_();
}

void BulkWay::remove(OutgoingStripe& stripe) {
  stripe.way = nullptr;
  if (!stripe.queued) return;
  stripe.queued = false;
  waiting_bytes_ -= stripe.range.end - stripe.position;
  std::erase(stripes_, &stripe);
}

std::optional<transport::BulkSource::Frame> BulkWay::next() {
  if (stripes_.empty()) return std::nullopt;
  OutgoingStripe& stripe = *stripes_.front();
  stripes_.pop_front();
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wire::kBulkBytesMax, stripe.range.end - stripe.position));
  const wire::Bulk bulk{.transfer = stripe.transfer, .stripe = stripe.number, .generation = stripe.generation, .offset = stripe.position};
  const Frame frame{wire::header_of(bulk, {.group = stripe.group, .epoch = epoch_}, static_cast<std::uint32_t>(size)),
                    gather(stripe.from, size, scratch_)};
  stripe.position += size;
  waiting_bytes_ -= size;
  stripe.queued = stripe.position < stripe.range.end;
  if (stripe.queued) stripes_.push_back(&stripe);
  return frame;
}

}  // namespace nexar::mesh

#include "mesh/bulk_way.h"

#include <algorithm>

namespace nexar::mesh {

void BulkWay::add(OutgoingStripe& stripe) {
  stripe.way = this;
  stripe.queued = true;
  ++unfinished_;
  waiting_bytes_ += stripe.range.end - stripe.position;
  stripes_.push_back(&stripe);
  wake_();
}

void BulkWay::remove(OutgoingStripe& stripe) {
  stripe.way = nullptr;
  --unfinished_;
  if (!stripe.queued) return;
  stripe.queued = false;
  waiting_bytes_ -= stripe.range.end - stripe.position;
  std::erase(stripes_, &stripe);
}

std::optional<transport::BulkSource::Frame> BulkWay::next(std::size_t bytes_max) {
  if (stripes_.empty()) return std::nullopt;
  OutgoingStripe& stripe = *stripes_.front();
  stripes_.pop_front();
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, stripe.range.end - stripe.position));
  const wire::Bulk bulk{.transfer = stripe.transfer, .stripe = stripe.number, .generation = stripe.generation, .offset = stripe.position};
  const base::ByteView payload = gather(stripe.from, size, scratch_);
  const Frame frame{wire::header_of(bulk, {.group = stripe.group, .epoch = epoch_}, static_cast<std::uint32_t>(size)), payload,
                    payload.data() != scratch_.data()};
  stripe.position += size;
  waiting_bytes_ -= size;
  stripe.queued = stripe.position < stripe.range.end;
  if (stripe.queued) stripes_.push_back(&stripe);
  return frame;
}

}  // namespace nexar::mesh

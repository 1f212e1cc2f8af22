#include "device/chains.h"

#include <utility>

namespace nexar::device {
namespace {

class GatherChain final : public Chain {
 public:
  GatherChain(std::unique_ptr<Steps> steps, DeviceCompletion& done) : steps_(std::move(steps)), done_(done) {}

  bool advance() override {
    if (!steps_->done()) return false;
    done_.complete(steps_->result());
    return true;
  }

 private:
  std::unique_ptr<Steps> steps_;
  DeviceCompletion& done_;
};

}  // namespace

bool Steps::done() const {
  for (std::size_t i = 0; i < count_; ++i)
    if (!completions_[i].done()) return false;
  return true;
}

Result<void> Steps::result() const {
  for (std::size_t i = 0; i < count_; ++i)
    if (!completions_[i].result()) return completions_[i].result();
  return {};
}

void ChainList::add(std::unique_ptr<Chain> chain) {
  if (chain->advance()) return;
  const std::lock_guard lock(mutex_);
  chains_.push_back(std::move(chain));
}

bool ChainList::advance() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  return std::erase_if(chains_, [](const std::unique_ptr<Chain>& chain) { return chain->advance(); }) > 0;
}

std::unique_ptr<Chain> gather_chain(std::unique_ptr<Steps> steps, DeviceCompletion& done) {
  return std::make_unique<GatherChain>(std::move(steps), done);
}

}  // namespace nexar::device

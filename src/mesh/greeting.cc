#include "mesh/greeting.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "wire/frame.h"

namespace nexar::mesh {

void Greeting::say_hello(const wire::Hello& hello, Epoch epoch) {
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Hello>());
  frame.resize(wire::encode_frame(hello, {.epoch = epoch}, frame));
  const bool taken = link_->send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
  if (!taken) link_->abort("the link ends before it began");  // it was closed meanwhile: an empty lane takes a hello
}

transport::Link& Greeting::release(transport::LinkHandler& handler) {
  transport::Link& link = *std::exchange(link_, nullptr);
  link.set_handler(handler);
  return link;
}

Result<transport::Sink*> Greeting::on_frame(const wire::Header& header) {
  const bool hello = header.type == wire::FrameType::kHello && !heard_;
  if (!hello && header.type != wire::FrameType::kGoodbye)
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came before the link was agreed on by hello", wire::to_string(header.type)));
  payload_.clear();
  return static_cast<transport::Sink*>(this);
}

Result<void> Greeting::on_frame_end(const wire::Header& header) {
  if (header.type == wire::FrameType::kGoodbye) {
    const Result<wire::Goodbye> goodbye = wire::decode_frame<wire::Goodbye>(header, payload_);
    if (!goodbye) return goodbye.error();
    owner_.on_goodbye(*this, *goodbye);
    return {};
  }
  const Result<wire::Hello> hello = wire::decode_frame<wire::Hello>(header, payload_);
  if (!hello) return hello.error();
  if (hello->eager_bytes == 0 || hello->eager_messages == 0 || hello->announcements == 0)
    return Error(ErrorCode::kRefused, "a hello says that no early message is kept, with which nothing could ever be sent");
  heard_ = true;
  owner_.on_hello(*this, header.epoch, *hello);
  return {};
}

void Greeting::on_end(const transport::LinkEnd& end) {
  link_ = nullptr;
  owner_.on_gone(*this, end);
}

}  // namespace nexar::mesh

#include "wire/rpc_messages.h"

#include <algorithm>

#include "wire/transfer_messages.h"

namespace nexar::wire {

void RpcRequest::put(Header& header, Writer&) const {
  header.id = call;
  header.key = function;
  header.part = deadline_ms;
}

RpcRequest RpcRequest::get(const Header& header, Reader&) {
  return {.call = header.id, .function = header.key, .deadline_ms = header.part};
}

const char* RpcLargeRequest::fault() const { return transfer_fault(transfer, ChosenBy::kSender); }

void RpcLargeRequest::put(Header& header, Writer& writer) const {
  header.id = call;
  header.key = function;
  header.part = deadline_ms;
  writer.number(transfer);
  writer.number(bytes);
}

RpcLargeRequest RpcLargeRequest::get(const Header& header, Reader& reader) {
  RpcLargeRequest request{.call = header.id, .function = header.key, .deadline_ms = header.part};
  request.transfer = reader.number<std::uint64_t>();
  request.bytes = reader.number<std::uint64_t>();
  return request;
}

void RpcReply::put(Header& header, Writer&) const { header.id = call; }

RpcReply RpcReply::get(const Header& header, Reader&) { return {.call = header.id}; }

const char* RpcLargeReply::fault() const { return transfer_fault(transfer, ChosenBy::kSender); }

void RpcLargeReply::put(Header& header, Writer& writer) const {
  header.id = call;
  writer.number(transfer);
  writer.number(bytes);
}

RpcLargeReply RpcLargeReply::get(const Header& header, Reader& reader) {
  RpcLargeReply reply{.call = header.id};
  reply.transfer = reader.number<std::uint64_t>();
  reply.bytes = reader.number<std::uint64_t>();
  return reply;
}

const char* RpcFailure::fault() const {
  return status < RpcStatus::kUnknownFunction || status > RpcStatus::kRefused ? "has a status that does not exist" : nullptr;
}

void RpcFailure::put(Header& header, Writer& writer) const {
  header.id = call;
  header.part = static_cast<std::uint8_t>(status);
  put_error(error, writer);
}

RpcFailure RpcFailure::get(const Header& header, Reader& reader) {
  const auto status = static_cast<std::uint8_t>(std::min<std::uint32_t>(header.part, 0xff));  // one that does not fit is none that exists
  return {.call = header.id, .status = static_cast<RpcStatus>(status), .error = get_error(reader)};
}

void RpcCancel::put(Header& header, Writer&) const { header.id = call; }

RpcCancel RpcCancel::get(const Header& header, Reader&) { return {.call = header.id}; }

}  // namespace nexar::wire

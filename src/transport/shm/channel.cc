#include "transport/shm/channel.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "io/host.h"

namespace nexar::transport::shm {
namespace {

constexpr std::uint64_t kGreetingMagic = 0x316d687372617865;  // "exarshm1"

Result<Channel> checked(io::StreamSocket socket) {
  const Result<io::PeerCredentials> credentials = socket.peer_credentials();
  if (!credentials) return credentials.error();
  if (credentials->user != io::this_user())
    return Error(ErrorCode::kRefused,
                 fmt::format("process {} belongs to user {}, this one to {}", credentials->process, credentials->user, io::this_user()));
  Channel channel{std::move(socket)};
  channel.process = credentials->process;
  return channel;
}

}  // namespace

std::string channel_name(const wire::HostName& name) {
  std::string text = "nexar-";
  for (const std::byte byte : name) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

Result<Channel> Channel::connect(std::string_view name) {
  Result<io::StreamSocket> socket = io::StreamSocket::connect_unix(name);
  if (!socket) return std::move(socket).error();
  return checked(*std::move(socket));
}

Result<Channel> Channel::accepted(io::StreamSocket socket) { return checked(std::move(socket)); }

Result<void> Channel::greet(const Greeting& greeting, int own_bell, int own_segment) {
  std::array<std::byte, kGreetingBytes> bytes;
  base::store_le(bytes.data(), kGreetingMagic);
  std::memcpy(bytes.data() + 8, greeting.nonce.data(), greeting.nonce.size());
  base::store_le(bytes.data() + 24, greeting.proof.address);
  base::store_le(bytes.data() + 32, greeting.proof.word);
  base::store_le(bytes.data() + 40, greeting.segment_bytes);
  const std::array<int, 2> descriptors = {own_bell, own_segment};
  const Result<io::Transferred> sent = socket.write_with_descriptors(bytes, std::span(descriptors).first(own_segment < 0 ? 1 : 2));
  if (!sent) return sent.error();
  if (sent->bytes != bytes.size()) return Error(ErrorCode::kIo, fmt::format("{} does not take a greeting", socket.peer()));
  return {};
}

// A greeting is written at once, and a unix socket keeps it together.
Result<bool> Channel::read_greeting() {
  std::array<std::byte, kGreetingBytes> bytes;
  Result<io::ReceivedDescriptors> received = socket.read_with_descriptors(bytes);
  if (!received) return std::move(received).error();
  if (received->transferred.state == io::Transferred::State::kBlocked) return false;
  if (received->transferred.state == io::Transferred::State::kClosed)
    return Error(ErrorCode::kRefused, fmt::format("{} ended the connection instead of a greeting", socket.peer()));
  peer.segment_bytes = base::load_le<std::uint64_t>(bytes.data() + 40);
  const std::size_t descriptors = peer.segment_bytes == 0 ? 1 : 2;
  if (received->transferred.bytes != bytes.size() || base::load_le<std::uint64_t>(bytes.data()) != kGreetingMagic ||
      received->descriptors.size() != descriptors)
    return Error(ErrorCode::kRefused, fmt::format("what {} sent is no greeting", socket.peer()));
  std::memcpy(peer.nonce.data(), bytes.data() + 8, peer.nonce.size());
  peer.proof.address = base::load_le<std::uint64_t>(bytes.data() + 24);
  peer.proof.word = base::load_le<std::uint64_t>(bytes.data() + 32);
  bell = io::EventDescriptor::adopt(std::move(received->descriptors[0]));
  if (descriptors == 2) segment = std::move(received->descriptors[1]);
  return true;
}

void Channel::say_last(LastWord word, std::string_view text) {
  std::vector<std::byte> bytes(1 + std::min(text.size(), kLastWordTextMax));
  bytes[0] = static_cast<std::byte>(word);
  std::memcpy(bytes.data() + 1, text.data(), bytes.size() - 1);
  static_cast<void>(socket.write(bytes).has_value());  // a peer that is gone hears nothing
}

// What came with the first byte of a loan is the descriptor of that one: the kernel ends a read after bytes with which descriptors came.
std::optional<Channel::Last> Channel::read(std::vector<ReceivedLoan>& loans) {
  std::array<std::byte, 1 + kLastWordTextMax> bytes;
  Result<io::ReceivedDescriptors> received = socket.read_with_descriptors(bytes);
  if (!received) return Last{};
  if (received->transferred.state == io::Transferred::State::kBlocked) return std::nullopt;
  if (received->transferred.state == io::Transferred::State::kClosed) return Last{};
  unread.insert(unread.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(received->transferred.bytes));
  for (io::FileDescriptor& descriptor : received->descriptors) unread_memory.push_back(std::move(descriptor));
  if (received->incomplete && received->descriptors.empty()) unread_memory.emplace_back();
  std::size_t at = 0;
  for (; at < unread.size(); at += kLoanBytes) {
    const auto word = static_cast<std::uint8_t>(unread[at]);
    if (word >= static_cast<std::uint8_t>(LastWord::kClosed) && word <= static_cast<std::uint8_t>(LastWord::kExpelled))
      return Last{static_cast<LastWord>(word), std::string(reinterpret_cast<const char*>(unread.data() + at + 1), unread.size() - at - 1)};
    if (word < static_cast<std::uint8_t>(LoanWord::kLent) || word > static_cast<std::uint8_t>(LoanWord::kTakenBack)) return Last{};
    if (unread.size() - at < kLoanBytes) break;
    ReceivedLoan& loan = loans.emplace_back();
    loan.loan = {static_cast<LoanWord>(word), base::load_le<std::uint32_t>(&unread[at + 4]), base::load_le<std::uint64_t>(&unread[at + 8])};
    if (loan.loan.word != LoanWord::kLent) continue;
    if (unread_memory.empty()) return Last{};
    loan.memory = std::move(unread_memory.front());
    unread_memory.pop_front();
  }
  unread.erase(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(at));
  // Nobody sends descriptors without loans.
  return unread_memory.size() > io::StreamSocket::kDescriptorsMax ? std::optional(Last{}) : std::nullopt;
}

bool Channel::say(const SentLoan& sent) {
  std::array<std::byte, kLoanBytes> bytes{};
  bytes[0] = static_cast<std::byte>(sent.loan.word);
  base::store_le(bytes.data() + 4, sent.loan.buffer);
  base::store_le(bytes.data() + 8, sent.loan.bytes);
  Result<io::Transferred> written = io::Transferred{};
  if (sent.memory != nullptr) {
    const std::array<int, 1> descriptor = {sent.memory->fd()};
    written = socket.write_with_descriptors(bytes, descriptor);
  } else {
    written = socket.write(bytes);
  }
  return !written || written->state != io::Transferred::State::kBlocked;
}

}  // namespace nexar::transport::shm

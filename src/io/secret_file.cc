#include "io/secret_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "io/file_descriptor.h"
#include "io/kernel_error.h"

namespace nexar::io {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

bool write_all(int fd, base::ByteView content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return fchmod(fd, kOwnerOnly) == 0 && fsync(fd) == 0;
}

Result<void> check_private(int fd, const std::string& path) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) return kernel_error(fmt::format("cannot read '{}'", path), errno);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error(ErrorCode::kRefused, fmt::format("'{}' has mode {:04o}: a secret that others may read or change is none; chmod 600 it",
                                                  path, facts.st_mode & 07777u));
  if (const uid_t user = geteuid(); user != 0 && facts.st_uid != user)
    return Error(ErrorCode::kRefused, fmt::format("'{}' belongs to user {}, and this is user {}", path, facts.st_uid, user));
  return {};
}

}  // namespace

Result<void> write_new_secret_file(const std::string& path, base::ByteView content) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  if (!fd && errno == EEXIST) return Error(ErrorCode::kInvalidArgument, fmt::format("'{}' exists and is not overwritten", path));
  if (!fd) return kernel_error(fmt::format("cannot create '{}'", path), errno);
  if (write_all(fd.get(), content)) return {};
  const int number = errno;
  ::unlink(path.c_str());
  return kernel_error(fmt::format("cannot write '{}'", path), number);
}

Result<std::vector<std::byte>> read_secret_file(const std::string& path, std::size_t bytes_max) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return kernel_error(fmt::format("cannot read '{}'", path), errno);
  if (Result<void> checked = check_private(fd.get(), path); !checked) return std::move(checked).error();
  std::vector<std::byte> content(bytes_max + 1);  // one more, to see that there is too much; never grown, which would leave copies behind
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = ::read(fd.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return kernel_error(fmt::format("cannot read '{}'", path), errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > bytes_max)
    return Error(ErrorCode::kInvalidArgument, fmt::format("'{}' has more than the {} bytes that may be in it", path, bytes_max));
  content.resize(size);
  return content;
}

}  // namespace nexar::io

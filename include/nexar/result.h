// The value of a call, or the Error that kept it from having one.
//
//   Result<Config> config = Config::from_env();
//   if (!config) return config.error();
//   use(*config);
//
// A Result cannot be dropped silently: the compiler warns, and nexar itself is built with that warning as an error.
// Result<void> is one pointer, null on success.
#pragma once

#include <utility>
#include <variant>

#include "nexar/error.h"
#include "nexar/export.h"

namespace nexar {

namespace detail {
// Ends the process with a message: the caller took a value that is not there, or an error that did not happen.
[[noreturn]] NEXAR_API void wrong_result_access(const char* wanted, const Error* error);
}  // namespace detail

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: a value is a result
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: an error is a result

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // The value; throws Exception when there is an error instead.
  T& value() & { return check_or_throw(), std::get<0>(state_); }
  const T& value() const& { return check_or_throw(), std::get<0>(state_); }
  T&& value() && { return check_or_throw(), std::get<0>(std::move(state_)); }

  // The value, which the caller has checked to be there.
  T& operator*() & { return check_value(), std::get<0>(state_); }
  const T& operator*() const& { return check_value(), std::get<0>(state_); }
  T&& operator*() && { return check_value(), std::get<0>(std::move(state_)); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  // The error, which the caller has checked to be there.
  const Error& error() const& { return check_error(), std::get<1>(state_); }
  Error&& error() && { return check_error(), std::get<1>(std::move(state_)); }

 private:
  void check_or_throw() const {
    if (!has_value()) throw Exception(std::get<1>(state_));
  }
  void check_value() const {
    if (!has_value()) detail::wrong_result_access("value", &std::get<1>(state_));
  }
  void check_error() const {
    if (has_value()) detail::wrong_result_access("error", nullptr);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;                                // success
  Result(Error error) noexcept : error_(std::move(error)) {}  // NOLINT: an error is a result

  bool has_value() const noexcept { return error_.detail_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }

  // Throws Exception when there is an error.
  void value() const {
    if (!has_value()) throw Exception(error_);
  }

  // The error, which the caller has checked to be there.
  const Error& error() const& { return check_error(), error_; }
  Error&& error() && { return check_error(), std::move(error_); }

 private:
  void check_error() const {
    if (has_value()) detail::wrong_result_access("error", nullptr);
  }

  Error error_;
};

static_assert(sizeof(Result<void>) == sizeof(void*), "Result<void> costs no more than a pointer");

}  // namespace nexar

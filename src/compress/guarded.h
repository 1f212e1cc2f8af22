// Calls into a compressor that may be the application's own: what it throws becomes an Error.
#pragma once

#include <exception>
#include <new>

#include <fmt/format.h>

#include "nexar/compressor.h"

namespace nexar::compress {

template <typename F>
auto guarded(const Compressor& compressor, F&& call) -> decltype(call()) {
  const auto failed = [&](const char* what) {
    return Error(ErrorCode::kInternal, fmt::format("compressor {} threw: {}", compressor.name(), what));
  };
  try {
    return call();
  } catch (const Exception& thrown) {
    return thrown.error();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOverloaded, fmt::format("no memory for compressor {}", compressor.name()));
  } catch (const std::exception& thrown) {
    return failed(thrown.what());
  } catch (...) {
    return failed("something that is no std::exception");
  }
}

}  // namespace nexar::compress

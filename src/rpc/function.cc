#include "nexar/rpc_handler.h"

#include "base/hash.h"

namespace nexar {
namespace {

// Set in the keys of names, and of no number.
constexpr std::uint64_t kNamed = std::uint64_t{1} << 63;

}  // namespace

Function::Function(std::string_view scope, std::string_view name)
    : valid_(!name.empty()), scope_(scope), text_(scope.empty() ? std::string(name) : std::string(scope) + "/" + std::string(name)) {
  constexpr std::string_view kBetween("\0", 1);  // so that no name of one scope is a name of another
  key_ = base::hash64(name, base::hash64(kBetween, base::hash64(scope))) | kNamed;
}

Function::Function(Number number) : key_(number.value), valid_((number.value & kNamed) == 0), text_("#" + std::to_string(number.value)) {}

}  // namespace nexar

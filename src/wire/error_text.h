// An Error on the wire: everything that it carries, causes included, within bounds.
#pragma once

#include "nexar/error.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace nexar::wire {

// What is longer than the bounds of limits.h is cut: texts end in an ellipsis, the first kErrorRanksMax ranks stay, and causes below the
// kErrorCausesMax-th are left out. Writes at most kErrorBytesMax.
void put_error(const Error& error, Writer& writer);

// The error that was put. When the reader has failed, an error that means nothing.
Error get_error(Reader& reader);

// Whether the two carry the same facts, causes included.
bool same(const Error& a, const Error& b);

}  // namespace nexar::wire

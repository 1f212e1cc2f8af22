// How many bytes a second one core of this host encrypts, as they leave it.
#pragma once

namespace nexar::tool::doctor {

// Measured for some 20 ms.
double encryption_rate();

}  // namespace nexar::tool::doctor

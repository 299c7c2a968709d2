// SPDX-License-Identifier: Apache-2.0
// tocsin over the portable futex, in a worker of its own: two copies of the library must not live in one process.
#pragma once

#include "../contestants/tocsin.hpp"
#include "../registry.hpp"

namespace lab {

using lineup = contestants<tocsin_portable>;

}  // namespace lab

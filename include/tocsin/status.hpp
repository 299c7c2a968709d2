// SPDX-License-Identifier: Apache-2.0
// What waits return.
#pragma once

#include <cstdint>

namespace tocsin {

// How a wait ended.
enum class wait_status : std::uint8_t {
    signaled,   // what was waited for has happened; an auto-reset event now belongs to the caller
    timed_out,  // the deadline passed first; nothing was consumed
    stopped,    // a stop was requested first; nothing was consumed
};

// How a wait on an address ended.
enum class address_status : std::uint8_t {
    woken,      // by a wake on this address; the value may or may not have changed
    differed,   // the value was not the expected one; the thread did not sleep
    timed_out,  // the deadline passed first; no wake was spent on this wait
    stopped,    // a stop was requested first; no wake was spent on this wait
};

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// A signal as a source: the descriptor of a flag that a signal handler raises (platform/signals/signal_flag.cpp).
//
// Checked by: tests/unit/signal_test.cpp.
#include <tocsin/signal.hpp>

#if !defined(_WIN32) && !defined(__wasm__)

#include "platform/signals/signal_flag.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace tocsin {

static_assert(signal_source::max == platform::signal_flag::max);

class signal_source::state : public platform::signal_flag {};

signal_source::signal_source(int number) {
    if (const char* const reason = platform::signal_flag::refuses(number)) {
        char message[120];
        std::snprintf(message, sizeof message, "tocsin::signal_source: signal %d %s", number, reason);
        detail::throw_or_die(std::invalid_argument(message));
    }
    state_ = std::make_unique<state>();
    const int error = state_->open(number);
    if (error == 0) return;
    char message[120];
    std::snprintf(message, sizeof message, "tocsin::signal_source: signal %d%s", number,
                  error == EBUSY ? ": another handler was installed over that of this library" : "");
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

signal_source::~signal_source() = default;

bool signal_source::try_wait() noexcept { return state_->take(); }

int signal_source::descriptor() const noexcept { return state_->descriptor(); }

}  // namespace tocsin

#endif

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
#include <memory>
#include <stdexcept>
#include <system_error>

namespace tocsin {

static_assert(signal_source::most == platform::signal_flag::most);

class signal_source::state : public platform::signal_flag {};

signal_source::signal_source(int number) {
    if (platform::signal_flag::refuses(number))
        detail::throw_or_die(std::invalid_argument("tocsin::signal_source: no source can have this signal"));
    state_ = std::make_unique<state>();
    const int error = state_->open(number);
    if (error == 0) return;
    detail::throw_or_die(std::system_error(
        error, platform::error_category(),
        error == EBUSY ? "tocsin::signal_source: another handler was installed over this library's"
                       : "tocsin::signal_source"));
}

signal_source::~signal_source() = default;

bool signal_source::try_wait() noexcept { return state_->take(); }

int signal_source::descriptor() const noexcept { return state_->descriptor(); }

}  // namespace tocsin

#endif

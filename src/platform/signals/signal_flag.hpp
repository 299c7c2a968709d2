// SPDX-License-Identifier: Apache-2.0
// A descriptor that becomes readable when a signal is delivered to the process. Why it is correct: signal_flag.cpp.
#pragma once

#include "platform/poller/readable_flag.hpp"

#include <cstdint>

namespace tocsin::platform {

struct signal_slot;

class signal_flag {
public:
    static constexpr int max = 64;  // in one copy of the library

    signal_flag() noexcept = default;
    signal_flag(const signal_flag&) = delete;
    signal_flag& operator=(const signal_flag&) = delete;
    ~signal_flag();

    // Null, or why no source can have this signal: the number belongs to no signal, to one that cannot be handled, or
    // to one after which a thread cannot continue.
    static const char* refuses(int number) noexcept;
    // Must be called once, before any other function, with a number that is not refused. Returns 0 or an error.
    int open(int number) noexcept;
    int descriptor() const noexcept { return flag_.descriptor(); }
    // If a signal was delivered since the last call that returned true, returns true.
    bool take() noexcept { return flag_.take(); }

private:
    readable_flag flag_;
    signal_slot* slot_ = nullptr;
    std::uint32_t forks_ = 0;
};

}  // namespace tocsin::platform

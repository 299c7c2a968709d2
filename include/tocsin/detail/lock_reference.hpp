// SPDX-License-Identifier: Apache-2.0
// A lock that its owner gives up while it sleeps, without the lock's type.
#pragma once

#include <cstdint>

namespace tocsin::detail {

struct lock_reference {
    void* lock;
    void (*unlock)(void* lock) noexcept;
    void (*relock)(void* lock) noexcept;
    // Waits with the same number hold the same plain mutex (condition.hpp). The number `any_lock` says nothing.
    std::uint64_t number;
    bool given_up = false;

    static constexpr std::uint64_t any_lock = 1;

    void give_up() noexcept {
        given_up = true;
        unlock(lock);
    }
    void take_back() noexcept {
        if (given_up) relock(lock);
        given_up = false;
    }
};

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// tocsin's semaphore, used as the others are.
#pragma once

#include "semaphores.hpp"

#include <tocsin/semaphore.hpp>

namespace lab {

struct tocsin_semaphore {
    static constexpr contestant_info info{
        .name = "tocsin_semaphore",
        .label = "tocsin semaphore",
        .role = role::variant,
        .about = "tocsin::counting_semaphore, release and acquire",
        .limits = "counts: sets don't absorb each other",
        .no_manual_event = "lets one through for each release",
        .no_address_wait = "waits on itself only",
    };
    using own_lock = semaphore_as_lock<tocsin::counting_semaphore<>>;
    using auto_event = semaphore_as_event<tocsin::counting_semaphore<>>;
};

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// How one wait is to wait. The inline half of every wait passes this to the half in the library.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/event_use.hpp>
#include <tocsin/queue_order.hpp>
#include <tocsin/spin.hpp>

namespace tocsin::detail {

struct wait_options {
    const deadline& until;
    const stop_token* stop;  // or null
    spin_policy spin;
    event_use use = event_use::event;  // of the event that is waited for
    queue_order order = queue_order::arrival;
};

}  // namespace tocsin::detail

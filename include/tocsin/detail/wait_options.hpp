// How one wait is to wait. The inline half of every wait passes this to the half in the library.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/spin.hpp>

namespace tocsin::detail {

struct wait_options {
    const deadline& until;
    const stop_token* stop;  // or null
    spin_policy spin;
};

}  // namespace tocsin::detail

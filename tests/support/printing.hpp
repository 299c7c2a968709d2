// SPDX-License-Identifier: Apache-2.0
// Names for GoogleTest's messages.
#pragma once

#include <tocsin/status.hpp>

#include <ostream>

namespace tocsin {

inline void PrintTo(wait_status status, std::ostream* out) {
    switch (status) {
        case wait_status::signaled: *out << "signaled"; return;
        case wait_status::timed_out: *out << "timed_out"; return;
        case wait_status::stopped: *out << "stopped"; return;
    }
    *out << "no wait_status";
}

inline void PrintTo(address_status status, std::ostream* out) {
    switch (status) {
        case address_status::woken: *out << "woken"; return;
        case address_status::differed: *out << "differed"; return;
        case address_status::timed_out: *out << "timed_out"; return;
        case address_status::stopped: *out << "stopped"; return;
    }
    *out << "no address_status";
}

}  // namespace tocsin

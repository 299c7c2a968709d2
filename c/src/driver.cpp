// SPDX-License-Identifier: Apache-2.0
// Drivers: loops of C that serve the deadlines and descriptors of operations.
#include "driver.hpp"

#include "boundary.hpp"

#include <chrono>

using namespace tocsin::c;
using tocsin::deadline;

namespace tocsin::c {
namespace {

tocsin_deadline deadline_for_c(const deadline& when) noexcept {
    switch (when.which()) {
        case deadline::clock::never: return {TOCSIN_CLOCK_NEVER, 0};
        case deadline::clock::system: return {TOCSIN_CLOCK_SYSTEM, when.nanoseconds()};
        case deadline::clock::passed:  // a time before the clock's first
        case deadline::clock::steady:
        case deadline::clock::other: break;
    }
    return {TOCSIN_CLOCK_STEADY, when.nanoseconds()};
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_driver_init(tocsin_driver* one, tocsin_driver_changed changed, void* context) {
    return make_held<c_driver>(one, __func__, changed, context);
}
tocsin_status tocsin_driver_destroy(tocsin_driver* one) { return destroy_held<c_driver>(one); }

tocsin_status tocsin_driver_update(tocsin_driver* one, tocsin_driver_watched each, void* context) {
    if (each == nullptr) return refuse(__func__, "there is no function to call");
    return with_held<c_driver>(one, [=](c_driver& by) {
        by.driver.update([=](tocsin::driver::watch next) {
            const tocsin_watch watch{static_cast<std::uint64_t>(next.id), next.descriptor,
                                     static_cast<std::uint32_t>(next.asked), next.renewed};
            each(context, &watch);
        });
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_driver_next_deadline(tocsin_driver* one, tocsin_deadline* next) {
    if (object_at<tocsin_deadline>(next) == nullptr)
        return refuse(__func__, "there is no place for the deadline");
    return with_held<c_driver>(one, [=](c_driver& by) {
        *next = deadline_for_c(by.driver.next_deadline());
        return TOCSIN_OK;
    });
}
int tocsin_driver_poll_timeout(tocsin_driver* one) {
    c_driver* const by = held_at<c_driver>(one);
    return by != nullptr ? by->driver.poll_timeout() : -1;
}

tocsin_status tocsin_driver_run_due(tocsin_driver* one) {
    return with_held<c_driver>(one, [](c_driver& by) { return done_if(by.driver.run_due() != 0); });
}
tocsin_status tocsin_driver_run_due_at(tocsin_driver* one, int64_t steady_time) {
    const std::chrono::steady_clock::time_point now{
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::nanoseconds(steady_time))};
    return with_held<c_driver>(one, [=](c_driver& by) { return done_if(by.driver.run_due(now) != 0); });
}
tocsin_status tocsin_driver_notify(tocsin_driver* one, uint64_t id, uint32_t found) {
    if (id >> 32 == 0) return refuse(__func__, "this is no id of a watch (a descriptor is none)");
    if (found > 0x7F) return refuse(__func__, "there is no such readiness");
    return with_held<c_driver>(one, [=](c_driver& by) {
        const auto which = static_cast<tocsin::driver::watch_id>(id);
        return done_if(by.driver.notify(which, static_cast<tocsin::readiness>(found)) != 0);
    });
}

tocsin_status tocsin_driver_descriptor(tocsin_driver* one, int* descriptor) {
    if (object_at<int>(descriptor) == nullptr)
        return refuse(__func__, "there is no place for the descriptor");
    *descriptor = -1;
    return with_held<c_driver>(one, [=](c_driver& by) {
        *descriptor = by.driver.descriptor();
        return TOCSIN_OK;
    });
}
tocsin_status tocsin_driver_run_ready(tocsin_driver* one) {
    return with_held<c_driver>(one, [](c_driver& by) { return done_if(by.driver.run_ready() != 0); });
}

tocsin_status tocsin_set_default_driver(tocsin_driver* one) {
    if (one == nullptr) return tocsin::set_default_driver(nullptr), TOCSIN_OK;
    return with_held<c_driver>(one, [](c_driver& by) {
        tocsin::set_default_driver(&by.driver);
        return TOCSIN_OK;
    });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// The list of parked waits, the watchdog, and the counters of waits.
#include "boundary.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/watchdog.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

using namespace tocsin::c;
using tocsin::parked_wait;

namespace tocsin::c {
namespace {

tocsin_parked_kind kind_of(parked_wait::kind what) noexcept {
    switch (what) {
        case parked_wait::kind::event: return TOCSIN_PARKED_EVENT;
        case parked_wait::kind::address: return TOCSIN_PARKED_ADDRESS;
        case parked_wait::kind::lock: return TOCSIN_PARKED_LOCK;
        case parked_wait::kind::semaphore: return TOCSIN_PARKED_SEMAPHORE;
        case parked_wait::kind::condition: return TOCSIN_PARKED_CONDITION;
        case parked_wait::kind::latch: return TOCSIN_PARKED_LATCH;
        case parked_wait::kind::barrier: return TOCSIN_PARKED_BARRIER;
        case parked_wait::kind::descriptor: return TOCSIN_PARKED_DESCRIPTOR;
        case parked_wait::kind::source: break;
    }
    return TOCSIN_PARKED_SOURCE;
}

// What a tocsin_watchdog points to.
struct watchdog {
    tocsin::wait_watchdog of;

    watchdog(std::chrono::nanoseconds longest, tocsin_report report, void* context)
        : of(tocsin::report_waits_longer_than(longest, [=](const parked_wait& wait) {
              using std::chrono::nanoseconds;
              const auto since = std::chrono::duration_cast<nanoseconds>(wait.since.time_since_epoch());
              const tocsin_parked_wait told{kind_of(wait.what), wait.bit,      wait.type,   wait.name.c_str(),
                                            wait.address,       since.count(), wait.thread, wait.owner};
              report(context, &told);
          })) {}
};

}  // namespace
}  // namespace tocsin::c

extern "C" {

size_t tocsin_waiting_on(const volatile void* address) { return tocsin::waiting_on(address); }

size_t tocsin_describe_parked_waits(char* buffer, size_t size) {
    size_t length = SIZE_MAX;
    const tocsin_status done = guarded(__func__, [&] {
        const std::string text = tocsin::describe_parked_waits();
        if (buffer != nullptr && size != 0) {
            const size_t written = std::min(size - 1, text.size());
            std::memcpy(buffer, text.data(), written);
            buffer[written] = '\0';
        }
        length = text.size();
        return TOCSIN_OK;
    });
    return done == TOCSIN_OK ? length : SIZE_MAX;
}

tocsin_status tocsin_name_address(const volatile void* address, const char* name) {
    return guarded(__func__, [=] {
        tocsin::name_address(address, name == nullptr ? "" : name);
        return TOCSIN_OK;
    });
}

tocsin_status tocsin_watchdog_init(tocsin_watchdog* one, int64_t longest, tocsin_report report,
                                   void* context) {
    if (report == nullptr || longest < 0) {
        if (object_at<tocsin_watchdog>(one) != nullptr) one->opaque = nullptr;
        return refuse(__func__, "the function is null, or the time is negative");
    }
    return make_held<watchdog>(one, __func__, std::chrono::nanoseconds(longest), report, context);
}
tocsin_status tocsin_watchdog_destroy(tocsin_watchdog* one) { return destroy_held<watchdog>(one); }

tocsin_status tocsin_read_wait_counters(tocsin_wait_counters* counters) {
    if (object_at<tocsin_wait_counters>(counters) == nullptr)
        return refuse(__func__, "`counters` is null or misaligned");
    *counters = {};
#if TOCSIN_COUNTERS
    const tocsin::wait_counters now = tocsin::read_wait_counters();
    *counters = {now.spun, now.yielded, now.slept, now.woken};
    return TOCSIN_OK;
#else
    return refuse(__func__, "the library was built without TOCSIN_COUNTERS", TOCSIN_ERROR_UNSUPPORTED);
#endif
}

}  // extern "C"

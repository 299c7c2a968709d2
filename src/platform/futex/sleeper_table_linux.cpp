// SPDX-License-Identifier: Apache-2.0
// What table_growth.hpp asks of Linux. No call here allocates, so a thread may sleep inside an allocator.
#include "platform/futex/sleeper_table.hpp"
#include "platform/futex/table_growth.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

// linux/prctl.h has these names since Linux 6.16.
constexpr int futex_hash = 78;
constexpr unsigned long set_slots_of = 1;
constexpr unsigned long get_slots_of = 2;

struct running_kernel {
    static long slots() noexcept { return ::prctl(futex_hash, get_slots_of, 0UL, 0UL, 0UL); }

    // futex_hash_allocate_default() in kernel/futex/core.c: 4 for each processor, and at least 16.
    static long usual_slots() noexcept {
        const long online = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
        return std::max(16L, static_cast<long>(std::bit_ceil(static_cast<unsigned long>(online) * 4)));
    }

    // The folder has an entry for each thread, and a folder counts two links more than it has folders. One call, where
    // reading a file takes three.
    static long threads() noexcept {
        struct stat about{};
        if (::stat("/proc/self/task", &about) != 0 || about.st_nlink < 3) return -1;
        return static_cast<long>(about.st_nlink) - 2;
    }

    static bool is_urgent() noexcept {
        const int policy = ::sched_getscheduler(0);
        return policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE;
    }

    static bool set_slots(std::uint32_t wanted) noexcept {
        return ::prctl(futex_hash, set_slots_of, static_cast<unsigned long>(wanted), 0UL, 0UL) == 0;
    }
};

constinit table_growth growth;

// Static thread-local memory, because the first use of any other may allocate.
// There is little of it, so the count is modulo 256.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint8_t sleeps_of_this_thread = 0;
static_assert(table_growth::sleeps_a_count == 256);

}  // namespace

void before_sleep(const deadline& until) noexcept {
    if (sleeps_of_this_thread++ != 0) return;
    const errno_guard guard;
    const cancellation_disabled here;
    running_kernel kernel;
    growth.count(until, kernel);
}

void forget_sleeper_table() noexcept { growth.begin_anew(); }

void allow_table_growth(bool allowed) noexcept { growth.allow(allowed); }
bool may_table_grow() noexcept { return growth.is_allowed(); }

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// See boundary.hpp.
//
// The last error of a thread is a text of fixed size in thread-local storage. So it needs no allocation, even if the
// error is a lack of memory, and no destructor.
#include "boundary.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/boot_clock.hpp>
#include <tocsin/event.hpp>
#include <tocsin/futex_table.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/process.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/ticker.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#if !defined(TOCSIN_C_VERSION)
#error "TOCSIN_C_VERSION: the library's version, which CMake gives"
#endif

namespace tocsin::c {
namespace {

struct last_error {
    char text[256];
    int number;
};
constinit thread_local last_error last{};

static_assert(std::is_trivially_destructible_v<source>);  // a source_array destroys none

// Of an object of C++ in the caller's memory.
template <class T>
source source_at(void* object) {
    const bool aligned = (reinterpret_cast<std::uintptr_t>(object) & (alignof(T) - 1)) == 0;
    return object != nullptr && aligned ? source(*static_cast<T*>(object)) : source();
}

template <class C, class T>
source held_source_of(const void* object) noexcept {
    const T* const found = held_at<const T>(static_cast<const C*>(object));
    return found == nullptr ? source() : source(*found);
}

}  // namespace

tocsin_status status_of_errno(int number) noexcept {
    switch (number) {
        case EINVAL: return TOCSIN_ERROR_INVALID;
        case ENOMEM: return TOCSIN_ERROR_NO_MEMORY;
        case EOVERFLOW: return TOCSIN_ERROR_TOO_GREAT;
        case EEXIST: return TOCSIN_ERROR_EXISTS;
        case ENOENT:
        case ESRCH: return TOCSIN_ERROR_NOT_FOUND;
        case EBADF: return TOCSIN_ERROR_BAD_DESCRIPTOR;
        case EMFILE:
        case ENFILE: return TOCSIN_ERROR_NO_DESCRIPTORS;
        case EBUSY:
        case EAGAIN: return TOCSIN_ERROR_BUSY;
        case EPERM:
        case EACCES: return TOCSIN_ERROR_NOT_PERMITTED;
        case ENOSYS:
        case ENOTSUP: return TOCSIN_ERROR_UNSUPPORTED;
        default: return TOCSIN_ERROR_SYSTEM;
    }
}

tocsin_status refuse(const char* call, const char* what, tocsin_status status, int system_error) noexcept {
    std::snprintf(last.text, sizeof last.text, "%s: %s", call, what);
    last.number = system_error;
    return status;
}

tocsin_status refuse_current_exception(const char* call) noexcept {
#if defined(__cpp_exceptions)
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return refuse(call, "no memory", TOCSIN_ERROR_NO_MEMORY);
    } catch (const std::system_error& error) {
        const int number = error.code().default_error_condition().value();
        return refuse(call, error.what(), status_of_errno(number), number);
    } catch (const std::invalid_argument& error) {
        return refuse(call, error.what(), TOCSIN_ERROR_INVALID);
    } catch (const std::logic_error& error) {  // another thread waits in the set
        return refuse(call, error.what(), TOCSIN_ERROR_BUSY);
    } catch (const std::exception& error) {
        return refuse(call, error.what(), TOCSIN_ERROR_UNKNOWN);
    } catch (...) {
        return refuse(call, "an unknown exception", TOCSIN_ERROR_UNKNOWN);
    }
#else
    return refuse(call, "an error in a library without exceptions", TOCSIN_ERROR_UNKNOWN);
#endif
}

bool is_valid(const tocsin_deadline& when) noexcept {
    return when.clock >= TOCSIN_CLOCK_NEVER && when.clock <= TOCSIN_CLOCK_BOOT;
}

bool is_valid(const tocsin_spin& spin) noexcept {
    return spin.mode >= TOCSIN_SPIN_DEFAULT && spin.mode <= TOCSIN_SPIN_FIXED;
}

bool is_valid(const tocsin_limits* how) noexcept {
    if (how == nullptr) return true;
    if (object_at<tocsin_limits>(how) == nullptr || !is_valid(how->until) || !is_valid(how->spin))
        return false;
    if (how->order != TOCSIN_ORDER_LISTED && how->order != TOCSIN_ORDER_FAIR) return false;
    return how->stop == nullptr || held_at<stop_state>(how->stop) != nullptr;
}

deadline deadline_of(const tocsin_deadline& when) noexcept {
    const std::chrono::nanoseconds count(when.nanoseconds);
    switch (when.clock) {
        case TOCSIN_CLOCK_FROM_NOW: return count;
        case TOCSIN_CLOCK_STEADY:
            return std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>(count);
        case TOCSIN_CLOCK_SYSTEM:
            return std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>(count);
        case TOCSIN_CLOCK_BOOT: {
            constexpr auto left_until_zero = [](const void*) noexcept -> std::int64_t {
                return -boot_clock::now().time_since_epoch().count();
            };
            return deadline(nullptr, left_until_zero).later_by(count);
        }
        case TOCSIN_CLOCK_NEVER: break;
    }
    return deadline::never();
}

spin_policy policy_of(const tocsin_spin& spin) noexcept {
    const std::chrono::nanoseconds longest(spin.nanoseconds);
    switch (spin.mode) {
        case TOCSIN_SPIN_NONE: return spin_policy::none();
        case TOCSIN_SPIN_ADAPTIVE: return spin_policy::adaptive(longest);
        case TOCSIN_SPIN_FIXED: return spin_policy::fixed(longest);
        case TOCSIN_SPIN_DEFAULT: break;
    }
    return {};
}

limits limits_of(const tocsin_limits* how) noexcept {
    if (how == nullptr) return {};
    const stop_state* const stop = how->stop == nullptr ? nullptr : held_at<stop_state>(how->stop);
    return {.until = deadline_of(how->until),
            .stop = stop == nullptr ? stop_reference() : stop_reference(stop->token),
            .spin = policy_of(how->spin),
            .order = how->order == TOCSIN_ORDER_FAIR ? wait_order::fair : wait_order::listed,
            .stop_first = how->stop_first};
}

source source_of(const tocsin_source& from) {
    switch (from.kind) {
        case TOCSIN_SOURCE_MANUAL_EVENT: return source_at<manual_reset_event>(from.of.object);
        case TOCSIN_SOURCE_AUTO_EVENT: return source_at<auto_reset_event>(from.of.object);
        case TOCSIN_SOURCE_SEMAPHORE: return source_at<counting_semaphore<>>(from.of.object);
        case TOCSIN_SOURCE_LATCH: return source_at<latch>(from.of.object);
        case TOCSIN_SOURCE_BARRIER_TOKEN: {
            const auto* const token = static_cast<const tocsin_barrier_token*>(from.of.object);
            const bool is_made = held_at<void>(token) != nullptr;
            return is_made ? source(*object_at<barrier<>::arrival_token>(token)) : source();
        }
        case TOCSIN_SOURCE_TIMER:
            return is_valid(from.of.deadline) ? source(deadline_of(from.of.deadline)) : source();
        case TOCSIN_SOURCE_DESCRIPTOR: {
            const auto number = static_cast<int>(from.of.descriptor);
            if (number != from.of.descriptor || from.asked == 0 || from.asked > 0x7F) return {};
            return {number, static_cast<readiness>(from.asked)};
        }
        case TOCSIN_SOURCE_PROCESS_END:
            return held_source_of<tocsin_process_end, process_end>(from.of.object);
#if TOCSIN_C_SIGNALS
        case TOCSIN_SOURCE_SIGNAL: return held_source_of<tocsin_signal, signal_source>(from.of.object);
#else
        case TOCSIN_SOURCE_SIGNAL: break;
#endif
        case TOCSIN_SOURCE_TICKER: {
            ticker* const found = object_at<ticker>(static_cast<tocsin_ticker*>(from.of.object));
            return found != nullptr ? source(*found) : source();
        }
        case TOCSIN_SOURCE_SHARED_MANUAL_EVENT: return source_at<shared_manual_reset_event>(from.of.object);
        case TOCSIN_SOURCE_SHARED_AUTO_EVENT: return source_at<shared_auto_reset_event>(from.of.object);
        case TOCSIN_SOURCE_SHARED_SEMAPHORE: return source_at<shared_semaphore>(from.of.object);
        case TOCSIN_SOURCE_NONE: break;
    }
    return {};
}

source_array::source_array(const tocsin_source* from, std::size_t count, const char* call) noexcept {
    if (object_at<tocsin_source>(from) == nullptr || count == 0) {
        status_ = refuse(call, "there are no sources, or their array is misaligned");
        return;
    }
    std::byte* memory = memory_;
    if (count > inside) {
        if (count > SIZE_MAX / sizeof(source)) {
            status_ = refuse(call, "too many sources");
            return;
        }
        heap_.reset(new (std::nothrow) std::byte[count * sizeof(source)]);
        memory = heap_.get();
        if (memory == nullptr) {
            status_ = refuse(call, "no memory for the sources", TOCSIN_ERROR_NO_MEMORY);
            return;
        }
    }
    first_ = reinterpret_cast<source*>(memory);
    status_ = guarded(call, [&] {
        for (; count_ != count; ++count_) {
            const source* const made = new (memory + count_ * sizeof(source)) source(source_of(from[count_]));
            if (!made->empty()) continue;
            char what[64];
            std::snprintf(what, sizeof what, "source %zu is of no kind, null or misaligned", count_);
            return refuse(call, what);
        }
        return TOCSIN_OK;
    });
}

}  // namespace tocsin::c

using namespace tocsin::c;

extern "C" {

uint32_t tocsin_api_version() { return TOCSIN_API_VERSION; }

const char* tocsin_version() { return TOCSIN_C_VERSION; }

const char* tocsin_error_text(tocsin_status status) {
    switch (status) {
        case TOCSIN_OK: return "done";
        case TOCSIN_TIMED_OUT: return "timed out";
        case TOCSIN_STOPPED: return "stopped";
        case TOCSIN_DIFFERED: return "the value differs";
        case TOCSIN_NOTHING_DONE: return "nothing to do";
        case TOCSIN_OWNER_DIED: return "acquired from an owner that died";
        case TOCSIN_LOCK_LOST: return "the lock is lost";
        case TOCSIN_ERROR_INVALID: return "invalid argument";
        case TOCSIN_ERROR_NO_MEMORY: return "no memory";
        case TOCSIN_ERROR_TOO_GREAT: return "the count would be too great";
        case TOCSIN_ERROR_EXISTS: return "a member already";
        case TOCSIN_ERROR_NOT_FOUND: return "not found";
        case TOCSIN_ERROR_BAD_DESCRIPTOR: return "not an open descriptor";
        case TOCSIN_ERROR_NO_DESCRIPTORS: return "too many open descriptors";
        case TOCSIN_ERROR_BUSY: return "busy";
        case TOCSIN_ERROR_NOT_PERMITTED: return "not permitted";
        case TOCSIN_ERROR_UNSUPPORTED: return "not supported on this system";
        case TOCSIN_ERROR_SYSTEM: return "an error of the system";
        case TOCSIN_ERROR_FLUSH: return "the flush failed";
        case TOCSIN_ERROR_UNKNOWN: return "an unknown error";
    }
    return "not a status";
}

const char* tocsin_last_error() { return last.text; }

int tocsin_last_system_error() { return last.number; }

int64_t tocsin_boot_now() { return tocsin::boot_clock::now().time_since_epoch().count(); }
int64_t tocsin_steady_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

tocsin_status tocsin_set_spin_policy(tocsin_spin policy) {
    if (!is_valid(policy)) return refuse("tocsin_set_spin_policy", "no such policy");
    tocsin::set_spin_policy(policy_of(policy));
    return TOCSIN_OK;
}

void tocsin_set_futex_table_growth(bool allowed) { tocsin::set_futex_table_growth(allowed); }

bool tocsin_futex_table_growth() { return tocsin::futex_table_growth(); }

tocsin_status tocsin_stop_init(tocsin_stop* stop) { return make_held<stop_state>(stop, __func__); }

tocsin_status tocsin_stop_share(const tocsin_stop* from, tocsin_stop* to) {
    const stop_state* const shared = held_at<stop_state>(from);
    if (shared != nullptr && from == to) return refuse(__func__, "both are the same object");
    if (shared != nullptr) return make_held<stop_state>(to, __func__, *shared);
    if (object_at<tocsin_stop>(to) != nullptr) to->opaque = nullptr;
    return refuse(__func__, "there is no stop to share");
}

tocsin_status tocsin_stop_destroy(tocsin_stop* stop) { return destroy_held<stop_state>(stop); }

tocsin_status tocsin_stop_request(tocsin_stop* stop) {
    return with_held<stop_state>(stop, [](stop_state& one) { return done_if(one.source.request_stop()); });
}

bool tocsin_stop_is_requested(const tocsin_stop* stop) {
    const stop_state* const one = held_at<stop_state>(stop);
    return one != nullptr && one->token.stop_requested();
}

}  // extern "C"

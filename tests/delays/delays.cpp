// SPDX-License-Identifier: Apache-2.0
// Naps between the steps of threads, to be preloaded into a program of tests: `./dev test delays`.
//
// Interference between two steps of a thread is rare when the steps are a few instructions apart. Here a thread naps at
// random before or after a futex call, a yield, the unlocking of a mutex and its own start, for up to some
// milliseconds: long enough for other threads to get a whole round ahead. No nap changes what a program may do.
//
// All threads together nap for at most half of the time since the program began. So a test that counts rounds takes two
// or three times as long, and a test that runs for a given time meets naps at its end as well as at its beginning.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <memory>
#include <thread>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr nanoseconds longest = 5ms;

std::uint64_t random_number() {
    thread_local std::uint64_t state = 0;
    if (state == 0) {
        state = static_cast<std::uint64_t>(steady_clock::now().time_since_epoch().count()) ^
                reinterpret_cast<std::uintptr_t>(&state);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// The next function of that name: the real one. Kept in an atomic, because initialising a guarded static may call a
// function that is replaced here.
template <typename Function>
Function real(const char* name, std::atomic<Function>& known) {
    Function found = known.load(std::memory_order_relaxed);
    if (found == nullptr) {
        found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
        known.store(found, std::memory_order_relaxed);
    }
    return found;
}

const steady_clock::time_point began = steady_clock::now();
constinit std::atomic<nanoseconds::rep> napped{0};

void nap_one_in(std::uint64_t times) {
    if (random_number() % times != 0) return;
    if (2 * nanoseconds(napped.load(std::memory_order_relaxed)) > steady_clock::now() - began) return;
    const nanoseconds nap(static_cast<nanoseconds::rep>(random_number() % std::uint64_t{longest.count()}));
    napped.fetch_add(nap.count(), std::memory_order_relaxed);
    const int error = errno;
    std::this_thread::sleep_for(nap);
    errno = error;
}

struct beginning {
    void* (*function)(void*);
    void* argument;
};

void* begin_late(void* given) {
    const std::unique_ptr<beginning> own(static_cast<beginning*>(given));
    nap_one_in(2);
    return own->function(own->argument);
}

}  // namespace

extern "C" {

long syscall(long number, ...) noexcept {
    static constinit std::atomic<long (*)(long, ...)> known{nullptr};
    va_list list;
    va_start(list, number);
    long given[6];
    for (long& each : given) each = va_arg(list, long);
    va_end(list);
    const bool naps = number == SYS_futex;
    if (naps) nap_one_in(8);
    const long result =
        real("syscall", known)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (naps) nap_one_in(8);
    return result;
}

int sched_yield() noexcept {
    static constinit std::atomic<int (*)()> known{nullptr};
    nap_one_in(50);
    return real("sched_yield", known)();
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    static constinit std::atomic<int (*)(pthread_mutex_t*)> known{nullptr};
    const int result = real("pthread_mutex_unlock", known)(mutex);
    nap_one_in(50);
    return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    static constinit std::atomic<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> known{
        nullptr};
    auto own = std::make_unique<beginning>(beginning{function, argument});
    const int result = real("pthread_create", known)(thread, attributes, begin_late, own.get());
    if (result == 0) (void)own.release();
    nap_one_in(8);
    return result;
}
}

// SPDX-License-Identifier: Apache-2.0
// Linux: ppoll(2), epoll(7) and eventfd(2).
//
// State: a doorbell's object is an event counter. An even strike fills the counter, and an odd strike empties it
// (doorbells.cpp). A poll set is an epoll instance. The set's doorbell is an edge-triggered member of that instance,
// for reading and for writing.
//
// The kernel promises (eventfd(2), epoll(7); Linux 2.6.27 and later):
//   - An event counter is readable when it is not 0. It is writable when 1 can be added, which is impossible at its
//     maximum, 2^64 - 2. Reading sets it to 0.
//   - A timer of timerfd(2) that is set to a point of the system clock follows that clock.
//   - Threads may call epoll_ctl and epoll_wait at the same time. epoll_wait takes what it reports under the same lock
//     under which EPOLL_CTL_DEL removes a descriptor. So a wait that begins after the removal does not report the
//     descriptor.
//   - The timeout of epoll_pwait2 (Linux 5.11) is in nanoseconds.
//   - If the process is stopped in poll, the kernel continues the call afterwards, until the time at which it was to
//     end. If the process is stopped in epoll_wait or epoll_pwait2, the call fails with EINTR.
// Where epoll_pwait2 is missing or forbidden, this file rounds a timeout up to whole milliseconds. On 32-bit systems
// ppoll has two versions, and the newer one may be missing or forbidden, too (timed_call_linux.hpp).
//
// Invariants
//   linux_poller-1  A set keeps a list of its members, and epoll names an entry by the member's descriptor and a serial
//       number. A wait reports only names that are in the list. epoll knows an entry by the descriptor's number and by
//       the open file that the number meant in add(). If the program closes the number without a remove(), while a
//       duplicate of it is open, the entry stays, and no call can name it any more. It then ends every sleep. A wait
//       that begins after a remove() reports the removed member no more. So if two waits, one after the other, find the
//       same name without a member, its entry is such a stale one. Several stale entries may take turns: so eight
//       reports in a row that hold nothing but names without members count, too. The waiting thread then replaces the
//       epoll instance by a new one, to which it adds the members in the list. (A needless replacement does no harm.)
//
// Timeouts of a poll. If the process is stopped in ppoll (by SIGSTOP, a debugger or a frozen control group), the kernel
// continues the call with the time that was left before the stop. So a thread sleeps in ppoll for about a millisecond
// at most, or without a timeout. If more time is left, it first sleeps in poll for the whole milliseconds. Some
// processors have no poll (64-bit ARM and RISC-V). On these the thread sleeps in ppoll without a timeout, and polls a
// timer of timerfd(2), too.
// If a filter forbids poll, or the process can't open a descriptor for that timer, the time of ppoll is in memory that
// the kernel can't write to. Then the kernel has no place for the time that was left, so it can't continue the call,
// which fails with EINTR. Such memory has only some lengths in it: so the thread sleeps several times, each time for
// more than four fifths of what is left. It wakes up ten times in an hour. (qemu's user emulation fails a call with
// such memory. There the time for which the process is stopped is added.)
//
// No lost wake-up: the effect of a strike stays in the counter until the sleeper has seen it (doorbells-2). ppoll
// checks the counter's value, so it also finds a strike that came before the call. epoll queues the doorbell at every
// strike, and keeps it queued until epoll_wait returns it.
//
// A poll sleeps by a direct system call, and a ring strikes by one. Unlike the C library's wrappers, direct calls are
// not pthread cancellation points. (Under ThreadSanitizer, a poll uses the wrappers, with cancellation disabled.)
//
// Checked by: tests/internal/doorbell_test.cpp, poll_test.cpp, poll_set_test.cpp.
#include "platform/poller/backend.hpp"
#include "platform/poller/doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/optional_call_linux.hpp"
#include "platform/system/system.hpp"
#include "platform/system/timed_call_linux.hpp"

#include <tocsin/detail/sanitizer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <new>
#include <type_traits>

#include <fcntl.h>
#include <linux/time_types.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

// The pool is never destroyed, because rings are allowed after main.
constinit doorbell_pool own_doorbells;
constinit void* in_use = &own_doorbells;  // the pool that all copies of the library in the process use

constexpr std::int64_t nanoseconds_a_millisecond = 1'000'000;

}  // namespace

struct eventfd_doorbells {
    static doorbell_pool& doorbells() noexcept { return *static_cast<doorbell_pool*>(in_use); }
    static void*& shared_state() noexcept { return in_use; }
    static int make_doorbell(int (&ends)[2]) noexcept {
        ends[0] = ends[1] = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        return ends[0] < 0 ? errno : 0;
    }
    static int make_flag(int (&ends)[2]) noexcept { return make_doorbell(ends); }
    static void strike(int descriptor, bool even) noexcept {
        constexpr std::uint64_t full = ~std::uint64_t{0} - 1;
        std::uint64_t content = full;
        if (even) {
            ::syscall(SYS_write, descriptor, &content, sizeof content);
        } else {
            ::syscall(SYS_read, descriptor, &content, sizeof content);
        }
    }

    // The condition for which a sleeper polls its doorbell. The next strike makes it true.
    static short struck(const doorbell& bell) noexcept { return bell.even() ? POLLIN : POLLOUT; }
    // If the poll found the bell struck, answers it and returns true. `found` is what the poll reported for the bell.
    static bool was_rung(doorbell& bell, int found) noexcept {
        if (!is_struck(found, struck(bell))) return false;
        bell.answer();
        return true;
    }
};

namespace {

using bells = eventfd_doorbells;

const pool_owner owns_doorbells(own_doorbells, answer_if_struck<bells>);

#if defined(SYS_ppoll)
constexpr long older_ppoll = SYS_ppoll;
#else
constexpr long older_ppoll = SYS_ppoll_time64;
#endif
#if defined(SYS_ppoll_time64)
constexpr long newer_ppoll = SYS_ppoll_time64;
#else
constexpr long newer_ppoll = SYS_ppoll;
#endif

#if defined(SYS_poll)
constexpr bool has_poll = true;
long poll(poll_list& list, int milliseconds) noexcept {
    return ::syscall(SYS_poll, list.data(), list.size(), milliseconds);
}
#else
constexpr bool has_poll = false;
long poll(poll_list&, int) noexcept {
    errno = ENOSYS;
    return -1;
}
#endif

int ppoll(poll_list& list, std::int64_t nanoseconds) noexcept {
    const bool endless = nanoseconds == no_timeout;
    // ThreadSanitizer does not know the direct call below. Until that call ends, ThreadSanitizer would delay signal
    // handlers, even a handler that would set what the call waits for.
    if constexpr (detail::thread_sanitizer) {
        const cancellation_disabled here;
        const auto timeout = time_of<timespec>(nanoseconds);
        return ::ppoll(list.data(), list.size(), endless ? nullptr : &timeout, nullptr);
    }
    return static_cast<int>(timed_call<older_ppoll, newer_ppoll>(nanoseconds, [&](long call, auto timeout) {
        return ::syscall(call, list.data(), list.size(), endless ? nullptr : &timeout, nullptr,
                         std::size_t{0});
    }));
}

// How long a thread sleeps in ppoll, in memory that nobody can write to: four lengths for each doubling.
constexpr std::size_t shortest_exponent = 20;  // 2^20 ns, about a millisecond
constexpr std::size_t longest_exponent = 50;   // some two weeks
template <class Time>
constexpr auto fixed_times = [] {
    std::array<Time, (longest_exponent - shortest_exponent) * 4> made{};
    for (std::size_t i = 0; i != made.size(); ++i) {
        const std::int64_t length = (std::int64_t{4} + static_cast<std::int64_t>(i % 4))
                                    << (shortest_exponent - 2 + i / 4);
        made[i].tv_sec = static_cast<decltype(made[i].tv_sec)>(length / 1'000'000'000);
        made[i].tv_nsec = static_cast<decltype(made[i].tv_nsec)>(length % 1'000'000'000);
    }
    return made;
}();

// The longest fixed time of at most `nanoseconds`, which are 2^20 or more.
std::size_t index_of_fixed_time(std::int64_t nanoseconds) noexcept {
    const auto length = static_cast<std::uint64_t>(nanoseconds);
    const auto exponent = static_cast<std::size_t>(std::bit_width(length)) - 1;
    if (exponent >= longest_exponent) return (longest_exponent - shortest_exponent) * 4 - 1;
    return (exponent - shortest_exponent) * 4 + ((length >> (exponent - 2)) & 3);
}

// Sleeps in ppoll for `nanoseconds` at most, or for somewhat less. If the process is stopped meanwhile, fails with
// EINTR.
int ppoll_less(poll_list& list, std::int64_t nanoseconds) noexcept {
    static constinit std::atomic<bool> fails{false};
    // No order: a hint.
    if (detail::thread_sanitizer || nanoseconds < std::int64_t{1} << shortest_exponent ||
        fails.load(std::memory_order_relaxed))
        return ppoll(list, nanoseconds);
    const std::size_t index = index_of_fixed_time(nanoseconds);
    const long found = timed_call<older_ppoll, newer_ppoll>(nanoseconds, [&](long call, const auto& time) {
        using kind = std::remove_cvref_t<decltype(time)>;
        return ::syscall(call, list.data(), list.size(), &fixed_times<kind>[index], nullptr, std::size_t{0});
    });
    if (found < 0 && errno == EFAULT) {
        fails.store(true, std::memory_order_relaxed);  // no order: a hint
        errno = EINTR;                                 // the caller looks at the clock, and calls again
    }
    return static_cast<int>(found);
}

// Sleeps for about `nanoseconds` at most. The time for which the process is stopped counts.
int poll_for(poll_list& list, std::int64_t nanoseconds) noexcept {
    constexpr std::int64_t longest = 1 << 30;
    const std::int64_t whole = std::min(nanoseconds / nanoseconds_a_millisecond, longest);
    if (whole <= 0) return ppoll(list, nanoseconds);
    if (!has_poll) return ppoll_less(list, nanoseconds);
    if constexpr (detail::thread_sanitizer) {  // as in ppoll above
        const cancellation_disabled here;
        return ::poll(list.data(), list.size(), static_cast<int>(whole));
    }
    static constinit optional_call whole_milliseconds;
    return static_cast<int>(whole_milliseconds([&] { return poll(list, static_cast<int>(whole)); },
                                               [&] { return long{ppoll_less(list, nanoseconds)}; }));
}

// A descriptor that becomes readable when a time on a clock has passed, even if somebody sets that clock while a thread
// waits.
class clock_timer {
public:
    explicit clock_timer(clockid_t clock) noexcept
        : descriptor_(::timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK)) {}
    ~clock_timer() {
        if (descriptor_ >= 0) close_descriptor(descriptor_);
    }
    clock_timer(const clock_timer&) = delete;
    clock_timer& operator=(const clock_timer&) = delete;

    int descriptor() const noexcept { return descriptor_; }  // -1 if the process can't open one: see errno
    // `left` is what is left until the deadline, in nanoseconds. A timer on the system clock follows that clock.
    int set(const deadline& until, std::int64_t left) const noexcept {
        const bool follows = until.which() == deadline::clock::system;
        itimerspec when{};
        when.it_value = time_of<timespec>(follows ? until.nanoseconds() : left);
        return ::timerfd_settime(descriptor_, follows ? TFD_TIMER_ABSTIME : 0, &when, nullptr);
    }
    // Whether the timer has expired since it was set. If so, it is set to nothing afterwards, and no longer readable.
    bool take_expiry() const noexcept {
        std::uint64_t times = 0;
        return ::syscall(SYS_read, descriptor_, &times, sizeof times) == sizeof times;
    }
    // To a time on the timer's clock, in nanoseconds. 0: the timer does not expire.
    int set_to(std::int64_t time) const noexcept {
        itimerspec when{};
        when.it_value = time_of<timespec>(time);
        return ::timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &when, nullptr);
    }

private:
    const int descriptor_;
};

// Like poll_until, with a timer: on the system clock if the deadline is on that clock, else on the steady clock.
int poll_until_expired(const clock_timer& timer, const deadline& until, poll_list& list) noexcept {
    const pollfd& expired = list.add(timer.descriptor(), POLLIN);
    return poll_until(until, [&](std::int64_t left) {
        if (left != 0 && timer.set(until, left) != 0) return -1;
        const int found = ppoll(list, left == 0 ? 0 : no_timeout);
        return found > 0 && expired.revents != 0 ? found - 1 : found;
    });
}

// Like poll_until, for a deadline on the system clock. If the process can't open a descriptor for the timer, looks once
// without sleeping, and returns the error only if nothing is ready.
int poll_until_system(const deadline& until, poll_list& list) noexcept {
    const clock_timer timer(CLOCK_REALTIME);
    if (timer.descriptor() >= 0) return poll_until_expired(timer, until, list);
    const int error = errno;
    const int found = poll_until(std::chrono::nanoseconds(0), [&](std::int64_t) { return ppoll(list, 0); });
    return found != 0 ? found : -error;
}

// Like poll_until, for a deadline on any other clock, where there is no poll.
int poll_until_without_poll(const deadline& until, poll_list& list) noexcept {
    const clock_timer timer(CLOCK_MONOTONIC);
    if (timer.descriptor() >= 0) return poll_until_expired(timer, until, list);
    return poll_until(until, [&](std::int64_t left) { return poll_for(list, left); });
}

int sleep_until(poll_list& list, const deadline& until) noexcept {
    if (until.which() == deadline::clock::system && !until.has_passed())
        return poll_until_system(until, list);
    if (!has_poll && !until.is_never() && until.remaining() >= nanoseconds_a_millisecond)
        return poll_until_without_poll(until, list);
    return poll_until(until, [&](std::int64_t left) { return poll_for(list, left); });
}

poll_result poll_with(std::span<poll_entry> what, doorbell* bell, const deadline& until) noexcept {
    return poll_once<eventfd_doorbells>(what, bell, until, sleep_until);
}

// An epoll instance that has as members the flag, the instance of the set, and a timer for each clock.
//
// A timer that is already set to its deadline is left alone, unless it has expired. Suppose that the timer on the
// system clock expires, and that somebody sets the clock back before the loop looks. Then the deadline is the same, and
// has not passed. If this timer was left alone, it would stay readable until the deadline comes again. A loop that
// reports only changes would miss the deadline. (The steady clock never goes back.)
class epoll_view final : public poll_view {
public:
    ~epoll_view() override {
        if (outer_ >= 0) close_descriptor(outer_);
    }
    // Returns 0 or an error.
    int open(int flag, int instance) noexcept {
        outer_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (outer_ < 0 || steady_.descriptor() < 0 || system_.descriptor() < 0) return errno;
        for (const int each : {flag, instance, steady_.descriptor(), system_.descriptor()}) {
            if (const int error = watch(each); error != 0) return error;
        }
        return 0;
    }
    int watch(int descriptor) const noexcept {
        epoll_event event{};
        event.events = EPOLLIN;
        return ::epoll_ctl(outer_, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
    }

    int descriptor() const noexcept override { return outer_; }
    int set_deadlines(const deadline& steady, const deadline& system) noexcept override {
        const errno_guard guard;
        const int error = set(steady_, steady_is_, steady);
        return error != 0 ? error : set(system_, system_is_, system);
    }

private:
    static int set(const clock_timer& timer, std::int64_t& is, const deadline& until) noexcept {
        const std::int64_t wanted = until.is_never() ? 0 : std::max<std::int64_t>(until.nanoseconds(), 1);
        if (until.which() == deadline::clock::system && is == wanted && timer.take_expiry()) is = 0;
        if (is == wanted) return 0;
        if (timer.set_to(wanted) != 0) return errno;
        is = wanted;
        return 0;
    }

    const clock_timer steady_{CLOCK_MONOTONIC};
    const clock_timer system_{CLOCK_REALTIME};
    std::int64_t steady_is_ = 0;  // what the timers are set to, in nanoseconds of their clocks; 0: to nothing
    std::int64_t system_is_ = 0;
    int outer_ = -1;
};

class epoll_set final : public poll_set_with_bell<bells> {
public:
    ~epoll_set() override {
        if (epoll_ >= 0) close_descriptor(epoll_);
    }

    int open() noexcept {
        if (const int error = take_bell(); error != 0) return error;
        if (const int error = open_instance(epoll_); error != 0) return error;
        item none;
        // epoll reports a first edge for the state that the bell had when it was added. This wait takes that edge.
        (void)wait({&none, 1}, std::chrono::nanoseconds(0));
        return 0;
    }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;
    std::unique_ptr<poll_view> open_view(int flag, int& error) noexcept override;

private:
    struct member {
        int descriptor;
        readiness asked;
        std::uint64_t tag;
        std::uint32_t serial;
    };
    // What epoll calls an entry. No name is `no_tag`, because no descriptor is negative.
    static std::uint64_t name_of(const member& of) noexcept {
        return std::uint64_t{static_cast<std::uint32_t>(of.descriptor)} << 32 | of.serial;
    }

    int open_instance(int& instance) const noexcept;
    static int control(int instance, int operation, const member& of) noexcept {
        epoll_event event{};
        event.events = static_cast<std::uint16_t>(to_poll_events(of.asked));
        event.data.u64 = name_of(of);
        return ::epoll_ctl(instance, operation, of.descriptor, &event) == 0 ? 0 : errno;
    }
    int replace_instance() noexcept;  // under the mutex

    int sleep(std::span<epoll_event> events, std::int64_t nanoseconds) const noexcept;
    poll_result report(std::span<const epoll_event> events, std::span<item> out) noexcept;

    int epoll_ = -1;
    std::mutex mutex_;
    // Under the mutex:
    member_table<member> members_;
    std::uint32_t serials_ = 0;
    const epoll_view* view_ = nullptr;  // if the set has one

    static constexpr unsigned max_fruitless = 8;
    // Of the waiting thread: a name without a member that the last report had, and how many reports in a row had
    // nothing but such names.
    std::uint64_t suspect_ = no_tag;
    unsigned fruitless_ = 0;
};

int epoll_set::open_instance(int& instance) const noexcept {
    const int made = ::epoll_create1(EPOLL_CLOEXEC);
    if (made < 0) return errno;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = no_tag;
    if (::epoll_ctl(made, EPOLL_CTL_ADD, own_bell().wait_end(), &event) != 0) {
        const int error = errno;
        close_descriptor(made);
        return error;
    }
    instance = made;
    return 0;
}

int epoll_set::add(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    const std::lock_guard lock(mutex_);
    const member made{descriptor, asked, tag, ++serials_};
    member* const before = members_.find(descriptor);
    if (before == nullptr) {
        if (const int error = members_.insert(made); error != 0) return error;
    }
    const int error = control(epoll_, EPOLL_CTL_ADD, made);
    if (error == 0 && before != nullptr) *before = made;
    if (error != 0 && before == nullptr) members_.erase(*members_.find(descriptor));
    return error;
}

int epoll_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    const std::lock_guard lock(mutex_);
    member* const found = members_.find(descriptor);
    if (found == nullptr) return why_no_member(descriptor);
    const member made{descriptor, asked, tag, found->serial};
    const int error = control(epoll_, EPOLL_CTL_MOD, made);
    if (error == 0) *found = made;
    return error;
}

int epoll_set::remove(int descriptor) noexcept {
    const errno_guard guard;
    const std::lock_guard lock(mutex_);
    const member* const found = members_.find(descriptor);
    if (found == nullptr) return why_no_member(descriptor);
    (void)control(epoll_, EPOLL_CTL_DEL, *found);  // fails if the program has closed it
    members_.erase(*found);
    return 0;
}

// Replaces the instance by a new one, which has only the members (linux_poller-1). The number of its descriptor stays
// the same. Returns 0 or an error.
int epoll_set::replace_instance() noexcept {
    int instance = -1;
    if (const int error = open_instance(instance); error != 0) return error;
    for (const member& each : members_)
        (void)control(instance, EPOLL_CTL_ADD, each);  // fails for a closed one
    int error = ::dup3(instance, epoll_, O_CLOEXEC) < 0 ? errno : 0;
    close_descriptor(instance);
    if (error == 0 && view_ != nullptr) error = view_->watch(epoll_);
    return error;
}

std::unique_ptr<poll_view> epoll_set::open_view(int flag, int& error) noexcept {
    const errno_guard guard;
    std::unique_ptr<epoll_view> made(new (std::nothrow) epoll_view);
    const std::lock_guard lock(mutex_);
    error = made != nullptr ? made->open(flag, epoll_) : ENOMEM;
    if (error != 0) return nullptr;
    view_ = made.get();
    return made;
}

// The bits that poll and epoll share have the same values, so the conversions of poll_list.hpp serve both.
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLPRI == POLLPRI && EPOLLERR == POLLERR &&
              EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP);

int epoll_set::sleep(std::span<epoll_event> events, std::int64_t nanoseconds) const noexcept {
    const int max = static_cast<int>(events.size());
    const std::int64_t milliseconds =
        nanoseconds == no_timeout ? -1
                                  : (nanoseconds - 1 + nanoseconds_a_millisecond) / nanoseconds_a_millisecond;
    const int timeout = static_cast<int>(std::min<std::int64_t>(milliseconds, 1 << 30));
    if constexpr (detail::thread_sanitizer) {  // as in ppoll above
        const cancellation_disabled here;
        return ::epoll_wait(epoll_, events.data(), max, timeout);
    }
    const auto rounded = [&] {
        return ::syscall(SYS_epoll_pwait, epoll_, events.data(), max, timeout, nullptr, std::size_t{0});
    };
    if (nanoseconds <= 0) return static_cast<int>(rounded());
    static constinit optional_call exact;
    auto time = time_of<__kernel_timespec>(nanoseconds);
    return static_cast<int>(exact(
        [&] {
            return ::syscall(SYS_epoll_pwait2, epoll_, events.data(), max, &time, nullptr, std::size_t{0});
        },
        rounded));
}

poll_result epoll_set::wait(std::span<item> out, const deadline& until) noexcept {
    own_bell().check();
    return wait_in_kernel_set<epoll_event>(
        epoll_, out, until,
        [this](std::span<epoll_event> events, std::int64_t left) { return sleep(events, left); },
        [](std::span<poll_entry> what, const deadline& end) { return poll_with(what, nullptr, end); },
        [this](std::span<const epoll_event> events, std::span<item> into) { return report(events, into); });
}

poll_result epoll_set::report(std::span<const epoll_event> events, std::span<item> out) noexcept {
    poll_result result;
    std::uint64_t stale = no_tag;
    bool again = false;
    const std::lock_guard lock(mutex_);
    for (const epoll_event& each : events) {
        const std::uint64_t name = each.data.u64;
        if (name == no_tag) {
            result.rung = bells::was_rung(own_bell(), static_cast<int>(each.events));
            continue;
        }
        const member* const found = members_.find(static_cast<int>(name >> 32));
        if (found != nullptr && name_of(*found) == name) {
            out[result.ready++] = {found->tag, from_poll_events(static_cast<short>(each.events))};
        } else {
            if (stale == no_tag) stale = name;
            again |= name == suspect_;
        }
    }
    suspect_ = stale;
    fruitless_ = stale == no_tag || result.ready != 0 || result.rung ? 0 : fruitless_ + 1;
    if (again || fruitless_ == max_fruitless) {
        fruitless_ = 0;
        result.error = replace_instance();
    }
    if (result.error != 0 && (result.ready != 0 || result.rung))
        result.error = 0;  // the next wait tries again
    return result;
}

}  // namespace

struct linux_polling : eventfd_doorbells {
    using set = epoll_set;

    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
        return poll_with(what, doorbells().find(bell), until);
    }
};
template struct poller_backend<linux_polling>;

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
#include <tocsin/barrier.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <mutex>
#include <string>
#include <vector>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;
tocsin::barrier<> meeting(1);
tocsin::channel<int> items(1);

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

// expect only: make a std::vector<tocsin::source>\(begin, end\)
#ifdef MISUSE_wait_for_array
tocsin::auto_reset_event events[2];
void wait() { tocsin::wait_any(events); }
#endif

void wait_for_token() {
    const auto token = meeting.arrive();
    tocsin::wait_any(a, token);
}

// expect only: Write const auto token = barrier.arrive\(\);
#ifdef MISUSE_wait_for_barrier
void wait() { tocsin::wait_any(a, meeting); }
#endif

// expect only: write the sources without braces, wait_any\(a, b\), or make a list first: tocsin::source list
#ifdef MISUSE_wait_for_braces
void wait() { tocsin::wait_any({a, b}); }
#endif

void receive_by_name() {
    auto next = items.receiving();
    tocsin::wait_any(a, next);
}

// expect only: Write auto next = channel.receiving\(\);
#ifdef MISUSE_wait_for_channel
void wait() { tocsin::wait_any(a, items); }
#endif

// expect only: tocsin: nobody can set a temporary
#ifdef MISUSE_channel_operation_as_temporary
void receive_nameless(tocsin::channel<int>& from) { (void)tocsin::wait_any(from.receiving()); }
#endif

// expect only: If an object of your type stays ready, declare that
#ifdef MISUSE_wait_all_for_transfer
void wait() {
    auto next = items.receiving();
    (void)tocsin::wait_all({.until = std::chrono::seconds(5)}, a, next);
}
#endif

// expect only: a const event can.t be waited for
#ifdef MISUSE_wait_for_const_event
void wait(const tocsin::auto_reset_event& event) { tocsin::wait_any(event); }
#endif

// expect only: a duration is no source: limit the wait by wait_any\({.until = 50ms}
#ifdef MISUSE_wait_for_duration
void wait() { tocsin::wait_any(a, b, std::chrono::seconds(5)); }
#endif

// expect only: a duration is no source: .* a timer as a source, tocsin::after
#ifdef MISUSE_wait_for_duration_first
void wait() { tocsin::wait_any(std::chrono::seconds(5), a, b); }
#endif

// expect only: nothing to wait for: give at least one source
#ifdef MISUSE_wait_for_nothing
void wait() { tocsin::wait_any(); }
#endif

// expect only: for a descriptor write tocsin::readable\(number\)
#ifdef MISUSE_wait_for_number
void wait(int descriptor) { tocsin::wait_any(a, descriptor); }
#endif

// expect only: this argument is no source: sources are events
#ifdef MISUSE_wait_for_other_type
struct other {
} one;
void wait() { tocsin::wait_all(a, one); }
#endif

// expect only: a pointer is no source: write \*pointer
#ifdef MISUSE_wait_for_pointer
void wait() { tocsin::wait_any(&a); }
#endif

// expect only: a stop token is no source: write wait_any\({.stop = token}
#ifdef MISUSE_wait_for_stop_token
void wait(const tocsin::stop_token& token) { tocsin::wait_any(a, b, token); }
#endif

// expect only: this argument is no source: sources are events
#ifdef MISUSE_wait_for_string
void wait(std::string& text) { tocsin::wait_any(a, text); }
#endif

// expect only: nobody can set a temporary
#ifdef MISUSE_wait_for_temporary
void wait() { tocsin::wait_any(tocsin::auto_reset_event(), a); }
#endif

// expect only: a time is no source: .* tocsin::at
#ifdef MISUSE_wait_for_time
void wait() { tocsin::wait_any(a, std::chrono::steady_clock::now()); }
#endif

void wait_with_lock(tocsin::condition& changed, std::unique_lock<std::mutex>& lock) {
    (void)changed.wait_any(lock, a);
}

// expect only: tocsin: a condition is no source
#ifdef MISUSE_condition_as_source
void wait_for_condition(tocsin::condition& changed) { (void)tocsin::wait_any(changed, a); }
#endif

void wait_for_name(const tocsin::latch& done) { (void)tocsin::wait_any(done); }

// expect only: tocsin: nobody can set a temporary
#ifdef MISUSE_latch_as_temporary_source
void wait_for_temporary() { (void)tocsin::wait_any(tocsin::latch(1)); }
#endif

// A descriptor remains a source like any other in every wait for the first of several, and in every list.
void wait_for_descriptors(bool asks) {
    const auto socket = tocsin::readable(0);
    tocsin::wait_any(a, socket, tocsin::writable(1));
    tocsin::wait_any(a, asks ? tocsin::readable(0) : tocsin::never_ready());
    const std::array<tocsin::source, 2> both{socket, tocsin::ready(1, tocsin::readiness::hang_up)};
    tocsin::wait_any(both);
    std::vector<tocsin::source> many{tocsin::readable(0), a};
    many.push_back(tocsin::writable(1));
    many.emplace_back(socket);
    tocsin::wait_any(many);
    tocsin::wait_all(many);  // throws
    tocsin::source one = tocsin::readable(0);
    one = tocsin::after(std::chrono::seconds(1));
    tocsin::wait_all(a, one);
}

// expect only: a wait for all takes no descriptor, process, signal or object that processes share
#ifdef MISUSE_wait_all_for_descriptor
void wait() { tocsin::wait_all(a, tocsin::readable(0)); }
#endif

// SPDX-License-Identifier: Apache-2.0
// Waits for any and for all of several events that other threads also wait for; waits for descriptors alongside events;
// and a coalescer, which releases at most once per interval.
#include "complaints.hpp"
#include "places.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/coalescer.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace soak {
namespace {

using tocsin::auto_reset_event;
using tocsin::source;

// Tokens, with waits for some of their places that end soon, and waits for all places without a deadline, which a lost
// wake-up makes hang.
class any_of_several : public scene {
public:
    explicit any_of_several(support::random_source& random)
        : places_(1 + random.below(3)), cords_(static_cast<std::size_t>(some_threads(random) + 1)) {}

    void enter(crew& hands, book& counted) override {
        for (auto& each : cords_) {
            hands.start(counted, "waits for any", [this, &each](worker& self) { wander(self, each); });
        }
        hands.start(counted, "pulls cords", [this](worker& self) { pull(self); });
    }

    void check() override { places_.check(); }

private:
    static constexpr std::size_t no_place = ~std::size_t{0};

    void wander(worker& self, stop_cord& mine) {
        while (!self.is_over()) {
            const std::size_t found = self.random.one_in(4) ? wait_firmly(self) : wait_briefly(self, mine);
            self.done();
            if (found == no_place) continue;
            places_.took(found, self);
            places_.put_back(self);
            if (self.random.one_in(8)) support::jitter(self.random);
        }
    }

    void pull(worker& self) {
        while (!self.is_over()) {
            cords_[self.random.below(cords_.size())].pull();
            self.done();
            std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(100)));
        }
    }

    std::size_t wait_firmly(worker& self) {
        const std::size_t first = self.random.below(places_.count);
        std::vector<source> from;
        for (std::size_t i = 0; i != places_.count; ++i)
            from.emplace_back(places_[(first + i) % places_.count]);
        const auto found =
            self.timed([&] { return tocsin::wait_any({.spin = some_spin(self.random)}, from); });
        expect(found.status == wait_status::signaled, "a wait for any ended without a reason");
        return (first + found.index) % places_.count;
    }

    // For any of three places and a timer; the first place is listed again at the end.
    std::size_t wait_briefly(worker& self, stop_cord& cord) {
        auto& random = self.random;
        const std::array<std::size_t, 3> at{random.below(places_.count), random.below(places_.count),
                                            random.below(places_.count)};
        const nanoseconds longest(random.below(60'000));
        const std::array<source, 5> from{places_[at[0]], places_[at[1]],
                                         tocsin::after(nanoseconds(random.below(90'000))), places_[at[2]],
                                         places_[at[0]]};
        const auto begin = std::chrono::steady_clock::now();
        const auto found =
            random.one_in(4)
                ? tocsin::wait_any({.until = longest, .stop = cord.renew(), .spin = some_spin(random)}, from)
                : tocsin::wait_any({.until = longest, .spin = some_spin(random)}, from);
        const auto waited = std::chrono::steady_clock::now() - begin;
        self.counts.waited(waited);
        expect(found.status != wait_status::timed_out || waited >= longest, "a wait for any timed out early");
        if (found.status != wait_status::signaled || found.index == 2) return no_place;
        return at[found.index == 3 ? 2 : found.index == 4 ? 0 : found.index];
    }

    places<5> places_;
    std::deque<stop_cord> cords_;
};

// Philosophers around a table, with a fork between any two. Each waits for both of its forks at once, either without a
// deadline or with one that passes soon. Another thread borrows single forks. A lost fork makes its neighbours hang.
class philosophers : public scene {
public:
    explicit philosophers(support::random_source& random)
        : forks_(static_cast<std::size_t>(some_threads(random) + 1)) {}

    void enter(crew& hands, book& counted) override {
        for (auto& each : forks_) each.event.set();
        for (std::size_t i = 0; i != forks_.size(); ++i) {
            hands.start(counted, "philosopher", [this, i](worker& self) { dine(self, i); });
        }
        hands.start(counted, "borrows forks", [this](worker& self) { borrow(self); });
    }

    void check() override {
        for (auto& each : forks_) {
            expect(each.event.is_set(), "a fork is gone");
            expect(each.taken == each.laid_down, "a fork was taken more often than laid down");
            expect(tocsin::waiting_on(&each.event) == 0, "a fork has waiters but no threads");
        }
    }

private:
    struct alignas(64) fork {
        auto_reset_event event;
        unsigned last_holder = 0;  // this and the next two are plain; only the fork's holder uses them
        std::uint64_t taken = 0;
        std::uint64_t laid_down = 0;
    };

    static void take(fork& one, worker& self) {
        expect(one.taken == one.laid_down, "two threads hold one fork");
        ++one.taken;
        if (one.last_holder != self.number) self.counts.race();
        one.last_holder = self.number;
        self.counts.out();
    }
    static void lay_down(fork& one, worker& self) {
        ++one.laid_down;
        self.counts.in();
        one.event.set();
        self.done();
    }

    void dine(worker& self, std::size_t seat) {
        fork& left = forks_[seat];
        fork& right = forks_[(seat + 1) % forks_.size()];
        while (!self.is_over()) {
            self.done();
            if (!take_both(self, left, right)) continue;
            take(left, self);
            take(right, self);
            if (self.random.one_in(8)) support::jitter(self.random);
            const bool left_first = self.random.one_in(2);
            lay_down(left_first ? left : right, self);
            lay_down(left_first ? right : left, self);
        }
    }

    static bool take_both(worker& self, fork& left, fork& right) {
        if (self.random.one_in(4)) {
            const nanoseconds longest(self.random.below(60'000));
            return tocsin::wait_all({.until = longest}, left.event, right.event) == wait_status::signaled;
        }
        const auto how = self.timed([&] {
            return self.random.one_in(2) ? tocsin::wait_all(left.event, right.event)
                                         : tocsin::wait_all(right.event, left.event);
        });
        expect(how == wait_status::signaled, "a wait for all ended without a reason");
        return true;
    }

    void borrow(worker& self) {
        while (!self.is_over()) {
            fork& one = forks_[self.random.below(forks_.size())];
            self.done();
            if (one.event.wait_for(nanoseconds(self.random.below(30'000))) == wait_status::signaled) {
                take(one, self);
                lay_down(one, self);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(100)));
        }
    }

    std::deque<fork> forks_;
};

// Some threads give, by a set or by a byte through a socket, and wait for their receipt; one waits for
// whatever arrives.
class sets_and_bytes : public scene {
public:
    explicit sets_and_bytes(support::random_source& random)
        : lines_(1 + random.below(3)), open_(lines_.size()) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "waits for sets and bytes", [this](worker& self) { serve(self); });
        for (auto& each : lines_) {
            hands.start(counted, "gives sets and bytes", [this, &each](worker& self) { give(self, each); });
        }
    }

    void check() override {
        for (auto& each : lines_) {
            expect(!each.event.is_set() && !each.receipt.is_set(), "a set was given twice");
            char byte;
            expect(read(each.ends[0], &byte, 1) == -1 && errno == EAGAIN, "a byte is left in a socket");
        }
    }

private:
    struct line {
        line() {
            expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
                   "no pair of sockets could be created");
        }
        line(const line&) = delete;
        line& operator=(const line&) = delete;
        ~line() {
            close(ends[0]);
            close(ends[1]);
        }
        auto_reset_event event;
        auto_reset_event receipt;
        int ends[2] = {-1, -1};
    };

    void give(worker& self, line& mine) {
        while (!self.is_over()) {
            if (self.random.one_in(2)) {
                mine.event.set();
            } else {
                expect(write(mine.ends[1], "x", 1) == 1, "a socket accepts no byte");
            }
            self.counts.in();
            support::jitter(self.random);
            wait_firmly(mine.receipt, self);
            self.counts.race();
            self.done(2);
        }
        open_.fetch_sub(1);
        closed_.set();
    }

    void serve(worker& self) {
        std::vector<source> from{closed_};
        for (auto& each : lines_) {
            from.emplace_back(each.event);
            from.push_back(tocsin::readable(each.ends[0]));
        }
        while (open_.load() != 0) {
            const auto found = self.timed([&] { return tocsin::wait_any(from); });
            self.done();
            if (found.index == 0) continue;
            line& giver = lines_[(found.index - 1) / 2];
            char byte;
            if (found.index % 2 == 0 && read(giver.ends[0], &byte, 1) != 1) {
                expect(errno == EAGAIN || errno == EINTR, "a socket reported as readable is broken");
                continue;
            }
            self.counts.out();
            giver.receipt.set();
            self.done();
        }
    }

    std::deque<line> lines_;
    std::atomic<std::size_t> open_;
    auto_reset_event closed_;
};

// Threads post, and a reader is released at most once per interval; it finds all posts made since the last release.
class few_releases : public scene {
public:
    explicit few_releases(support::random_source& random)
        : interval_(random.below(100'000)), slots_(1 + random.below(3)), open_(slots_.size()) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "released once an interval", [this](worker& self) { read(self); });
        for (auto& each : slots_) {
            hands.start(counted, "posts", [this, &each](worker& self) { post(self, each); });
        }
    }

    void check() override {
        for (auto& each : slots_) expect(each.read == each.posted.load(), "a post was not read");
    }

private:
    struct alignas(64) slot {
        std::atomic<std::uint64_t> posted{0};
        std::uint64_t read = 0;  // written by the reader
        auto_reset_event bell;
        auto_reset_event receipt;
    };

    void post(worker& self, slot& mine) {
        for (std::uint64_t number = 0; !self.is_over();) {
            for (auto more = 1 + self.random.below(4); more != 0; --more) {
                mine.posted.store(++number, std::memory_order_relaxed);
                mine.bell.set();
                self.counts.in();
                self.done();
            }
            wait_firmly(mine.receipt, self);
            self.counts.race();
        }
        open_.fetch_sub(1);
        closed_.set();
    }

    void read(worker& self) {
        tocsin::coalescer releases(interval_);
        std::vector<source> from{closed_};
        for (auto& each : slots_) from.emplace_back(each.bell);
        const auto begin = std::chrono::steady_clock::now();
        for (std::int64_t before = 0; open_.load() != 0; ++before) {
            const auto found = self.timed([&] {
                (void)releases.pause();
                return tocsin::wait_any(from);
            });
            releases.start();
            expect(std::chrono::steady_clock::now() - begin >= before * interval_,
                   "a coalescer released more than once per interval");
            self.done();
            if (found.index == 0) continue;
            slot& one = slots_[found.index - 1];
            const std::uint64_t posted = one.posted.load(std::memory_order_relaxed);
            self.counts.out(posted - one.read);
            self.counts.race();
            one.read = posted;
            one.receipt.set();
        }
        for (auto& each : slots_) {  // a poster's last posts, after one that got its receipt
            const std::uint64_t posted = each.posted.load(std::memory_order_relaxed);
            self.counts.out(posted - each.read);
            each.read = posted;
        }
    }

    const nanoseconds interval_;
    std::deque<slot> slots_;
    std::atomic<std::size_t> open_;
    auto_reset_event closed_;
};

template <class Scene>
std::unique_ptr<scene> make(support::random_source& random) {
    return std::make_unique<Scene>(random);
}

}  // namespace

std::vector<scene_kind> many_scenes() {
    return {{"wait_any: tokens", make<any_of_several>},
            {"wait_all: philosophers", make<philosophers>},
            {"wait_any: sets, bytes", make<sets_and_bytes>},
            {"coalescer: mailbox", make<few_releases>}};
}

}  // namespace soak

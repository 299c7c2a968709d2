// SPDX-License-Identifier: Apache-2.0
// Sequences of calls from several threads against a simple reference implementation.
//
// The bytes are a program of steps. In each step one to three idle actors make one call each at the same moment. The
// stage then waits until every actor has returned or is parked without a deadline. What can be observed must equal
// one of the reference's worlds: every result, which actors have returned, how many wait on each object, every
// event, word, channel, latch and lock. (How many permits a semaphore has shows in later calls.) The worlds that agree
// are kept for the next step.
// For the reference, a wait by an operation (tocsin/operation.hpp) is a wait like any other.
#include "reference.hpp"
#include "stage.hpp"

#include <tocsin/diagnose.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace fuzz {
namespace {

class bytes {
public:
    bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    bool empty() const { return size_ == 0; }
    unsigned next() {
        if (size_ == 0) return 0;
        --size_;
        return *data_++;
    }
    unsigned below(unsigned limit) { return next() % limit; }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

class program {
public:
    program(stage& real, bytes input) : real_(real), input_(input), worlds_{world()} { holder_.fill(actors); }

    void run() {
        real_.clear();
        for (int steps = 0; !input_.empty() && steps < 100; ++steps) {
            if (input_.below(16) == 0) {
                hand_over();
            } else {
                step();
            }
        }
        real_.release_all();
    }

private:
    std::vector<std::size_t> idle() const {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < actors; ++i) {
            if (real_.is_idle(i)) found.push_back(i);
        }
        return found;
    }

    void hand_over() {
        const auto free = idle();
        if (free.size() < 2) return;
        history_ += "a hand-over\n";
        real_.hand_over(free[0], free[1], input_.below(2) == 0);
    }

    void step() {
        std::vector<std::size_t> free = idle();
        std::vector<call> calls;
        for (std::size_t i = 0; i < actors; ++i) busy_[i] = !real_.is_idle(i);
        const std::size_t shared = draw_shared_object();
        for (unsigned count = 1 + input_.below(3); count != 0 && !free.empty(); --count) {
            const auto index = static_cast<std::ptrdiff_t>(input_.below(static_cast<unsigned>(free.size())));
            const std::size_t actor = free[static_cast<std::size_t>(index)];
            free.erase(free.begin() + index);
            busy_[actor] = true;
            calls.push_back(draw(actor, shared, !free.empty()));
        }
        for (const call& each : calls) history_ += text_of(each) + '\n';
        history_ += "--\n";
        if (!real_.play(calls)) fail("somebody neither returns nor is parked");

        std::set<world> all;
        for (world each : worlds_) {
            for (const call& some : calls) each.begin(some);
            all.merge(each.outcomes());
        }
        std::set<world> agreeing;
        for (const world& each : all) {
            if (agrees(each)) agreeing.insert(each);
        }
        if (agreeing.empty())
            fail("none of " + std::to_string(all.size()) + " possible worlds is the real one");
        if (real_.timed_out_early()) fail("a wait timed out early");
        worlds_ = std::move(agreeing);
        note_holders(calls);
    }

    // An object that an actor waits on, if the bytes say so.
    std::size_t draw_shared_object() {
        const unsigned drawn = input_.next();
        const std::size_t waiter = drawn % actors;
        const bool waits = !real_.is_idle(waiter);
        return waits && drawn < 192 ? worlds_.begin()->actor(waiter).doing.object : drawn % objects;
    }

    std::size_t draw_victim(unsigned drawn) const {
        for (std::size_t i = 0; i < actors; ++i) {
            const std::size_t victim = (drawn + i) % actors;
            if (!real_.is_idle(victim)) return victim;
        }
        return drawn % actors;
    }

    // Most calls of a step are for one object. An actor waits without a deadline only while another one is free to
    // release it.
    call draw(std::size_t actor, std::size_t shared, bool others_idle) {
        call made;
        made.actor = actor;
        const unsigned where = input_.below(4 * objects);
        made.object = where < objects ? where : shared;
        const unsigned shape = input_.next();
        made.flavour = shape % 3;
        made.until = shape / 3 % 8 == 0  ? patience::none
                     : shape / 3 % 8 < 3 ? patience::little
                                         : patience::endless;
        if (made.until == patience::endless && !others_idle) made.until = patience::little;
        made.stoppable = shape / 24 % 2 == 0;
        made.value = static_cast<std::uint8_t>(shape / 48 % 3);
        made.victim = draw_victim(shape);
        const unsigned delay = input_.next();
        made.delay = delay < 128 ? 0 : delay - 128;
        made.action = draw_verb(made);
        if (made.action == verb::lock) made.stoppable = false;  // locks take no stop token
        if (made.action == verb::receive_either) made.object = first_channel;
        if (made.action == verb::count_down) missing_[made.object - first_latch] -= made.arrivals();
        const bool takes_one =
            made.action == verb::wait || (made.action == verb::acquire && made.permits() == 1);
        made.by_operation = takes_one && shape >= 144;
        return made;
    }

    verb draw_verb_of_channel(unsigned drawn, const call& made) {
        if (drawn == 0 && input_.below(8) == 0) return verb::close;
        constexpr std::array verbs{verb::try_send, verb::send,    verb::send,    verb::send,
                                   verb::receive,  verb::receive, verb::receive, verb::try_receive};
        if (verbs[drawn] == verb::receive && made.object < first_channel + 2 && input_.below(2) == 0)
            return verb::receive_either;
        return verbs[drawn];
    }

    // A latch is never counted below zero, which would end the program.
    verb draw_verb_of_latch(unsigned drawn, const call& made) const {
        if (drawn == 0) return verb::try_wait;
        const bool may_count = missing_[made.object - first_latch] >= made.arrivals();
        return drawn < 3 && may_count ? verb::count_down : verb::wait;
    }

    verb draw_verb(const call& made) {
        const unsigned drawn = input_.below(10);
        if (drawn > 7) return verb::stop;
        if (made.object < first_semaphore) {
            constexpr std::array verbs{verb::set,  verb::set,  verb::reset, verb::is_set,
                                       verb::wait, verb::wait, verb::wait,  verb::try_wait};
            return verbs[drawn];
        }
        if (made.object < first_word) {
            constexpr std::array verbs{verb::release, verb::release, verb::release, verb::try_acquire,
                                       verb::acquire, verb::acquire, verb::acquire, verb::acquire};
            return verbs[drawn];
        }
        if (made.object < first_channel) {
            constexpr auto wait = verb::wait_on_address;
            constexpr std::array verbs{verb::store, verb::wake_one, verb::wake_two, verb::wake_all,
                                       wait,        wait,           wait,           wait};
            return verbs[drawn];
        }
        if (made.object < first_latch) return draw_verb_of_channel(drawn, made);
        if (is_latch(made.object)) return draw_verb_of_latch(drawn, made);
        if (made.object == first_condition) {
            constexpr auto wait = verb::wait_notified;
            constexpr std::array verbs{
                verb::notify_one, verb::notify_one, verb::notify_all, wait, wait, wait, wait, wait};
            return verbs[drawn];
        }
        if (holder_[made.object] == made.actor) return verb::unlock;
        return drawn == 0 ? verb::try_lock : verb::lock;
    }

    bool agrees(const world& one) const {
        things& real = real_.all();
        for (std::size_t i = 0; i < actors; ++i) {
            const bool returned = one.actor(i).now == phase::idle;
            if (returned != real_.is_idle(i)) return false;
            if (returned && busy_[i] && one.actor(i).came != real_.came(i)) return false;
        }
        for (std::size_t i = 0; i < addresses; ++i) {
            // Both bit locks are one address.
            const std::size_t waiting = one.waiting(i) + (i + 1 == addresses ? one.waiting(i + 1) : 0);
            if (real.waiting(i) != waiting) return false;
        }
        for (std::size_t i = 0; i < first_condition; ++i) {
            if ((i < first_semaphore || is_latch(i)) && one.is_set(i) != real.is_set(i)) return false;
        }
        for (std::size_t i = first_word; i < first_channel; ++i) {
            if (one.value(i) != real.value(i)) return false;
        }
        for (std::size_t i = first_channel; i < first_latch; ++i) {
            const auto& channel = real.channels[i - first_channel];
            if (one.is_closed(i) != channel.is_closed() || one.items(i) != channel.size()) return false;
        }
        return true;
    }

    // Only the actor that holds a lock unlocks it.
    void note_holders(const std::vector<call>& calls) {
        for (const call& each : calls) {
            if (each.action == verb::unlock) holder_[each.object] = actors;
        }
        const world& now = *worlds_.begin();
        for (std::size_t i = 0; i < actors; ++i) {
            const call& done = now.actor(i).doing;
            const bool took = done.action == verb::lock || done.action == verb::try_lock;
            if (took && now.actor(i).now == phase::idle && now.actor(i).came == result::yes &&
                holder_[done.object] == actors) {
                holder_[done.object] = i;
            }
        }
    }

    [[noreturn]] void fail(const std::string& why) const {
        std::fprintf(stderr, "%s\n%s\nIt is:\n", history_.c_str(), why.c_str());
        for (std::size_t i = 0; i < actors; ++i) {
            std::fprintf(stderr, "actor %zu: %s\n", i,
                         real_.is_idle(i) ? name_of(real_.came(i)).c_str() : "has not returned");
        }
        std::fprintf(stderr, "%s", tocsin::describe_parked_waits().c_str());
        std::abort();
    }

    stage& real_;
    bytes input_;
    std::set<world> worlds_;
    std::array<std::size_t, objects> holder_{};  // the actor that holds a lock; `actors`: nobody
    std::array<bool, actors> busy_{};            // those with a call in this step
    std::array<int, 2> missing_{expected_arrivals[0],
                                expected_arrivals[1]};  // of the latches, with all calls drawn
    std::string history_;
};

}  // namespace
}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static fuzz::stage stage;
    fuzz::program(stage, {data, size}).run();
    return 0;
}

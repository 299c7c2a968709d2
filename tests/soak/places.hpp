// SPDX-License-Identifier: Apache-2.0
// Tokens that wander between events. There are fewer tokens than events, each event holds one or none, and so no set is
// absorbed. A thread that takes a token puts it back at once, into a free place. So at the end all tokens are there.
#pragma once

#include "complaints.hpp"
#include "crew.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

namespace soak {

template <std::size_t Count>
class places {
public:
    explicit places(std::size_t tokens) : tokens_(tokens) {
        for (std::size_t i = 0; i != tokens; ++i) {
            all_[i].is_free = false;
            all_[i].event.set();
        }
    }

    static constexpr std::size_t count = Count;
    tocsin::auto_reset_event& operator[](std::size_t which) { return all_[which].event; }

    // Call after taking the token there.
    void took(std::size_t which, worker& self) {
        place& from = all_[which];
        if (from.last_holder != self.number) self.counts.race();
        from.last_holder = self.number;
        expect(!from.is_free.exchange(true), "a token appeared out of nothing");
        self.counts.out();
        self.done();
    }
    // Call once for each token taken.
    void put_back(worker& self) {
        for (std::size_t at = self.random.below(Count);; at = (at + 1) % Count) {
            bool free = true;
            if (!all_[at].is_free.compare_exchange_strong(free, false)) continue;
            self.counts.in();
            all_[at].event.set();
            self.done();
            return;
        }
    }

    // Call when no thread uses the places any more.
    void check() {
        std::size_t left = 0;
        for (place& each : all_) {
            left += each.event.try_wait() ? 1 : 0;
            expect(tocsin::waiting_on(&each.event) == 0, "a place of tokens has waiters but no threads");
        }
        expect(left == tokens_, std::to_string(left) + " tokens are left of " + std::to_string(tokens_));
    }

private:
    struct alignas(64) place {
        tocsin::auto_reset_event event;
        std::atomic<bool> is_free{true};
        unsigned last_holder = 0;  // written by the thread that takes the token
    };

    std::array<place, Count> all_;
    const std::size_t tokens_;
};

}  // namespace soak

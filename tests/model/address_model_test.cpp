// Every interleaving of small programs over address waits. Proof P7 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::plain;
using model::run;

constexpr auto relaxed = std::memory_order_relaxed;

TEST(address_model, AChangeThenAWakeIsNeverMissed) {
    holds_always([](run& r) {
        atomic<std::uint32_t> word{0};
        r.spawn("waiter", [&] {
            while (word.load(relaxed) == 0) {
                (void)wait_on_address(&word, 0u, deadline::never(), sleep_at_once);
            }
        });
        r.spawn("waker", [&] {
            word.store(1, relaxed);
            wake_by_address_one(&word);
        });
        r.join_all();
    });
}

TEST(address_model, AWakePublishesToTheThreadItReleases) {
    holds_always([](run& r) {
        atomic<std::uint8_t> word{0};
        plain<int> data{0};
        r.spawn("waiter", [&] {
            if (wait_on_address(&word, 0, deadline::never(), sleep_at_once) == address_status::woken) {
                model::check(data == 42, "what the waker wrote is visible");
            }
        });
        r.spawn("waker", [&] {
            data = 42;
            word.store(1, relaxed);
            wake_by_address_one(&word);
        });
        r.join_all();
    });
}

TEST(address_model, AChangedValuePublishesToThreadsThatSeeIt) {
    holds_always([](run& r) {
        atomic<std::uint64_t> word{0};
        plain<int> data{0};
        r.spawn("waiter", [&] {
            const auto [status, value] = wait_until_changed(&word, 0, deadline::never(), {}, sleep_at_once);
            model::check(status == wait_status::signaled && value == 1 && data == 42,
                         "the new value, and what was written before it");
        });
        r.spawn("waker", [&] {
            data = 42;
            word.store(1, std::memory_order_release);
            wake_by_address_one(&word);
        });
        r.join_all();
    });
}

TEST(address_model, TwoWakesReleaseTwoWaiters) {
    holds_within(2, [](run& r) {
        atomic<std::uint16_t> word{0};
        int woken = 0;
        std::size_t released = 0;
        for (const char* name : {"waiter 1", "waiter 2"}) {
            r.spawn(name, [&] {
                if (wait_on_address(&word, 0, deadline::never(), sleep_at_once) == address_status::woken)
                    ++woken;
            });
        }
        r.spawn("waker", [&] {
            word.store(1, relaxed);
            released += wake_by_address_one(&word);
            released += wake_by_address_one(&word);
        });
        r.join_all();
        r.check(static_cast<std::size_t>(woken) == released, "as many woke as were released");
    });
}

TEST(address_model, ATimeoutNeverEatsAWake) {
    holds_within(2, [](run& r) {
        atomic<std::uint32_t> word{0};
        std::size_t released = 0;
        std::size_t woken = 0;
        r.spawn("timed", [&] {
            if (wait_on_address(&word, 0u, some_time(), sleep_at_once) == address_status::woken) ++woken;
        });
        r.spawn("patient", [&] {
            if (wait_on_address(&word, 0u, deadline::never(), sleep_at_once) == address_status::woken)
                ++woken;
        });
        r.spawn("waker", [&] {
            word.store(1, relaxed);
            released += wake_by_address_one(&word);
            released += wake_by_address_n(&word, 5);
        });
        r.join_all();
        r.check(woken == released, "as many woke as were released");
    });
}

// Waiters on a neighbour in the same bucket, with the same filter bit, are never touched.
TEST(address_model, AWakeReachesItsOwnAddressOnly) {
    holds_within(2, [](run& r) {
        atomic<std::uint8_t> words[2]{};
        r.spawn("neighbour", [&] {
            model::check(
                wait_on_address(&words[1], 0, some_time(), sleep_at_once) == address_status::timed_out,
                "nobody woke the neighbour");
        });
        r.spawn("waiter", [&] {
            while (words[0].load(relaxed) == 0) {
                (void)wait_on_address(&words[0], 0, deadline::never(), sleep_at_once);
            }
        });
        r.spawn("waker", [&] {
            words[0].store(1, relaxed);
            wake_by_address_all(&words[0]);
        });
        r.join_all();
    });
}

TEST(address_model, TheWordMayBeGoneBeforeTheWake) {
    holds_always([](run& r) {
        auto* word = new atomic<std::uint32_t>(0);
        r.spawn("owner", [word] {
            while (word->load(std::memory_order_acquire) == 0) {
                (void)wait_on_address(word, 0u, deadline::never(), sleep_at_once);
            }
            delete word;
        });
        r.spawn("waker", [word] {
            word->store(1, std::memory_order_release);
            wake_by_address_one(word);
        });
        r.join_all();
    });
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Locks of every width, and two bits of one word whose other bits its user changes.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"

#include <tocsin/bit_lock.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/word_lock.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <string>

namespace soak {
namespace {

template <class Word>
class locks : public scene {
public:
    explicit locks(support::random_source& random) : threads_(some_threads(random) + 1) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i < threads_; ++i) {
            hands.start(counted, std::to_string(sizeof(Word)) + "-byte locker",
                        [this](worker& self) { work(self); });
        }
    }

    void check() override {
        for (auto& each : guarded_) {
            expect(each.entered == each.left.load(), "a lock was taken more often than released");
            expect(each.inside == 0, "a thread is still inside a lock");
        }
        expect((word_.load() & locked_bits) == 0, "a bit lock is left locked");
        expect(tocsin::waiting_on(&word_) == 0 && tocsin::waiting_on(&whole_) == 0,
               "a lock has waiters but no threads");
    }

private:
    static constexpr unsigned first_bit = 1;
    static constexpr unsigned second_bit = 6;
    static constexpr Word locked_bits = (1u << first_bit) | (1u << second_bit);
    static constexpr Word users_bit = 0b1000;

    // What a lock protects. All are plain except `left`, which a thread increments after its unlock.
    struct guarded {
        int inside = 0;
        unsigned last_holder = 0;
        std::uint64_t entered = 0;
        std::atomic<std::uint64_t> left{0};
    };

    void work(worker& self) {
        tocsin::bit_lock first(word_, first_bit);
        tocsin::bit_lock second(word_, second_bit);
        while (!self.is_over()) {
            switch (self.random.below(4)) {
                case 0: enter(self, whole_, guarded_[0]); break;
                case 1: enter(self, first, guarded_[1]); break;
                case 2: enter(self, second, guarded_[2]); break;
                default: word_.fetch_xor(users_bit, std::memory_order_relaxed);
            }
            self.done();
        }
    }

    template <class Lock>
    void enter(worker& self, Lock& lock, guarded& inner) {
        if (!take(self, lock)) return self.counts.race();
        expect(inner.inside++ == 0, "two threads are inside one lock");
        ++inner.entered;
        self.counts.in();
        if (inner.last_holder != self.number) self.counts.race();
        inner.last_holder = self.number;
        if (self.random.one_in(4)) support::jitter(self.random);
        --inner.inside;
        lock.unlock();
        inner.left.fetch_add(1, std::memory_order_relaxed);
        self.counts.out();
    }

    template <class Lock>
    bool take(worker& self, Lock& lock) {
        const std::chrono::nanoseconds longest(self.random.below(30'000));
        switch (self.random.below(5)) {
            case 0: return lock.try_lock();
            case 1:
            case 2: {
                const auto begin = std::chrono::steady_clock::now();
                const bool taken = lock.try_lock_for(longest);
                const auto waited = std::chrono::steady_clock::now() - begin;
                expect(taken || waited >= longest, "an attempt to lock timed out early");
                return taken;
            }
            default: return self.timed([&] { return lock.lock(), true; });
        }
    }

    const int threads_;
    tocsin::word_lock<Word> whole_;
    std::atomic<Word> word_{0};
    std::array<guarded, 3> guarded_;
};

std::unique_ptr<scene> make(support::random_source& random) {
    switch (random.below(4)) {
        case 0: return std::make_unique<locks<std::uint8_t>>(random);
        case 1: return std::make_unique<locks<std::uint16_t>>(random);
        case 2: return std::make_unique<locks<std::uint32_t>>(random);
        default: return std::make_unique<locks<std::uint64_t>>(random);
    }
}

}  // namespace

std::vector<scene_kind> lock_scenes() { return {{"word and bit locks", make}}; }

}  // namespace soak

// SPDX-License-Identifier: Apache-2.0
// Words of every width, side by side in cache lines, and wakes alongside words on which threads sleep for the whole
// run.
#include "address_scenes.hpp"

#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"

#include <tocsin/address.hpp>
#include <tocsin/diagnose.hpp>

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>

namespace soak {

template <class Word>
std::atomic<Word>& undisturbed_word() {
    alignas(64) static std::atomic<Word> place{0};
    return place;
}

namespace {

using std::chrono::nanoseconds;
using tocsin::address_status;

// Pairs of threads hand a number back and forth. Each pair has a word of its own, and the words are neighbours.
template <class Word>
class hand_offs : public scene {
public:
    explicit hand_offs(support::random_source& random) : pairs_(1 + random.below(3)) {}

    void enter(crew& hands, book& counted) override {
        for (std::size_t i = 0; i < 2 * pairs_; ++i) {
            hands.start(counted, std::to_string(sizeof(Word)) + "-byte player",
                        [this, i](worker& self) { play(self, words_[i / 2], static_cast<Word>(i % 2)); });
        }
    }

    void check() override {
        for (std::size_t i = 0; i < pairs_; ++i) {
            expect(is_last(words_[i].load()), "a hand-off was left behind");
            expect(tocsin::waiting_on(&words_[i]) == 0, "a word has waiters but no threads");
        }
    }

private:
    static constexpr Word first_last = 0xFE;
    static bool is_last(Word value) { return value >= first_last; }

    // An even value means that it is player 0's turn. The last value is one after which no player continues.
    void play(worker& self, std::atomic<Word>& word, Word parity) {
        for (bool first = parity == 0;; first = false) {
            Word value = word.load(std::memory_order_acquire);
            while (!is_last(value) && value % 2 != parity) {
                value = self.timed([&] { return wait(self, word, value); });
                self.done();
            }
            if (!first) {
                self.counts.out();
                self.counts.race();
            }
            if (is_last(value)) return;
            support::jitter(self.random);
            const bool last = self.is_over();
            word.store(last ? first_last : static_cast<Word>((value + 1) % 0xF0), std::memory_order_release);
            self.counts.in();
            tocsin::wake_by_address_one(&word);
            self.done();
            if (last) return;
        }
    }

    static Word wait(worker& self, std::atomic<Word>& word, Word value) {
        switch (self.random.below(4)) {
            case 0:
                (void)tocsin::wait_on_address(&word, value, nanoseconds(self.random.below(50'000)));
                break;
            case 1: return tocsin::wait_until_changed(&word, value);
            case 2: (void)tocsin::wait_on_address(&word, value); break;
            default: {
                const std::stop_source never;
                (void)tocsin::wait_on_address(&word, value, std::chrono::hours(1), never.get_token());
            }
        }
        return word.load(std::memory_order_acquire);
    }

    const std::size_t pairs_;
    alignas(64) std::array<std::atomic<Word>, 3> words_{};
};

// Every wait that reports that it was woken was counted by exactly one wake, of this word and not of a neighbour.
template <class Word>
class counted_wakes : public scene {
public:
    explicit counted_wakes(support::random_source& random) : waiters_(some_threads(random)) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "waker", [this](worker& self) { wake(self); });
        for (int i = 0; i < waiters_; ++i) {
            hands.start(counted, std::to_string(sizeof(Word)) + "-byte waiter",
                        [this](worker& self) { sleep(self); });
        }
    }

    void check() override {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            expect(given_[i] == received_[i].load(), std::to_string(given_[i]) + " wakes were given, " +
                                                         std::to_string(received_[i].load()) + " received");
        }
    }

private:
    void wake(worker& self) {
        while (!self.is_over()) {
            const auto which = self.random.below(words_.size());
            std::size_t released = 0;
            switch (self.random.below(3)) {
                case 0: released = tocsin::wake_by_address_one(&words_[which]); break;
                case 1: released = tocsin::wake_by_address_n(&words_[which], self.random.below(4)); break;
                default: released = tocsin::wake_by_address_all(&words_[which]);
            }
            given_[which] += released;
            self.counts.in(released);
            self.done();
            // Beside a word on which a thread sleeps that must not be woken.
            tocsin::wake_by_address_all(&undisturbed_word<Word>() + 1);
            support::jitter(self.random);
        }
    }

    void sleep(worker& self) {
        while (!self.is_over()) {
            const auto which = self.random.below(words_.size());
            const nanoseconds longest(self.random.below(100'000));
            const auto begin = std::chrono::steady_clock::now();
            const auto how = tocsin::wait_on_address(&words_[which], Word{0}, longest);
            const auto waited = std::chrono::steady_clock::now() - begin;
            self.counts.waited(waited);
            if (how == address_status::woken) {
                received_[which].fetch_add(1, std::memory_order_relaxed);
                self.counts.out();
                self.counts.race();
            } else {
                expect(how == address_status::timed_out && waited >= longest,
                       "an address wait ended too early");
            }
            self.done();
        }
    }

    const int waiters_;
    alignas(64) std::array<std::atomic<Word>, 3> words_{};
    std::array<std::atomic<std::uint64_t>, 3> received_{};
    std::array<std::uint64_t, 3> given_{};  // written by the waker
};

template <template <class> class Scene>
std::unique_ptr<scene> make(support::random_source& random) {
    switch (random.below(4)) {
        case 0: return std::make_unique<Scene<std::uint8_t>>(random);
        case 1: return std::make_unique<Scene<std::uint16_t>>(random);
        case 2: return std::make_unique<Scene<std::uint32_t>>(random);
        default: return std::make_unique<Scene<std::uint64_t>>(random);
    }
}

}  // namespace

template std::atomic<std::uint8_t>& undisturbed_word();
template std::atomic<std::uint16_t>& undisturbed_word();
template std::atomic<std::uint32_t>& undisturbed_word();
template std::atomic<std::uint64_t>& undisturbed_word();

std::vector<scene_kind> address_scenes() {
    return {{"address: hand-offs", make<hand_offs>}, {"address: wakes", make<counted_wakes>}};
}

}  // namespace soak

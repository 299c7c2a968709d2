// SPDX-License-Identifier: Apache-2.0
// One of each feature, in a second and without a framework, for compilers, systems and builds (-fno-exceptions) where
// the suites can't run. `tocsin_smoke refuse` misuses the library, which must report it: by an exception, or else by
// ending the program.
#include <tocsin/tocsin.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

using namespace std::chrono_literals;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "smoke: not so: %s\n", what);
    std::exit(1);
}

void tokens_balance() {
    constexpr int count = 2'000;
    tocsin::auto_reset_event there;
    tocsin::auto_reset_event back;
    std::thread answers([&] {
        for (int i = 0; i < count; ++i) {
            there.wait();
            back.set();
        }
    });
    for (int i = 0; i < count; ++i) {
        there.set();
        back.wait();
    }
    answers.join();
    expect(!there.try_wait() && !back.try_wait(), "every token is taken");
}

void a_gate_releases_all() {
    tocsin::manual_reset_event gate;
    std::atomic<int> through{0};
    std::array<std::thread, 4> threads;
    for (auto& each : threads) {
        each = std::thread([&] {
            gate.wait();
            through.fetch_add(1);
        });
    }
    gate.set();
    gate.reset();  // must not affect threads that waited; later ones need the next set
    gate.set();
    for (auto& each : threads) each.join();
    expect(through.load() == 4, "a gate releases everybody");
}

void a_wait_for_two_takes_one() {
    tocsin::auto_reset_event first;
    tocsin::auto_reset_event second;
    std::thread sets([&] { second.set(); });
    expect(tocsin::wait_any(first, second).index == 1, "the one that was set");
    sets.join();
    expect(!second.try_wait(), "what was taken is gone");
    expect(tocsin::wait_any({.until = 1ms}, first, second).status == tocsin::wait_status::timed_out,
           "a timeout");
}

template <class Word>
void an_address_is_waited_for(Word from, Word to) {
    std::atomic<Word> word{from};
    std::thread changes([&] {
        word.store(to);
        tocsin::wake_by_address_all(&word);
    });
    expect(tocsin::wait_until_changed(&word, from) == to, "the value it was changed to");
    changes.join();
    std::thread changes_back([&] { tocsin::exchange(&word, from, tocsin::wake_all); });
    expect(tocsin::wait_until_changed(&word, to) == from, "the value it was changed back to");
    changes_back.join();
}

void permits_balance() {
    constexpr int count = 2'000;
    tocsin::counting_semaphore<count> permits(0);
    std::thread takes([&] {
        for (int i = 0; i < count; ++i) permits.acquire();
    });
    for (int i = 0; i < count; i += 2) permits.release(2);
    takes.join();
    expect(!permits.try_acquire(), "every permit is taken");
    expect(!permits.try_acquire_for(1ms), "a timeout of a semaphore");
}

void a_condition_tells_of_each_turn() {
    constexpr int count = 2'000;
    tocsin::word_lock<> lock;
    tocsin::condition turned;
    int turn = 0;
    const auto take_turns = [&](int parity) {
        const std::scoped_lock held(lock);
        for (int i = 0; i < count; ++i) {
            turned.wait(lock, [&] { return turn % 2 == parity; });
            ++turn;
            turned.notify_one();
        }
    };
    std::thread other(take_turns, 1);
    take_turns(0);
    other.join();
    expect(turn == 2 * count, "every turn is taken");
    const std::scoped_lock held(lock);
    expect(turned.wait_for(lock, 1ms) == tocsin::cv_status::timeout, "a timeout of a condition");
}

void a_latch_opens_once() {
    tocsin::latch done(4);
    std::array<std::thread, 4> threads;
    for (auto& each : threads) each = std::thread([&] { done.arrive_and_wait(); });
    expect(tocsin::wait_any(done).index == 0, "the latch is ready");
    for (auto& each : threads) each.join();
    expect(done.try_wait(), "a latch that has opened stays open");
}

void a_barrier_ends_each_phase_once() {
    constexpr int phases = 200;
    int ended = 0;
    const auto count_the_end = [&]() noexcept { ++ended; };
    tocsin::barrier barrier(4, count_the_end);
    std::array<std::thread, 4> threads;
    for (auto& each : threads) {
        each = std::thread([&] {
            for (int i = 0; i < phases; ++i) barrier.arrive_and_wait();
        });
    }
    for (auto& each : threads) each.join();
    expect(ended == phases, "every phase ends once");
}

// In order, through as many slots as `capacity`; with 0, from hand to hand.
void items_arrive_in_order(std::size_t capacity) {
    constexpr int count = 2'000;
    tocsin::channel<int> items(capacity);
    std::thread sends([&] {
        for (int i = 0; i < count; ++i) (void)items.send(i);
        (void)items.close();
    });
    int received = 0;
    while (auto next = items.receive()) expect(*next == received++, "items arrive in order");
    sends.join();
    expect(received == count, "every item arrives");
    expect(items.try_send(0) == tocsin::channel_status::closed, "a closed channel takes nothing");
}

void a_choice_of_channels_receives_once() {
    tocsin::channel<int> first(0);
    tocsin::channel<int> second(1);
    std::thread sends([&] { (void)second.send(7); });
    auto from_first = first.receiving();
    auto from_second = second.receiving();
    expect(tocsin::wait_any(from_first, from_second).index == 1, "the channel that has an item");
    expect(from_second && *from_second == 7, "its item");
    sends.join();
    expect(second.size() == 0, "the item that was received is gone");
}

void misuse() {
    alignas(8) static char memory[16] = {};
    const void* const odd = memory + 1;
    (void)tocsin::wait_on_address(static_cast<const std::uint32_t*>(odd), 0u, 1ms);
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "refuse") == 0) {
        std::signal(SIGABRT,
                    [](int) { std::_Exit(3); });  // ctest counts a signal as a failure, whatever was printed
        misuse();
        std::fputs("smoke: misuse was not refused\n", stderr);
        return 0;
    }
    tokens_balance();
    a_gate_releases_all();
    a_wait_for_two_takes_one();
    an_address_is_waited_for<std::uint8_t>(1, 2);
    an_address_is_waited_for<std::uint16_t>(1, 2);
    an_address_is_waited_for<std::uint32_t>(1, 2);
    an_address_is_waited_for<std::uint64_t>(1, std::uint64_t{1} << 40);
    permits_balance();
    a_condition_tells_of_each_turn();
    a_latch_opens_once();
    a_barrier_ends_each_phase_once();
    items_arrive_in_order(0);
    items_arrive_in_order(1);
    items_arrive_in_order(64);
    a_choice_of_channels_receives_once();
    std::puts("smoke: all well");
    return 0;
}

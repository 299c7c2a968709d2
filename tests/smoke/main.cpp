// One of each feature, in a second and without a framework, for compilers, systems and builds (-fno-exceptions) where
// the suites can't run. `tocsin_smoke refuse` misuses the library, which must report it: by an exception, or else by
// ending the program.
#include <tocsin/tocsin.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
    std::puts("smoke: all well");
    return 0;
}

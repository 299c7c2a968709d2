// SPDX-License-Identifier: Apache-2.0
// A notify must not disturb threads that wait on other addresses.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "width.hpp"

#include <memory>
#include <new>

namespace lab {
namespace {

constexpr std::size_t stranger_count = 32;
constexpr std::uint64_t notify_count = 1'000;

// Words at a fixed distance from each other in zeroed, page-aligned memory.
template <class Word>
class spaced_words {
public:
    spaced_words(std::size_t count, std::size_t distance)
        : count_(count),
          distance_(distance),
          memory_(static_cast<std::byte*>(::operator new(count * distance, std::align_val_t(4096)))) {
        for (std::size_t i = 0; i < count; ++i) new (memory_ + i * distance) Word;
    }
    ~spaced_words() {
        for (std::size_t i = 0; i < count_; ++i) (*this)[i].~Word();
        ::operator delete(memory_, std::align_val_t(4096));
    }
    spaced_words(const spaced_words&) = delete;
    spaced_words& operator=(const spaced_words&) = delete;

    Word& operator[](std::size_t i) noexcept {
        return *std::launder(reinterpret_cast<Word*>(memory_ + i * distance_));
    }

private:
    std::size_t count_, distance_;
    std::byte* memory_;
};

struct strangers : scenario_of<strangers, address_words> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "strangers",
            .question = "Does waking one address disturb threads that wait on others?",
            .method =
                "32 threads sleep, each on a word of its own; the words lie side by side (neighbours) or a "
                "page apart. Another word among them, on which nobody waits, is changed 1,000 times, and "
                "one waiter woken each time. Context switches of the 32 and CPU of the process per notify",
            .columns = {{"disturbed", "value", "strangers' switches", "count", true},
                        {"cpu", "value", "CPU", "ns"},
                        syscalls_column},
            .cases = {{{{"words", "neighbours"}, {"bytes", "1"}}, tier::quick},
                      {{{"words", "page_apart"}, {"bytes", "4"}}, tier::quick},
                      {{{"words", "neighbours"}, {"bytes", "2"}}, tier::standard},
                      {{{"words", "page_apart"}, {"bytes", "8"}}, tier::standard}},
            .floor = "none is disturbed",
        };
        return about;
    }

    static constexpr std::string_view no_floor = "nobody is disturbed at best";

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return counts_switches ? "" : "the system does not tell how often a thread was switched";
    }

    template <class Word>
    static void run_with(context& run) {
        const std::size_t distance = run.given.text("words") == "neighbours" ? sizeof(Word) : 4096;
        // The word that is notified is in the middle of the others.
        spaced_words<Word> words(stranger_count + 1, distance);
        const auto stranger_word = [&](std::size_t i) -> Word& {
            return words[i < stranger_count / 2 ? i : i + 1];
        };
        Word& own = words[stranger_count / 2];
        std::atomic<bool> over{false};
        thread_group threads(stranger_count, [&](std::size_t i) {
            while (!over.load()) stranger_word(i).wait(0);
        });
        if (!threads.shortage().empty()) run.note(threads.shortage());
        threads.go();
        run.require(wait_until_asleep(threads.ids()), "the strangers sleep");

        const std::uint64_t before = context_switches_of(threads.ids());
        timed_section section(run);
        for (std::uint64_t i = 0; i < notify_count; ++i) {
            own.store(static_cast<std::uint8_t>(i % 2 + 1));
            own.wake_one();
        }
        section.stop(notify_count);
        wait_until_asleep(threads.ids());
        run.value("disturbed", static_cast<double>(context_switches_of(threads.ids()) - before) /
                                   static_cast<double>(notify_count));

        over = true;
        for (std::size_t i = 0; i < stranger_count; ++i) {
            stranger_word(i).store(1);
            stranger_word(i).wake_all();
        }
        threads.join();
    }
};

const registration<strangers> registered{lineup{}};

}  // namespace

}  // namespace lab

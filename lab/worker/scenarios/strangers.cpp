// Threads that wait on other addresses must sleep through a notify.
#include LAB_LINEUP
#include "../checks.hpp"
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

struct strangers {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "strangers",
            .question = "Does waking one address disturb threads that wait on others?",
            .method =
                "32 threads sleep, each on a word of its own: side by side (neighbours) or a page apart. "
                "1,000 "
                "times another word among them is changed and its one waiter, that isn't there, woken. "
                "Context "
                "switches of the 32 and CPU of the process per notify",
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

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>)
            return "nobody is disturbed at best";
        else if constexpr (!counts_switches)
            return "the system does not tell how often a thread was switched";
        else
            return refuses_address_word<C>(given);
    }

    template <class C>
    static void check(context& run) {
        check_address_words<C>(run);
    }

    template <class C>
    static void run(context& run) {
        with_address_word<C>(run.given, [&]<class Word>(std::type_identity<Word>) {
            disturb<Word>(run, run.given.text("words") == "neighbours" ? sizeof(Word) : 4096);
        });
    }

    template <class Word>
    static void disturb(context& run, std::size_t distance) {
        // The one that is woken is in their middle.
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

}  // namespace

void add_strangers(registry& all) { all.add<strangers>(lineup{}); }

}  // namespace lab

// Address waits that needn't sleep or wake: a wake with no waiter, a wait for a value that isn't there.
#include LAB_LINEUP
#include "../checks.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"
#include "width.hpp"

#include <array>
#include <memory>

namespace lab {
namespace {

std::vector<scenario_case> widths(std::vector<std::string> strangers) {
    std::vector<scenario_case> cases;
    for (const std::string& stranger : strangers) {
        for (const std::uint64_t bytes : {1u, 2u, 4u, 8u}) {
            parameters given;
            given.add("bytes", bytes);
            if (!stranger.empty()) given.add("stranger", stranger);
            cases.push_back({given, bytes == 4 || bytes == 1 ? tier::quick : tier::standard});
        }
    }
    return cases;
}

struct address_wake {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "address_wake",
            .question = "What does it cost to wake an address on which nobody waits?",
            .method =
                "one thread pinned to a core wakes one waiter of a word that has none, in batches; also "
                "while a "
                "stranger, an unrelated thread, sleeps on a word 4,096 bytes further on",
            .columns = {{"wake", "median", "a wake", "ns", true},
                        {"wake", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = widths({"none", "waiting"}),
            .floor = "a full fence and a load",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>)
            return {};
        else
            return refuses_address_word<C>(given);
    }
    template <class C>
    static void check(context& run) {
        check_address_words<C>(run);
    }

    template <class C>
    static void run(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        if constexpr (is_floor<C>) {
            std::atomic<std::uint32_t> word{0};
            time_batches(run, "wake", word, [](auto& subject) { physical::fence_and_load(subject); });
        } else {
            with_address_word<C>(run.given, [&]<class Word>(std::type_identity<Word>) { wake<Word>(run); });
        }
    }

    // Words a page apart, as page-aligned objects have them: a table that hashes badly puts them together.
    template <class Word>
    struct alignas(4096) page {
        Word word;
    };

    template <class Word>
    static void wake(context& run) {
        auto pages = std::make_unique<std::array<page<Word>, 2>>();
        Word& own = (*pages)[0].word;
        Word& other = (*pages)[1].word;
        if (run.given.text("stranger") == "none") {
            time_batches(run, "wake", own, [](Word& subject) { subject.wake_one(); });
            return;
        }
        std::atomic<bool> over{false}, left{false};
        other.store(1);
        thread_group stranger(1, [&](std::size_t) {
            pin_to_nth(1);
            while (!over.load()) other.wait(1);
            left = true;
        });
        stranger.go();
        run.require(wait_until_asleep(stranger.ids()), "the stranger sleeps");
        time_batches(run, "wake", own, [](Word& subject) { subject.wake_one(); });
        run.require(!left, "a wake of one word releases nobody who waits on another");
        over = true;
        other.store(2);
        other.wake_all();
        stranger.join();
    }
};

struct address_differs {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "address_differs",
            .question = "What does an address wait cost when the value is another one already?",
            .method = "one thread pinned to a core, in batches",
            .columns = {{"wait", "median", "a wait", "ns", true},
                        {"wait", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = widths({""}),
            .floor = "a plain load and a test",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>)
            return {};
        else
            return refuses_address_word<C>(given);
    }
    template <class C>
    static void check(context& run) {
        check_address_words<C>(run);
    }

    template <class C>
    static void run(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        if constexpr (is_floor<C>) {
            std::atomic<std::uint32_t> word{0};
            time_batches(run, "wait", word, [](auto& subject) { physical::load(subject); });
        } else {
            with_address_word<C>(run.given, [&]<class Word>(std::type_identity<Word>) {
                Word word;
                word.store(1);
                time_batches(run, "wait", word, [](Word& subject) { subject.wait(2); });
            });
        }
    }
};

}  // namespace

void add_address_wake(registry& all) { all.add<address_wake>(lineup{}); }
void add_address_differs(registry& all) { all.add<address_differs>(lineup{}); }

}  // namespace lab

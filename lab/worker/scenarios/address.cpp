// SPDX-License-Identifier: Apache-2.0
// Address waits without a sleeper: a wake that finds no waiter, a change that wakes and finds none, a wait that finds
// another value than the expected one.
#include "../lineup.hpp"
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

void pin(context& run) {
    if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
}

struct address_wake : scenario_of<address_wake, address_words> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "address_wake",
            .question = "What does it cost to wake an address on which nobody waits?",
            .method =
                "one thread pinned to a core wakes one waiter of a word that has none, in batches; also "
                "while a stranger, an unrelated thread, sleeps on a word 4,096 bytes further on",
            .columns = {{"wake", "median", "a wake", "ns", true},
                        {"wake", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = widths({"none", "waiting"}),
            .floor = "a full fence and a load",
        };
        return about;
    }

    static void run_floor(context& run) {
        pin(run);
        std::atomic<std::uint32_t> word{0};
        time_batches(run, "wake", word, [](auto& subject) { physical::fence_and_load(subject); });
    }

    // Words a page apart, as in page-aligned objects: a table with a bad hash puts them into the same bucket.
    template <class Word>
    struct alignas(4096) page {
        Word word;
    };

    template <class Word>
    static void run_with(context& run) {
        pin(run);
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
        run.require(!left, "a wake of one word releases nobody that waits on another");
        over = true;
        other.store(2);
        other.wake_all();
        stranger.join();
    }
};

struct address_change : scenario_of<address_change, address_words> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "address_change",
            .question = "What does it cost to change a word on which nobody waits, and to wake?",
            .method = "one thread pinned to a core adds 1 to a word and wakes one waiter, in batches",
            .columns = {{"change", "median", "a change", "ns", true},
                        {"change", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = widths({""}),
            .floor = "the read-modify-write alone",
        };
        return about;
    }

    static void run_floor(context& run) {
        pin(run);
        std::atomic<std::uint32_t> word{0};
        time_batches(run, "change", word, [](auto& subject) { keep(subject.fetch_add(1)); });
    }

    template <class Word>
    static void run_with(context& run) {
        pin(run);
        Word word;
        time_batches(run, "change", word, [](Word& subject) { subject.add_and_wake_one(); });
    }
};

struct address_differs : scenario_of<address_differs, address_words> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "address_differs",
            .question = "What does an address wait cost when the value has already changed?",
            .method = "one thread pinned to a core, in batches",
            .columns = {{"wait", "median", "a wait", "ns", true},
                        {"wait", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = widths({""}),
            .floor = "a plain load and a test",
        };
        return about;
    }

    static void run_floor(context& run) {
        pin(run);
        std::atomic<std::uint32_t> word{0};
        time_batches(run, "wait", word, [](auto& subject) { physical::load(subject); });
    }

    template <class Word>
    static void run_with(context& run) {
        pin(run);
        Word word;
        word.store(1);
        time_batches(run, "wait", word, [](Word& subject) { subject.wait(2); });
    }
};

const registration<address_wake> address_wake_registered{lineup{}};
const registration<address_change> address_change_registered{lineup{}};
const registration<address_differs> address_differs_registered{lineup{}};

}  // namespace

}  // namespace lab

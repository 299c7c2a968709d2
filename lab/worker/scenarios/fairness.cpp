// SPDX-License-Identifier: Apache-2.0
// How often each thread gets a lock and how long it waits for it, when several threads want it all the time.
#include "../lineup.hpp"
#include "../measure/machine.hpp"
#include "../measure/work.hpp"
#include "width.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace lab {
namespace {

constexpr std::uint64_t work_inside = 500, work_outside = 500;  // units of one to two nanoseconds

// A lock made of an event that is set while nobody has the lock.
template <class E>
class passed_on {
public:
    passed_on() { event_.set(); }
    void lock() { event_.wait(); }
    void unlock() { event_.set(); }

private:
    E event_;
};

// What the threads use as a lock: an auto event, or a lock of 4 bytes or of its own size.
struct locks_by_case {
    static bool is_event(const parameters& given) { return given.text("lock") == "event"; }

    template <class C, class F>
    static void with(const parameters& given, F f) {
        if (is_event(given)) {
            auto_events::with<C>(
                given, [&]<class E>(std::type_identity<E>) { f(std::type_identity<passed_on<E>>{}); });
        } else {
            (void)(offer_word_lock<C, std::uint32_t>(f) || offer_own_lock<C>(f));
        }
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if (is_event(given)) return auto_events::refuses<C>(given);
        const bool has_one = has_word_lock<C, std::uint32_t> || has_own_lock<C>;
        return has_one ? std::string() : std::string(C::info.no_lock);
    }

    template <class Lock>
    static void check(context& run) {
        check_lock<Lock>(run);
    }
};

struct fairness : scenario_of<fairness, locks_by_case> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "fairness",
            .question = "Does every thread get the lock, and how long does the unluckiest wait for it?",
            .method =
                "each thread takes the lock, works for 500 units (0.5 to 1 us), passes it on, works as long "
                "outside and wants it again, until the time is up. event: an auto event, which a set passes "
                "on; word: a word lock of 4 bytes, or a lock of its own size. A thread's longest wait is "
                "one value; shares are of the uses, 1 is even. Unpinned",
            .columns = {{"longest", "median", "longest wait", "ns", true},
                        {"longest", "most", "of the unluckiest", "ns"},
                        {"least_share", "value", "least share", "count"},
                        {"most_share", "value", "largest share", "count"},
                        {"use", "value", "time a use", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = {{{{"lock", "event"}, {"threads", "4"}}, tier::quick},
                      {{{"lock", "word"}, {"threads", "4"}}, tier::standard},
                      {{{"lock", "event"}, {"threads", "16"}}, tier::full},
                      {{{"lock", "word"}, {"threads", "16"}}, tier::full}},
            .floor = "none: an even share takes a thread switch per use, and the fastest way takes none",
        };
        return about;
    }

    static constexpr std::string_view no_floor = "an even share and a fast use exclude each other";

    struct alignas(128) record {
        std::uint64_t uses = 0;
        std::int64_t longest = 0;
    };

    template <class Lock>
    static void run_with(context& run) {
        const std::size_t wanted = run.given.number("threads");
        struct alignas(128) shared {
            Lock lock;
            alignas(128) std::uint64_t inside = 0;
        };
        const auto data = std::make_unique<shared>();
        std::vector<record> records(wanted);
        std::atomic<bool> over{false};
        thread_group threads(wanted, [&](std::size_t index) {
            record own;
            do {  // at least one use, however late this thread starts
                const std::int64_t start = now();
                data->lock.lock();
                own.longest = std::max(own.longest, now() - start);
                ++data->inside;
                work(work_inside);
                data->lock.unlock();
                work(work_outside);
                ++own.uses;
            } while (!over.load(std::memory_order_relaxed));
            records[index] = own;
        });
        if (!threads.shortage().empty()) run.note(threads.shortage());
        timed_section section(run);
        const std::int64_t start = now();
        threads.go();
        sleep_until(start + run.budget_ns());
        over = true;
        threads.join();
        report(run, section, now() - start, {records.data(), threads.size()}, data->inside);
    }

    static void report(context& run, timed_section& section, std::int64_t took,
                       std::span<const record> records, std::uint64_t inside) {
        std::uint64_t total = 0;
        for (const record& one : records) {
            total += one.uses;
            run.distribution("longest").record_nanoseconds(one.longest);
        }
        section.stop(total, 0, 1 + records.size());
        const auto [least, most] = std::ranges::minmax_element(records, {}, &record::uses);
        const double even = static_cast<double>(total) / static_cast<double>(records.size());
        run.value("least_share", static_cast<double>(least->uses) / even);
        run.value("most_share", static_cast<double>(most->uses) / even);
        run.value("use", static_cast<double>(took) / static_cast<double>(total));
        run.require(inside == total, "one thread at a time holds the lock");
    }
};

const registration<fairness> registered{lineup{}};

}  // namespace

}  // namespace lab

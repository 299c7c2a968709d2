// SPDX-License-Identifier: Apache-2.0
// A handler thread runs every accepted job once, in the order in which its poster gave them.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>

namespace soak {
namespace {

using namespace std::chrono_literals;

class jobs : public scene {
public:
    explicit jobs(support::random_source& random)
        : posters_(static_cast<std::size_t>(some_threads(random))),
          still_posting_(static_cast<int>(posters_.size())),
          handler_(some_options(random)) {}

    void enter(crew& hands, book& counted) override {
        for (auto& each : posters_) {
            hands.start(counted, "poster", [this, &each](worker& self) {
                give(self, each);
                if (still_posting_.fetch_sub(1) == 1) handler_.close();
            });
        }
        hands.start(counted, "heir", [this](worker& self) { await_the_end(self); });
    }

    void check() override {
        handler_.join();
        for (auto& each : posters_) expect(each.given == each.run, "a job was accepted but not run");
    }

private:
    struct poster {
        std::uint64_t given = 0;  // written by its thread
        std::uint64_t run = 0;    // written by the handler
    };

    static tocsin::handler_options some_options(support::random_source& random) {
        tocsin::handler_options options;
        if (!random.one_in(3)) options.capacity = 1 + random.below(8);
        return options;
    }

    static void run(poster& from, std::uint64_t number) {
        expect(from.run == number, "a job ran out of order");
        from.run = number + 1;
    }

    void give(worker& self, poster& mine) {
        const auto work = [&mine](std::uint64_t number) { return [&mine, number] { run(mine, number); }; };
        while (!self.is_over()) {
            const std::uint64_t number = mine.given;
            const std::chrono::nanoseconds longest(self.random.below(40'000));
            bool accepted = true;
            switch (self.random.below(5)) {
                case 0: accepted = handler_.try_post(work(number)) == tocsin::post_status::posted; break;
                case 1:
                    accepted = self.timed([&] { return handler_.post_for(work(number), longest); }) ==
                               tocsin::post_status::posted;
                    break;
                case 2: {
                    const auto seen = self.timed(
                        [&] { return handler_.send([&] { return run(mine, number), mine.run; }); });
                    expect(seen == number + 1, "a sent job came back with another's result");
                    break;
                }
                default: accepted = self.timed([&] { return handler_.post(work(number)); });
            }
            if (accepted) {
                ++mine.given;
                self.counts.in();
                self.counts.race();
            }
            self.done();
            support::jitter(self.random);
        }
        // When this returns, all jobs given before have been run.
        handler_.send([] {});
        expect(mine.run == mine.given, "jobs are missing");
        self.counts.out(mine.run);
    }

    // A wait that finds the handler ended sees what every job has done.
    void await_the_end(worker& self) {
        wait_status how = wait_status::timed_out;
        while (how == wait_status::timed_out) {
            const tocsin::limits briefly{.until = nanoseconds(self.random.below(10'000'000))};
            how = self.random.one_in(2) ? tocsin::wait_any(briefly, never_set_, handler_.ended()).status
                                        : tocsin::wait_all(briefly, handler_.ended());
            self.done();
        }
        for (auto& each : posters_)
            expect(each.given == each.run, "a handler has ended before it ran all jobs");
        expect(tocsin::wait_any({.until = 0s}, handler_.ended()).status == wait_status::signaled,
               "the end of a handler did not last");
    }

    std::deque<poster> posters_;
    std::atomic<int> still_posting_;
    tocsin::auto_reset_event never_set_;
    tocsin::handler_thread handler_;
};

}  // namespace

std::vector<scene_kind> handler_scenes() {
    return {{"handler thread", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<jobs>(random);
             }}};
}

}  // namespace soak

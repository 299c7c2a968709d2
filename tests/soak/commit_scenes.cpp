// SPDX-License-Identifier: Apache-2.0
// Group commit: every submission is in exactly one flush, or it is withdrawn and in none.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"

#include <tocsin/group_commit.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>

namespace soak {
namespace {

class commits : public scene {
public:
    explicit commits(support::random_source& random)
        : threads_(some_threads(random) + 1),
          log_([this](auto group) { flush(group); }, some_options(random)) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i < threads_; ++i) {
            hands.start(counted, "submitter", [this](worker& self) { submit_all(self); });
        }
    }

    void check() override {
        const auto seen = log_.statistics();
        expect(seen.submissions == flushed_, "the statistics disagree with what was flushed");
        expect(covered_.load() == flushed_, "a submission was flushed, but its submitter was not told");
        // A call whose deadline has already passed submits nothing, so it has nothing to withdraw.
        expect(seen.withdrawn <= withdrawn_.load(), "more was withdrawn than submitters were told");
        expect(seen.waiting == 0, "a submission waits, but no thread submits");
    }

private:
    struct record {
        int flushes = 0;
        bool failed = false;
        unsigned leader = 0;
    };
    struct failure : std::runtime_error {
        failure() : runtime_error("this flush fails on purpose") {}
    };

    static tocsin::group_commit_options some_options(support::random_source& random) {
        tocsin::group_commit_options options;
        if (random.one_in(3)) options.largest_group = 1 + random.below(3);
        if (random.one_in(3)) options.longest_gathering = std::chrono::microseconds(random.below(50));
        return options;
    }

    void flush(const tocsin::commit_group<record>& group) {
        expect(!flushing_, "two threads flush at once");
        flushing_ = true;
        const bool fails = ++flushes_ % 50 == 0;
        flushed_ += group.size();
        for (record& each : group) {
            ++each.flushes;
            each.failed = fails;
            each.leader = worker::current()->number;
        }
        flushing_ = false;
        if (fails) throw failure();
    }

    void submit_all(worker& self) {
        while (!self.is_over()) {
            record mine;
            self.counts.in();
            bool failed = false;
            auto how = tocsin::commit_status::committed;
            try {
                how = self.timed([&] { return submit(self, mine); });
            } catch (const failure&) {
                failed = true;
            }
            const bool taken = how == tocsin::commit_status::committed;
            expect(mine.flushes == (taken ? 1 : 0), "a submission was flushed too often or not at all");
            expect(mine.failed == failed, "a submission got another group's result");
            (taken ? covered_ : withdrawn_).fetch_add(1, std::memory_order_relaxed);
            if (mine.leader != self.number) self.counts.race();
            self.counts.out();
            self.done();
            support::jitter(self.random);
        }
    }

    tocsin::commit_status submit(worker& self, record& mine) {
        const std::chrono::nanoseconds longest(self.random.below(50'000));
        switch (self.random.below(4)) {
            case 0: return log_.submit({.until = longest}, mine);
            case 1: {
                const std::stop_source never;
                return log_.submit({.stop = never.get_token()}, mine);
            }
            default: log_.submit(mine); return tocsin::commit_status::committed;
        }
    }

    const int threads_;
    std::atomic<std::uint64_t> covered_{0};
    std::atomic<std::uint64_t> withdrawn_{0};
    bool flushing_ = false;  // this and the next two are plain; only the current flush uses them
    std::uint64_t flushes_ = 0;
    std::uint64_t flushed_ = 0;
    tocsin::group_commit<record> log_;
};

}  // namespace

std::vector<scene_kind> commit_scenes() {
    return {{"group commit", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<commits>(random);
             }}};
}

}  // namespace soak

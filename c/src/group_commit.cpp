// SPDX-License-Identifier: Apache-2.0
// Group commit with a flush function of C.
//
// A flush of C reports failure by a number instead of an exception. So the C++ flush never throws. It writes the number
// into the record of each submission that the flush has covered, and each submit() reads its own record. The records of
// submissions that the flush left to the next group stay untouched. A record is on its submitter's stack, and group
// commit orders the write before the return of submit().
//
// A flush that submits to its own group commit would wait for itself. So each thread has a list, on its stack, of the
// flushes that it is in, and submit() refuses such a call.
#include "boundary.hpp"

#include <tocsin/group_commit.hpp>

#include <atomic>
#include <chrono>
#include <new>

using namespace tocsin::c;

namespace tocsin::c {
namespace {

struct record {
    void* submission;
    int failure = 0;
};

struct in_flush {
    const void* commit;
    const in_flush* outer;
};
constinit thread_local const in_flush* innermost = nullptr;

bool is_in_flush_of(const void* commit) noexcept {
    for (const in_flush* each = innermost; each != nullptr; each = each->outer) {
        if (each->commit == commit) return true;
    }
    return false;
}

}  // namespace
}  // namespace tocsin::c

struct tocsin_commit_group {
    using iterator = tocsin::commit_group<record>::iterator;

    tocsin::commit_group<record> covered;
    iterator next = covered.begin();
    iterator last{};
};

namespace tocsin::c {
namespace {

class engine {
public:
    engine(tocsin_flush flush, void* context, const tocsin::group_commit_options& options)
        : flush_(flush),
          context_(context),
          commit_([this](tocsin::commit_group<record> covered) { run(covered); }, options) {}

    tocsin::commit_status submit(const tocsin::limits& how, record& mine) {
        return commit_.submit(how, mine);
    }

    tocsin_group_commit_statistics statistics() const noexcept {
        const tocsin::group_commit_statistics now = commit_.statistics();
        return {.groups = now.groups,
                .failed = failed_.load(std::memory_order_relaxed),  // no order: a count
                .submissions = now.submissions,
                .withdrawn = now.withdrawn,
                .largest_group = now.largest_group,
                .waiting = now.waiting,
                .gathering = now.gathering.count(),
                .flushing = now.flushing.count()};
    }

private:
    void run(const tocsin::commit_group<record>& covered) noexcept {
        const in_flush mark{this, innermost};
        innermost = &mark;
        tocsin_commit_group group{covered};
        const int failure = flush_(context_, &group);
        innermost = mark.outer;
        if (failure == 0) return;
        for (record& each : covered) each.failure = failure;
        failed_.fetch_add(1, std::memory_order_relaxed);  // no order: a count
    }

    const tocsin_flush flush_;
    void* const context_;
    std::atomic<std::uint64_t> failed_{0};
    tocsin::group_commit<record> commit_;
};

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_group_commit_init(tocsin_group_commit* commit, tocsin_flush flush, void* context,
                                       const tocsin_group_commit_options* options) {
    if (flush == nullptr ||
        (options != nullptr && object_at<tocsin_group_commit_options>(options) == nullptr)) {
        if (object_at<tocsin_group_commit>(commit) != nullptr) commit->opaque = nullptr;
        return refuse(__func__, "there is no flush, or the options are misaligned");
    }
    tocsin::group_commit_options chosen;
    if (options != nullptr && options->largest_group != 0) chosen.largest_group = options->largest_group;
    if (options != nullptr) chosen.longest_gathering = std::chrono::nanoseconds(options->longest_gathering);
    return make_held<engine>(commit, __func__, flush, context, chosen);
}
tocsin_status tocsin_group_commit_destroy(tocsin_group_commit* commit) {
    return destroy_held<engine>(commit);
}

tocsin_status tocsin_group_commit_submit(tocsin_group_commit* commit, void* submission,
                                         const tocsin_limits* how, int* failure) {
    if (failure != nullptr) *failure = 0;
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with_held<engine>(commit, [=, call = __func__](engine& one) {
        if (is_in_flush_of(&one)) return refuse(call, "a flush submits to its own group commit");
        record mine{submission};
        switch (one.submit(limits_of(how), mine)) {
            case tocsin::commit_status::timed_out: return TOCSIN_TIMED_OUT;
            case tocsin::commit_status::stopped: return TOCSIN_STOPPED;
            case tocsin::commit_status::committed: break;
        }
        if (mine.failure == 0) return TOCSIN_OK;
        if (failure != nullptr) *failure = mine.failure;
        return refuse(call, "the flush reported a failure", TOCSIN_ERROR_FLUSH);
    });
}

tocsin_status tocsin_group_commit_read_statistics(const tocsin_group_commit* commit,
                                                  tocsin_group_commit_statistics* statistics) {
    if (object_at<tocsin_group_commit_statistics>(statistics) == nullptr)
        return refuse(__func__, "there is no room for the statistics");
    return with_held<engine>(commit, [=](engine& one) { return *statistics = one.statistics(), TOCSIN_OK; });
}

size_t tocsin_commit_group_size(const tocsin_commit_group* group) {
    return group != nullptr ? group->covered.size() : 0;
}

bool tocsin_commit_group_next(tocsin_commit_group* group, void** submission) {
    if (group == nullptr || submission == nullptr || group->next == group->covered.end()) return false;
    group->last = group->next++;
    *submission = group->last->submission;
    return true;
}

tocsin_status tocsin_commit_group_rewind(tocsin_commit_group* group) {
    if (group == nullptr) return refuse(__func__, "there is no group");
    group->next = group->covered.begin();
    group->last = {};
    return TOCSIN_OK;
}

tocsin_status tocsin_commit_group_leave(tocsin_commit_group* group) {
    if (group == nullptr) return refuse(__func__, "there is no group");
    if (group->last == tocsin_commit_group::iterator() || group->last == group->covered.begin())
        return refuse(__func__, "a flush covers at least its first submission");
    return guarded(__func__, [=] {
        group->covered.leave_from(group->last);
        group->next = group->covered.end();
        return TOCSIN_OK;
    });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Group commit: any number of threads submit, and one of them at a time flushes for all that have joined it.
//
//     struct record { std::string_view text; std::uint64_t position; };
//     tocsin::group_commit<record> commit([&](tocsin::commit_group<record> group) {
//         for (record& each : group) each.position = append(each.text);
//         sync();                                      // once for the group
//     });
//     record mine{"hello", 0};
//     commit.submit(mine);                             // in any thread; when it returns, `mine` is on the disk
//
// docs/group_commit.md explains how to use it and what it guarantees.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/limits.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace tocsin {

// How a submission ended. If the flush of its group failed, submit() throws instead.
enum class commit_status : std::uint8_t {
    committed,  // covered by a flush that has succeeded
    timed_out,  // withdrawn: the deadline passed before a flush took it; no flush has seen it
    stopped,    // withdrawn: a stop was requested before a flush took it; no flush has seen it
};

// How groups form.
struct group_commit_options {
    // The largest number of submissions that one flush takes. Any others gather for the next flush. At least 1.
    std::size_t largest_group = (std::numeric_limits<std::size_t>::max)();
    // How long a group may wait for more members, counted from the arrival of its first member. A full group waits no
    // longer. With zero, no group is held back: it takes the members that have joined when its leader begins.
    std::chrono::nanoseconds longest_gathering{0};
};

// What a group_commit has done since it was made.
struct group_commit_statistics {
    std::uint64_t groups = 0;       // flushes that have ended
    std::uint64_t failed = 0;       // those of them that threw
    std::uint64_t submissions = 0;  // covered by these flushes
    std::uint64_t withdrawn = 0;    // timed out or stopped during the call
    std::size_t largest_group = 0;  // submissions in the largest group so far
    std::size_t waiting = 0;        // submissions in the queue right now; the leader's is not among them
    std::chrono::nanoseconds gathering{0};  // sum over the groups: from the first arrival to the flush
    std::chrono::nanoseconds flushing{0};   // sum over the groups: the flush
    // sizes[k] counts the groups of 2^k to 2^(k+1)-1 submissions. The last element also counts all larger groups.
    std::array<std::uint64_t, 32> sizes{};
};

namespace detail {

// One submission as the library sees it. It is on its submitter's stack.
struct submission {
    explicit submission(const volatile void* object TOCSIN_LIFETIMEBOUND) noexcept
        : what(const_cast<void*>(object)) {}
    void* const what;
};
TOCSIN_API submission* next_submission(const submission* before) noexcept;

// The submissions that one flush covers: from `first` to the one before `end`, or to the last of the group if `end` is
// null.
struct flushed_group {
    submission* first;
    submission* end;
    std::size_t count;
};
// Ends the group before `left`. Does nothing if `left` is not in the group. Throws std::invalid_argument if `left` is
// the first of the group.
TOCSIN_API void leave_from(flushed_group& group, const submission* left);

// The user's flush function, without its types.
class TOCSIN_API flusher {
public:
    virtual ~flusher();
    virtual void flush(flushed_group& group) = 0;
};

class TOCSIN_API commit_engine {
public:
    commit_engine(std::unique_ptr<flusher> flush, const group_commit_options& options);
    ~commit_engine();
    commit_engine(const commit_engine&) = delete;
    commit_engine& operator=(const commit_engine&) = delete;

    commit_status submit(const volatile void* object, const limits& how);
    group_commit_statistics statistics() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace detail

// The submissions that one flush covers, in the order in which they joined: a forward range that is valid during the
// flush. Its elements are the submitters' own objects.
template <class Submission>
class commit_group {
public:
    // A forward iterator over the submissions, in the order in which they joined. It is valid as long as the group.
    class iterator {
    public:
        using value_type = std::remove_cv_t<Submission>;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;
        using pointer = Submission*;
        using reference = Submission&;

        iterator() noexcept = default;
        reference operator*() const noexcept { return *static_cast<Submission*>(at_->what); }
        pointer operator->() const noexcept { return static_cast<Submission*>(at_->what); }
        iterator& operator++() noexcept {
            at_ = detail::next_submission(at_);
            return *this;
        }
        iterator operator++(int) noexcept {
            const iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const iterator&, const iterator&) noexcept = default;

    private:
        friend commit_group;
        explicit iterator(detail::submission* at TOCSIN_LIFETIMEBOUND) noexcept : at_(at) {}
        detail::submission* at_ = nullptr;
    };

    explicit commit_group(detail::flushed_group& group TOCSIN_LIFETIMEBOUND) noexcept : group_(&group) {}

    // The submissions, in the order in which they joined the group.
    iterator begin() const noexcept { return iterator(group_->first); }
    iterator end() const noexcept { return iterator(group_->end); }
    std::size_t size() const noexcept { return group_->count; }  // at least 1
    Submission& front() const noexcept { return *begin(); }

    // For a flush that can take only so many bytes, or only one kind of submission: leaves `first` and all submissions
    // behind it to the next group. This flush then covers only the submissions in front of `first`. The others are at
    // the front of the next group, in the same order, and that group does not wait for more members. The submissions
    // left to that group can't be withdrawn any more: a submit() with a deadline waits, even past the deadline, for the
    // flush that covers its submission.
    // Call this before you do the work that may fail, because an exception fails all submissions that are in the group
    // when it is thrown.
    // Throws std::invalid_argument if `first` is begin(): a flush covers at least one submission. Cost: a step for each
    // submission before `first` and, after the flush, one for each of the others.
    void leave_from(iterator first) const { detail::leave_from(*group_, first.at_); }

private:
    detail::flushed_group* group_;
};

// Any thread may submit at any time. Destroy the group_commit only after every submit() has returned. Checked builds
// stop the program if they see it destroyed earlier.
template <class Submission>
class group_commit {
public:
    // The library calls `flush` with a commit_group<Submission>, under no lock, in one of the threads that submit: the
    // leader of the group. Calls never overlap, and each sees what the one before it did. To report failure, `flush`
    // throws. All submitters of its group get the exception, and nobody else does. To tell one submitter something,
    // `flush` writes into the submission of that submitter. `flush` must not submit to the same group_commit (checked
    // builds stop the program). The constructor allocates. It throws std::invalid_argument if largest_group is 0.
    template <class Flush>
        requires std::invocable<Flush&, commit_group<Submission>>
    explicit group_commit(Flush flush, const group_commit_options& options = {})
        : engine_(std::make_unique<typed_flusher<Flush>>(std::move(flush)), options) {}

    // Blocks until a flush that covers the submission has ended: in the caller, which then leads, or in another thread.
    // That flush sees what the submitter did before, and the submitter then sees what the flush did. If the flush
    // throws, so does submit(): all submitters of the group get the same exception object, so treat it as const. Other
    // groups are not affected. `submission` must stay where it is until submit() returns. Afterwards nobody touches it.
    // Cost for a leader: at most five short locks, the flush, and about five wake-ups of other threads (up to nine on
    // more than 9 processors), however many submissions the flush covers. Cost for a thread that joins a group: one
    // short lock, and one sleep, before which it may yield up to four times. It may have to wake others
    // (docs/group_commit.md). Allocates nothing.
    commit_status submit(Submission& submission) { return engine_.submit(&submission, {}); }
    commit_status submit(Submission&& submission) { return submit(submission); }

    // The same, but withdraws the submission if the deadline passes or a stop is requested before a flush takes it. No
    // flush has seen a withdrawn submission, and none ever will. A submission that a flush has taken can't be
    // withdrawn, even if that flush leaves it to the next (leave_from()). submit() then waits for the result, even past
    // the deadline. A thread that is made the leader takes its own submission without another look at its limits,
    // unless its group is held back (longest_gathering). If a stop was requested before the call, nothing is submitted.
    // If the deadline has passed before the call (for example, with a duration of zero), the call submits and flushes
    // at once, without gathering, if no thread leads; otherwise nothing is submitted. Under an adaptive spin policy, a
    // thread that joins may yield up to four times before it sleeps. It does so if the last flush took at least 20 us
    // and yielding has recently paid (or, now and then, as a try). Under any other policy it sleeps at once.
    [[nodiscard]] commit_status submit(const limits& how, Submission& submission) {
        return engine_.submit(&submission, how);
    }
    template <class Never = void>
    commit_status submit(Submission&, const limits&) {
        static_assert(detail::never<Never>, "tocsin: limits come first: submit({.until = 50ms}, submission)");
        return {};
    }

    // The counts since construction, all as of one instant. Cost: one short lock.
    [[nodiscard]] group_commit_statistics statistics() const noexcept { return engine_.statistics(); }

private:
    template <class Flush>
    struct typed_flusher final : detail::flusher {
        static_assert(std::is_void_v<std::invoke_result_t<Flush&, commit_group<Submission>>>,
                      "tocsin: a flush returns nothing; it reports failure by an exception");
        explicit typed_flusher(Flush&& flush) : call(std::move(flush)) {}
        void flush(detail::flushed_group& group) override { call(commit_group<Submission>(group)); }
        Flush call;
    };

    detail::commit_engine engine_;
};

}  // namespace tocsin

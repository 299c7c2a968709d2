// Group commit: any number of threads submit, and one of them flushes for all that have joined.
//
//     struct record { std::string_view text; std::uint64_t position; };
//     tocsin::group_commit<record> commit([&](tocsin::commit_group<record> group) {
//         for (record& each : group) each.position = append(each.text);
//         sync();                                      // once for the group
//     });
//     record mine{"hello", 0};
//     commit.submit(mine);                             // in any thread; afterwards it is on the disk
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

// How a submission ended. If its group's flush failed, submit() throws instead.
enum class commit_status : std::uint8_t {
    committed,  // covered by a flush that has succeeded
    timed_out,  // withdrawn: the deadline passed before a flush took it; no flush has seen it
    stopped,    // withdrawn: a stop was requested before a flush took it; no flush has seen it
};

struct group_commit_options {
    // The most submissions that a flush takes; the others gather for the next. At least 1.
    std::size_t largest_group = (std::numeric_limits<std::size_t>::max)();
    // How long a group may wait for more members, counted from the arrival of its first. A full group waits no longer.
    // At zero no group waits artificially: it gathers while the flush before it runs.
    std::chrono::nanoseconds longest_gathering{0};
};

struct group_commit_statistics {
    std::uint64_t groups = 0;       // flushes that have ended
    std::uint64_t failed = 0;       // of them, those that threw
    std::uint64_t submissions = 0;  // covered by those flushes
    std::uint64_t withdrawn = 0;    // timed out or stopped
    std::size_t largest_group = 0;
    std::size_t waiting = 0;                // right now, for a flush to take them
    std::chrono::nanoseconds gathering{0};  // sum over the groups: from the first arrival to the flush
    std::chrono::nanoseconds flushing{0};   // sum over the groups: the flush
    // sizes[k]: groups of 2^k to 2^(k+1)-1 submissions; the last counts larger ones, too.
    std::array<std::uint64_t, 32> sizes{};
};

namespace detail {

// One submission as the library sees it, on its submitter's stack.
struct submission {
    explicit submission(const volatile void* object) noexcept : what(const_cast<void*>(object)) {}
    void* const what;
};
TOCSIN_API submission* next_submission(const submission* before) noexcept;

// The submissions from `first` to `end` (null: to the last of the group), for one flush.
struct flushed_group {
    submission* first;
    submission* end;
    std::size_t count;
};
// Ends the group before `left`, if that is in it. Throws std::invalid_argument if it is the first.
TOCSIN_API void leave_from(flushed_group& group, const submission* left);

// Your flush, without its types.
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
        explicit iterator(detail::submission* at) noexcept : at_(at) {}
        detail::submission* at_ = nullptr;
    };

    explicit commit_group(detail::flushed_group& group) noexcept : group_(&group) {}

    iterator begin() const noexcept { return iterator(group_->first); }
    iterator end() const noexcept { return iterator(group_->end); }
    std::size_t size() const noexcept { return group_->count; }  // at least 1
    Submission& front() const noexcept { return *begin(); }

    // Ends the group before `first`. The flush does not cover it and those behind it: they are the first of the next
    // group, in their order. For groups that are cut by bytes or by kind. Call it before the work is done that may
    // fail, because an exception fails all that are in the group at that moment. They can no longer be withdrawn: a
    // submit() with a deadline waits for the flush that covers it. The next group does not wait for more members.
    // Throws std::invalid_argument if `first` is begin(): a flush covers at least one. Cost: a step for each submission
    // before `first`.
    void leave_from(iterator first) const { detail::leave_from(*group_, first.at_); }

private:
    detail::flushed_group* group_;
};

// Any thread may submit at any time. The object must exist until every submit() has returned: checked builds stop the
// program if it is destroyed earlier.
template <class Submission>
class group_commit {
public:
    // `flush(commit_group<Submission>)` runs in the submitting thread that leads, under no lock. It never runs twice at
    // once, and each run sees what the one before it did. It reports failure by an exception, which all submitters of
    // its group get and nobody else. To tell one submitter something, it writes into that submission. It must not
    // submit to the same object (checked builds stop the program). The constructor allocates, and throws
    // std::invalid_argument for a largest group of 0.
    template <class Flush>
        requires std::invocable<Flush&, commit_group<Submission>>
    explicit group_commit(Flush flush, const group_commit_options& options = {})
        : engine_(std::make_unique<typed_flusher<Flush>>(std::move(flush)), options) {}

    // Blocks until a flush that covers the submission has ended. What the submitter did before is visible to that
    // flush, and what the flush did is visible to the submitter afterwards. If the flush throws, so does submit(): all
    // submitters of its group get the same exception object (treat it as const); other groups are not affected.
    // `submission` must stay where it is until submit() returns; afterwards nothing touches it.
    // A thread that finds no leader leads: it flushes for itself and for those that have joined. Other threads join and
    // sleep until their leader releases them, or until they are made the next leader.
    // Cost for a leader: three short locks (with longest_gathering at most five), the flush, and a few wake-ups of
    // other threads (about five at most, nine on 16 processors), however many it flushed for. Cost for a thread that
    // joins: one short lock, one sleep, and then the wake-ups of a few others of its group. Allocates nothing.
    void submit(Submission& submission) { (void)engine_.submit(&submission, {}); }
    void submit(Submission&& submission) { submit(submission); }

    // The same, but withdraws the submission if the deadline passes or a stop is requested before a flush takes it;
    // then no flush has seen it or ever will. A submission that has been taken can't be withdrawn, even if that flush
    // leaves it to the next: this then waits for the result, past the deadline. If the deadline has passed already,
    // or a stop was requested already, nothing is submitted. Ignores the spin policy.
    [[nodiscard]] commit_status submit(const limits& how, Submission& submission) {
        return engine_.submit(&submission, how);
    }
    template <class Never = void>
    commit_status submit(Submission&, const limits&) {
        static_assert(detail::never<Never>, "tocsin: limits come first: submit({.until = 50ms}, submission)");
        return {};
    }

    // What happened since construction, as of one instant. Cost: one short lock.
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

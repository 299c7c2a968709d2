// What a timer or a poll does when it is due: for coroutines, which have no thread of their own to do it while they wait.
#pragma once

#include "core/lot/resume_queue.hpp"

namespace tocsin::core {

class completion {
public:
    completion() noexcept = default;
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    virtual ~completion() = default;

    // Called when it is due, under the lock of the thread that serves it. Returns whether run() is to be called; if
    // so, the object exists until then.
    virtual bool claim() noexcept = 0;
    // Called under no lock, once.
    virtual void run() noexcept = 0;

private:
    friend class completions;
    completion* next_due_ = nullptr;
};

// Those that are due.
class completions {
public:
    void claim(completion& due) noexcept {
        if (!due.claim()) return;
        due.next_due_ = nullptr;
        (first_ != nullptr ? last_->next_due_ : first_) = &due;
        last_ = &due;
    }

    // Runs them all before any coroutine resumes. Returns whether there were any.
    bool run() noexcept {
        const defer_resumes until_all_have_run;
        const bool any = first_ != nullptr;
        while (completion* const each = first_) {
            first_ = each->next_due_;  // before it runs, after which it may be gone
            each->run();
        }
        return any;
    }

private:
    completion* first_ = nullptr;
    completion* last_ = nullptr;
};

}  // namespace tocsin::core

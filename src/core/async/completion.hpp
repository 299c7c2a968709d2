// What happens when a coroutine's timer or poll is due. A background thread does it, because a coroutine has no thread
// of its own while it waits.
#pragma once

#include "core/lot/resume_queue.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::core {

class completion : public detail::list_links<completion> {
public:
    completion() noexcept = default;
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    virtual ~completion() = default;

    // Called when the timer or poll is due, under the lock of the thread that serves it. Returns whether that thread
    // must call run(). If so, the object exists until then.
    virtual bool claim() noexcept = 0;
    // Called under no lock, once.
    virtual void run() noexcept = 0;
};

// A list of completions that are due.
class completions {
public:
    void claim(completion& due) noexcept {
        if (due.claim()) due_.append(due);
    }

    // Runs all of them before any coroutine resumes, and returns whether there were any. This calls coroutines and
    // executors, so it runs under the signal mask `makers`, which the thread's maker had.
    bool run(const platform::signal_mask& makers) noexcept {
        if (due_.empty()) return false;
        const platform::with_signals_of scope(makers);
        const defer_resumes until_all_have_run;
        while (completion* const each = due_.take_first()) each->run();  // after which it may be gone
        return true;
    }

private:
    detail::intrusive_list<completion> due_;
};

}  // namespace tocsin::core

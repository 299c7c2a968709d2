// The argument is in resume_queue.hpp.
#include "core/lot/resume_queue.hpp"

#include <utility>

namespace tocsin::core {

#if defined(TOCSIN_MODEL)

// The threads of a model share the locals of one thread, so coroutines continue at once.
defer_resumes::defer_resumes() noexcept {}
defer_resumes::~defer_resumes() {}
void resumable::resume_here(void (*run)(resumable&) noexcept) noexcept { run(*this); }
bool resumable::cancel() noexcept { return false; }
executor_scope::executor_scope(const resumable&) noexcept {}
executor_scope::~executor_scope() {}
bool executor_scope::is_inside(const resumable&) noexcept { return false; }

#else

namespace {

struct thread_state {
    bool inside = false;
    detail::intrusive_list<resumable> queue;
    const resumable* posted = nullptr;
};

// A set() in a signal handler looks at it, as in signal_deferral.cpp.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local thread_state self;

}  // namespace

defer_resumes::defer_resumes() noexcept : outermost_(!std::exchange(self.inside, true)) {}

defer_resumes::~defer_resumes() {
    if (!outermost_) return;
    while (resumable* const next = self.queue.take_first()) {
        const auto run = std::exchange(next->run_, nullptr);
        run(*next);
    }
    self.inside = false;
}

void resumable::resume_here(void (*run)(resumable&) noexcept) noexcept {
    const defer_resumes scope;
    run_ = run;
    self.queue.append(*this);
}

bool resumable::cancel() noexcept {
    if (run_ == nullptr) return false;
    run_ = nullptr;
    self.queue.remove(*this);
    return true;
}

executor_scope::executor_scope(const resumable& what) noexcept : outer_(std::exchange(self.posted, &what)) {}
executor_scope::~executor_scope() { self.posted = outer_; }
bool executor_scope::is_inside(const resumable& what) noexcept { return self.posted == &what; }

#endif

}  // namespace tocsin::core

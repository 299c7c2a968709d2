// The list of resumption.hpp; the argument is there.
#include "core/lot/resume_queue.hpp"

#include <utility>

namespace tocsin::core {

#if defined(TOCSIN_MODEL)

// The threads of a model share one thread's locals: coroutines go on at once.
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
    resumable* first = nullptr;
    resumable* last = nullptr;
    const resumable* posted = nullptr;
};

// A set() in a signal handler looks at it: as in signal_deferral.cpp.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local thread_state self;

}  // namespace

defer_resumes::defer_resumes() noexcept : outermost_(!std::exchange(self.inside, true)) {}

defer_resumes::~defer_resumes() {
    if (!outermost_) return;
    while (resumable* const next = self.first) {
        const auto run = next->run_;
        next->cancel();
        run(*next);
    }
    self.inside = false;
}

void resumable::resume_here(void (*run)(resumable&) noexcept) noexcept {
    const defer_resumes scope;
    run_ = run;
    next_ = nullptr;
    previous_ = self.last;
    (self.last != nullptr ? self.last->next_ : self.first) = this;
    self.last = this;
}

bool resumable::cancel() noexcept {
    if (run_ == nullptr) return false;
    run_ = nullptr;
    (previous_ != nullptr ? previous_->next_ : self.first) = next_;
    (next_ != nullptr ? next_->previous_ : self.last) = previous_;
    return true;
}

executor_scope::executor_scope(const resumable& what) noexcept : outer_(std::exchange(self.posted, &what)) {}
executor_scope::~executor_scope() { self.posted = outer_; }
bool executor_scope::is_inside(const resumable& what) noexcept { return self.posted == &what; }

#endif

}  // namespace tocsin::core

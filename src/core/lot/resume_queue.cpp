// The list of resumption.hpp; the argument is there.
#include "core/lot/resume_queue.hpp"

#include <utility>

namespace tocsin::core {

#if defined(TOCSIN_MODEL)

// The threads of a model share one thread's locals: coroutines go on at once.
resuming_later::resuming_later() noexcept {}
resuming_later::~resuming_later() {}
void resumable::go_on_here(void (*run)(resumable&) noexcept) noexcept { run(*this); }
bool resumable::call_off() noexcept { return false; }
posting::posting(const resumable&) noexcept {}
posting::~posting() {}
bool posting::is_inside(const resumable&) noexcept { return false; }

#else

namespace {

struct thread_state {
    bool inside = false;
    resumable* first = nullptr;
    resumable* last = nullptr;
    const resumable* posted = nullptr;
};

// A set() in a signal handler looks at it: as in critical_section.cpp.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local thread_state self;

}  // namespace

resuming_later::resuming_later() noexcept : outermost_(!std::exchange(self.inside, true)) {}

resuming_later::~resuming_later() {
    if (!outermost_) return;
    while (resumable* const next = self.first) {
        const auto run = next->run_;
        next->call_off();
        run(*next);
    }
    self.inside = false;
}

void resumable::go_on_here(void (*run)(resumable&) noexcept) noexcept {
    const resuming_later scope;
    run_ = run;
    next_ = nullptr;
    previous_ = self.last;
    (self.last != nullptr ? self.last->next_ : self.first) = this;
    self.last = this;
}

bool resumable::call_off() noexcept {
    if (run_ == nullptr) return false;
    run_ = nullptr;
    (previous_ != nullptr ? previous_->next_ : self.first) = next_;
    (next_ != nullptr ? next_->previous_ : self.last) = previous_;
    return true;
}

posting::posting(const resumable& what) noexcept : outer_(std::exchange(self.posted, &what)) {}
posting::~posting() { self.posted = outer_; }
bool posting::is_inside(const resumable& what) noexcept { return self.posted == &what; }

#endif

}  // namespace tocsin::core

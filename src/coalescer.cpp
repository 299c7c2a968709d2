// A pause, then a wait. The pause is a sleep that nobody knows of: no signal finds a waiter, so none makes a system
// call; each leaves its source ready, and the wait that follows looks at all of them before it sleeps.
//
// Checked by: tests/unit/coalescer_test.cpp.
#include "core/lot/waiter.hpp"

#include <tocsin/coalescer.hpp>

namespace tocsin {
namespace {

// Nobody releases this waiter: it ends by a stop or by time.
core::claim pause(const deadline& until, const detail::stop_token* stop) noexcept {
    core::waiter self;
    return self.sleep({until, stop, {}});
}

}  // namespace

any_result coalescer::wait(const detail::wait_options& options, std::span<const source> sources) {
    if (!next_.has_passed()) {
        const bool ends_first = options.until.remaining() < next_.remaining();
        if (pause(ends_first ? options.until : next_, options.stop) == core::claim::stopped) {
            return {wait_status::stopped};
        }
        if (ends_first) return {wait_status::timed_out};
    }
    const any_result result = detail::wait_any_slow(sources, options);
    if (result.status == wait_status::signaled) next_ = deadline(interval_);
    return result;
}

}  // namespace tocsin

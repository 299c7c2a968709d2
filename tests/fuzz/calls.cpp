// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

namespace fuzz {

std::string name_of(result what) {
    constexpr std::array names{"nothing", "yes",   "no",       "signaled", "timed out",
                               "stopped", "woken", "differed", "closed"};
    if (what < result::received_0) return names[static_cast<std::size_t>(what)];
    if (what < result::released_0)
        return "received " + std::to_string(static_cast<int>(what) - static_cast<int>(result::received_0));
    return "released " + std::to_string(static_cast<int>(what) - static_cast<int>(result::released_0));
}

bool may_wait(verb what) {
    switch (what) {
        case verb::wait:
        case verb::acquire:
        case verb::wait_on_address:
        case verb::send:
        case verb::receive:
        case verb::receive_either:
        case verb::wait_notified:
        case verb::lock: return true;
        default: return false;
    }
}

std::string text_of(const call& what) {
    constexpr std::array verbs{"set",           "reset",       "is_set",          "try_wait", "wait",
                               "release",       "try_acquire", "acquire",         "store",    "wake_one",
                               "wake_two",      "wake_all",    "wait_on_address", "try_send", "send",
                               "try_receive",   "receive",     "receive_either",  "close",    "count_down",
                               "wait_notified", "notify_one",  "notify_all",      "try_lock", "lock",
                               "unlock",        "stop"};
    constexpr std::array names{"token 0", "token 1", "gate 0",    "gate 1",    "semaphore 0", "semaphore 1",
                               "byte 0",  "byte 1",  "word",      "channel 0", "channel 1",   "channel 2",
                               "latch 0", "latch 1", "condition", "lock",      "bit lock 0",  "bit lock 1"};
    static_assert(verbs.size() == static_cast<std::size_t>(verb::stop) + 1 && names.size() == objects);
    constexpr std::array ends{", try only", ", for a moment", ", endless"};
    std::string text =
        "actor " + std::to_string(what.actor) + ": " + verbs[static_cast<std::size_t>(what.action)];
    if (what.action == verb::stop) return text + " actor " + std::to_string(what.victim);
    text += std::string(" ") + names[what.object];
    if (what.action == verb::store || what.action == verb::wait_on_address || what.action == verb::send ||
        what.action == verb::try_send)
        text += " value " + std::to_string(what.value);
    if (what.object >= first_semaphore && what.object < first_word)
        text += ", permits: " + std::to_string(what.permits());
    if (what.action == verb::count_down) text += " by " + std::to_string(what.arrivals());
    if (may_wait(what.action)) {
        text += ends[static_cast<std::size_t>(what.until)];
        if (what.stoppable) text += ", stoppable";
        if (what.by_operation) text += ", by an operation";
    }
    return text;
}

}  // namespace fuzz

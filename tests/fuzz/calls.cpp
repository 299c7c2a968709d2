#include "calls.hpp"

namespace fuzz {

std::string name_of(result what) {
    constexpr std::array names{"nothing",   "yes",     "no",    "signaled",
                               "timed out", "stopped", "woken", "differed"};
    if (what < result::released_0) return names[static_cast<std::size_t>(what)];
    return "released " + std::to_string(static_cast<int>(what) - static_cast<int>(result::released_0));
}

std::string text_of(const call& what) {
    constexpr std::array verbs{"set",      "reset",    "is_set",   "try_wait", "wait",
                               "store",    "wake_one", "wake_two", "wake_all", "wait_on_address",
                               "try_lock", "lock",     "unlock",   "stop"};
    constexpr std::array names{"token 0", "token 1", "gate 0", "gate 1",     "byte 0",
                               "byte 1",  "word",    "lock",   "bit lock 0", "bit lock 1"};
    constexpr std::array ends{", try only", ", for a moment", ", endless"};
    std::string text =
        "actor " + std::to_string(what.actor) + ": " + verbs[static_cast<std::size_t>(what.what)];
    if (what.what == verb::stop) return text + " actor " + std::to_string(what.victim);
    text += std::string(" ") + names[what.object];
    if (what.what == verb::store || what.what == verb::wait_on_address)
        text += " value " + std::to_string(what.value);
    if (what.what == verb::wait || what.what == verb::wait_on_address || what.what == verb::lock) {
        text += ends[static_cast<std::size_t>(what.until)];
        if (what.stoppable) text += ", stoppable";
    }
    return text;
}

}  // namespace fuzz

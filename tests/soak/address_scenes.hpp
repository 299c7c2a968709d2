// Where the sleepers sleep among the traffic of the address scenes.
#pragma once

#include <atomic>

namespace soak {

// A word of that width which holds 0 and which nobody ever wakes.
template <class Word>
std::atomic<Word>& resting_place();

}  // namespace soak

// SPDX-License-Identifier: Apache-2.0
// The words on which the sleepers sleep, amid the traffic of the address scenes.
#pragma once

#include <atomic>

namespace soak {

// A word of that width that holds 0 and that no scene ever wakes.
template <class Word>
std::atomic<Word>& undisturbed_word();

}  // namespace soak

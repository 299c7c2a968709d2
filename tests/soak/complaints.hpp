// SPDX-License-Identifier: Apache-2.0
// What went wrong: printed at once, and again at the end.
#pragma once

#include <string>
#include <vector>

namespace soak {

// Any thread may call it.
void complain(const std::string& what);

std::vector<std::string> complaints();

inline void expect(bool holds, const std::string& otherwise) {
    if (!holds) complain(otherwise);
}

}  // namespace soak

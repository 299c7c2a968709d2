// SPDX-License-Identifier: Apache-2.0
// What the soak prints: a header, its progress, and the table at the end.
#pragma once

#include "book.hpp"
#include "sleepers.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <string_view>

namespace soak {

void print_header(double minutes, std::uint64_t seed, std::string_view scene);

// A line every few seconds on a terminal, every ten seconds elsewhere.
class progress {
public:
    void look(const std::deque<book>& books, std::chrono::duration<double> elapsed, std::size_t threads);

private:
    double next_ = 0;
};

// Returns whether all is well: there are no complaints, and in every book as many tokens came out as went in.
bool print_table(const std::deque<book>& books, std::chrono::duration<double> elapsed,
                 const sleepers_report& rested, bool interrupted);

}  // namespace soak

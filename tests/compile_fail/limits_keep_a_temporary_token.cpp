// expect: use of deleted function|selected deleted operator
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/limits.hpp>

#include <stop_token>

void keeps(std::stop_source& source) {
    const std::stop_token token = source.get_token();
    tocsin::limits how;
    how.stop = token;
}

#if defined(MISUSE)
void dangles(std::stop_source& source) {
    tocsin::limits how;
    how.stop = source.get_token();
}
#endif

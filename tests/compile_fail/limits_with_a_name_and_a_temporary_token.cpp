// expect of clang: temporary whose address is used
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <stop_token>

tocsin::wait_status fine(tocsin::auto_reset_event& event, std::stop_source& source) {
    return tocsin::wait_any({.stop = source.get_token()}, event).status;
}

#if defined(MISUSE)
tocsin::wait_status dangles(tocsin::auto_reset_event& event, std::stop_source& source) {
    const tocsin::limits how{.stop = source.get_token()};
    return tocsin::wait_any(how, event).status;
}
#endif

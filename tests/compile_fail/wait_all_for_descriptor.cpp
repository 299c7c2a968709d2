// expect only: a wait for all takes no descriptor, process, signal or object that processes share
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <vector>

tocsin::auto_reset_event a;

// A descriptor remains a source like any other in every wait for the first of several, and in every list.
void fine(bool asks) {
    const auto socket = tocsin::readable(0);
    tocsin::wait_any(a, socket, tocsin::writable(1));
    tocsin::wait_any(a, asks ? tocsin::readable(0) : tocsin::never_ready());
    const std::array<tocsin::source, 2> both{socket, tocsin::ready(1, tocsin::readiness::hang_up)};
    tocsin::wait_any(both);
    std::vector<tocsin::source> many{tocsin::readable(0), a};
    many.push_back(tocsin::writable(1));
    many.emplace_back(socket);
    tocsin::wait_any(many);
    tocsin::wait_all(many);  // throws
    tocsin::source one = tocsin::readable(0);
    one = tocsin::after(std::chrono::seconds(1));
    tocsin::wait_all(a, one);
}

#if defined(MISUSE)
void wait() { tocsin::wait_all(a, tocsin::readable(0)); }
#endif

// SPDX-License-Identifier: Apache-2.0
#include "platform/poller/windows_look.hpp"

#include <algorithm>
#include <cerrno>

namespace tocsin::platform {
namespace {

struct network_word {
    short asked;
    readiness ours;
};
constexpr network_word network_words[] = {
    {POLLRDNORM, readiness::readable}, {POLLWRNORM, readiness::writable}, {POLLRDBAND, readiness::urgent}};

short to_network_words(readiness asked) noexcept {
    int words = 0;
    for (const auto& each : network_words) words |= has(asked, each.ours) ? each.asked : 0;
    return static_cast<short>(words);
}

// Windows reports a hang-up as soon as the peer has closed its side of the connection. From then on a read returns the
// end of the stream, so a hang-up also means `readable`.
readiness from_network_words(readiness asked, short found) noexcept {
    readiness result = readiness::none;
    for (const auto& each : network_words) {
        if ((found & each.asked) != 0 && has(asked, each.ours)) result = result | each.ours;
    }
    if ((found & POLLERR) != 0) result = result | readiness::error;
    if ((found & POLLNVAL) != 0) result = result | readiness::invalid;
    if ((found & POLLHUP) != 0) {
        if (has(asked, readiness::readable)) result = result | readiness::readable;
        if (has(asked, readiness::hang_up) || (found & POLLERR) != 0) result = result | readiness::hang_up;
    }
    return result;
}

readiness look_at_handle(const poll_entry& what) noexcept {
    switch (::WaitForSingleObject(handle_of(what.descriptor), 0)) {
        case WAIT_OBJECT_0:
        case WAIT_ABANDONED: return readiness::signaled;
        case WAIT_TIMEOUT: return readiness::none;
        default: return readiness::invalid;
    }
}

}  // namespace

const socket_functions& sockets() noexcept {
    static const socket_functions found;
    return found;
}

int look(std::span<poll_entry> what, WSAPOLLFD* storage) noexcept {
    ULONG size = 0;
    for (poll_entry& each : what) {
        each.found = each.descriptor < 0 ? readiness::invalid
                     : is_handle(each)   ? look_at_handle(each)
                                         : readiness::none;
        if (each.descriptor < 0 || is_handle(each)) continue;
        storage[size++] = WSAPOLLFD{socket_of(each.descriptor), to_network_words(each.asked), 0};
    }
    if (size == 0) return 0;
    if (!sockets().are_found()) return ENOSYS;
    // If WSAPoll can look at none of the sockets, it fails and does not say which sockets are invalid. So this function
    // then asks about each socket alone.
    if (sockets().poll(storage, size, 0) < 0) {
        for (ULONG i = 0; i != size; ++i) {
            if (sockets().poll(&storage[i], 1, 0) < 0) storage[i].revents = POLLNVAL;
        }
    }
    ULONG next = 0;
    for (poll_entry& each : what) {
        if (each.descriptor < 0 || is_handle(each)) continue;
        each.found = from_network_words(each.asked, storage[next++].revents);
    }
    return 0;
}

std::size_t count_ready(std::span<const poll_entry> what) noexcept {
    return static_cast<std::size_t>(std::count_if(
        what.begin(), what.end(), [](const poll_entry& each) { return each.found != readiness::none; }));
}

}  // namespace tocsin::platform

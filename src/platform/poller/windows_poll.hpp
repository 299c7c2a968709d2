// Windows: one poll. The argument: windows_poll.cpp.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/windows.hpp"

#include <span>

#include <winsock2.h>

namespace tocsin::platform {

// As poller_backend::poll; a null bell: none. `storage` has room for as many as `what`.
poll_result poll_with(std::span<poll_entry> what, doorbell* bell, const deadline& until,
                      WSAPOLLFD* storage) noexcept;

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// A service serves timers and poll requests. It is either the library's background threads (timer_thread.cpp,
// poll_thread.cpp) or a driver. With a driver, a loop of the user does the work of these threads (src/driver.cpp).
//
// All parts of one wait use the same service. Whoever begins the wait chooses it once: the service that the wait names
// or, if it names none, default_service(). A null pointer means the background threads.
#pragma once

#include <tocsin/deadline.hpp>

namespace tocsin::core {

class poll_request;
class timer;

class timer_service {
public:
    virtual void set(timer& one, const deadline& when) noexcept = 0;
    // Afterwards, nobody claims the timer.
    virtual void cancel(timer& one) noexcept = 0;

protected:
    ~timer_service() = default;
};

class poll_service {
public:
    // May throw std::system_error or std::bad_alloc. Then the request is not set.
    virtual void set(poll_request& one) = 0;
    // Afterwards, nobody claims the request.
    virtual void cancel(poll_request& one) noexcept = 0;

protected:
    ~poll_service() = default;
};

// Serves all parts of a wait.
class service : public timer_service, public poll_service {
protected:
    ~service() = default;
};

// The service of the waits that name no service of their own. A wait reads it once, when it begins. Null means the
// background threads. It is null at first, and in the child of a fork.
service* default_service() noexcept;
void set_default_service(service* which) noexcept;
// If `which` is the default service, makes the default null.
void unset_default_service(service& which) noexcept;

}  // namespace tocsin::core

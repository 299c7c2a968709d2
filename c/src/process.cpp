// SPDX-License-Identifier: Apache-2.0
// The end of a process, and signals.
#include "boundary.hpp"

#include <tocsin/process.hpp>
#include <tocsin/signal.hpp>

using namespace tocsin::c;
using tocsin::process_end;
#if TOCSIN_C_SIGNALS
using tocsin::signal_source;
#endif

extern "C" {

tocsin_status tocsin_process_end_init(tocsin_process_end* end, intptr_t process) {
#if defined(_WIN32)
    return make_held<process_end>(end, __func__, reinterpret_cast<void*>(process));
#else
    const auto number = static_cast<process_end::number>(process);
    if (number != process || number <= 0) {
        if (object_at<tocsin_process_end>(end) != nullptr) end->opaque = nullptr;
        return refuse(__func__, "no number of a process");
    }
    return make_held<process_end>(end, __func__, number);
#endif
}
tocsin_status tocsin_process_end_destroy(tocsin_process_end* end) { return destroy_held<process_end>(end); }
tocsin_status tocsin_process_end_try_wait(const tocsin_process_end* end) {
    return with_held<process_end>(end, [](const process_end& one) { return done_if(one.try_wait()); });
}
tocsin_status tocsin_process_end_exit_status(const tocsin_process_end* end, tocsin_process_exit* how) {
    if (object_at<tocsin_process_exit>(how) == nullptr)
        return refuse(__func__, "`how` is null or misaligned");
    return with_held<process_end>(end, [=](const process_end& one) {
        const auto exit = one.exit_status();
        if (exit) *how = {exit->code, exit->by_signal ? 1u : 0u};
        return done_if(exit.has_value());
    });
}
int tocsin_process_end_descriptor(const tocsin_process_end* end) {
    const process_end* const one = held_at<process_end>(end);
    return one != nullptr ? one->descriptor() : -1;
}

#if TOCSIN_C_SIGNALS

tocsin_status tocsin_signal_init(tocsin_signal* signal, int number) {
    return make_held<signal_source>(signal, __func__, number);
}
tocsin_status tocsin_signal_destroy(tocsin_signal* signal) { return destroy_held<signal_source>(signal); }
tocsin_status tocsin_signal_try_wait(tocsin_signal* signal) {
    return with_held<signal_source>(signal, [](signal_source& one) { return done_if(one.try_wait()); });
}
int tocsin_signal_descriptor(const tocsin_signal* signal) {
    const signal_source* const one = held_at<signal_source>(signal);
    return one != nullptr ? one->descriptor() : -1;
}

#else

tocsin_status tocsin_signal_init(tocsin_signal* signal, int) {
    if (object_at<tocsin_signal>(signal) != nullptr) signal->opaque = nullptr;
    return refuse(__func__, "this system has no POSIX signals", TOCSIN_ERROR_UNSUPPORTED);
}
tocsin_status tocsin_signal_destroy(tocsin_signal*) { return refuse(__func__, "there is no such object"); }
tocsin_status tocsin_signal_try_wait(tocsin_signal*) { return refuse(__func__, "there is no such object"); }
int tocsin_signal_descriptor(const tocsin_signal*) { return -1; }

#endif

}  // extern "C"

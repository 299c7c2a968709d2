// SPDX-License-Identifier: Apache-2.0
// A plug-in with its own copy of the library, and with a source of SIGTERM.
#include "plugin.hpp"

#include <tocsin/signal.hpp>

#include <csignal>

namespace {

tocsin::signal_source* source = nullptr;

void make() { source = new tocsin::signal_source(SIGTERM); }
bool take() { return source->try_wait(); }
void destroy() {
    delete source;
    source = nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const plugin_functions* tocsin_test_plugin() {
    static const plugin_functions functions{make, take, destroy};
    return &functions;
}

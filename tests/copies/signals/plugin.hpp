// SPDX-License-Identifier: Apache-2.0
// What a plug-in of this test gives to its host, which does not know tocsin. The plug-in has one source of SIGTERM.
#pragma once

struct plugin_functions {
    void (*make)();
    bool (*take)();
    void (*destroy)();
};

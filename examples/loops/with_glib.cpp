// SPDX-License-Identifier: Apache-2.0
// An event in GLib's main loop.
#include "work.hpp"

#include <tocsin/glib.hpp>

int main() {
    work job;
    GMainLoop* const loop = g_main_loop_new(nullptr, FALSE);
    tocsin::glib::watch(
        nullptr,
        [&](tocsin::any_result) {
            const bool all = job.collect();
            if (all) g_main_loop_quit(loop);
            return !all;
        },
        job.ready);
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
    return job.verdict("GLib");
}

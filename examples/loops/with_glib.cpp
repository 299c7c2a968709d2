// An event in GLib's main loop: a source on the view's descriptor.
#include "work.hpp"

#include <tocsin/pollable.hpp>

#include <glib-unix.h>

namespace {

struct watched {
    work job;
    tocsin::pollable view{job.ready};
    GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
};

gboolean on_readable(int, GIOCondition, void* data) {
    auto& what = *static_cast<watched*>(data);
    if (!what.view.try_wait() || !what.job.collect()) return G_SOURCE_CONTINUE;
    g_main_loop_quit(what.loop);
    return G_SOURCE_REMOVE;
}

}  // namespace

int main() {
    watched what;
    g_unix_fd_add(what.view.descriptor(), G_IO_IN, on_readable, &what);
    g_main_loop_run(what.loop);
    g_main_loop_unref(what.loop);
    return what.job.verdict("GLib");
}

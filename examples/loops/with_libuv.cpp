// An event in libuv's loop: uv_poll on the view's descriptor.
#include "work.hpp"

#include <tocsin/pollable.hpp>

#include <uv.h>

namespace {

struct watched {
    work job;
    tocsin::pollable view{job.ready};
    uv_poll_t poll;
};

void on_readable(uv_poll_t* poll, int, int) {
    auto& what = *static_cast<watched*>(poll->data);
    if (what.view.try_wait() && what.job.collect()) uv_close(reinterpret_cast<uv_handle_t*>(poll), nullptr);
}

}  // namespace

int main() {
    watched what;
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0 || uv_poll_init(&loop, &what.poll, what.view.descriptor()) != 0) return 2;
    what.poll.data = &what;
    uv_poll_start(&what.poll, UV_READABLE, on_readable);
    uv_run(&loop, UV_RUN_DEFAULT);  // until the poll is closed
    uv_loop_close(&loop);
    return what.job.verdict("libuv");
}

// SPDX-License-Identifier: Apache-2.0
// An event in libuv's loop.
#include "work.hpp"

#include <tocsin/uv.hpp>

int main() {
    work job;
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) return 2;
    tocsin::uv::watch(&loop, [&](tocsin::any_result) { return !job.collect(); }, job.ready);
    uv_run(&loop, UV_RUN_DEFAULT);  // until the watch has ended
    uv_loop_close(&loop);
    return job.verdict("libuv");
}

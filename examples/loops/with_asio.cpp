// SPDX-License-Identifier: Apache-2.0
// An event in Asio's io_context: each completion waits for the next.
#include "work.hpp"

#include <tocsin/asio.hpp>

#include <asio/io_context.hpp>

namespace {

void collect_results(asio::io_context& context, work& job) {
    tocsin::asio::async_wait(context, job.ready, [&](asio::error_code error, tocsin::wait_status) {
        if (!error && !job.collect()) collect_results(context, job);
    });
}

}  // namespace

int main() {
    work job;
    asio::io_context context;
    collect_results(context, job);
    context.run();  // until nothing waits any more
    return job.verdict("Asio");
}

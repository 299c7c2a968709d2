// An event in Asio's io_context. async_wait() completes at once if the descriptor is already readable, so one
// try_wait() per completion is enough.
#include "work.hpp"

#include <tocsin/pollable.hpp>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace {

class watched {
public:
    explicit watched(asio::io_context& context) : descriptor_(context, view_.descriptor()) { wait(); }
    ~watched() { descriptor_.release(); }  // the view closes the descriptor

    const work& job() const { return job_; }

private:
    void wait() {
        descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                               [this](const asio::error_code& error) {
                                   if (error) return;
                                   if (view_.try_wait() && job_.collect()) return;
                                   wait();
                               });
    }

    work job_;
    tocsin::pollable view_{job_.ready};
    asio::posix::stream_descriptor descriptor_;
};

}  // namespace

int main() {
    asio::io_context context;
    watched what(context);
    context.run();  // until nothing waits any more
    return what.job().verdict("Asio");
}

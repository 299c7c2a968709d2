// SPDX-License-Identifier: Apache-2.0
// One wait for two kinds of signals: notifications of a PostgreSQL server (LISTEN and NOTIFY), and events of this
// process.
//
//     postgres_bell CONNECTION CHANNEL
//
// Prints `database: PAYLOAD` for each notification on the channel and `local: LINE` for each line of standard input,
// which another thread reads. Ends on SIGTERM or SIGINT. A program that outgrows one machine can signal through the
// database that it already uses, and waits as before.
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <iostream>
#include <libpq-fe.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

tocsin::manual_reset_event shutdown_asked;

// set() is safe in a signal handler.
extern "C" void on_signal(int) { shutdown_asked.set(); }

// Lines from another thread: a queue, and an event that is set when there is something in the queue.
class inbox {
public:
    void put(std::string line) {
        {
            const std::lock_guard lock(mutex_);
            lines_.push_back(std::move(line));
        }
        filled_.set();
    }
    std::deque<std::string> take_all() {
        const std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }
    tocsin::auto_reset_event& filled() { return filled_; }

private:
    std::mutex mutex_;
    std::deque<std::string> lines_;
    tocsin::auto_reset_event filled_;
};

class database {
public:
    database(const char* where, const std::string& channel) : connection_(PQconnectdb(where), PQfinish) {
        if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
        const std::unique_ptr<char, void (*)(void*)> name(
            PQescapeIdentifier(connection_.get(), channel.c_str(), channel.size()), PQfreemem);
        if (name == nullptr) fail();
        const std::unique_ptr<PGresult, void (*)(PGresult*)> answer(
            PQexec(connection_.get(), (std::string("LISTEN ") + name.get()).c_str()), PQclear);
        if (PQresultStatus(answer.get()) != PGRES_COMMAND_OK) fail();
    }

    // A source that is ready when the server has sent something.
    tocsin::source talks() const { return tocsin::readable(PQsocket(connection_.get())); }

    // Reads what has arrived, and calls `heard` for each notification.
    template <class Heard>
    void listen(Heard heard) {
        if (PQconsumeInput(connection_.get()) == 0) fail();
        while (
            const std::unique_ptr<PGnotify, void (*)(void*)> note{PQnotifies(connection_.get()), PQfreemem}) {
            heard(note->extra);
        }
    }

private:
    [[noreturn]] void fail() const { throw std::runtime_error(PQerrorMessage(connection_.get())); }

    std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

void serve(database& server, inbox& local) {
    std::puts("listening");
    for (;;) {
        std::fflush(stdout);
        switch (tocsin::wait_any(shutdown_asked, local.filled(), server.talks()).index) {
            case 0: std::puts("bye"); return;
            case 1:
                for (const std::string& line : local.take_all()) std::printf("local: %s\n", line.c_str());
                break;
            case 2: server.listen([](const char* payload) { std::printf("database: %s\n", payload); }); break;
        }
    }
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fputs("usage: postgres_bell CONNECTION CHANNEL\n", stderr);
        return 2;
    }
    std::signal(SIGTERM, on_signal);
    std::signal(SIGINT, on_signal);
    database server(argv[1], argv[2]);
    static inbox local;
    // Nothing can interrupt a thread that reads standard input, so this one ends with the process.
    std::thread([] {
        for (std::string line; std::getline(std::cin, line);) local.put(line);
    }).detach();
    serve(server, local);
    std::fflush(stdout);
    std::_Exit(0);
} catch (const std::exception& error) {
    std::fprintf(stderr, "postgres_bell: %s\n", error.what());
    return 1;
}

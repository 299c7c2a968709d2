// SPDX-License-Identifier: Apache-2.0
// State: a pair of connected sockets. A thread of the soak writes a request and reads the answer under a lock, so at
// most one request is on its way. A request that waits for the end of a process holds up the other threads until then,
// but no process.
//
// Death of the soak: the process that forks reads the end of the stream, kills its children and ends.
#include "processes.hpp"

#if defined(__linux__)

#include <cerrno>
#include <mutex>
#include <set>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace soak {
namespace {

struct request {
    enum class kind { start, kill, wait };

    kind what;
    void (*body)(void*, std::uint32_t);
    void* memory;
    std::uint32_t number;
    pid_t id;
};

std::mutex mutex;
int to_forker = -1;  // under the lock

// Returns false at the end of the stream.
template <class T>
bool receive(int socket, T& into) {
    for (;;) {
        const ssize_t got = recv(socket, &into, sizeof into, MSG_WAITALL);
        if (got == static_cast<ssize_t>(sizeof into)) return true;
        if (got != -1 || errno != EINTR) return false;
    }
}

template <class T>
bool send_whole(int socket, const T& what) {
    for (;;) {
        const ssize_t sent = send(socket, &what, sizeof what, MSG_NOSIGNAL);
        if (sent == static_cast<ssize_t>(sizeof what)) return true;
        if (sent != -1 || errno != EINTR) return false;
    }
}

// Returns the status of waitpid(), or -1.
int end_of(pid_t id) {
    int status = -1;
    while (waitpid(id, &status, 0) == -1) {
        if (errno != EINTR) return -1;
    }
    return status;
}

pid_t fork_one(const request& wanted, int socket) {
    const pid_t child = fork();
    if (child != 0) return child;
    close(socket);
    wanted.body(wanted.memory, wanted.number);
    _exit(0);
}

[[noreturn]] void answer_requests(int socket) {
    std::set<pid_t> children;
    for (request one{}; receive(socket, one);) {
        int answer = 0;
        if (one.what == request::kind::start) {
            answer = fork_one(one, socket);
            if (answer > 0) children.insert(answer);
        } else {
            if (one.what == request::kind::kill) kill(one.id, SIGKILL);
            answer = end_of(one.id);
            children.erase(one.id);
        }
        if (!send_whole(socket, answer)) break;
    }
    for (const pid_t each : children) kill(each, SIGKILL);
    for (const pid_t each : children) (void)end_of(each);
    _exit(0);
}

int ask(const request& what) {
    const std::lock_guard lock(mutex);
    int answer = -1;
    return send_whole(to_forker, what) && receive(to_forker, answer) ? answer : -1;
}

}  // namespace

void prepare_processes() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (const int number : {SIGINT, SIGTERM}) signal(number, SIG_IGN);  // the soak decides when it ends
        answer_requests(ends[1]);
    }
    close(ends[1]);
    to_forker = ends[0];
}

pid_t start_process(void (*body)(void*, std::uint32_t), void* memory, std::uint32_t number) {
    return ask({request::kind::start, body, memory, number, 0});
}

void kill_process(pid_t id) { (void)ask({request::kind::kill, nullptr, nullptr, 0, id}); }

bool has_ended_well(pid_t id) {
    const int status = ask({request::kind::wait, nullptr, nullptr, 0, id});
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace soak

#endif

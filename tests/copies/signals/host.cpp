// SPDX-License-Identifier: Apache-2.0
// Loads three plug-ins, each with its own copy of the library. Each makes a source of SIGTERM, so the handler of each
// copy calls that of the copy before it. The host then plays one scene and reports how the process ends.
//
//     host <scene> <plug-in> <plug-in> <plug-in>
#include "plugin.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct loaded {
    void* handle = nullptr;
    const plugin_functions* call = nullptr;
};

loaded plugins[3];

void make_all() {
    for (const loaded& each : plugins) each.call->make();
}

// Each scene runs in a child process. It returns 0 if what it found is right.

int last_keeps_its_source() {
    make_all();
    plugins[0].call->destroy();
    plugins[1].call->destroy();
    std::raise(SIGTERM);
    return plugins[2].call->take() ? 0 : 1;
}

int middle_keeps_its_source() {
    make_all();
    plugins[0].call->destroy();
    plugins[2].call->destroy();
    std::raise(SIGTERM);
    return plugins[1].call->take() ? 0 : 1;
}

int first_keeps_its_source() {
    make_all();
    plugins[1].call->destroy();
    plugins[2].call->destroy();
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    return plugins[0].call->take() ? 0 : 1;
}

int nobody_keeps_a_source() {
    make_all();
    for (const loaded& each : plugins) each.call->destroy();
    std::raise(SIGTERM);
    return 0;
}

int child_of_a_fork() {
    make_all();
    if (const pid_t child = fork(); child != 0) {
        int status = 0;
        waitpid(child, &status, 0);
        for (const loaded& each : plugins) {
            if (each.call->take()) return 1;
        }
        if (WIFSIGNALED(status)) std::signal(WTERMSIG(status), SIG_DFL);
        if (WIFSIGNALED(status)) std::raise(WTERMSIG(status));
        return 2;
    }
    std::raise(SIGTERM);
    _exit(0);
}

// The first plug-in cannot be unloaded, because its copy has the table of all copies.
int second_is_unloaded() {
    plugins[1].call->make();
    plugins[2].call->make();
    plugins[1].call->destroy();
    dlclose(plugins[1].handle);
    std::raise(SIGTERM);
    return plugins[2].call->take() ? 0 : 1;
}

struct scene {
    const char* name;
    int (*play)();
    int ends_by;  // the signal that must end the process, or 0
};
const scene scenes[] = {
    {"last_keeps_its_source", last_keeps_its_source, 0},
    {"middle_keeps_its_source", middle_keeps_its_source, 0},
    {"first_keeps_its_source", first_keeps_its_source, 0},
    {"nobody_keeps_a_source", nobody_keeps_a_source, SIGTERM},
    {"child_of_a_fork", child_of_a_fork, SIGTERM},
    {"second_is_unloaded", second_is_unloaded, 0},
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) return 2;
    for (int i = 0; i != 3; ++i) {
        plugins[i].handle = dlopen(arguments[i + 2], RTLD_NOW | RTLD_LOCAL);
        if (plugins[i].handle == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        using entry = const plugin_functions* (*)();
        plugins[i].call = reinterpret_cast<entry>(dlsym(plugins[i].handle, "tocsin_test_plugin"))();
    }
    for (const scene& each : scenes) {
        if (std::strcmp(each.name, arguments[1]) != 0) continue;
        const pid_t child = fork();
        if (child == 0) _exit(each.play());
        int status = 0;
        waitpid(child, &status, 0);
        const int ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        std::printf("%s: ended by signal %d, must end by %d, exit code %d\n", each.name, ended_by,
                    each.ends_by, code);
        return ended_by == each.ends_by && code == 0 ? 0 : 1;
    }
    return 2;
}
